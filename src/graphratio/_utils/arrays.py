"""Arrays: read-only ones, sums of groups, grids, segments of unequal length in rectangles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.typing import BoolArray, FloatArray, IntArray

# Differences are rounding below this share of the numbers.
LAST_DIGITS = 8 * np.finfo(np.float64).eps

Array = TypeVar("Array", bound=np.ndarray)

# Widths within a rectangle differ by at most this factor. This bounds the padding, and the number
# of rectangles grows with the logarithm of the largest segment.
WIDTH_RATIO = 1.25


class NotAnArray:
    """Refuses to be converted to an array or indexed, which scikit-learn's searches try."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise self._refusal()

    def __getitem__(self, _: Any) -> Any:
        raise self._refusal()

    # Without these, Python would try to iterate by position.
    __iter__ = None
    __contains__ = None

    def _refusal(self) -> InputError:
        return InputError(
            f"{type(self).__name__} is not an array, so scikit-learn's searches, "
            "cross-validation and pipelines cannot use it",
            "Pass the candidates to the estimator, as in GRULSIF(bandwidth=[0.5, 1.0]): fit "
            "selects among them on folds of the observations of every node",
        )


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
    part = np.maximum(end - 1, 0) // max_rows
    first = np.flatnonzero(np.diff(part, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(first, [*first[1:], len(sizes)], strict=True)]


def column_sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Sum the rows of each group one by one, shape (n_groups, columns).

    Examples
    --------
    >>> column_sums(np.array([0, 1, 0]), np.array([[1.0, 0.0], [2.0, 5.0], [4.0, 1.0]]), 2)
    array([[5., 1.],
           [2., 5.]])
    """
    return np.column_stack([np.bincount(group, column, n_groups) for column in values.T])


def from_means(group: IntArray, values: FloatArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Means of groups of rows, (n_groups, columns), and differences to them, (n_rows, columns).

    Differences that are only rounding are zero, and so is the mean of no rows.

    Examples
    --------
    >>> mean, away = from_means(np.array([0, 0, 1]), np.array([[1.0], [3.0], [0.7]]), 2)
    >>> mean.ravel().tolist(), away.ravel().tolist()
    ([2.0, 0.7], [-1.0, 1.0, 0.0])
    """
    count = np.maximum(np.bincount(group, minlength=n_groups), 1)[:, np.newaxis]
    # Differences to one row of the group keep their digits at a high level.
    origin = np.zeros((n_groups, values.shape[1]))
    origin[group] = values
    away = values - origin[group]
    middle = column_sums(group, away, n_groups) / count
    away -= middle[group]
    away[np.abs(away) <= LAST_DIGITS * np.abs(values)] = 0.0
    return origin + middle, away


def grid_partner(table: Mapping[str, Any], column: str, partners: Sequence[str]) -> str:
    """The first of the partners whose values form a full grid with a column; else the last.

    Partners that the table lacks are passed over.

    Examples
    --------
    >>> table = {"a": np.array([1, 1, 2, 2]), "b": np.array([1, 2, 2, 4])}
    >>> grid_partner({**table, "c": table["b"] / table["a"]}, "a", ("b", "c"))
    'c'
    """
    known = [name for name in partners if name in table]
    for name in known:
        distinct = np.unique(table[column]).size * np.unique(table[name]).size
        if distinct == len(np.unique(np.column_stack([table[column], table[name]]), axis=0)):
            return name
    return known[-1]
