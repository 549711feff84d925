"""Arrays: read-only ones, and segments of unequal length as padded rectangles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from graphratio._utils.typing import BoolArray, IntArray

Array = TypeVar("Array", bound=np.ndarray)

# Widths within a rectangle differ by at most this factor. This bounds the padding, and the number
# of rectangles grows with the logarithm of the largest segment.
WIDTH_RATIO = 1.25


def read_only(array: Array) -> Array:
    """Mark an array as not writeable and return it."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Batch:
    """Some segments as one rectangle: their positions, and their rows in the stacked array.

    `rows` and `valid` have shape (n_segments, width). Where `valid` is False, the row is an
    arbitrary one of the segment; None says that every segment has exactly `width` rows.
    """

    segments: IntArray
    rows: IntArray
    valid: BoolArray | None


def batches(starts: IntArray, sizes: IntArray, max_rows: int | None = None) -> Iterator[Batch]:
    """Group non-empty segments of similar size into rectangles of at most about `max_rows` rows."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    while order.size:
        smallest = int(sizes[order[0]])
        limit = max(smallest, int(smallest * WIDTH_RATIO))
        count = int(np.searchsorted(sizes[order], limit, side="right"))
        group, order = np.sort(order[:count]), order[count:]
        width = int(sizes[group].max())
        per_chunk = len(group) if max_rows is None else max(1, max_rows // width)
        for first in range(0, len(group), per_chunk):
            yield _rectangle(group[first : first + per_chunk], starts, sizes, width)


def _rectangle(segments: IntArray, starts: IntArray, sizes: IntArray, width: int) -> Batch:
    step = np.arange(width)
    valid = step < sizes[segments, np.newaxis]
    full = bool(valid.all())
    rows = starts[segments, np.newaxis] + (step if full else np.where(valid, step, 0))
    return Batch(segments, rows, None if full else valid)


def as_slice(index: IntArray) -> IntArray | slice:
    """Turn increasing positions without a gap into a slice, which needs no copy."""
    if index[-1] - index[0] + 1 == len(index):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def node_ranges(sizes: IntArray, max_rows: int) -> list[slice]:
    """Consecutive nodes with at most about this many rows together, at least one node each."""
    end = np.cumsum(sizes.sum(axis=1))
    part = (end - 1) // max_rows
    first = np.flatnonzero(np.diff(part, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(first, [*first[1:], len(sizes)], strict=True)]
