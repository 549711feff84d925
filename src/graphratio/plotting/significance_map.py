"""The graph with its nodes coloured by how surely they changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import Label
from graphratio.plotting.graph_map import begin_map, draw_missing, finish_map, node_size
from graphratio.plotting.labels import place_labels
from graphratio.plotting.style import FAINT, INK, SEQUENTIAL

# p-values are drawn from 1 down to at least this one.
_SMALLEST_DRAWN = 1e-3


def plot_significance(
    result: Any,
    ax: Any = None,
    *,
    names: Mapping[Label, str] | None = None,
    edges: bool = True,
    n_labels: int = 8,
) -> Any:
    """Draw the outcome of a test on the graph.

    The darker a node, the smaller its adjusted p-value; rejected nodes have a dark outline,
    the ones with the smallest p-values a name. Nodes that lack a sample are hollow.

    Parameters
    ----------
    result : TwoSampleResult
    ax : matplotlib Axes, optional
        Default: those of a new figure.
    names : mapping of label to str, optional
    edges : bool, default True
    n_labels : int, default 8
        How many of the rejected nodes to name at the most.

    Returns
    -------
    matplotlib Axes
    """
    check_integer(n_labels, "n_labels", low=0)
    ax, positions = begin_map(result.graph, ax, edges=edges)
    tested, rejected = result.tested, result.rejected
    size = node_size(len(positions))
    strength = -np.log10(result.adjusted_p_value)
    top = max(float(strength.max()), -np.log10(_SMALLEST_DRAWN))
    colours = {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": top}
    kept = tested & ~rejected
    points = ax.scatter(
        *positions[kept].T,
        c=strength[kept],
        s=size,
        edgecolors=FAINT,
        linewidths=0.5,
        zorder=3,
        **colours,
    )
    ax.scatter(
        *positions[rejected].T,
        c=strength[rejected],
        s=1.6 * size,
        edgecolors=INK,
        linewidths=1.6,
        zorder=4,
        label=f"changed, at level {result.level:g}",
        **colours,
    )
    if not tested.all():
        draw_missing(ax, positions[~tested], size)
    if rejected.any() or not tested.all():
        ax.legend(loc="best", fontsize=8.5, frameon=False)
    finish_map(ax, result.graph, positions)
    bar = ax.figure.colorbar(points, cax=ax.inset_axes((1.02, 0.0, 0.025, 1.0)))
    ticks = np.arange(0, int(top) + 1)
    bar.set_ticks(ticks, labels=[f"{10.0**-tick:g}" for tick in ticks])
    bar.set_label("adjusted p-value" if result.correction else "p-value")
    bar.outline.set_visible(False)
    exploratory = " (exploratory)" if result.null == "global" else ""
    ax.set_title(
        f"{result.n_rejected} of {int(tested.sum())} nodes changed{exploratory}",
        loc="left",
        fontsize=11,
    )
    order = np.lexsort((-result.statistic, result.p_value))
    chosen = [int(v) for v in order if rejected[v]][:n_labels]
    known = names or {}
    labels = [(v, str(known.get(result.nodes[v], result.nodes[v]))) for v in chosen]
    place_labels(ax, positions, labels)
    return ax
