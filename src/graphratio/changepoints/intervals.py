"""Seeded intervals: where a panel is split, at all scales.

Intervals have lengths from the shortest scale to the whole panel, each a factor sqrt(2) longer than
the one before, and neighbours of one length overlap by half. Every interval is split
at several places. Differences of means over the two sides come from cumulative sums, so a split
costs the same at every scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray

# Length of the shortest interval, and fewest steps on either side of a change.
SHORTEST_INTERVAL = 20
MARGIN = 5

# Splits keep this share of their interval on either side.
_EDGE = 0.08

# Splits of an interval: as many as the budget of numbers allows, within these bounds.
_FEWEST_SPLITS, _MOST_SPLITS = 12, 64
_BUDGET = 2_500_000


@dataclass(frozen=True, eq=False)
class Splits:
    """Splits of intervals [begin, end) of a panel at a first step after the change."""

    begin: IntArray
    split: IntArray
    end: IntArray
    n_times: int

    @computed_once
    def matrix(self) -> sparse.csr_array:
        """From cumulative sums, shape (n_times + 1, k), to standardised differences of means.

        A difference of independent values of variance one has variance one.
        """
        n = self.end - self.begin
        before = (self.split - self.begin) / n
        scale = 1 / np.sqrt(n * before * (1 - before))
        data = np.stack([scale, (before - 1) * scale, -before * scale], axis=1)
        columns = np.stack([self.split, self.begin, self.end], axis=1)
        starts = np.arange(0, 3 * len(n) + 1, 3)
        return sparse.csr_array(
            (data.ravel().astype(np.float32), columns.ravel(), starts),
            shape=(len(n), self.n_times + 1),
        )

    def portions(self, rows: int) -> list[sparse.csr_array]:
        """The matrix in portions of some rows; kept, since every surrogate uses the same ones."""
        if rows not in self._portions:
            starts = range(0, len(self.split), rows)
            self._portions[rows] = [self.matrix[begin : begin + rows] for begin in starts]
        return self._portions[rows]

    @computed_once
    def _portions(self) -> dict[int, list[sparse.csr_array]]:
        return {}

    def penalty(self, extent: int) -> FloatArray:
        """What a squared difference must exceed to count, by the number of such intervals.

        The largest of k squared normal numbers grows as 2 log k. Without the penalty the many
        short intervals would set the threshold of the few long ones.
        """
        return np.asarray(2 * np.log(extent / (self.end - self.begin)), dtype=np.float32)


def seeded_splits(
    n_times: int, width: int, shortest: int = SHORTEST_INTERVAL, longest: int | None = None
) -> Splits:
    """Splits of a panel with `width` numbers per step; finer if there are few numbers.

    Examples
    --------
    >>> splits = seeded_splits(40, 1)
    >>> sorted(set((splits.end - splits.begin).tolist())), int(splits.split.min())
    ([20, 28, 40], 5)
    """
    per_step = 3.5 / shortest * 2
    finest = int(np.clip(_BUDGET / (per_step * n_times * width), _FEWEST_SPLITS, _MOST_SPLITS))
    begins: list[IntArray] = []
    splits: list[IntArray] = []
    ends: list[IntArray] = []
    most = min(n_times, longest or n_times)
    doublings = max(2 * math.log2(most / shortest), 0)
    lengths = {round(shortest * 2 ** (i / 2)) for i in range(math.ceil(doublings))}
    for steps in sorted({min(one, most) for one in lengths} | {most}, reverse=True):
        count = math.ceil(2 * (n_times - steps) / steps) + 1
        first = np.unique(np.linspace(0, n_times - steps, count).round().astype(np.intp))
        inside = _places(steps, finest)
        begins.append(np.repeat(first, len(inside)))
        splits.append((first[:, np.newaxis] + inside).ravel())
        ends.append(begins[-1] + steps)
    return Splits(np.concatenate(begins), np.concatenate(splits), np.concatenate(ends), n_times)


def _places(length: int, finest: int) -> IntArray:
    """Where an interval is split: evenly, with the middle among the places."""
    half = length / 2
    reach = half - max(MARGIN, _EDGE * length)
    count = max(int(reach / max(1.0, length / finest)), 0)
    places = half + np.arange(-count, count + 1) * max(1.0, length / finest)
    return np.unique(np.round(places).astype(np.intp))
