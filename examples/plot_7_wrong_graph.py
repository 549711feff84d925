"""
A wrong graph, and what the library says about it
=================================================

A good graph lets nodes help each other; a wrong one joins nodes that have nothing in common. Which
one do you have? Sixty-four stations along a coast change in stretches. One graph joins
neighbours along the coast; the other has the same number of edges between random stations.
"""

# %%
import textwrap

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

rng = np.random.default_rng(0)
n_nodes, n = 64, 40
stretch = np.arange(n_nodes) // 16
shift = np.array([0.0, 1.2, 0.0, -1.2])[stretch]
reference = rng.normal(size=(n_nodes, n, 1))
target = rng.normal(size=(n_nodes, n, 1)) + shift[:, None, None]
samples = gr.NodeSamples.from_arrays(reference, target)

coast = [(i, j) for i in range(n_nodes) for j in range(i + 1, i + 4) if j < n_nodes]
order = rng.permutation(n_nodes)
graphs = {
    "coast": gr.Graph.from_edges(coast, nodes=range(n_nodes)),
    "random": gr.Graph.from_edges(
        [(int(order[i]), int(order[j])) for i, j in coast], nodes=range(n_nodes)
    ),
}

# %%
# What the library says
# ---------------------
# Every candidate is fitted on the same folds and judged on observations, and on whole stations,
# that were left out. Two fits without a graph are always in the comparison.
found = gr.compare_graphs(samples, graphs, random_state=0)
print(textwrap.fill(found.verdict, 80))

# %%
# How can a graph that is worth so much make no clear difference? Forty observations describe a
# station well enough without help, so the loss has little room to fall. The worth asks another
# question: with the graph, how few observations would do as well as these forty?
found.summary()

# %%
# Where it helped and where it hurt
# ---------------------------------
found.plot()

# %%
# What a wrong graph does to the estimate
# ---------------------------------------
# The ratios of the sixteen stations of one stretch, all of which changed alike. Selection keeps a
# wrong graph from doing much harm: it takes a weak penalty, and the estimates are those of single
# stations. With a strong penalty they are pulled towards stations that changed the other way.
fits = {
    "coast": gr.GRULSIF(prior_ratio=1, random_state=0).fit(samples, graphs["coast"]),
    "random": gr.GRULSIF(prior_ratio=1, random_state=0).fit(samples, graphs["random"]),
}
strong = fits["coast"].get_params() | {
    "bandwidth": fits["coast"].bandwidth_,
    "graph_penalty": fits["coast"].graph_penalty_,
    "ridge": fits["coast"].ridge_,
}
fits["random, penalty of the coast"] = gr.GRULSIF(**strong).fit(samples, graphs["random"])
x = np.linspace(-2.5, 3.5, 200)
truth = 1 / (0.9 * np.exp(-1.2 * (x - 0.6)) + 0.1)
fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, fits.items(), strict=True):
    for node in np.flatnonzero(stretch == 1):
        ax.plot(x, model.predict(x, node=int(node)), color="#0072b2", linewidth=0.8, alpha=0.7)
    ax.plot(x, truth, "--", color="#222222", linewidth=1.8)
    ax.axhline(1, color="#d55e00", linewidth=0.8)
    ax.set_title(f"{name} (penalty {model.graph_penalty_:.2g})", fontsize=11)
    ax.set(xlabel="x", ylim=(0, 7))
axes[0].plot([], [], color="#0072b2", label="estimates")
axes[0].plot([], [], "--", color="#222222", label="truth")
axes[0].legend(frameon=False)
