"""The same nodes by divergence and by p-value: only one of them knows about chance."""

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

rng = np.random.default_rng(5)
n_nodes = 40
sizes = rng.choice([12, 40, 150], n_nodes)
changed = np.arange(n_nodes) < 14
graph = gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])
reference = [rng.normal(size=size) for size in sizes]
target = [rng.normal(0.9 * moved, 1, size) for size, moved in zip(sizes, changed, strict=True)]
model = gr.Pool(prior_ratio=1, random_state=0).fit((reference, target), graph)
test = gr.two_sample_test((reference, target), graph, random_state=0)
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for is_changed, colour, name in ((True, "#d55e00", "changed"), (False, "#0072b2", "unchanged")):
    mine = changed == is_changed
    left.scatter(
        np.flatnonzero(mine),
        model.divergence_[mine],
        s=sizes[mine] * 0.6 + 12,
        color=colour,
        alpha=0.75,
    )
    right.scatter(
        np.flatnonzero(mine),
        test.adjusted_p_value[mine],
        s=sizes[mine] * 0.6 + 12,
        color=colour,
        alpha=0.75,
        label=name,
    )
left.set(title="divergence of every node by itself", xlabel="node (size: observations)")
right.axhline(0.05, color="0.3", linestyle="--", linewidth=1)
right.annotate("level 5 %", (n_nodes - 1, 0.043), va="top", ha="right", fontsize=9, color="0.3")
right.set(title="adjusted p-value of the test", xlabel="node", yscale="log")
right.legend(frameon=False, loc="lower right")
