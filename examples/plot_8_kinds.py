"""
Kinds of change in a network
============================

Ninety sensors. In one district readings went up, in another they became more variable, elsewhere
nothing happened. A divergence says how much each of them changed; ``GraphRatio`` also says
which of them changed *in the same way*, without being told how many ways there are.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

rng = np.random.default_rng(2)
n_nodes, n = 90, 100
places = rng.uniform(size=(n_nodes, 2))
up = np.hypot(*(places - (0.25, 0.7)).T) < 0.24
wild = np.hypot(*(places - (0.75, 0.3)).T) < 0.24
graph = gr.Graph.from_coordinates(places, k=5)
reference = rng.normal(size=(n_nodes, n, 1))
target = rng.normal(size=(n_nodes, n, 1))
target[up] += 1.2
target[wild] *= 2.0
samples = gr.NodeSamples.from_arrays(reference, target, feature_names=["reading"])
print(f"{up.sum()} went up, {wild.sum()} became more variable, of {n_nodes}")

# %%
# Which sensors changed alike
# ---------------------------
model = gr.GraphRatio(random_state=0).fit(samples, graph)
kinds = sorted(set(model.kinds_))
print(f"{model.n_profiles_} profiles; kinds: {', '.join(kinds)}")
for name, truth in (("went up", up), ("more variable", wild), ("unchanged", ~(up | wild))):
    found, counts = np.unique(model.kinds_[truth], return_counts=True)
    print(
        f"{name}:", ", ".join(f"{count} {kind}" for kind, count in zip(found, counts, strict=True))
    )

# %%
# Left: the map by kind of change, with the truth as rings. Right: the ratio of a typical sensor of
# each kind, which is its meaning: one kind moves to the right, the other leaves the middle.
colours = dict(
    zip(kinds, ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#f0e442"), strict=False)
) | {"unchanged": "#d5dde3"}
fig, (left, right) = plt.subplots(
    1, 2, figsize=(11.5, 4.8), width_ratios=(1, 1.25), layout="constrained"
)
for a, b in zip(*graph.adjacency.nonzero(), strict=True):
    if a < b:
        left.plot(*places[[a, b]].T, color="0.88", linewidth=0.8, zorder=0)
left.scatter(*places.T, c=[colours[kind] for kind in model.kinds_], s=70)
for truth, edge in ((up, "#222222"), (wild, "#888888")):
    left.scatter(*places[truth].T, s=170, facecolors="none", edgecolors=edge, linewidths=1.2)
left.set_title("found: colour; truth: black ring up, grey ring variable", fontsize=10, loc="left")
left.set_aspect("equal")
left.set_axis_off()
x = np.linspace(-3, 3.5, 200)
for kind in kinds:
    mine = np.flatnonzero(model.kinds_ == kind)
    middle = np.median([model.predict(x, node=int(v)) for v in mine], axis=0)
    right.plot(x, middle, color=colours[kind], linewidth=2.4, label=f"{kind} ({len(mine)} sensors)")
right.axhline(1, color="0.4", linestyle="--", linewidth=0.9)
right.set(xlabel="reading", ylabel="ratio, after / before", title="what each kind means")
right.legend(frameon=False)

# %%
# Where the sensors are in the plane of profiles
# ----------------------------------------------
# Every ratio is 1 plus a combination of a few profiles shared by all. The coordinates of the
# sensors form one arm per kind of change, and unchanged sensors sit at the origin.
fig, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
first, second = model.coordinates_[:, 0], model.coordinates_[:, min(1, model.n_profiles_ - 1)]
ax.scatter(
    first, second, c=[colours[kind] for kind in model.kinds_], edgecolors="0.5", linewidths=0.4
)
ax.set(xlabel="first profile", ylabel="second profile")
