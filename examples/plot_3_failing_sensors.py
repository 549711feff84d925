"""
A cluster of sensors fails
==========================

Eighty sensors measure two correlated quantities. From step 260 on, the sensors of one district
wear out: the mean stays, but the two quantities lose their correlation. First a test says *which*
sensors changed, then the change-point detector says *since when*, without being told.
"""

# sphinx_gallery_thumbnail_number = 1

# %%
# The network
# -----------
import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr
from graphratio.plotting.graph_map import plot_significance

rng = np.random.default_rng(3)
places = rng.uniform(size=(80, 2))
failing = np.hypot(*(places - (0.3, 0.65)).T) < 0.2
graph = gr.Graph.from_coordinates(places, k=5)

n_times, failure = 400, 260
first = rng.normal(size=(n_times, 80))
noise = rng.normal(size=(n_times, 80))
correlation = np.full((n_times, 80), 0.8)
correlation[failure:, failing] = 0.0
panel = np.stack([first, correlation * first + np.sqrt(1 - correlation**2) * noise], axis=2)
print(f"{failing.sum()} of 80 sensors fail at step {failure}")

# %%
# One feature at a time there is nothing to see: neither mean nor spread moves.
sensor = int(np.flatnonzero(failing)[0])
fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.5), sharex=True, sharey=True, layout="constrained")
for ax, part, title in (
    (axes[0], panel[160:260, sensor], "before"),
    (axes[1], panel[260:360, sensor], "after"),
):
    ax.plot(
        *part.T, "o", markersize=4, alpha=0.6, color="#0072b2" if title == "before" else "#d55e00"
    )
    ax.set_title(f"sensor {sensor}, {title}", loc="left", fontsize=11)
    ax.set_xlabel("first quantity")
axes[0].set_ylabel("second quantity")

# %%
# Which sensors: the test
# -----------------------
# Sixty steps before the failure against sixty after it. Every node is tested at a family-wise
# level of 5 %, and neighbours tell each other where to look.
samples = gr.NodeSamples.from_arrays(
    panel[200:260].transpose(1, 0, 2), panel[260:320].transpose(1, 0, 2)
)
test = gr.two_sample_test(samples, graph, random_state=0)
right, wrong = (test.rejected & failing).sum(), (test.rejected & ~failing).sum()
print(f"found {right} of {failing.sum()}, falsely {wrong}")
ax = plot_significance(test, n_labels=0)
ax.scatter(*places[failing].T, s=280, facecolors="none", edgecolors="#d55e00", linewidths=1.2)
ax.set_title("dark: significant; circled: truly failing", loc="left", fontsize=11)

# %%
# Since when: the change-point
# ----------------------------
# Now the whole series, with no hint when anything happened. Before and after are compared at all
# scales; the threshold allows a false alarm in one of twenty such panels in which nothing changes.
detector = gr.GraphChangePointDetector(random_state=0).fit(panel, graph)
event = detector.events_[0]
named = np.isin(np.arange(80), event.nodes)
right, wrong = (named & failing).sum(), (named & ~failing).sum()
print(f"step {event.time}, between {event.interval[0]} and {event.interval[1]}")
print(f"{right} of {failing.sum()} sensors named, {wrong} falsely")
print(detector.headline())
detector.plot()
