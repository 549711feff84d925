"""Two densities, and the ratio of their heights at two points."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

x = np.linspace(-3.5, 4.5, 400)
reference, target = norm(0, 1), norm(1, 1)

fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for law, colour, name in ((reference, "#0072b2", "reference"), (target, "#d55e00", "target")):
    ax.fill_between(x, law.pdf(x), color=colour, alpha=0.25)
    ax.plot(x, law.pdf(x), color=colour, label=name)
for point, side in ((-0.5, "right"), (1.7, "left")):
    heights = target.pdf(point), reference.pdf(point)
    ax.vlines(point, 0, max(heights), color="black", linewidth=1)
    ax.plot([point] * 2, heights, "o", color="black", markersize=5)
    ax.annotate(
        f"{heights[0]:.2f} / {heights[1]:.2f} = {heights[0] / heights[1]:.2f}",
        (point, max(heights)), (-10 if side == "right" else 10, 12),
        textcoords="offset points", ha=side, fontsize=12,
    )  # fmt: skip
ax.set(xlabel="measured value", ylabel="density", ylim=(0, 0.5))
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
