"""The learned graph: links drawn by learned weight, cut links dotted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.links import Links
from graphratio.plotting import style
from graphratio.plotting.graph_map import begin_map, draw_points, finish_map, node_size
from graphratio.plotting.labels import label_nodes

# Width of a link that kept its weight; a strengthened one is up to three times as wide.
_WIDTH = 0.7


def plot_learned_graph(
    model: style.FittedModel, ax: Any = None, *, names: Mapping[Label, str] | None = None
) -> Any:
    """Draw the graph with the weights that a model learned.

    A link is thicker if it kept more of its weight. Cut links are dotted, and their ends are
    named where there is room. Nodes are coloured by kind of change if the model has kinds.

    Parameters
    ----------
    model : fitted estimator with `graph_learned_`
        `GRULSIF` or `GraphRatio`, fitted with `adaptive=True`.
    ax : matplotlib Axes, optional
        Default: those of a new figure.
    names : mapping of label to str, optional
        Names of nodes in the figure; default their labels.

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
    '6 of 204 links were cut'
    """
    style.check_fitted(model, "graph_learned_")
    fitted: Any = model
    graph = model.graph_
    links = Links.compare(graph, fitted.graph_learned_)
    cut = links.cut()
    ax, positions = begin_map(graph, ax, edges=False)
    _draw_links(ax, positions, links)
    _draw_kinds(ax, positions, model)
    finish_map(ax, graph, positions)
    count = f"{len(cut)} of {len(links.kept)} links were cut"
    style.set_heading(ax, "The links as given" if links.as_given else count)
    ends = dict.fromkeys(np.column_stack([links.rows[cut], links.columns[cut]]).ravel().tolist())
    label_nodes(ax, positions, ends, model.nodes_, names)
    return ax


def _draw_links(ax: Any, positions: FloatArray, links: Links) -> None:
    collections = import_optional("matplotlib.collections", "plot", "plotting")
    segments = positions[np.column_stack([links.rows, links.columns])]
    gone = np.zeros(len(links.kept), dtype=bool)
    gone[links.cut()] = True
    widths = _WIDTH * np.clip(links.kept, 0.2, 3.0)
    lines = collections.LineCollection(
        segments[~gone], colors=style.FAINT, linewidths=widths[~gone], alpha=0.7, zorder=1
    )
    ax.add_collection(lines)
    if gone.any():
        lines = collections.LineCollection(
            segments[gone], colors=style.TARGET_COLOUR, linewidths=1.5, linestyles=":", zorder=2
        )
        lines.set_label("cut")
        ax.add_collection(lines)


def _draw_kinds(ax: Any, positions: FloatArray, model: Any) -> None:
    """Draw nodes coloured by kind of change; unchanged nodes are white."""
    size = node_size(len(positions))
    found_kinds = getattr(model, "kinds_", None)
    kinds = np.full(len(positions), "") if found_kinds is None else np.asarray(found_kinds)
    found = sorted(set(kinds.tolist()), key=lambda kind: (kind == "unchanged", kind))
    for number, kind in enumerate(found):
        plain = kind in ("unchanged", "")
        members = kinds == kind
        colour = "white" if plain else style.KIND_COLOURS[number % len(style.KIND_COLOURS)]
        label = f"{kind} ({members.sum()})" if kind else None
        draw_points(ax, positions[members], s=size, color=colour, label=label)
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(handles, labels, fontsize=8.5, frameon=False, **place)
