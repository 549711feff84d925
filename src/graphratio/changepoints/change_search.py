"""Find all changes of a panel: scan, calibrate on surrogates, cut, and begin again in the pieces.

In every round the stretches between the known changes are scanned together and compared with
surrogates: each stretch with its blocks of time, of all nodes together, in random order. Changes
above the threshold are dated between their neighbours, and those that no longer stand out there are
dropped. The search ends with a round that finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from graphratio._utils.jobs import each
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.blocks_of_time import FEWEST_TIME_BLOCKS, block_length, shuffled
from graphratio.changepoints.common_scale import Evidence
from graphratio.changepoints.dating import Dated, date
from graphratio.changepoints.intervals import MARGIN, Splits
from graphratio.changepoints.scan import StretchScan
from graphratio.changepoints.stretch import Lens, Stretch

# After these numbers of surrogates a round ends early if the p-value is above _ORDINARY.
_LOOKS = (19, 39)
_ORDINARY = 0.3

MOST_SEARCHES = 12


@dataclass(frozen=True, eq=False)
class Change:
    """A change between its neighbours, the ends of the stretch in which it was dated."""

    dated: Dated
    score: float
    p_value: float
    relative: float
    neighbours: tuple[int, int]


@dataclass(eq=False)
class SearchResult:
    """What a search found; `curve` is the first scan in units of its threshold, at `times`."""

    changes: list[Change]
    block: int
    too_short: bool
    p_value: float
    times: IntArray
    curve: FloatArray


@dataclass(eq=False)
class Search:
    """Searches the values of a panel, shape (n_times, n_nodes, n_measured)."""

    values: FloatArray
    lens: Lens
    level: float
    n_surrogates: int
    rng: np.random.Generator
    block: int | None = None
    progress: bool = False
    _stretches: dict[tuple[int, int], Stretch] = field(default_factory=dict)

    def run(self) -> SearchResult:
        """All changes in the order of time."""
        n_times = len(self.values)
        block = self.block or block_length(self.stretch(0, n_times).z, self._suspect)
        if n_times // block < FEWEST_TIME_BLOCKS:
            return SearchResult([], block, True, 1.0, np.zeros(0, dtype=np.intp), np.zeros(0))
        changes: list[Change] = []
        result: SearchResult | None = None
        for _ in range(MOST_SEARCHES):
            ends = [0, *(one.dated.step for one in changes), n_times]
            pieces = [
                (a, b)
                for a, b in pairwise(ends)
                if b - a >= max(self.lens.shortest, FEWEST_TIME_BLOCKS * block)
            ]
            if not pieces:
                break
            found, evidence, p_value, curve = self._round(pieces, block)
            if result is None:
                result = SearchResult([], block, False, p_value, *curve)
            if p_value > self.level or not found:
                break
            revised = self._settled([*ends[1:-1], *found], changes, block, evidence)
            if [one.dated.step for one in revised] == ends[1:-1]:
                break
            changes = revised
            self._keep([0, *(one.dated.step for one in changes), n_times])
        if result is None:
            raise RuntimeError("no stretch of the panel was searched")
        result.changes = changes
        return result

    def stretch(self, begin: int, end: int) -> Stretch:
        """Steps between two changes, or ends of the panel."""
        if (begin, end) not in self._stretches:
            self._stretches[begin, end] = Stretch(self.values, begin, end, self.lens)
        return self._stretches[begin, end]

    def _keep(self, ends: Sequence[int]) -> None:
        """Forget stretches that are no longer needed."""
        needed = set(pairwise(ends))
        self._stretches = {k: v for k, v in self._stretches.items() if k in needed}

    def _suspect(self, begin: int, end: int) -> tuple[int, float]:
        """Where all nodes together differ most, at any scale, and how much."""
        stretch = self.stretch(begin, end)
        splits, energy = stretch.energies()
        place = int(np.argmax(energy))
        return begin + int(splits.split[place]), float(energy[place])

    def _round(
        self, pieces: list[tuple[int, int]], block: int
    ) -> tuple[list[int], Evidence, float, tuple[IntArray, FloatArray]]:
        """Scan and calibrate: steps of changes, the evidence, the p-value, and the curve."""
        extent = len(self.values)
        scans = [self.stretch(a, b).scan(extent) for a, b in pieces]
        curves = [scan.curves() for scan in scans]
        real = np.max([curve.max(axis=1) for curve in curves], axis=0)
        evidence, p_value = self._calibrated(real, scans, block)
        scores = [evidence.scores(curve).max(axis=0) for curve in curves]
        found = []
        if p_value <= self.level:
            for (begin, _), scan, score in zip(pieces, scans, scores, strict=True):
                found += [begin + t for t in _peaks(scan, score, evidence.threshold)]
        times, heights = [], []
        for (begin, _), scan, score in zip(pieces, scans, scores, strict=True):
            height = _envelope(scan.splits, score)
            step = np.flatnonzero(np.isfinite(height))
            times.append(begin + step)
            heights.append(evidence.relative(height[step]))
        return found, evidence, p_value, (np.concatenate(times), np.concatenate(heights))

    def _calibrated(
        self, real: FloatArray, scans: list[StretchScan], block: int
    ) -> tuple[Evidence, float]:
        log_shares = scans[0].layout.log_shares
        drawn: list[FloatArray] = []
        with ProgressBar(self.n_surrogates, "surrogate panels", enabled=self.progress) as bar:
            for count in sorted({*_LOOKS, self.n_surrogates}):
                # Drawn one after the other, so that they do not depend on the number of threads.
                orders = [
                    [shuffled(one.n_times, block, self.rng) for one in scans]
                    for _ in range(count - len(drawn))
                ]
                drawn += each(partial(_largest, scans), orders, bar)
                evidence = Evidence.of(real, np.array(drawn), log_shares, self.level)
                p_value = evidence.p_value(float(evidence.scores(real).max()))
                if p_value > _ORDINARY or count >= self.n_surrogates:
                    break
        return evidence, p_value

    def _settled(
        self, steps: list[int], known: list[Change], block: int, evidence: Evidence
    ) -> list[Change]:
        """Date changes between their neighbours, and drop those that do not stand out there."""
        n_times = len(self.values)
        found = {one.dated.step: one for one in known}
        steps = sorted(set(steps))
        while True:
            changes: list[Change] = []
            for i, step in enumerate(steps):
                before = changes[-1].dated.step if changes else 0
                after = steps[i + 1] if i + 1 < len(steps) else n_times
                one = found.get(step)
                if one is None or one.neighbours != (before, after):
                    one = self._dated(before, after, block, evidence, first=not known)
                changes.append(one)
            weakest = min(changes, key=lambda one: one.score, default=None)
            if weakest is None or weakest.score > evidence.threshold:
                return changes
            changes.remove(weakest)
            steps = [one.dated.step for one in changes]

    def _dated(
        self, begin: int, end: int, block: int, evidence: Evidence, *, first: bool
    ) -> Change:
        if end - begin < 2 * MARGIN:
            return Change(Dated(begin, (begin, begin)), -np.inf, 1.0, 0.0, (begin, end))
        stretch = self.stretch(begin, end)
        step, score = stretch.best_split(evidence, len(self.values))
        near = stretch
        if first and score <= evidence.threshold:
            # A short change and back again shows in its interval, not in the whole panel.
            step, score, inside = stretch.best_interval(evidence, len(self.values))
            near = self.stretch(*inside)
        return Change(
            date(near, step, block),
            score,
            evidence.p_value(score),
            float(evidence.relative(score)),
            (begin, end),
        )


def _largest(scans: list[StretchScan], orders: list[IntArray]) -> FloatArray:
    """Largest statistics over stretches whose times are shuffled."""
    return np.asarray(
        np.max([scan.largest(order) for scan, order in zip(scans, orders, strict=True)], axis=0)
    )


def _envelope(splits: Splits, score: FloatArray) -> FloatArray:
    """The highest score at every step, where a split stands for the steps nearest to it.

    Long intervals are split every few steps only; between these steps the curve would fall to that
    of short intervals.
    """
    same = (np.diff(splits.begin) == 0) & (np.diff(splits.end) == 0)
    gap = np.where(same, np.diff(splits.split), 0)
    reach = np.maximum(np.r_[gap, 0], np.r_[0, gap]) // 2
    height = np.full(splits.n_times, -np.inf)
    for offset in range(-int(reach.max(initial=0)), int(reach.max(initial=0)) + 1):
        near = reach >= abs(offset)
        np.maximum.at(height, splits.split[near] + offset, score[near])
    return height


def _peaks(scan: StretchScan, score: FloatArray, threshold: float) -> list[int]:
    """Splits above the threshold, the highest first, without intervals that contain one."""
    splits = scan.splits
    left = np.flatnonzero(score > threshold)
    found = []
    while left.size:
        best = left[np.argmax(score[left])]
        step = int(splits.split[best])
        found.append(step)
        left = left[(splits.end[left] <= step) | (splits.begin[left] >= step)]
    return found
