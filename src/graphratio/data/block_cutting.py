"""Cut observations into blocks: by count, by the calendar, or by the measured dependence.

Also finds rows that are sorted by value, whose order says nothing about time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.blocks import Blocks, count_blocks, successive
from graphratio.data.dependence import Dependence, measure, together_by_unit
from graphratio.data.durations import DAY, calendar_number, parse_duration
from graphratio.data.series import Series
from graphratio.data.times import is_date

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples

# The dependence is measured on about this many observations at most.
_ENOUGH = 1_000_000

# A block counts as complete at a node with this share of the usual number of observations.
_COMPLETE = 0.5

# Nodes share their times if most of them observe at least this share of all times, and if at most
# this share of observations repeats a time: clocks show an hour twice when summer time ends.
_SHARED = 0.5
_REPEATED = 0.05

# Days and repeated times are units of their own from this many observations on average.
_SEVERAL = 1.5

# Share of the steps of a sorted sample that go in its direction, and its fewest observations.
_SORTED = 0.98
SHORTEST_SORTED = 8


def blocks_of(samples: NodeSamples, time: np.ndarray | None, block: Any) -> Blocks:
    """Cut the observations into blocks as specified."""
    if block is None or (time is None and block == "auto"):
        return _singles(samples, block)
    if time is not None and isinstance(block, str) and block != "auto":
        return _calendar(samples, time, parse_duration(block), block)
    clock = _Clock(samples, time)
    if isinstance(block, int):
        return clock.consecutive(block, block)
    found, together = clock.measured()
    if not found.found:
        single = clock.simultaneous(block) if together else _singles(samples, block)
        return replace(single, measured=found)
    if clock.unit is None or not (found.by_day or found.length >= clock.per_unit):
        return replace(clock.consecutive(clock.fitting(found.length), block), measured=found)
    return replace(clock.units(found.days(clock.per_unit), block), measured=found)


def _singles(samples: NodeSamples, asked: Any) -> Blocks:
    n = samples.n_observations
    return Blocks(
        number=read_only(np.arange(n)),
        whole=read_only(np.ones(n, dtype=bool)),
        counts=samples.sizes,
        kind="none",
        length=1,
        duration=None,
        shared=False,
        asked=asked,
    )


def _calendar(
    samples: NodeSamples, time: np.ndarray, duration: np.timedelta64, asked: Any
) -> Blocks:
    side = samples.is_target.astype(np.intp)
    code = np.empty(len(time), dtype=np.int64)
    for part in (0, 1):
        rows = np.flatnonzero(side == part)
        if rows.size:
            code[rows] = calendar_number(time[rows], duration)
    return _pieces(samples, np.unique(2 * code + side, return_inverse=True)[1], duration, asked)


def _pieces(
    samples: NodeSamples, number: IntArray, duration: np.timedelta64 | None, asked: Any
) -> Blocks:
    """Blocks with given numbers; nearly empty ones at a node are no complete blocks there."""
    segment = samples.segments
    width = int(number.max()) + 1
    own, cell, size = np.unique(segment * width + number, return_inverse=True, return_counts=True)
    usual = _medians(size, own // width, 2 * samples.n_nodes)
    whole = (size >= _COMPLETE * usual[own // width])[cell]
    return Blocks(
        number=read_only(number),
        whole=read_only(whole),
        counts=count_blocks(number, whole, segment, samples.n_nodes),
        kind="calendar",
        length=int(np.median(size)),
        duration=duration,
        shared=True,
        asked=asked,
    )


def _medians(values: IntArray, group: IntArray, n_groups: int) -> FloatArray:
    """Median of every group of sorted groups; 0 for empty ones."""
    order = np.lexsort((values, group))
    count = np.bincount(group, minlength=n_groups)
    begin = np.cumsum(count) - count
    middle = np.minimum(begin + count // 2, max(len(values) - 1, 0))
    return np.where(count > 0, values[order[middle]], 0)


class _Clock:
    """The order of time of all observations."""

    def __init__(self, samples: NodeSamples, time: np.ndarray | None) -> None:
        self.samples, self.time = samples, time
        if time is None:
            self.stamp = np.arange(samples.n_observations) - samples.offsets[samples.segments]
        else:
            self.stamp = np.unique(time, return_inverse=True)[1]
        self.side = samples.is_target.astype(np.intp)
        day = self.stamp
        if time is not None and is_date(time):
            day = np.unique(calendar_number(time, DAY), return_inverse=True)[1]
        cells = np.unique(samples.segments * (int(day.max()) + 1) + day, return_counts=True)[1]
        several_days = len(np.unique(2 * day + self.side)) >= 4
        self.per_unit = float(np.median(cells))
        self.unit = day if cells.mean() >= _SEVERAL and several_days else None
        self.day = day

    def measured(self) -> tuple[Dependence, bool]:
        """Dependence in the order of time, and whether nodes are alike at the same time."""
        samples, time = self.samples, self.time
        # A part of the nodes is enough where there are very many observations.
        every = 1 + samples.n_observations // _ENOUGH
        rows = np.flatnonzero(samples.node_index % every == 0)
        # Rows of the same time are shuffled, because they may be sorted by value.
        keys = np.random.default_rng(0).random(len(rows))
        rows = rows[np.lexsort((keys, self.stamp[rows], samples.segments[rows]))]
        segment = 2 * (samples.node_index[rows] // every) + samples.is_target[rows]
        clock = None if time is None else (time[rows] - time.min()).astype(np.float64)
        n_segments = 2 * -(-samples.n_nodes // every)
        series = Series.of(samples.values[rows], segment, self.stamp[rows], clock, n_segments)
        found = measure(series, None if self.unit is None else self.unit[rows])
        if every > 1:
            node_tau = np.full(samples.n_nodes, max(found.tau, found.squared_tau))
            node_tau[::every] = found.node_tau
            found = replace(found, node_tau=node_tau)
        alike = not found.found and samples.n_nodes > 1
        return found, alike and together_by_unit(series, self._finest[rows])

    @property
    def _finest(self) -> IntArray:
        """Days, where a node has about one observation a day; else single times."""
        return self.stamp if self.unit is not None else self.day

    def simultaneous(self, asked: Any) -> Blocks:
        """Blocks of one time each, which hold the observations of all nodes at that time."""
        if self.unit is None and self.time is not None and is_date(self.time):
            return self.units(1, asked)
        return self.consecutive(1, asked)

    def units(self, count: int, asked: Any) -> Blocks:
        """Blocks of whole days, or of successive times with all of their observations."""
        if self.time is not None and is_date(self.time):
            blocks = _calendar(self.samples, self.time, count * DAY, asked)
        else:
            number = successive(self.stamp, self.side, count)[0]
            blocks = _pieces(self.samples, number, None, asked)
        return replace(blocks, n_units=count)

    def fitting(self, length: int) -> int:
        """The length, up to a quarter longer, with the most blocks and then the shortest rest."""
        sizes = [int(np.median(part[part > 0])) for part in self.samples.sizes.T if part.any()]
        length = min(length, *sizes)
        lengths = np.arange(length, max(length + 1, int(1.25 * length) + 1))
        n = np.array(sizes)[:, np.newaxis]
        blocks, rest = (n // lengths).sum(axis=0), (n % lengths).sum(axis=0)
        return int(lengths[np.lexsort((lengths, rest, -blocks))[0]])

    def consecutive(self, length: int, asked: Any) -> Blocks:
        """Blocks of `length` observations."""
        samples, segment = self.samples, self.samples.segments
        shared = self.time is not None and self._is_shared()
        if shared:
            number, whole = successive(self.stamp, self.side, length)
        else:
            number, whole = _positions(self.stamp, segment, samples.sizes.ravel(), length)
        width = int(number.max()) + 1
        _, cell, size = np.unique(segment * width + number, return_inverse=True, return_counts=True)
        whole &= (size >= _COMPLETE * length)[cell]
        if asked == "auto":
            # A sample that is shorter than a block is one block.
            lacking = np.ones(2 * samples.n_nodes, dtype=bool)
            lacking[segment[whole]] = False
            whole = whole | lacking[segment]
        return Blocks(
            number=read_only(number),
            whole=read_only(whole),
            counts=count_blocks(number, whole, segment, samples.n_nodes),
            kind="count",
            length=length,
            duration=self._duration(length),
            shared=shared,
            asked=asked,
        )

    def _is_shared(self) -> bool:
        """Whether nodes observe the same times, once each."""
        segment, stamp = self.samples.segments, self.stamp
        distinct = np.unique(segment * (int(stamp.max()) + 1) + stamp).size
        if distinct < (1 - _REPEATED) * len(stamp):
            return False
        for part, sizes in enumerate(self.samples.sizes.T):
            there = np.unique(stamp[self.side == part]).size
            if there and np.median(sizes[sizes > 0]) < _SHARED * there:
                return False
        return True

    def _duration(self, length: int) -> np.timedelta64 | None:
        """Median time from the start of a block to the start of the next."""
        if self.time is None or not is_date(self.time):
            return None
        order = np.lexsort((self.stamp, self.samples.segments))
        step = np.diff(self.time[order])
        inside = np.diff(self.samples.segments[order]) == 0
        ahead = step[inside & (step > np.timedelta64(0, "us"))]
        return length * np.median(ahead) if ahead.size else None


def _positions(
    stamp: IntArray, segment: IntArray, sizes: IntArray, length: int
) -> tuple[IntArray, BoolArray]:
    """Blocks of every sample by itself; the rest joins the block before it."""
    order = np.lexsort((stamp, segment))
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[segment[order]]
    blocks = np.maximum(sizes // length, 1)
    first = np.cumsum(blocks) - blocks
    number = first[segment] + np.minimum(position // length, (blocks - 1)[segment])
    return number, position < (sizes // length * length)[segment]


def joint_blocks(samples: NodeSamples, time: np.ndarray, blocks: Blocks) -> Blocks:
    """Blocks of time that span all nodes."""
    if blocks.shared:
        return blocks
    stamp = np.unique(time, return_inverse=True)[1]
    side = samples.is_target.astype(np.intp)
    length = blocks.length
    if length > 1:
        # Nodes that observe at different times: a block holds `length` observations of each.
        times = [np.unique(stamp[side == part]).size for part in (0, 1)]
        usual = [np.median(part[part > 0]) if part.any() else 1.0 for part in samples.sizes.T]
        length *= max(1, round(max(np.array(times) / usual)))
    number, whole = successive(stamp, side, length)
    counts = count_blocks(number, whole, samples.segments, samples.n_nodes)
    return replace(
        blocks, number=read_only(number), whole=read_only(whole), counts=counts, shared=True
    )


def sorted_feature(samples: NodeSamples) -> str | None:
    """Feature by which most samples are sorted."""
    inside = np.diff(samples.segments) == 0
    sizes = samples.sizes.ravel()
    long = sizes[samples.segments[:-1]] >= SHORTEST_SORTED
    steps = np.diff(samples.values, axis=0)[inside & long]
    if not len(steps):
        return None
    for j, name in enumerate(samples.feature_names):
        up, down = np.mean(steps[:, j] > 0), np.mean(steps[:, j] < 0)
        if max(up, down) > 0 and max(up, down) >= _SORTED * (up + down) and up + down > 0.1:
            return name
    return None
