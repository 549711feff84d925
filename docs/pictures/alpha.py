"""The relative ratio at three alphas: the truth, and estimates from twenty samples."""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import graphratio as gr

p, q = stats.norm(0, 1), stats.norm(1.5, 0.7)
x = np.linspace(-2, 4, 240)
fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, alpha, top in zip(axes, (0.01, 0.1, 0.5), (26, 9, 2.3), strict=True):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = gr.RULSIF(alpha=alpha, bandwidth=0.7, ridge=0.01, random_state=0)
        model.fit((p.rvs(100, random_state=rng), q.rvs(100, random_state=rng)))
        ax.plot(x, model.predict(x, node=0), color="#0072b2", linewidth=0.7, alpha=0.6)
    truth = q.pdf(x) / ((1 - alpha) * p.pdf(x) + alpha * q.pdf(x))
    ax.plot(x, truth, "--", color="#222222", linewidth=1.6)
    ax.axhline(1, color="#d55e00", linewidth=0.8)
    ax.set(title=f"alpha = {alpha}: at most {1 / alpha:g}", xlabel="x", ylim=(0, top))
axes[0].plot([], [], "--", color="#222222", label="truth")
axes[0].plot([], [], color="#0072b2", label="20 estimates, 100 observations each")
axes[0].legend(frameon=False, fontsize=9, loc="upper left")
