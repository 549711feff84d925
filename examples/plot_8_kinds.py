"""
Kinds of change in a network
============================

Ninety sensors. In one district readings went up, in another they became more variable, elsewhere
nothing happened. ``gr.kinds_of_change`` tests every sensor, and says which of the changed ones
changed *in the same way*, without being told how many ways there are.
"""

# sphinx_gallery_thumbnail_number = 2

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
# A test at every sensor decides whether it changed; the estimator says in which way.
model = gr.GraphRatio(random_state=0).fit(samples, graph)
found = gr.kinds_of_change(samples, graph, model, random_state=0)
print(found)
for name, truth in (("went up", up), ("more variable", wild), ("unchanged", ~(up | wild))):
    labels, counts = np.unique(found.kinds[truth], return_counts=True)
    print(
        f"{name}:", ", ".join(f"{count} {kind}" for kind, count in zip(labels, counts, strict=True))
    )

# %%
# Left: the map by kind of change, with the truth as rings. Right: the mean ratio of each kind,
# which is its meaning: one kind moves to the right, the other leaves the middle.
where, along = found.plot()
for truth, edge in ((up, "#222222"), (wild, "#888888")):
    where.scatter(*places[truth].T, s=170, facecolors="none", edgecolors=edge, linewidths=1.2)
where.set_title("found: colour; truth: black ring up, grey ring variable", fontsize=10, loc="left")

# %%
# Where the sensors are in the plane of profiles
# ----------------------------------------------
# Every ratio is 1 plus a combination of a few profiles shared by all. The coordinates of the
# sensors form one arm per kind of change, and unchanged sensors sit at the origin.
fig, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
first, second = model.coordinates_[:, 0], model.coordinates_[:, min(1, model.n_profiles_ - 1)]
for kind in found.counts:
    members = found.kinds == kind
    ax.scatter(first[members], second[members], edgecolors="0.5", linewidths=0.4, label=kind)
ax.set(xlabel="first profile", ylabel="second profile")
ax.legend(frameon=False)
