"""The graph with its nodes coloured by how much they changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import check_flag, check_integer
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.graph import Graph
from graphratio.plotting.labels import place_labels
from graphratio.plotting.layout import node_layout
from graphratio.plotting.style import FAINT, INK, SEQUENTIAL, FittedModel, new_axes, without_frame

# The scale reaches at least this far, so that noise in an unchanged network stays pale.
_SMALLEST_TOP = 0.1

# How many times wider than high a map may be.
_LONGEST_MAP = 5


def plot_graph(
    model: FittedModel,
    ax: Any = None,
    *,
    names: Mapping[Label, str] | None = None,
    edges: bool = True,
    n_labels: int = 8,
) -> Any:
    """Draw the graph, every node coloured by its divergence.

    The scale of colours starts at 0, no change, and reaches at least 0.1. Nodes are at their
    coordinates if the graph has two of them, and otherwise where its edges suggest. Nodes whose
    divergence is undefined are hollow.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, optional
        Default: those of a new figure.
    names : mapping of label to str, optional
        What to call nodes in the picture; default their labels.
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
    >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.01, node_penalty=0.1)
    >>> ax = gr.plot_graph(model.fit(scenario.samples, scenario.graph))
    >>> ax.get_title(loc="left")
    'Change at 12 nodes, from reference to target'
    """
    check_is_fitted(model, "divergence_")
    check_integer(n_labels, "n_labels", low=0)
    graph = model.graph_
    ax, positions = begin_map(graph, ax, edges=edges)
    _draw_nodes(ax, positions, model)
    finish_map(ax, graph, positions)
    ax.set_title(
        f"Change at {graph.n_nodes} nodes, from reference to target", loc="left", fontsize=11
    )
    place_labels(ax, positions, _most_changed(model, names or {}, n_labels))
    return ax


def begin_map(graph: Graph, ax: Any, *, edges: bool) -> tuple[Any, FloatArray]:
    """Axes with the edges of a graph, and where its nodes go, shape (n_nodes, 2)."""
    layout = node_layout(graph)
    positions = layout.positions
    if ax is None:
        ax = new_axes(_figure_size(positions))
    if check_flag(edges, "edges"):
        draw_edges(ax, positions[layout.edges])
    return ax, positions


def finish_map(ax: Any, graph: Graph, positions: FloatArray) -> None:
    """Scale the axes: degrees on a globe, nothing around a drawing."""
    ax.margins(0.06)
    if graph.metric == "haversine":
        _as_map(ax, positions)
        return
    ax.set_aspect("equal")
    if graph.coordinates is None:
        ax.set_xticks([])
        ax.set_yticks([])
        without_frame(ax, "left", "right", "top", "bottom")


def node_size(n_nodes: int) -> float:
    """Area of a node on the map."""
    return float(np.clip(6000 / n_nodes, 10, 80))


def _figure_size(positions: FloatArray) -> tuple[float, float]:
    width, height = np.maximum(np.ptp(positions, axis=0), 1e-9)
    return 8.5, float(np.clip(7.5 * height / width, 3.2, 7.0))


def draw_edges(ax: Any, segments: FloatArray) -> None:
    """Draw edges as faint lines, from an array of shape (n_edges, 2, 2)."""
    collections = import_optional("matplotlib.collections", "plot", "plotting")
    # Many edges on top of each other would hide the nodes' neighbourhoods behind a grey patch.
    alpha = float(np.clip(60 / max(len(segments), 1) ** 0.5 / 5, 0.15, 0.8))
    lines = collections.LineCollection(
        segments, colors=FAINT, linewidths=0.7, alpha=alpha, zorder=1
    )
    ax.add_collection(lines)


def _draw_nodes(ax: Any, positions: FloatArray, model: FittedModel) -> None:
    known = ~np.isnan(model.divergence_)
    size = node_size(len(positions))
    values = model.divergence_[known]
    # The most changed last, so that they are never covered.
    order = np.argsort(values, kind="stable")
    top = max(_SMALLEST_TOP, float(values.max())) if values.size else _SMALLEST_TOP
    points = ax.scatter(
        *positions[known][order].T,
        c=values[order],
        cmap=SEQUENTIAL,
        vmin=0.0,
        vmax=top,
        s=size,
        edgecolors=INK,
        linewidths=0.5,
        zorder=3,
    )
    if not known.all():
        draw_missing(ax, positions[~known], size)
        ax.legend(loc="best", fontsize=8.5, frameon=False)
    bar = ax.figure.colorbar(points, cax=ax.inset_axes((1.02, 0.0, 0.025, 1.0)))
    bar.set_label(f"{model.divergence_name_} divergence\n(0 = no change)")
    bar.outline.set_visible(False)


def draw_missing(ax: Any, positions: FloatArray, size: float) -> None:
    """Draw nodes that lack a sample as open circles."""
    ax.scatter(
        *positions.T,
        s=size,
        facecolors="white",
        edgecolors=FAINT,
        linewidths=1.2,
        zorder=2,
        label="a sample is missing",
    )


def _as_map(ax: Any, positions: FloatArray) -> None:
    """Degrees on the axes, and a degree of longitude as long as it is in the middle.

    A belt that would be a mere line at this scale fills the height it has.
    """
    middle = np.radians((positions[:, 1].min() + positions[:, 1].max()) / 2)
    shrinkage = max(float(np.cos(middle)), 0.1)
    width, height = np.ptp(positions, axis=0)
    if width * shrinkage <= _LONGEST_MAP * height:
        ax.set_aspect(1 / shrinkage)
    ax.xaxis.set_major_formatter(lambda value, _: _degrees((value + 180) % 360 - 180, "E", "W"))
    ax.yaxis.set_major_formatter(lambda value, _: _degrees(value, "N", "S"))
    ax.tick_params(labelsize=8.5, color=FAINT)
    ax.grid(color="#e6e6e6", linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    without_frame(ax, "left", "right", "top", "bottom")


def _degrees(value: float, positive: str, negative: str) -> str:
    if value in (0, -180):
        return f"{abs(value):g}°"
    return f"{abs(value):g}°{positive if value > 0 else negative}"


def _most_changed(
    model: FittedModel, names: Mapping[Label, str], count: int
) -> list[tuple[int, str]]:
    # Only nodes that changed at all: a name draws the eye.
    order = np.argsort(-np.nan_to_num(model.divergence_, nan=-np.inf), kind="stable")
    chosen = [int(i) for i in order[:count] if model.divergence_[i] > 0]
    return [(i, str(names.get(model.nodes_[i], model.nodes_[i]))) for i in chosen]
