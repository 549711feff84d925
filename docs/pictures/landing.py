"""What the library does, in one picture: which nodes, what data, what kind of change."""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import graphratio as gr

BEFORE, AFTER, INK = "#0072b2", "#d55e00", "#222222"

rng = np.random.default_rng(12)
places = rng.uniform(size=(80, 2))
changed = np.hypot(*(places - (0.68, 0.62)).T) < 0.24
graph = gr.Graph.from_coordinates(places, k=5)
# The changed sensors read the same on average, but in two ways: far too low or too high.
p = stats.norm(0, 1)
n = 40
reference = p.rvs((80, n, 1), random_state=rng)
target = p.rvs((80, n, 1), random_state=rng)
side = np.where(rng.random((80, n, 1)) < 0.5, -1.6, 1.6)
target[changed] = (side + 0.5 * rng.normal(size=(80, n, 1)))[changed]
samples = gr.NodeSamples.from_arrays(reference, target)
model = gr.GRULSIF(alpha=0.1, prior_ratio=1, random_state=0).fit(samples, graph)
test = gr.two_sample_test(samples, graph, random_state=0)
alone = gr.RULSIF(alpha=0.1, random_state=0).fit(samples, graph)


def truth(x):
    """Relative ratio of a changed sensor."""
    q = 0.5 * stats.norm(-1.6, 0.5).pdf(x) + 0.5 * stats.norm(1.6, 0.5).pdf(x)
    return q / (0.9 * p.pdf(x) + 0.1 * q)


chosen = int(np.flatnonzero(changed)[np.argsort(model.divergence_[changed])[changed.sum() // 2]])
fig, (left, middle, right) = plt.subplots(
    1, 3, figsize=(11, 3.7), width_ratios=(1.25, 1, 1), layout="constrained"
)
for a, b in zip(*graph.adjacency.nonzero(), strict=True):
    if a < b:
        left.plot(*places[[a, b]].T, color="0.85", linewidth=0.8, zorder=0)
points = left.scatter(
    *places.T, c=model.divergence_, cmap="YlGnBu", s=50, vmin=0, edgecolors="0.6", linewidths=0.5
)
left.scatter(*places[test.rejected].T, s=95, facecolors="none", edgecolors=INK, linewidths=1.3)
left.annotate(
    "this one",
    places[chosen],
    xytext=(places[chosen, 0] + 0.1, places[chosen, 1] + 0.12),
    fontsize=10,
    arrowprops={"arrowstyle": "-", "color": INK},
)
fig.colorbar(points, ax=left, shrink=0.7, pad=0.02, label="how much it changed")
left.set_title("Which changed? (ringed: significant)", loc="left", fontsize=11)
left.set_aspect("equal")
left.set_axis_off()

bins = np.linspace(-3.2, 3.2, 17)
for sample, colour, name in ((reference, BEFORE, "before"), (target, AFTER, "after")):
    middle.hist(sample[chosen, :, 0], bins, color=colour, alpha=0.35)
    middle.hist(
        sample[chosen, :, 0], bins, color=colour, histtype="step", linewidth=1.4, label=name
    )
middle.set_title(f"Its data: {n} readings each", loc="left", fontsize=11)
middle.set_xlabel("reading")
middle.set_yticks([])
middle.set_ylim(0, 9.5)
middle.legend(frameon=False, loc="upper left", ncols=2)

x = np.linspace(-3, 3, 300)
right.plot(x, truth(x), "--", color="0.5", label="truth")
right.plot(x, alone.predict(x, node=chosen), color="0.7", linewidth=1.4, label="this sensor alone")
right.plot(x, model.predict(x, node=chosen), color=INK, linewidth=2.2, label="with its neighbours")
right.axhline(1, color=AFTER, linewidth=0.8)
right.annotate("1: no change", (-2.95, 1.1), color=AFTER, fontsize=9)
right.set_title("In what way: ratio of after to before", loc="left", fontsize=11)
right.set_xlabel("reading")
right.set_ylim(0, 4.6)
right.legend(frameon=False, loc="upper center", fontsize=9)
for ax in (middle, right):
    ax.spines[["top", "right"]].set_visible(False)
middle.spines["left"].set_visible(False)
