"""Labels next to points that overlap neither each other nor the edge of the figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_FONT_SIZE = 8.5


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
    figure = ax.figure
    figure.draw_without_rendering()
    pixels = ax.transData.transform(points)
    frame = _corners(ax.get_window_extent())
    unit = figure.dpi / 72
    taken = np.empty((0, 2, 2))
    for index in chosen:
        text = str((names or {}).get(nodes[index], nodes[index]))
        size = _extent(ax, text)
        best, lowest = None, np.inf
        for shift, box in _candidates(pixels[index], size, unit):
            cost = _cost(box, pixels, taken, frame) + np.hypot(*shift) / 16
            if cost < lowest:
                best, lowest = (shift, box), cost
        if best is not None:
            shift, box = best
            taken = np.concatenate([taken, box[np.newaxis]])
            _write(ax, text, points[index], shift, (box[0] - pixels[index]) / unit)


def _corners(box: Any) -> FloatArray:
    return np.array([[box.x0, box.y0], [box.x1, box.y1]])


def _extent(ax: Any, text: str) -> FloatArray:
    """Width and height of a text in pixels."""
    probe = ax.text(0, 0, text, fontsize=_FONT_SIZE)
    low, high = _corners(probe.get_window_extent())
    probe.remove()
    return np.asarray(high - low)


def _candidates(
    point: FloatArray, size: FloatArray, unit: float
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Shifts from the point in typographic points, and the box of the text in pixels."""
    for distance in _DISTANCES:
        for direction, anchor in _PLACES:
            shift = distance * np.array(direction)
            low = point + shift * unit - np.array(anchor) * size
            yield shift, np.array([low, low + size])


def _cost(box: FloatArray, pixels: FloatArray, taken: FloatArray, frame: FloatArray) -> float:
    """Number of points that a box covers; infinite if it overlaps other text or the edge."""
    inside = (box[0] >= frame[0]).all() and (box[1] <= frame[1]).all()
    if not inside or _overlaps(box, taken[:, 0], taken[:, 1], margin=3).any():
        return float("inf")
    return float(_overlaps(box, pixels, pixels, margin=3).sum())


def _overlaps(box: FloatArray, low: FloatArray, high: FloatArray, margin: float) -> BoolArray:
    return np.asarray(((low < box[1] + margin) & (high > box[0] - margin)).all(axis=1))


def _write(ax: Any, text: str, point: FloatArray, shift: FloatArray, corner: FloatArray) -> None:
    if np.hypot(*shift) > 1.5 * _DISTANCES[0]:
        ax.annotate(
            "",
            xy=tuple(point),
            xytext=tuple(shift),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.7, "shrinkA": 0, "shrinkB": 0},
            zorder=3.5,
        )
    label = ax.annotate(
        text,
        xy=tuple(point),
        xytext=tuple(corner),
        textcoords="offset points",
        fontsize=_FONT_SIZE,
        color=INK,
        ha="left",
        va="bottom",
        zorder=4,
    )
    # A rim in the background colour keeps text readable over lines and points.
    effects = import_optional("matplotlib.patheffects", "plot", "plotting")
    label.set_path_effects([effects.withStroke(linewidth=2.5, foreground="white", alpha=0.85)])
