"""Nodes far from all others are drawn in a small box, as islands are on printed maps.

One distant node would leave most of a map empty. It is moved into a box in a free corner, together
with the nodes around it, and so is the land behind it. Directions and scale inside a box are
those of the map, or smaller; its place means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from graphratio._utils.typing import BoolArray, FloatArray, IntArray

# Nodes are far if they are further from the middle than all others by this factor, and few.
_GAP = 1.4
_MOST_FAR = 0.1
_FEWEST_NODES = 8

# Boxes are made only if the map without far nodes has at most this share of its area with them.
_SMALLER = 0.65

# Far nodes closer to each other than this share of the frame share a box.
_TOGETHER = 0.25
_MOST_BOXES = 3

# Sizes as shares of the frame: the largest box, what a box shows around its nodes, free space.
_LARGEST_BOX = 0.2
_AROUND = 0.05
_SPACE = 0.015
_MARGIN = 0.06


@dataclass(frozen=True)
class Box:
    """A rectangle of the map."""

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def around(cls, points: FloatArray, margin: float = 0.0) -> Box:
        """The smallest box around points of shape (n, 2), with a margin in their units."""
        (left, bottom), (right, top) = points.min(axis=0) - margin, points.max(axis=0) + margin
        return cls(float(left), float(right), float(bottom), float(top))

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom

    def grown(self, share: float) -> Box:
        """Larger on every side by a share of its longer side."""
        by = share * max(self.width, self.height)
        return Box(self.left - by, self.right + by, self.bottom - by, self.top + by)

    def holds(self, points: FloatArray) -> BoolArray:
        """Which of the points are inside, shape (n,)."""
        x, y = points.T
        inside = (x >= self.left) & (x <= self.right) & (y >= self.bottom) & (y <= self.top)
        return np.asarray(inside)


@dataclass(frozen=True, eq=False)
class Inset:
    """A box `at` a place of the map that shows the part `of` the world, with its nodes."""

    at: Box
    of: Box
    nodes: IntArray

    def moved(self, points: FloatArray) -> FloatArray:
        """Where points of the world are drawn, shape (n, 2)."""
        corner = np.array([self.of.left, self.of.bottom])
        scale = np.array([self.at.width / self.of.width, self.at.height / self.of.height])
        return np.asarray((points - corner) * scale + [self.at.left, self.at.bottom])


def frame_of(positions: FloatArray) -> Box:
    """The part of the plane that a map shows, with a margin."""
    box = Box.around(positions)
    if box.width == 0 and box.height == 0:
        return Box.around(positions, 1.0)
    return box.grown(_MARGIN)


def place_insets(positions: FloatArray, aspect: float) -> tuple[Box, tuple[Inset, ...]]:
    """The frame of a map without its far nodes, and the boxes in which these are drawn.

    `aspect` is the length of one unit of y on the screen in units of x.
    """
    far = _far_nodes(positions * [1.0, aspect])
    if not far.any():
        return frame_of(positions), ()
    frame, whole = frame_of(positions[~far]), frame_of(positions)
    if frame.width * frame.height > _SMALLER * whole.width * whole.height:
        return whole, ()
    # Boxes are worked out in units of the screen.
    stretch = np.array([1.0, aspect])
    size = max(frame.width, frame.height * aspect)
    places = np.flatnonzero(far)
    groups = np.ones(places.size, dtype=int)
    if places.size > 1:
        tree = linkage(positions[places] * stretch, method="single")
        groups = fcluster(tree, _TOGETHER * size, criterion="distance")
    if groups.max() > _MOST_BOXES:
        return whole, ()
    parts = [places[groups == group] for group in np.unique(groups)]
    shown = [Box.around(positions[part] * stretch, _AROUND * size) for part in parts]
    sizes = []
    for box in shown:
        shrink = min(1.0, _LARGEST_BOX * size / max(box.width, box.height))
        sizes.append((shrink * box.width, shrink * box.height / aspect))
    frame, boxes = _free_places(frame, sizes, positions[~far], _SPACE * size)
    insets = [
        Inset(at, Box(of.left, of.right, of.bottom / aspect, of.top / aspect), part)
        for at, of, part in zip(boxes, shown, parts, strict=True)
    ]
    return frame, tuple(insets)


def _far_nodes(screen: FloatArray) -> BoolArray:
    """Few nodes that are much further from the middle than all others, shape (n_nodes,)."""
    n_nodes = len(screen)
    none = np.zeros(n_nodes, dtype=bool)
    if n_nodes < _FEWEST_NODES:
        return none
    distance = np.linalg.norm(screen - np.median(screen, axis=0), axis=1)
    ordered = np.sort(distance)[::-1]
    most = max(1, int(_MOST_FAR * n_nodes))
    gaps = ordered[:most] > _GAP * ordered[1 : most + 1]
    if not gaps.any() or ordered[most] == 0:
        return none
    return np.asarray(distance >= ordered[int(np.flatnonzero(gaps)[-1])])


def _free_places(
    frame: Box, sizes: list[tuple[float, float]], nodes: FloatArray, space: float
) -> tuple[Box, list[Box]]:
    """Boxes side by side in a corner without nodes; else below the map, which then grows."""
    width = sum(w for w, _ in sizes) + space * (len(sizes) + 1)
    height = max(h for _, h in sizes) + 2 * space
    for right in (False, True):
        for upper in (False, True):
            left = frame.right - width if right else frame.left
            bottom = frame.top - height if upper else frame.bottom
            corner = Box(left, left + width, bottom, bottom + height)
            if width <= frame.width and not corner.holds(nodes).any():
                return frame, _in_a_row(left, bottom, sizes, space)
    frame = Box(frame.left, max(frame.right, frame.left + width), frame.bottom - height, frame.top)
    return frame, _in_a_row(frame.left, frame.bottom, sizes, space)


def _in_a_row(
    left: float, bottom: float, sizes: list[tuple[float, float]], space: float
) -> list[Box]:
    boxes = []
    for width, height in sizes:
        left += space
        boxes.append(Box(left, left + width, bottom + space, bottom + space + height))
        left += width
    return boxes
