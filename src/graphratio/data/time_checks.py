"""Checks of the order: stuck sensors, samples that overlap in time, seasons, dependent rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import Argument
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.block_cutting import SHORTEST_SORTED, sorted_feature
from graphratio.data.dependence import depends_on_past
from graphratio.data.durations import DAY, calendar_number
from graphratio.data.finding import SampleFinding, at_nodes
from graphratio.data.series import Series
from graphratio.data.times import is_date
from graphratio.data.value_checks import labels_of

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples

# Shortest run of one value, and the chance of such a run in independent data.
_SHORTEST_RUN = 10
_RUN_CHANCE = 1e-4

# Samples overlap if they alternate at least this often, and at this share of the observations.
_FEWEST_TURNS = 3
_MANY_TURNS = 0.02

# Seasons differ if this share of one sample lies where the other has almost nothing.
_LACKING = 0.1
_ALMOST_NONE = 0.01

# The order is judged on about this many rows.
_ENOUGH_ROWS = 5_000

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def stuck(samples: NodeSamples) -> list[SampleFinding]:
    """Long runs of one value in the order of time, longer than its frequency explains."""
    if samples.time is None:
        return []
    segment = samples.segments
    # Rows are mostly in the order of time already.
    late = (samples.time[1:] < samples.time[:-1]) & (segment[1:] == segment[:-1])
    order = np.lexsort((samples.time, segment)) if late.any() else slice(None)
    owner = segment[order]
    size = samples.sizes.ravel()
    found: list[SampleFinding] = []
    for j, name in enumerate(samples.feature_names):
        x = samples.values[order, j]
        if samples.encoding is not None and samples.encoding.is_indicator[j]:
            continue
        begins = np.ones(len(x), dtype=bool)
        begins[1:] = (x[1:] != x[:-1]) | (owner[1:] != owner[:-1])
        first = np.flatnonzero(begins)
        length = np.diff(np.append(first, len(x)))
        long = np.flatnonzero(length >= _SHORTEST_RUN)
        if not long.size or not np.ptp(x):
            continue
        # Frequency of the value in its sample without the run itself.
        own, value, run = owner[first[long]], x[first[long]], length[long]
        others = _frequency(owner, x, own, value) - run
        rest = size[own] - run
        share = np.clip((others + 1) / (rest + 2), 1e-3, 0.999)
        usual = np.log(np.maximum(size[own], 1) / _RUN_CHANCE) / -np.log(share)
        bad = run >= np.maximum(_SHORTEST_RUN, usual)
        if not bad.any():
            continue
        nodes, count = labels_of(samples, own[bad] // 2), int(run[bad].sum())
        worst = int(run[bad].max())
        found.append(
            SampleFinding(
                "stuck",
                count,
                nodes,
                name,
                f"{name!r} has the same value for up to {worst} observations in a row, "
                f"{at_nodes(nodes)}: is a sensor stuck?",
                ("Replace such runs by NaN and pass ", Argument("missing", "drop")),
            )
        )
    return found


def _frequency(owner: IntArray, x: FloatArray, own: IntArray, value: FloatArray) -> IntArray:
    """How often each sample has each value."""
    levels, code = np.unique(x, return_inverse=True)
    width = len(levels)
    keys, count = np.unique(owner * width + code, return_counts=True)
    place = np.searchsorted(keys, own * width + np.searchsorted(levels, value))
    return np.asarray(count[place])


def overlap(samples: NodeSamples) -> list[SampleFinding]:
    """Nodes whose two samples alternate in time."""
    if samples.time is None:
        return []
    if not _spans_meet(samples, samples.time):
        return []
    node = samples.node_index
    order = np.lexsort((samples.is_target, samples.time, node))
    turns = (np.diff(samples.is_target[order].astype(np.int8)) != 0) & (np.diff(node[order]) == 0)
    count = np.bincount(node[order][1:][turns], minlength=samples.n_nodes)
    size = samples.n_reference + samples.n_target
    mixed = count >= np.maximum(_FEWEST_TURNS, _MANY_TURNS * size)
    if not mixed.any():
        return []
    nodes = labels_of(samples, np.flatnonzero(mixed))
    return [
        SampleFinding(
            "overlap",
            len(nodes),
            nodes,
            None,
            f"reference and target overlap in time {at_nodes(nodes)}",
            "If one should come after the other, divide the rows at one point in time",
        )
    ]


def _spans_meet(samples: NodeSamples, time: np.ndarray) -> bool:
    """Whether one sample of a node begins before the other ends, at any node."""
    both = samples.sizes.min(axis=1) > 0
    starts = samples.offsets[:-1][np.repeat(both, 2)]
    rows = np.flatnonzero(both[samples.node_index])
    if not rows.size:
        return False
    begins = np.searchsorted(rows, starts)
    first, last = (
        end.reduceat(time[rows], begins).reshape(-1, 2) for end in (np.minimum, np.maximum)
    )
    return bool((first.max(axis=1) <= last.min(axis=1)).any())


def seasons(samples: NodeSamples) -> list[SampleFinding]:
    """Hours, weekdays or months that one sample covers and the other hardly covers."""
    if samples.time is None or not is_date(samples.time) or not samples.complete.any():
        return []
    days = samples.time.astype("datetime64[D]")
    hour = ((samples.time - days) // (DAY // 24)).astype(np.intp)
    weekday = (days.astype(np.int64) + 3) % 7
    month = samples.time.astype("datetime64[M]").astype(np.int64) % 12
    found = [
        _lacking(samples, hour, 24, "hours of the day", [f"{h}h" for h in range(24)]),
        _lacking(samples, weekday, 7, "weekdays", _WEEKDAYS),
        # Two seasons without a common month are compared on purpose.
        _lacking(samples, month, 12, "months", _MONTHS, partly=True),
    ]
    return [finding for finding in found if finding is not None]


def _lacking(
    samples: NodeSamples,
    level: IntArray,
    n_levels: int,
    what: str,
    names: list[str] | tuple[str, ...],
    *,
    partly: bool = False,
) -> SampleFinding | None:
    counts = np.bincount(n_levels * samples.is_target + level, minlength=2 * n_levels)
    counts = counts.reshape(2, n_levels)
    share = counts / counts.sum(axis=1, keepdims=True)
    if partly and not (share >= _ALMOST_NONE).all(axis=0).any():
        return None
    for side, other, lacks in ((0, 1, "target"), (1, 0, "reference")):
        alone = (share[side] >= _ALMOST_NONE) & (share[other] < _ALMOST_NONE)
        part = float(share[side][alone].sum())
        if part >= _LACKING:
            has = ("reference", "target")[side]
            shown = ", ".join(names[k] for k in np.flatnonzero(alone)[:7])
            more = ", ..." if np.count_nonzero(alone) > 7 else ""
            rows = int(counts[side][alone].sum())
            return SampleFinding(
                "seasons",
                rows,
                (),
                None,
                f"{100 * part:.0f} % of the {has} lies in {what} that the {lacks} hardly covers: "
                f"{shown}{more}",
                f"Part of the change may be due to the {what}: choose the same ones for both",
            )
    return None


def rows(samples: NodeSamples) -> list[SampleFinding]:
    """Without times: rows whose order looks like one in time, or that are sorted by value."""
    told = samples.has_blocks or samples.block is None
    if told or samples.n_observations < 2 * SHORTEST_SORTED:
        return []
    segment, offsets = samples.segments, samples.offsets
    if in_order := sorted_feature(samples):
        return [
            SampleFinding(
                "sorted rows",
                samples.n_observations,
                (),
                in_order,
                f"rows are sorted by {in_order!r}, so that their order says nothing about time",
                (
                    "If observations depend on each other, say when they were made: pass ",
                    Argument("time"),
                ),
            )
        ]
    # A part of the nodes is enough for a note.
    every = -(-samples.n_observations // _ENOUGH_ROWS)
    some = np.flatnonzero(samples.node_index % every == 0)
    position = some - offsets[segment[some]]
    if not depends_on_past(Series.of(samples.values[some], segment[some], position, None)):
        return []
    return [
        SampleFinding(
            "dependent rows",
            samples.n_observations,
            (),
            None,
            "successive rows are alike: observations seem to depend on each other, and no times "
            "were given",
            ("Say when they were made: pass ", Argument("time")),
        )
    ]


def single_day(samples: NodeSamples) -> list[SampleFinding]:
    """Samples that cover a single day: any two days may differ by chance."""
    if samples.time is None or not is_date(samples.time):
        return []
    day = calendar_number(samples.time, DAY)
    alone = [
        name
        for name, part in (("reference", ~samples.is_target), ("target", samples.is_target))
        if np.count_nonzero(part) > samples.n_nodes and len(np.unique(day[part])) == 1
    ]
    if not alone:
        return []
    covers = "samples cover" if len(alone) > 1 else "sample covers"
    return [
        SampleFinding(
            "single day",
            samples.n_observations,
            (),
            None,
            f"the {' and the '.join(alone)} {covers} a single day, so a difference between any two "
            "days cannot be told from a change",
            "Add more days to both samples",
        )
    ]


TIME_RULES = (stuck, overlap, seasons, single_day, rows)
