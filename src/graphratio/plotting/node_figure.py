"""One node: histograms of its two samples, and the estimated ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.alignment import as_samples
from graphratio.plotting import columns, style

_GRID_POINTS = 240
_MOST_BINS = 50

# The scale of ratios ends here or above, so that small waves look small.
_LOWEST_TOP = 2.0


def plot_node(
    model: Any,
    samples: Any,
    node: Label,
    feature: str | int | None = None,
    ax: Any = None,
    *,
    reference_name: str = "reference",
    target_name: str = "target",
) -> Any:
    """Draw the two samples of a node, and above them the estimated ratio along a feature.

    The ratio = target / reference covers the range of the node's data; it is dotted over the outer
    1% of them, where it rests on very few observations and may leave the figure. A dashed line
    marks 1, no change. Thin lines are the ratios of the node's neighbours in the graph. Other
    features are held at the node's medians, categories at the most frequent level.

    Parameters
    ----------
    model : fitted estimator
    samples : NodeSamples, or a tuple (reference, target)
        The data of the fit, before or after `standardized`.
    node : label
    feature : str or int, optional
        Name or number of the feature, or of a column of categories; default the first.
    ax : matplotlib Axes, optional
        The histograms take the lower part; the upper part becomes axes for the ratio. Default:
        those of a new figure.
    reference_name, target_name : str
        Names of the samples in the legend.

    Returns
    -------
    matplotlib Axes
        Those of the histograms; the axes of the ratio are the last of the figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=12, random_state=0)
    >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.08, ridge=0.008)
    >>> model = model.fit(scenario.samples, scenario.graph)
    >>> ax = gr.plot_node(model, scenario.samples, node=11)
    >>> ax.get_xlabel()
    'x0'
    """
    style.check_fitted(model)
    position = model.graph_.position(node)
    names, levels = columns.columns_of(model)
    column = columns.feature_column(model, feature)
    data = columns.in_columns(columns.raw_samples(as_samples(samples), model))
    reference, target = data.reference(node), data.target(node)
    both = np.vstack([reference, target])
    if not len(both):
        raise InputError(
            f"node {node!r} has no observations to draw", "Choose a node with at least one sample"
        )
    logarithmic = columns.takes_logarithm(model, column)
    grid, along = columns.axis_of(both[:, column], levels[column], _GRID_POINTS, logarithmic)
    if levels[column]:
        bins, low, high = np.unique(grid), grid[0], grid[-1]
    else:
        n_bins = int(np.clip(2 * np.cbrt(len(both)), 5, _MOST_BINS))
        bins = columns.evenly(both[:, column], n_bins + 1, logarithmic)
        low, high = np.quantile(both[:, column], columns.SHOWN_QUANTILES)
    ax = style.axes_or_new(ax, (7.0, 4.8))
    upper = _upper_part(ax)
    _draw_histogram(ax, bins, reference[:, column], reference_name, style.REFERENCE_COLOUR)
    _draw_histogram(ax, bins, target[:, column], target_name, style.TARGET_COLOUR)
    ax.set_ylabel("% of the sample")
    ax.legend(frameon=False, fontsize=8.5)
    style.without_frame(ax, "top", "right")
    centre = columns.typical_values(both, levels)
    points = columns.points_along(model.encoding_, centre, column, along)
    _draw_ratios(upper, model, grid, points, (low, high), position)
    columns.scale_column(ax, levels[column], logarithmic)
    ax.set_xlim(grid[0], grid[-1])
    name, others = names[column], len(names) > 1
    ax.set_xlabel(f"{name} (other features at the node's medians)" if others else name)
    divergence = model.divergence_[position]
    shown = "undefined" if np.isnan(divergence) else f"{divergence:.3g}"
    style.set_heading(upper, f"{node}: {model.divergence_name_} divergence {shown}")
    return ax


def _upper_part(ax: Any) -> Any:
    """Turn the upper half of axes into axes with the same horizontal scale."""
    whole = ax.get_subplotspec()
    if whole is not None:
        above, below = whole.subgridspec(2, 1, height_ratios=(1.1, 1), hspace=0.1)
        ax.set_subplotspec(below)
        upper = ax.figure.add_subplot(above, sharex=ax)
    else:
        box = ax.get_position()
        half = 0.47 * box.height
        ax.set_position((box.x0, box.y0, box.width, half))
        upper = ax.figure.add_axes((box.x0, box.y1 - half, box.width, half), sharex=ax)
    upper.tick_params(labelbottom=False)
    return upper


def _draw_histogram(ax: Any, bins: FloatArray, values: FloatArray, name: str, colour: str) -> None:
    if len(values):
        how = {"weights": np.full(len(values), 100 / len(values)), "color": colour}
        label = f"{name} (n = {len(values)})"
        ax.hist(values, bins, alpha=0.3, **how)
        ax.hist(values, bins, histtype="step", linewidth=1.4, label=label, **how)


def _draw_ratios(
    ax: Any,
    model: Any,
    grid: FloatArray,
    points: FloatArray,
    usual: tuple[float, float],
    position: int,
) -> None:
    """Draw the ratios of the node and, as thin lines, of its neighbours."""
    node, graph = model.nodes_[position], model.graph_
    start, end = graph.adjacency.indptr[position : position + 2]
    neighbours = [model.nodes_[i] for i in graph.adjacency.indices[start:end]]
    inside = (grid >= usual[0]) & (grid <= usual[1])
    highest = _LOWEST_TOP
    # Neighbours with scales of their own are drawn at what is as usual there.
    points = columns.in_scale_of_fit(model, points, position)
    for number, other in enumerate(neighbours):
        ratio = model.predict(points, node=other, standardized=True)
        count = "its neighbour" if len(neighbours) == 1 else f"its {len(neighbours)} neighbours"
        label = count if number == 0 else None
        thin = {"color": style.FAINT, "linewidth": 0.7, "alpha": 0.7, "label": label}
        ax.plot(grid[inside], ratio[inside], **thin)
        highest = max(highest, float(ratio[inside].max()))
    ratio = model.predict(points, node=node, standardized=True)
    ax.axhline(1.0, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)), label="1 = no change")
    if not inside.all():
        ax.plot(grid, ratio, ":", color=style.INK, linewidth=1.2, label="outer 1% of the data")
    ax.plot(grid[inside], ratio[inside], color=style.INK, linewidth=2.0, label=str(node))
    ax.set_ylim(0.0, 1.08 * max(highest, float(ratio[inside].max())))
    ax.set_ylabel("target / reference")
    ax.legend(frameon=False, fontsize=8.5)
    style.without_frame(ax, "top", "right")
