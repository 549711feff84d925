"""Three ways to change, and the relative ratio of each."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

x = np.linspace(-4, 4, 500)
before = norm.pdf(x)
AFTER = {
    "the level rose": norm.pdf(x, 1),
    "the spread doubled": norm.pdf(x, 0, 2),
    "a second group appeared": 0.7 * norm.pdf(x) + 0.3 * norm.pdf(x, 2.6, 0.4),
}

fig, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, sharey="row", layout="constrained")
for (above, below), (title, after) in zip(axes.T, AFTER.items(), strict=True):
    above.plot(x, before, color="#0072b2", label="reference")
    above.plot(x, after, color="#d55e00", label="target")
    above.set_title(title, fontsize=12)
    ratio = after / (0.9 * before + 0.1 * after)
    below.axhline(1, color="grey", linestyle="--", linewidth=1)
    below.plot(x, ratio, color="black")
    below.fill_between(x, 1, ratio, where=ratio > 1, color="#d55e00", alpha=0.25)
    below.fill_between(x, 1, ratio, where=ratio < 1, color="#0072b2", alpha=0.25)
    below.set_xlabel("measured value")
axes[0, 0].set_ylabel("density")
axes[1, 0].set_ylabel("ratio")
axes[0, 0].legend(frameon=False, loc="upper left", fontsize=9)
for ax in axes.flat:
    ax.spines[["top", "right"]].set_visible(False)
