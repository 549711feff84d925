"""Labels next to points that overlap neither each other nor the edge of the figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphratio._utils.optional import import_optional
from graphratio._utils.typing import BoolArray, FloatArray, Label
from graphratio.plotting.style import INK

# Direction from the point to the text, and the point of the text that is placed there: 0 is its
# left or lower side, 1 its right or upper side.
_PLACES = (
    ((1.0, 0.0), (0.0, 0.5)),
    ((-1.0, 0.0), (1.0, 0.5)),
    ((0.0, 1.0), (0.5, 0.0)),
    ((0.0, -1.0), (0.5, 1.0)),
    ((0.7, 0.7), (0.0, 0.0)),
    ((0.7, -0.7), (0.0, 1.0)),
    ((-0.7, 0.7), (1.0, 0.0)),
    ((-0.7, -0.7), (1.0, 1.0)),
)
# Distances from the point in typographic points; all but the first get a leader line.
_DISTANCES = (6.0, 18.0, 32.0)
_SHIFTS = np.array([distance * np.array(way) for distance in _DISTANCES for way, _ in _PLACES])
_ANCHORS = np.array([anchor for _ in _DISTANCES for _, anchor in _PLACES])
_FONT_SIZE = 8.5
_MARGIN = 3.0


def label_nodes(
    ax: Any,
    points: FloatArray,
    chosen: Iterable[int],
    nodes: Sequence[Label],
    names: Mapping[Label, str] | None,
) -> None:
    """Write the names of the chosen nodes beside them, in order; those without room are left out.

    Everything else must be drawn already. Labels avoid all points, shape (n_nodes, 2). A node
    without a name gets its label.
    """
    ax.figure.draw_without_rendering()
    pixels = ax.transData.transform(points)
    left, right = ax.get_window_extent().get_points()
    unit = ax.figure.dpi / 72
    taken = np.empty((0, 2, 2))
    for index in chosen:
        text = str((names or {}).get(nodes[index], nodes[index]))
        probe = ax.text(0, 0, text, fontsize=_FONT_SIZE)
        size = np.ptp(probe.get_window_extent().get_points(), axis=0)
        probe.remove()
        low = pixels[index] + _SHIFTS * unit - _ANCHORS * size
        boxes = np.stack([low, low + size], axis=1)
        free = (boxes[:, 0] >= left).all(axis=1) & (boxes[:, 1] <= right).all(axis=1)
        free &= ~_overlaps(boxes, taken[:, 0], taken[:, 1]).any(axis=1)
        covered = _overlaps(boxes, pixels, pixels).sum(axis=1)
        cost = np.where(free, covered + np.hypot(*_SHIFTS.T) / 16, np.inf)
        best = int(np.argmin(cost))
        if free[best]:
            taken = np.concatenate([taken, boxes[[best]]])
            _write(ax, text, points[index], _SHIFTS[best], (low[best] - pixels[index]) / unit)


def _overlaps(boxes: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Which boxes (n_boxes, 2, 2) come close to which others, shape (n_boxes, n_others)."""
    below = low < boxes[:, 1, np.newaxis] + _MARGIN
    above = high > boxes[:, 0, np.newaxis] - _MARGIN
    return np.asarray((below & above).all(axis=2))


def _write(ax: Any, text: str, point: FloatArray, shift: FloatArray, corner: FloatArray) -> None:
    if np.hypot(*shift) > 1.5 * _DISTANCES[0]:
        arrow = {"arrowstyle": "-", "color": INK, "lw": 0.7, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", point, shift, textcoords="offset points", arrowprops=arrow, zorder=3.5)
    how = {"fontsize": _FONT_SIZE, "color": INK, "ha": "left", "va": "bottom", "zorder": 4}
    label = ax.annotate(text, point, corner, textcoords="offset points", **how)
    # A rim in the background colour keeps text readable over lines and points.
    effects = import_optional("matplotlib.patheffects", "plot", "plotting")
    label.set_path_effects([effects.withStroke(linewidth=2.5, foreground="white", alpha=0.85)])
