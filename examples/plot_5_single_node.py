"""
One node only: RULSIF, ULSIF and KLIEP beside the truth
=======================================================

Without a graph, or with a single pair of samples, the classical estimators are behind the same
interface. Two normal samples whose true ratio is known, so that all of them can be compared.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import graphratio as gr

rng = np.random.default_rng(0)
p, q = stats.norm(0, 1), stats.norm(0.8, 0.6)
reference, target = p.rvs(200, random_state=rng), q.rvs(200, random_state=rng)
x = np.linspace(-3, 3, 300)
models = {
    "RULSIF, alpha = 0.1": gr.RULSIF(alpha=0.1, random_state=0),
    "RULSIF, alpha = 0.5": gr.RULSIF(alpha=0.5, random_state=0),
    "ULSIF": gr.ULSIF(random_state=0),
    "KLIEP": gr.KLIEP(random_state=0),
}

# %%
# ULSIF and KLIEP estimate the plain ratio q / p; RULSIF the relative one, which is bounded by
# 1 / alpha and therefore steadier. Each curve should follow *its own* dashed truth. Beyond 2 there
# are hardly any reference observations (blue ticks), and none of them is to be trusted there.
fig, axes = plt.subplots(2, 2, figsize=(10, 6.4), sharex=True, layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit((reference, target))
    alpha = getattr(model, "alpha", 0.0)
    truth = q.pdf(x) / ((1 - alpha) * p.pdf(x) + alpha * q.pdf(x))
    ax.plot(x, truth, "--", color="0.5", label="truth")
    ax.plot(x, model.predict(x, node=0), color="#d55e00", linewidth=2, label="estimate")
    ax.axhline(1, color="0.8", linewidth=0.8, zorder=0)
    ax.plot(reference, np.full(200, -0.05), "|", color="#0072b2", alpha=0.5, clip_on=False)
    ax.plot(target, np.full(200, -0.13), "|", color="#d55e00", alpha=0.5, clip_on=False)
    ax.set(title=f"{name}: divergence {model.divergence_[0]:.2f}", ylim=(-0.2, 3.2))
    ax.legend(frameon=False)

# %%
# How the error falls with the sample size
# ----------------------------------------
# Mean squared error against the truth each of them aims at, over the mixture that it is measured
# under; the median of 5 draws.
sizes = [50, 100, 200, 400, 800]
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for (name, model), marker in zip(models.items(), "os^D", strict=True):
    alpha = getattr(model, "alpha", 0.0)
    typical = []
    for n in sizes:
        errors = []
        for seed in range(5):
            draw = np.random.default_rng(seed)
            model.fit((p.rvs(n, random_state=draw), q.rvs(n, random_state=draw)))
            points = np.where(
                draw.random(4000) < alpha,
                q.rvs(4000, random_state=draw),
                p.rvs(4000, random_state=draw),
            )
            truth = q.pdf(points) / ((1 - alpha) * p.pdf(points) + alpha * q.pdf(points))
            errors.append(np.mean((model.predict(points, node=0) - truth) ** 2))
        typical.append(np.median(errors))
    ax.loglog(sizes, typical, marker=marker, label=name)
ax.set(xlabel="observations in each sample", ylabel="mean squared error")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
