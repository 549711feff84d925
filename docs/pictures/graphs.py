"""Ratios of the nodes of one cluster, each alone and all together, beside the truth."""

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

scene = gr.datasets.make_scenario("Ia", n_nodes=40, n=50, random_state=0)
alone = gr.Pool(random_state=0).fit(scene.samples, scene.graph)
together = gr.GRULSIF(random_state=0).fit(scene.samples, scene.graph)
group = scene.groups[np.flatnonzero(scene.changed)[-1]]
nodes = np.flatnonzero(scene.groups == group)
values = scene.samples.values
x = np.linspace(*np.quantile(values, [0.005, 0.995]), 240)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, model, title in (
    (axes[0], alone, "each node alone"),
    (axes[1], together, "joined by the graph"),
):
    for node in nodes:
        ax.plot(
            x, model.predict(x[:, None], node=int(node)), color="#0072b2", linewidth=0.8, alpha=0.7
        )
    ax.plot(
        x,
        scene.true_ratio(x[:, None], node=int(nodes[0]), alpha=0.1),
        "--",
        color="#222222",
        linewidth=1.8,
    )
    error = scene.mean_squared_error(
        lambda points, node, model=model: model.predict(points, node=node), 0.1, random_state=1
    ).mean()
    ax.set(title=f"{title}: mean squared error {error:.2f}", xlabel="x")
    ax.axhline(1, color="#d55e00", linewidth=0.8)
axes[0].plot(
    [], [], color="#0072b2", label=f"the {len(nodes)} nodes of a cluster, 50 observations each"
)
axes[0].plot([], [], "--", color="#222222", label="truth")
axes[0].legend(frameon=False, fontsize=9)
