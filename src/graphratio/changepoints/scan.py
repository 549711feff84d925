"""The scan of one stretch of time: how strongly it differs before and after every split.

Symbols
-------
e           sums of squared standardised differences over a group of features, per place

One statistic per channel and group of features: the largest e over places. The channel "rest" has
one more, the sum of e over nodes, which sees many small changes that are scattered over the graph.
All are measured as squares of normal numbers, less a penalty for short intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.channels import Channels
from graphratio.changepoints.intervals import Splits, seeded_splits

# Shares of the level by channel and by group; they are scaled to add up to one.
CHANNEL_SHARES = {"node": 0.3, "all": 0.15, "rest": 0.15, "near": 0.15, "sum": 0.1}
GROUP_SHARES = {"mean": 0.4, "spread": 0.3, "correlation": 0.3, "shape": 0.3}

# Numbers that are computed at once, so that they stay in the cache.
_AT_ONCE = 800_000

# Rows of at least this many numbers are added one by one.
_WIDE = 100


@dataclass(frozen=True, eq=False)
class ScanLayout:
    """How the columns of all channels lie side by side, and which statistics they give.

    `weights`, shape (n_groups, n_features), weigh the squares of features in a group.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    groups: tuple[str, ...]
    weights: FloatArray

    @classmethod
    def of(cls, channels: Channels, groups: tuple[str, ...], weights: FloatArray) -> ScanLayout:
        """The layout of some channels."""
        kinds = channels.channels
        return cls(
            tuple(one.name for one in kinds), tuple(one.size for one in kinds), groups, weights
        )

    @computed_once
    def _slices(self) -> list[tuple[int, FloatArray]]:
        """First feature of every group, and the weights of its features."""
        used = [np.flatnonzero(weights) for weights in self.weights]
        return [
            (int(one[0]), weights[one].astype(np.float32))
            for one, weights in zip(used, self.weights, strict=True)
        ]

    @property
    def width(self) -> int:
        """Numbers per step."""
        return int(self.weights.shape[1]) * sum(self.sizes)

    @computed_once
    def statistics(self) -> list[tuple[int, str, str]]:
        """Channel, kind ("sum" or the name of the channel) and group of every statistic."""
        found = []
        for number, name in enumerate(self.names):
            kinds = [name, "sum"] if name == "rest" else [name]
            found += [(number, kind, group) for kind in kinds for group in self.groups]
        return found

    @property
    def log_shares(self) -> FloatArray:
        """Logarithm of the share of the level of every statistic."""
        share = np.array([CHANNEL_SHARES[k] * GROUP_SHARES[g] for _, k, g in self.statistics])
        return np.asarray(np.log(share / share.sum()))

    def reduce(self, squares: FloatArray, out: FloatArray) -> None:
        """Statistics, shape (n_statistics, k), of squared differences, shape (k, width)."""
        k, n_features = len(squares), self.weights.shape[1]
        begin = row = 0
        for name, size in zip(self.names, self.sizes, strict=True):
            part = squares[:, begin : begin + n_features * size].reshape(k, n_features, size)
            begin += n_features * size
            energies = [_weighted(part, *group) for group in self._slices]
            for e in energies:
                out[row] = e.max(axis=1)
                row += 1
            if name == "rest":
                for e, weights in zip(energies, self.weights, strict=True):
                    spread = np.sqrt(2 * size * (weights**2).sum())
                    z = (e.sum(axis=1) - size * weights.sum()) / spread
                    out[row] = np.maximum(z, 0) ** 2
                    row += 1


def _weighted(part: FloatArray, first: int, weights: FloatArray) -> FloatArray:
    """Weighted sum over features of a group, shape (k, size)."""
    if len(weights) == 1:
        # The first weight of a group is 1.
        return part[:, first]
    chosen = part[:, first : first + len(weights)]
    return np.asarray(np.einsum("f,kfn->kn", weights, chosen))


def cumulative(rows: FloatArray, order: IntArray | None = None) -> FloatArray:
    """Cumulative sums of rows in some order, shape (n_times + 1, width)."""
    n_times = len(rows) if order is None else len(order)
    sums = np.zeros((n_times + 1, rows.shape[1]), dtype=np.float32)
    if rows.shape[1] < _WIDE:
        np.cumsum(rows if order is None else rows[order], axis=0, out=sums[1:])
        return sums
    # Adding whole rows is several times faster than an accumulation along the columns.
    for step, row in enumerate(range(len(rows)) if order is None else order.tolist()):
        np.add(sums[step], rows[row], out=sums[step + 1])
    return sums


def statistics_at(splits: Splits, sums: FloatArray, layout: ScanLayout) -> FloatArray:
    """Every statistic at every split, from cumulative sums of shape (n_times + 1, width)."""
    found = np.empty((len(layout.statistics), len(splits.split)), dtype=np.float32)
    chunk = max(16, _AT_ONCE // sums.shape[1])
    for number, part in enumerate(splits.portions(chunk)):
        squares = part @ sums
        squares *= squares
        layout.reduce(squares, found[:, number * chunk : (number + 1) * chunk])
    return found


class StretchScan:
    """Scans the columns of all channels of one stretch of time, in any order of its steps."""

    def __init__(
        self,
        rows: FloatArray,
        layout: ScanLayout,
        extent: int,
        scales: tuple[int, int | None],
    ) -> None:
        self.n_times = len(rows)
        self.rows = rows
        self.layout = layout
        self.splits: Splits = seeded_splits(self.n_times, layout.width, *scales)
        self._penalty = self.splits.penalty(extent)

    def curves(self, order: IntArray | None = None) -> FloatArray:
        """Every statistic at every split, shape (n_statistics, n_splits)."""
        sums = cumulative(self.rows, order)
        return statistics_at(self.splits, sums, self.layout) - self._penalty

    def largest(self, order: IntArray) -> FloatArray:
        """The largest value of every statistic, shape (n_statistics,)."""
        return np.asarray(self.curves(order).max(axis=1))
