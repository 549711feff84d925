"""Kinds of change: a map of the nodes by kind, and the mean ratio of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.plotting import columns, style
from graphratio.plotting.graph_map import begin_map, draw_points, finish_map, node_size

# Colours of labels that are not the name of a kind.
_PALE = {"unchanged": "#d5dde3", "not tested": "white"}


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
    _, positions = begin_map(graph, axes[0], edges=True)
    draw_kinds(axes[0], positions, result)
    finish_map(axes[0], graph, positions)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.08), "ncols": 3}
    axes[0].legend(fontsize=8.5, frameon=False, **below)
    style.set_heading(axes[0], f"Kinds of change: {len(names)}")
    if names:
        data = columns.in_columns(columns.raw_samples(result.samples, model))
        curves = [{"color": _colour(result, name), "label": name} for name in names]
        columns.draw_ratios(axes[1], model, data, column, result.ratio, curves)
        axes[1].legend(loc="best", fontsize=8.5, frameon=False)
        style.set_heading(axes[1], "Mean ratio of each kind")
    return np.asarray(axes)


def draw_kinds(ax: Any, positions: FloatArray, result: Any) -> None:
    """Draw nodes coloured by kind of change, with their numbers for the legend."""
    size = node_size(len(positions))
    for label, number in result.counts.items():
        # Unchanged nodes below the others.
        how = {"color": _colour(result, label), "zorder": 2.5 if label in _PALE else 3}
        at = positions[result.kinds == label]
        draw_points(ax, at, s=size, label=f"{label} ({number})", **how)


def _colour(result: Any, label: str) -> str:
    if label in result.names:
        return style.KIND_COLOURS[result.names.index(label)]
    return _PALE.get(label, style.INK)
