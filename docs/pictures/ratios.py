"""Two densities and samples from them; their ratio, in truth and estimated."""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import graphratio as gr

rng = np.random.default_rng(0)
p, q = stats.norm(0, 1), stats.norm(1, 1)
reference, target = p.rvs(400, random_state=rng), q.rvs(400, random_state=rng)
model = gr.RULSIF(alpha=0.1, random_state=0).fit((reference, target))
x = np.linspace(-2.6, 3.4, 300)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for density, sample, colour, name in (
    (p, reference, "#0072b2", "reference, p"),
    (q, target, "#d55e00", "target, q"),
):
    left.hist(sample, np.linspace(-3, 4, 29), density=True, color=colour, alpha=0.25)
    left.plot(x, density.pdf(x), color=colour, linewidth=2, label=name)
left.set(title="two samples and their densities", xlabel="x", yticks=[])
left.legend(frameon=False)
right.plot(x, q.pdf(x) / (0.9 * p.pdf(x) + 0.1 * q.pdf(x)), "--", color="0.5", label="truth")
right.plot(x, model.predict(x, node=0), color="#222222", linewidth=2, label="estimated")
right.axhline(1, color="#d55e00", linewidth=0.8)
right.fill_between(x, 0, 7, where=x > 0.5, color="#d55e00", alpha=0.06, linewidth=0)
right.fill_between(x, 0, 7, where=x <= 0.5, color="#0072b2", alpha=0.06, linewidth=0)
right.annotate("became more frequent", (3.3, 6.2), ha="right", fontsize=9, color="#d55e00")
right.annotate("became rarer", (-2.5, 6.2), fontsize=9, color="#0072b2")
right.set(title="the ratio, alpha = 0.1", xlabel="x", ylim=(0, 7))
right.legend(frameon=False, loc="center left")
