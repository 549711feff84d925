"""A stretch of time without known changes inside: its scores, features, channels and scan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.changepoints.channels import Channels
from graphratio.changepoints.common_scale import Evidence
from graphratio.changepoints.intervals import MARGIN, SHORTEST_INTERVAL, Splits, seeded_splits
from graphratio.changepoints.panel_features import PanelFeatures, ScoreMap
from graphratio.changepoints.scan import ScanLayout, StretchScan, cumulative, statistics_at
from graphratio.changepoints.smoother import GraphSmoother

# Splits of a whole stretch that are compared to find its best one.
_MOST_PLACES = 400

_AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class Lens:
    """How stretches of a panel are looked at; fixed by `fit`.

    `shortest` and `longest` are lengths of intervals, None for the length of the stretch.
    """

    features: PanelFeatures
    smoothers: tuple[GraphSmoother, ...]
    standardize: bool = True
    shortest: int = SHORTEST_INTERVAL
    longest: int | None = None


class Stretch:
    """Steps `begin` to `end` of a panel, ranked and standardised by themselves.

    Nothing here depends on the order of time, so steps of a stretch without change, or blocks of
    them, can be exchanged.
    """

    def __init__(self, values: FloatArray, begin: int, end: int, lens: Lens) -> None:
        self.begin, self.end, self.lens = begin, end, lens
        self.score_map, self.z = ScoreMap.of(values[begin:end], standardize=lens.standardize)
        x = lens.features(self.z)
        self.observed: BoolArray = np.asarray(np.isfinite(self.z).all(axis=2))
        self.channels, columns = Channels.of(x, lens.smoothers)
        self.layout = ScanLayout.of(self.channels, lens.features.groups, lens.features.weights)
        self.rows = side_by_side(columns)

    @property
    def n_times(self) -> int:
        """Number of steps."""
        return self.end - self.begin

    def columns(self, channel: int) -> FloatArray:
        """Columns of a channel, shape (n_times, n_features, size)."""
        n_features, sizes = self.layout.weights.shape[1], self.layout.sizes
        first = n_features * sum(sizes[:channel])
        part = self.rows[:, first : first + n_features * sizes[channel]]
        return part.reshape(len(part), n_features, sizes[channel])

    def scan(self, extent: int) -> StretchScan:
        """The scan at all scales, with penalties for a panel of `extent` steps."""
        return StretchScan(self.rows, self.layout, extent, (self.lens.shortest, self.lens.longest))

    def energies(self) -> tuple[Splits, FloatArray]:
        """Squared differences of all features, summed over nodes, at splits of all scales."""
        n_features, n_nodes = self.layout.weights.shape[1], self.layout.sizes[0]
        rows = self.rows[:, : n_features * n_nodes]
        splits = seeded_splits(self.n_times, rows.shape[1], self.lens.shortest, self.lens.longest)
        sums, weights = cumulative(rows), np.repeat(self.layout.weights.sum(axis=0), n_nodes)
        portions = splits.portions(max(16, _AT_ONCE // rows.shape[1]))
        energy = [(part @ sums) ** 2 @ weights for part in portions]
        return splits, np.concatenate(energy)

    @computed_once
    def sums(self) -> FloatArray:
        """Cumulative sums of all columns, shape (n_times + 1, width)."""
        return cumulative(self.rows)

    def best_split(self, evidence: Evidence, extent: int) -> tuple[int, float]:
        """The split of the whole stretch with the highest score: step and score."""
        n = self.n_times
        if n < 2 * MARGIN:
            return self.begin, -np.inf
        count = min(n - 2 * MARGIN + 1, _MOST_PLACES)
        split = np.unique(np.linspace(MARGIN, n - MARGIN, count).round().astype(np.intp))
        splits = Splits(np.zeros_like(split), split, np.full_like(split, n), n)
        found = statistics_at(splits, self.sums, self.layout) - splits.penalty(extent)
        scores = evidence.scores(found).max(axis=0)
        best = int(np.argmax(scores))
        return self.begin + int(split[best]), float(scores[best])

    def best_interval(self, evidence: Evidence, extent: int) -> tuple[int, float, tuple[int, int]]:
        """The split of any interval with the highest score: step, score and interval."""
        scan = self.scan(extent)
        scores = evidence.scores(scan.curves()).max(axis=0)
        best = int(np.argmax(scores))
        step, begin, end = (
            self.begin + int(part[best])
            for part in (scan.splits.split, scan.splits.begin, scan.splits.end)
        )
        return step, float(scores[best]), (begin, end)


def side_by_side(columns: list[FloatArray]) -> FloatArray:
    """Columns of all channels in one array, shape (n_times, width)."""
    n_times = len(columns[0])
    return np.concatenate([part.reshape(n_times, -1) for part in columns], axis=1)
