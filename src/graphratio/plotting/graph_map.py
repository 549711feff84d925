"""Maps of the graph: nodes coloured by divergence, or by their effect in a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import check_flag, check_integer
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.graph import Graph
from graphratio.plotting import style
from graphratio.plotting.labels import label_nodes
from graphratio.plotting.layout import Layout, node_layout
from graphratio.plotting.outlines import Outlines, outlines_around, outlines_in

# The colour scale ends here or above, so that noise stays pale if nothing changed.
_SMALLEST_TOP = 0.1

# The same for effect sizes, in standard deviations.
_SMALLEST_EFFECT = 1.0

# Land recedes behind the nodes.
_LAND, _COAST = "#f1f1ec", "#cdcdc4"

# Largest ratio of width to height of a map.
_LONGEST_MAP = 5


def plot_graph(
    model: Any,
    ax: Any = None,
    *,
    names: Mapping[Label, str] | None = None,
    edges: bool = True,
    n_labels: int = 8,
) -> Any:
    """Draw the graph, every node coloured by its divergence.

    The colour scale runs from 0 to 0.1 or above; estimates below 0 get the colour of 0. Nodes are
    drawn at their coordinates or, without them, according to the edges; those with an undefined
    divergence are hollow.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.
    names : mapping of label to str, optional
        Names of nodes in the figure; default their labels.
    edges : bool, default True
    n_labels : int, default 8
        How many of the most changed nodes to name; fewer where there is no room.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=12, random_state=0)
    >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.08, ridge=0.008)
    >>> ax = gr.plot_graph(model.fit(scenario.samples, scenario.graph))
    >>> ax.get_title(loc="left")
    'Change at 12 nodes, from reference to target'
    """
    style.check_fitted(model)
    check_integer(n_labels, "n_labels", low=0)
    graph = model.graph_
    ax, layout = begin_map(graph, ax, edges=edges)
    positions = layout.positions
    known = ~np.isnan(model.divergence_)
    values = model.divergence_[known]
    # The most changed last, so that they are never covered.
    order = np.argsort(values, kind="stable")
    size, top = node_size(len(positions)), float(values.max(initial=_SMALLEST_TOP))
    colours = {"cmap": style.SEQUENTIAL, "vmin": 0.0, "vmax": top}
    points = draw_points(ax, positions[known][order], c=values[order], s=size, **colours)
    if not known.all():
        _draw_hollow(ax, positions[~known], size, "a sample is missing")
        ax.legend(**style.OUTSIDE)
    meaning = f"{model.divergence_name_} divergence\n(0 or less shows no change)"
    style.colour_bar(points, ax, meaning, 0.025)
    finish_map(ax, layout)
    style.set_heading(ax, f"Change at {graph.n_nodes} nodes, from reference to target")
    # Only nodes that changed at all: a name draws the eye.
    chosen = [int(i) for i in model.ranking_[:n_labels] if model.divergence_[i] > 0]
    label_nodes(ax, positions, chosen, model.nodes_, names)
    return ax


def plot_significance(
    result: Any,
    ax: Any = None,
    *,
    names: Mapping[Label, str] | None = None,
    edges: bool = True,
    n_labels: int = 8,
) -> Any:
    """Draw the outcome of a test on the graph.

    Colours show the effect size: how far the two samples of a node lie apart. Rejected nodes are
    larger, with a dark outline, and up to `n_labels` of them are named, the smallest p-values
    first. Nodes that the data cannot judge are hollow. The other arguments are those of
    `plot_graph`.
    """
    check_integer(n_labels, "n_labels", low=0)
    ax, layout = begin_map(result.graph, ax, edges=edges)
    positions, rejected = layout.positions, result.rejected
    judged = result.tested & (result.answerable_nodes | rejected)
    size, effect = node_size(len(positions)), result.effect_size
    top = max(float(np.nanmax(effect, initial=0.0)), _SMALLEST_EFFECT)
    colours = {"cmap": style.SEQUENTIAL, "vmin": 0.0, "vmax": top}
    kept = judged & ~rejected
    explores = result.null == "global"
    not_found = "does not stand out" if explores else "no change found"
    thin = {"s": size, "edgecolors": style.FAINT, "label": not_found}
    points = draw_points(ax, positions[kept], c=effect[kept], **thin, **colours)
    found = f"{'stands out (exploratory)' if explores else 'changed'}, at level {result.level:g}"
    bold = {"s": 1.6 * size, "linewidths": 1.8, "zorder": 4, **colours}
    if rejected.any():
        draw_points(ax, positions[rejected], c=effect[rejected], label=found, **bold)
    if not judged.all():
        _draw_hollow(ax, positions[~judged], size, "cannot say")
    ax.legend(**style.OUTSIDE)
    finish_map(ax, layout)
    style.colour_bar(points, ax, "effect size in standard deviations", 0.025)
    what = "stand out (exploratory)" if explores else "changed"
    style.set_heading(ax, f"{result.n_rejected} of {int(result.tested.sum())} nodes {what}")
    chosen = [int(v) for v in result.order if rejected[v]][:n_labels]
    label_nodes(ax, positions, chosen, result.nodes, names)
    return ax


def begin_map(graph: Graph, ax: Any, *, edges: bool) -> tuple[Any, Layout]:
    """Axes with the edges of a graph and what lies behind them, and where its nodes are."""
    layout = node_layout(graph)
    frame = layout.frame
    height = 7.5 * frame.height * layout.aspect / max(frame.width, 1e-9)
    ax = style.axes_or_new(ax, (8.5, float(np.clip(height, 3.2, 7.0))))
    _draw_backdrop(ax, layout)
    if check_flag(edges, "edges"):
        # Many edges on top of each other would merge into a grey patch.
        alpha = float(np.clip(60 / max(len(layout.edges), 1) ** 0.5 / 5, 0.15, 0.8))
        how = {"colors": style.FAINT, "linewidths": 0.7, "alpha": alpha, "zorder": 1}
        ax.add_collection(_collections().LineCollection(layout.positions[layout.edges], **how))
    return ax, layout


def _collections() -> Any:
    return import_optional("matplotlib.collections", "plot", "plotting")


def _draw_backdrop(ax: Any, layout: Layout) -> None:
    """Land and borders on a globe, and boxes around nodes that are far away."""
    if layout.kind == "globe":
        _draw_outlines(ax, outlines_around(layout.frame))
    for inset in layout.insets:
        at = inset.at
        corners = [(at.left, at.bottom), (at.right, at.bottom), (at.right, at.top)]
        corners.append((at.left, at.top))
        box = {"facecolors": "white", "edgecolors": style.FAINT, "linewidths": 0.8, "zorder": 0.4}
        ax.add_collection(_collections().PolyCollection([corners], **box))
        if layout.kind == "globe":
            _draw_outlines(ax, outlines_in(inset.of).moved(inset))


def _draw_outlines(ax: Any, outlines: Outlines) -> None:
    land = {"facecolors": _LAND, "edgecolors": _COAST, "linewidths": 0.6, "zorder": 0.4}
    ax.add_collection(_collections().PolyCollection(outlines.land, **land))
    lines = {"colors": _COAST, "linewidths": 0.5, "zorder": 0.4}
    ax.add_collection(_collections().LineCollection(outlines.borders, **lines))


def finish_map(ax: Any, layout: Layout) -> None:
    """Scale the axes to the frame; only coordinates of a plane have ticks."""
    frame = layout.frame
    ax.set_xlim(frame.left, frame.right)
    ax.set_ylim(frame.bottom, frame.top)
    if frame.width <= _LONGEST_MAP * frame.height * layout.aspect:
        ax.set_aspect(layout.aspect)
    if layout.kind != "plane":
        ax.set_xticks([])
        ax.set_yticks([])
        style.without_frame(ax, "left", "right", "top", "bottom")


def node_size(n_nodes: int) -> float:
    """Area of a node on the map."""
    return float(np.clip(6000 / n_nodes, 10, 80))


def draw_points(ax: Any, positions: FloatArray, **how: Any) -> Any:
    """Draw nodes as points, unless told otherwise with a thin dark outline."""
    return ax.scatter(
        *positions.T, **({"edgecolors": style.INK, "linewidths": 0.5, "zorder": 3} | how)
    )


def _draw_hollow(ax: Any, positions: FloatArray, size: float, label: str) -> None:
    hollow = {"facecolors": "white", "edgecolors": style.FAINT, "linewidths": 1.2, "zorder": 2}
    draw_points(ax, positions, s=size, label=label, **hollow)
