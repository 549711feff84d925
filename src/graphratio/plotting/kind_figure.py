"""What nodes share: kinds of change with their mean ratios, and the links that a model learned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.links import Links
from graphratio.plotting import columns, style
from graphratio.plotting.graph_map import begin_map, draw_points, finish_map, node_size
from graphratio.plotting.labels import label_nodes

# Width of a link that kept its weight; a strengthened one is up to three times as wide.
_WIDTH = 0.7

# Colours of labels that are not the name of a kind.
_PALE = {"no change found": "#d5dde3", "not tested": "white"}


def plot_kinds(result: Any, feature: str | int | None = None) -> np.ndarray:
    """Draw the nodes by kind of change, and the mean ratio of each kind along a feature.

    The other features are at their medians; `feature` is the first by default. Returns two
    matplotlib Axes, or only that of the map if there are no kinds.
    """
    names, model = result.names, result.model
    column = columns.feature_column(model, feature) if names else 0
    count = 2 if names else 1
    axes = style.new_axes(1, count, (5.8 * count, 4.6))[0]
    graph = result.test.graph
    _, layout = begin_map(graph, axes[0], edges=True)
    positions = layout.positions
    draw_kinds(axes[0], positions, result)
    finish_map(axes[0], layout)
    axes[0].legend(**style.OUTSIDE)
    style.set_heading(axes[0], f"Kinds of change: {len(names)}")
    if names:
        data = columns.in_columns(columns.common_samples(result.samples, model))
        ratio = partial(result.ratio, standardized=True)
        curves = [{"color": _colour(result, name), "label": name} for name in names]
        members = [(result.kinds == name)[data.node_index] for name in names]
        columns.draw_ratios(axes[1], model, data, column, ratio, curves, members)
        axes[1].legend(loc="best", fontsize=8.5, frameon=False)
        style.set_heading(axes[1], "Mean ratio of each kind")
    return np.asarray(axes)


def draw_kinds(ax: Any, positions: FloatArray, result: Any) -> None:
    """Draw nodes coloured by kind of change, with their numbers for the legend."""
    size = node_size(len(positions))
    for label, number in result.counts.items():
        # Nodes where no change was found are below the others.
        how = {"color": _colour(result, label), "zorder": 2.5 if label in _PALE else 3}
        if label in result.names:
            how["marker"] = style.KIND_SHAPES[result.names.index(label)]
        at = positions[result.kinds == label]
        draw_points(ax, at, s=size, label=f"{label} ({number})", **how)


def _colour(result: Any, label: str) -> str:
    if label in result.names:
        return style.KIND_COLOURS[result.names.index(label)]
    return _PALE.get(label, style.INK)


def plot_learned_graph(
    model: Any, ax: Any = None, *, names: Mapping[Label, str] | None = None, kinds: Any = None
) -> Any:
    """Draw the graph with the weights that a model learned.

    A link is thicker if it kept more of its weight. Cut links, between nodes that change too
    differently to learn from each other, are dotted, and their ends are named where there is room.

    Parameters
    ----------
    model : fitted estimator with `graph_learned_`
        `GRULSIF` or `GraphRatio`, fitted with `adaptive=True`.
    ax : matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.
    names : mapping of label to str, optional
        Names of nodes in the figure; default their labels.
    kinds : KindsOfChange, optional
        Result of `kinds_of_change` on the same nodes, to colour the nodes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=60, random_state=1)
    >>> model = gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)
    >>> ax = gr.plot_learned_graph(model)
    >>> ax.get_title(loc="left")
    'Which neighbours change alike: 6 of 204 links were cut'
    """
    style.check_fitted(model, "graph_learned_")
    graph = model.graph_
    links = Links.compare(graph, model.graph_learned_)
    cut = links.cut()
    ax, layout = begin_map(graph, ax, edges=False)
    positions = layout.positions
    _draw_links(ax, positions, links)
    if kinds is None:
        draw_points(ax, positions, s=node_size(len(positions)), color="white")
    else:
        if kinds.nodes != model.nodes_:
            raise InputError(
                "the kinds of change and the model have different nodes",
                "Pass the result of kinds_of_change with this model",
            )
        draw_kinds(ax, positions, kinds)
    ax.legend(**style.OUTSIDE)
    finish_map(ax, layout)
    count = f"Which neighbours change alike: {len(cut)} of {len(links.kept)} links were cut"
    style.set_heading(ax, "The links as given: none was learned" if links.as_given else count)
    ends = dict.fromkeys(np.column_stack([links.rows[cut], links.columns[cut]]).ravel().tolist())
    label_nodes(ax, positions, ends, model.nodes_, names)
    return ax


def _draw_links(ax: Any, positions: FloatArray, links: Links) -> None:
    collections = import_optional("matplotlib.collections", "plot", "plotting")
    segments = positions[np.column_stack([links.rows, links.columns])]
    gone = np.zeros(len(links.kept), dtype=bool)
    gone[links.cut()] = True
    widths = _WIDTH * np.clip(links.kept, 0.2, 3.0)
    kept = {"colors": style.FAINT, "linewidths": widths[~gone], "alpha": 0.7, "zorder": 1}
    label = "link, as given" if links.as_given else "kept, thicker with more weight"
    ax.add_collection(collections.LineCollection(segments[~gone], label=label, **kept))
    if gone.any():
        cut = {"colors": style.INK, "linewidths": 1.5, "linestyles": ":", "zorder": 2}
        ax.add_collection(collections.LineCollection(segments[gone], label="cut", **cut))
