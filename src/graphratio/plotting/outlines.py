"""Land, borders and states behind the nodes of a map.

The lines are in `outlines.json`, which `tools/outlines.py` makes from data of Natural Earth and of
the United States Census Bureau, both in the public domain. They are loaded when a map with
geographic coordinates is drawn, and cut to the part of the world that it shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.plotting.insets import Box, Inset

CREDIT = "Land and borders: Natural Earth; states: United States Census Bureau."

# States are drawn if the map is at most this many degrees wide: on a map of the world they clutter.
_WIDEST_WITH_STATES = 90.0

# Outlines reach beyond the frame by this share, so that a reader can move the map a little.
_BEYOND = 0.4


@dataclass(frozen=True, eq=False)
class Outlines:
    """What lies behind the nodes: rings of `land` and lines of `borders`, each of shape (n, 2)."""

    land: list[FloatArray]
    borders: list[FloatArray]

    def moved(self, inset: Inset) -> Outlines:
        """The same in the box of an inset."""
        return Outlines(
            [inset.moved(ring) for ring in self.land], [inset.moved(line) for line in self.borders]
        )


def outlines_around(frame: Box) -> Outlines:
    """Outlines in a frame of a map, longitudes from left to right, and a little beyond it."""
    shown = frame.grown(_BEYOND)
    return outlines_in(
        Box(shown.left, shown.right, max(shown.bottom, -90.0), min(shown.top, 90.0)),
        states=frame.width <= _WIDEST_WITH_STATES,
    )


def outlines_in(box: Box, *, states: bool = True) -> Outlines:
    """Outlines cut to a box in degrees; longitudes may go beyond 180."""
    stored = _stored()
    names = ("borders", "states") if states else ("borders",)
    land: list[FloatArray] = []
    borders: list[FloatArray] = []
    for turn in (-360.0, 0.0, 360.0):
        by = np.array([turn, 0.0])
        near = (line + by for line in stored["land"] if _meets(line + by, box))
        land += [ring for ring in (_clipped_ring(line, box) for line in near) if len(ring) > 2]
        for line in (line + by for name in names for line in stored[name]):
            if _meets(line, box):
                borders += _pieces_inside(line, box)
    return Outlines(land, borders)


@cache
def _stored() -> dict[str, list[FloatArray]]:
    """All lines in degrees, each of shape (n, 2)."""
    text = files("graphratio.plotting").joinpath("outlines.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    step = content.pop("step")
    return {
        name: [np.cumsum(np.reshape(line, (-1, 2)), axis=0) * step for line in lines]
        for name, lines in content.items()
    }


def _meets(line: FloatArray, box: Box) -> bool:
    (left, bottom), (right, top) = line.min(axis=0), line.max(axis=0)
    apart = left > box.right or right < box.left or bottom > box.top or top < box.bottom
    return not apart


def _clipped_ring(ring: FloatArray, box: Box) -> FloatArray:
    """The part of a closed ring inside a box, cut at one side after the other."""
    sides = ((0, box.left, 1), (0, box.right, -1), (1, box.bottom, 1), (1, box.top, -1))
    for axis, edge, sign in sides:
        if not len(ring):
            break
        depth = sign * (ring[:, axis] - edge)
        before, depth_before = np.roll(ring, 1, axis=0), np.roll(depth, 1)
        inside = depth >= 0
        crosses = inside != (depth_before >= 0)
        span = np.where(crosses, depth_before - depth, 1.0)
        cut = before + (depth_before / span)[:, np.newaxis] * (ring - before)
        # A point may be preceded by the place where the ring crosses the side.
        pairs = np.stack([cut, ring], axis=1).reshape(-1, 2)
        ring = pairs[np.column_stack([crosses, inside]).ravel()]
    return ring


def _pieces_inside(line: FloatArray, box: Box) -> list[FloatArray]:
    """Parts of a line that are in a box, each with the points just outside."""
    inside = box.holds(line)
    near = inside.copy()
    near[:-1] |= inside[1:]
    near[1:] |= inside[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], near.astype(int), [0]])))
    return [line[a:b] for a, b in edges.reshape(-1, 2) if b - a > 1]
