"""The running detector: the last steps against the memory before them, at several scales.

At every step the last h steps are compared with all earlier ones in the memory, for h from half the
shortest interval on, each a factor sqrt(2) longer. Long scales are compared every few steps only.
The columns are divided by their spread in the memory, so nothing depends on an early estimate. The
threshold comes from streams that are drawn from the reference in blocks of time: a stretch of
`HORIZON` steps without change raises an alarm with probability `level`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.jobs import each
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.common_scale import Evidence
from graphratio.changepoints.intervals import Splits
from graphratio.changepoints.panel_features import PanelFeatures
from graphratio.changepoints.scan import ScanLayout, cumulative
from graphratio.changepoints.stretch import Stretch, side_by_side

# Steps of a stretch to which the chance of a false alarm refers.
HORIZON = 1_000

# Steps of a new state before it is watched, and before its reference is no longer renewed.
SETTLING = 40
LONG_REFERENCE = 320

_AT_ONCE = 300_000


@dataclass(frozen=True)
class Scales:
    """Lengths h of the recent past, and how often each is compared."""

    lengths: tuple[int, ...]
    memory: int

    @classmethod
    def of(cls, shortest: int, memory: int) -> Scales:
        """All scales from half the shortest interval to half the memory."""
        count = int(2 * math.log2(max(memory / shortest, 1))) + 1
        lengths = {round(shortest / 2 * 2 ** (i / 2)) for i in range(count)}
        return cls(tuple(sorted(lengths)), memory)

    def splits(self, begin: int, times: IntArray) -> Splits:
        """Comparisons that are due when `times` steps have been seen, from the step `begin` on."""
        rows = []
        for h in self.lengths:
            due = times[times % max(1, h // 5) == 0]
            first = np.maximum(begin, due - self.memory)
            # The past is at least as long as the recent past.
            kept = due - first >= 2 * h
            rows.append(np.stack([first, due - h, due])[:, kept])
        first, split, end = np.concatenate(rows, axis=1)
        return Splits(
            first - begin, split - begin, end - begin, int(times.max(initial=begin)) - begin
        )

    def penalty(self, splits: Splits) -> FloatArray:
        """As for seeded intervals, by the number of stretches of that length."""
        h = splits.end - splits.split
        return np.asarray(2 * np.log(np.maximum(HORIZON / h, 1.0)), dtype=np.float32)


def recent_statistics(
    splits: Splits, sums: FloatArray, squares: FloatArray, layout: ScanLayout
) -> FloatArray:
    """Statistics at the splits, in units of the spread of each interval, (n_statistics, k).

    `sums` and `squares` are cumulative, of shape (n_times + 1, width).
    """
    n_splits = len(splits.split)
    found = np.empty((len(layout.statistics), n_splits), dtype=np.float32)
    chunk = max(16, _AT_ONCE // sums.shape[1])
    whole = _means_matrix(splits)
    for begin in range(0, n_splits, chunk):
        part = slice(begin, begin + chunk)
        mean = whole[part] @ sums
        variance = whole[part] @ squares - mean * mean
        moved = splits.matrix[part] @ sums
        moved *= moved
        usual = variance > 1e-6
        moved /= np.where(usual, variance, 1.0)
        moved *= usual
        layout.reduce(moved, found[:, part])
    return found


def _means_matrix(splits: Splits) -> sparse.csr_array:
    """From cumulative sums to means over whole intervals."""
    n = len(splits.begin)
    data = np.stack([1 / (splits.end - splits.begin), -1 / (splits.end - splits.begin)], axis=1)
    columns = np.stack([splits.end, splits.begin], axis=1)
    return sparse.csr_array(
        (data.ravel().astype(np.float32), columns.ravel(), np.arange(0, 2 * n + 1, 2)),
        shape=(n, splits.n_times + 1),
    )


def stream_evidence(
    reference: Stretch,
    scales: Scales,
    block: int,
    n_surrogates: int,
    level: float,
    rng: np.random.Generator,
) -> Evidence:
    """Thresholds from streams drawn with replacement from the blocks of a reference."""
    n = reference.n_times
    length = n + HORIZON
    splits = scales.splits(0, np.arange(n + 1, length + 1))
    penalty = scales.penalty(splits)
    rows = reference.rows

    def largest(order: IntArray) -> FloatArray:
        sums = cumulative(rows, order)
        squares = cumulative(rows * rows, order)
        statistics = recent_statistics(splits, sums, squares, reference.layout) - penalty
        return np.asarray(statistics.max(axis=1))

    orders = [_resampled(n, length, block, rng) for _ in range(n_surrogates)]
    drawn = np.array(each(largest, orders))
    return Evidence.of(None, drawn, reference.layout.log_shares, level)


def _resampled(n: int, length: int, block: int, rng: np.random.Generator) -> IntArray:
    """Steps of a stream: blocks of consecutive steps that begin anywhere, with replacement."""
    block = min(max(block, 1), n)
    starts = rng.integers(n - block + 1, size=-(-length // block))
    return np.asarray((starts[:, np.newaxis] + np.arange(block)).ravel()[:length])


class RecentPast:
    """Sums over the memory, step by step, with the features of a reference stretch.

    Step `origin` is the first one; row i of the ring holds the sums of the steps before
    origin + i, modulo its length.
    """

    def __init__(self, reference: Stretch, features: PanelFeatures, scales: Scales) -> None:
        self.reference, self.features, self.scales = reference, features, scales
        self.origin = self.n_seen = reference.begin
        width = reference.rows.shape[1]
        self._sums = np.zeros((scales.memory + 1, width))
        self._squares = np.zeros((scales.memory + 1, width))

    def push(self, values: FloatArray) -> FloatArray:
        """Take in values, (n_times, n_nodes, n_measured); return the columns of the new steps."""
        x = self.features(self.reference.score_map(values))
        rows = side_by_side(self.reference.channels(x))
        size = len(self._sums)
        for row in rows:
            now, then = (self.n_seen - self.origin) % size, (self.n_seen + 1 - self.origin) % size
            np.add(self._sums[now], row, out=self._sums[then])
            np.add(self._squares[now], np.square(row, dtype=np.float64), out=self._squares[then])
            self.n_seen += 1
        return rows

    def statistics(self) -> tuple[Splits, FloatArray]:
        """Comparisons that are due now, and their statistics less the penalty."""
        splits = self.scales.splits(self.origin, np.array([self.n_seen]))
        size = len(self._sums)
        used = np.unique(np.concatenate([splits.begin, splits.split, splits.end]))
        place = {
            name: np.searchsorted(used, getattr(splits, name)) for name in ("begin", "split", "end")
        }
        if not used.size:
            return splits, np.empty((len(self.reference.layout.statistics), 0), dtype=np.float32)
        found = self._compare(splits, used % size, place)
        return splits, found - self.scales.penalty(splits)

    def _compare(self, splits: Splits, ring: IntArray, place: dict[str, IntArray]) -> FloatArray:
        """The same numbers as `recent_statistics`, for the few comparisons of one step."""
        sums, squares = self._sums[ring], self._squares[ring]
        begin, split, end = place["begin"], place["split"], place["end"]
        n = (splits.end - splits.begin)[:, np.newaxis]
        before = (splits.split - splits.begin)[:, np.newaxis] / n
        whole = sums[end] - sums[begin]
        variance = (squares[end] - squares[begin]) / n - (whole / n) ** 2
        moved = sums[split] - sums[begin] - before * whole
        usual = variance > 1e-6
        moved = usual * moved**2 / (n * before * (1 - before) * np.where(usual, variance, 1.0))
        layout = self.reference.layout
        found = np.empty((len(layout.statistics), len(moved)), dtype=np.float32)
        layout.reduce(moved.astype(np.float32), found)
        return found
