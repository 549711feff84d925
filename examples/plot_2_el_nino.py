"""
El Nino on 421 ocean blocks
===========================

The surface of the ocean along the equator, in 421 blocks: monthly temperatures of a La Nina winter
(2007/08) against those of an El Nino winter (2009/10). Neighbouring blocks are joined. A map of
mean differences would show the warm tongue in the Pacific; the ratios also show blocks whose mean
hardly moves while their *distribution* does.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

data = gr.datasets.load_sea_temperature()
model = gr.GRULSIF(prior_ratio=1, bandwidth=[0.15, 0.3, 0.6], tol=1e-4, random_state=0)
model = model.fit(data.samples.standardized(), data.graph)

# %%
# Where the ocean changed
# -----------------------
# Each square is a block, in the colour of its divergence; below, the same for the change of the
# mean. The two agree on the central Pacific. They differ where the temperature became more or less
# variable without becoming higher.
latitude, longitude = data.graph.coordinates.T
east = longitude % 360
mean_change = np.array(
    [data.samples.target(v).mean() - data.samples.reference(v).mean() for v in data.samples.nodes]
)
fig, axes = plt.subplots(2, 1, figsize=(7.6, 3.8), sharex=True, layout="constrained")
pictures = (
    (model.divergence_, "Pearson divergence", {"cmap": "YlGnBu", "vmin": 0}),
    (mean_change, "change of the mean, degrees", {"cmap": "RdBu_r", "vmin": -4, "vmax": 4}),
)
for ax, (values, title, colours) in zip(axes, pictures, strict=True):
    points = ax.scatter(east, latitude, c=values, s=42, marker="s", **colours)
    fig.colorbar(points, ax=ax, pad=0.01)
    ax.set_title(title, loc="left", fontsize=11)
    ax.set_ylabel("latitude")
    ax.set_ylim(-6.4, 5.8)
axes[1].set_xlabel("longitude, degrees east")
for place, where in (("Indian Ocean", 75), ("Pacific", 200), ("Atlantic", 335)):
    axes[1].annotate(place, (where, -6.2), ha="center", fontsize=9)

# %%
# Three blocks
# ------------
# In the central Pacific the two winters hardly overlap: the ratio is at its bound of 1 / alpha = 10
# where only El Nino goes. In the Indian Ocean warm water became more frequent, and in the Atlantic
# cool water.
fig, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
centres = np.column_stack([latitude, east])
for ax, (where, place) in zip(
    axes,
    (("central Pacific", (1, 200)), ("Indian Ocean", (-1, 75)), ("Atlantic", (1, 335))),
    strict=True,
):
    node = model.nodes_[int(np.abs(centres - place).sum(axis=1).argmin())]
    gr.plot_node(model, data.samples, node, ax=ax, reference_name="La Nina", target_name="El Nino")
    ax.set_xlabel(f"{where}: temperature")
