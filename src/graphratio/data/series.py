"""Series in the order of time, products of neighbouring observations, and their p-values.

Symbols
-------
x           standard scores of the observations in the order of time
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray

# Observations further apart than this many median steps are not neighbours.
LONG_GAP = 5

# Standard scores are clipped to this size.
_CLIP = 4.0


@dataclass(frozen=True, eq=False)
class Series:
    """Observations `values` (n, d) sorted by sample and time.

    `segment` is the sample of every row (node v has 2 v and 2 v + 1), `stamp` the code of its time,
    and `start` is True where a series begins, at another sample or after a long gap.
    """

    values: FloatArray
    segment: IntArray
    stamp: IntArray
    start: BoolArray
    n_segments: int

    @classmethod
    def of(
        cls,
        values: FloatArray,
        segment: IntArray,
        stamp: IntArray,
        time: FloatArray | None,
        n_segments: int | None = None,
    ) -> Series:
        """Build from sorted rows; long gaps in `time`, in any unit, begin a new series."""
        start = np.ones(len(segment), dtype=bool)
        start[1:] = segment[1:] != segment[:-1]
        if time is not None:
            start[1:] |= _long_gaps(time, segment)
        if n_segments is None:
            n_segments = 2 * (int(segment.max(initial=-1)) // 2 + 1)
        return cls(values, segment, stamp, start, n_segments)

    @computed_once
    def sizes(self) -> IntArray:
        """Observations of each sample."""
        return np.bincount(self.segment, minlength=self.n_segments)

    @computed_once
    def last(self) -> IntArray:
        """Last row of the series of every row."""
        begins = np.flatnonzero(self.start)
        ends = np.append(begins[1:], len(self.start)) - 1
        return np.asarray(ends[np.cumsum(self.start) - 1])

    def scores(self) -> FloatArray:
        """Standard scores of values and of their squares, shape (n, 2 d)."""
        x = self.standard(np.clip(self.standard(self.values), -_CLIP, _CLIP))
        return np.hstack([x, self.standard(x**2)])

    def standard(self, values: FloatArray) -> FloatArray:
        """Values of mean 0 and variance 1 in every sample; 0 where they are constant."""
        count = np.maximum(self.sizes, 1)[:, np.newaxis]
        centred = values - (self.sums(values) / count)[self.segment]
        spread = np.sqrt(self.sums(centred**2) / count)
        # Rounding gives a constant sample about this spread.
        tiny = 1e-12 * self.sums(np.abs(values)) / count
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > tiny)
        return np.asarray(centred * scale[self.segment])

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over samples, shape (n_segments, columns)."""
        total = np.zeros((self.n_segments, values.shape[1]))
        there = self.sizes > 0
        begins = (np.cumsum(self.sizes) - self.sizes)[there]
        total[there] = np.add.reduceat(values, begins, axis=0)
        return total


def _long_gaps(time: FloatArray, segment: IntArray) -> BoolArray:
    """True where the step to the next row is much longer than the median step of the sample."""
    step = np.diff(time)
    inside = (segment[1:] == segment[:-1]) & (step > 0)
    rows = np.flatnonzero(inside)
    if not rows.size:
        return np.zeros(len(step), dtype=bool)
    order = rows[np.lexsort((step[rows], segment[rows]))]
    count = np.bincount(segment[rows], minlength=int(segment.max()) + 1)
    middle = np.minimum(np.cumsum(count) - count + count // 2, len(order) - 1)
    usual = np.where(count > 0, step[order[middle]], np.inf)
    return np.asarray(inside & (step > LONG_GAP * usual[segment[1:]]))


def forward_products(series: Series, x: FloatArray, width: int) -> FloatArray:
    """Products of every observation and the sum of the next `width`; mean 0 if independent."""
    row = np.arange(len(x))
    end = np.minimum(row + width, series.last)
    running = np.cumsum(x, axis=0)
    after = running[end] - running
    # Centring makes any two observations of a sample of n correlated by -1 / (n - 1).
    expected = (end - row) / np.maximum(series.sizes - 1, 1)[series.segment]
    return np.asarray((after * x) + expected[:, np.newaxis] * (x != 0))


def excess(terms: FloatArray, axis: int) -> FloatArray:
    """P-values of a positive mean of uncorrelated terms."""
    counted = (terms != 0).sum(axis=axis)
    return excess_of_sums(terms.sum(axis=axis), (terms**2).sum(axis=axis), counted)


def excess_of_sums(sums: FloatArray, squares: FloatArray, counts: FloatArray) -> FloatArray:
    """P-values of `excess` from the sum of the terms, that of their squares, and their number."""
    if np.ndim(counts) < np.ndim(sums):
        counts = counts[:, np.newaxis]
    count = np.maximum(np.broadcast_to(counts, np.shape(sums)), 2.0)
    z = sums / np.sqrt(np.where(squares > 0, squares, 1.0))
    # The usual t statistic, from the sum over the root of the sum of squares.
    t = z * np.sqrt((count - 1) / np.maximum(count - z**2, 1e-9))
    return np.asarray(stats.t.sf(t, count - 1))


def lag_products(series: Series, x: FloatArray, lag: int) -> tuple[FloatArray, FloatArray]:
    """Sums of products at a lag over samples, (n_segments, columns), and numbers of pairs."""
    near = np.arange(len(x) - lag) + lag <= series.last[: len(x) - lag]
    products = np.zeros((len(x), x.shape[1] + 1))
    products[: len(near), :-1] = x[:-lag] * x[lag:]
    products[: len(near), -1] = 1.0
    products[: len(near)] *= near[:, np.newaxis]
    sums = series.sums(products)
    return sums[:, :-1], sums[:, -1]
