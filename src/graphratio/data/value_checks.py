"""Checks of values: duplicates, spikes, outliers, uneven scales, few observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.arrays import batches
from graphratio._utils.errors import Argument
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data.finding import STANDARDIZE_NODES, SampleFinding, at_nodes

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples

# A sample with fewer observations says little about its node.
FEW_OBSERVATIONS = 10

# A row with more copies than this is a spike, not a duplicate.
_COPIES = 4
# Values are coarse if more than this share of the repeated rows also occurs in other samples.
_BY_CHANCE = 0.2

# A spike makes up at least this share and this number of a node's values, and is this many times
# as frequent as the next most frequent value.
_SPIKE_SHARE = 0.05
_SPIKE_COUNT = 5
_SPIKE_LEAD = 5
# A feature with fewer distinct values at a node is discrete there, and has no spikes.
_FEWEST_VALUES = 10

# An outlier lies further from the median of its sample than this many robust standard deviations,
# and than this many times the 99 % quantile of these distances.
_FAR = 12
_BEYOND = 8
# Logarithms have short tails, so fewer times the quantile are enough.
_BEYOND_IN_LOGARITHMS = 4

# Spreads of a feature at two nodes that differ by more than this factor are too different, and
# this share of the mean is rounding.
_UNEVEN_NODES = 100
_ROUNDING = 1e-12


def labels_of(samples: NodeSamples, positions: IntArray) -> tuple[Label, ...]:
    """Labels of the nodes at `positions`, each once and in order."""
    return tuple(samples.nodes[v] for v in np.unique(positions))


def sorted_samples(samples: NodeSamples) -> FloatArray:
    """Values of every feature, sorted within each sample, shape (n_features, n_observations)."""
    ordered = np.empty((samples.n_features, samples.n_observations))
    # Samples of similar size are sorted as one rectangle, which is far faster than one by one.
    for batch in batches(samples.offsets[:-1], samples.sizes.ravel()):
        block = samples.values.T[:, batch.rows]
        if batch.valid is not None:
            block[:, ~batch.valid] = np.inf
        block.sort(axis=2)
        rows = batch.rows if batch.valid is None else batch.rows[batch.valid]
        ordered[:, rows] = block if batch.valid is None else block[:, batch.valid]
    return ordered


def _has_runs(samples: NodeSamples, ordered: FloatArray, length: int) -> bool:
    """Whether any sample has a value at least `length` times; `ordered` is one sorted feature."""
    apart = length - 1
    equal = ordered[apart:] == ordered[:-apart]
    return bool((equal & (samples.segments[apart:] == samples.segments[:-apart])).any())


def duplicates(samples: NodeSamples, ordered: FloatArray) -> list[SampleFinding]:
    """Rows that repeat another row of the same sample, with the same time if there are times."""
    if not all(_has_runs(samples, feature, 2) for feature in ordered):
        return []
    # Coarse values repeat by chance, in other samples or at other times too.
    repeated = _entered_twice(samples) if samples.time is None else _at_one_time(samples)
    count = int(repeated.sum())
    if not count:
        return []
    nodes = labels_of(samples, samples.node_index[repeated])
    same = "" if samples.time is None else " at the same time"
    return [
        SampleFinding(
            "duplicates",
            count,
            nodes,
            None,
            f"{count:,} observations repeat another one of their sample{same}, {at_nodes(nodes)}",
            "If they were entered twice, remove the copies from the data",
        )
    ]


def _entered_twice(samples: NodeSamples) -> BoolArray:
    """True for rows that repeat another one, unless values are coarse."""
    segment, code = samples.segments, _row_codes(samples.values)
    none = np.zeros(len(code), dtype=bool)
    if 2 * (int(code.max()) + 1) < len(code):
        return none
    repeated = _repeats(code, segment)
    count = alone = int(repeated.sum())
    if count and samples.n_features > 1:
        alone = min(int(_repeats(_codes(x), segment).sum()) for x in samples.values.T)
    coarse = alone > 2 * count or _in_several(code, segment) > _BY_CHANCE * count
    return none if coarse else repeated


def _at_one_time(samples: NodeSamples) -> BoolArray:
    """True for rows that repeat another one of the same time, unless values are coarse."""
    time = np.asarray(samples.time)
    order = np.lexsort((*samples.values.T, time, samples.segments))
    again = (np.diff(samples.segments[order]) == 0) & (time[order][1:] == time[order][:-1])
    equal = again & (samples.values[order][1:] == samples.values[order][:-1]).all(axis=1)
    repeated = np.zeros(len(order), dtype=bool)
    repeated[order[1:]] = equal
    if equal.any():
        chance = _chance_of_repeats(_row_codes(samples.values), samples.segments)
        expected = chance * int(again.sum())
        if equal.sum() <= 5 * expected + 3 * np.sqrt(expected):
            repeated[:] = False
    return repeated


def _codes(values: FloatArray) -> IntArray:
    return np.unique(values, return_inverse=True)[1]


def _row_codes(table: FloatArray) -> IntArray:
    """Number the rows; equal rows get the same number."""
    code = _codes(table[:, 0])
    for column in table.T[1:]:
        other = _codes(column)
        code = np.unique(code * (int(other.max()) + 1) + other, return_inverse=True)[1]
    return code


def _repeats(code: IntArray, segment: IntArray) -> BoolArray:
    """True for all but the first of equal rows of a sample, unless these are a spike."""
    order = np.lexsort((code, segment))
    begins = np.ones(len(code), dtype=bool)
    begins[1:] = (np.diff(code[order]) != 0) | (np.diff(segment[order]) != 0)
    again = np.empty(len(code), dtype=bool)
    size = np.diff(np.append(np.flatnonzero(begins), len(code)))
    again[order] = ~begins & (size <= _COPIES)[np.cumsum(begins) - 1]
    return again


def _chance_of_repeats(code: IntArray, segment: IntArray) -> float:
    """Chance that two observations of a sample have the same values."""
    _, count = np.unique(segment * (int(code.max()) + 1) + code, return_counts=True)
    size = np.bincount(segment)
    return float((count * (count - 1)).sum() / max((size * (size - 1)).sum(), 1))


def _in_several(code: IntArray, segment: IntArray) -> int:
    """Number of rows whose values occur in another sample, too."""
    key = np.unique(code * (int(segment.max()) + 1) + segment)
    several = np.bincount(key // (int(segment.max()) + 1)) > 1
    return int(several[code].sum())


def spikes(samples: NodeSamples, ordered: FloatArray) -> list[SampleFinding]:
    """A value far more frequent at a node than all others, such as 0 for missing values."""
    found: list[SampleFinding] = []
    node, n_nodes = samples.node_index, samples.n_nodes
    size = np.bincount(node, minlength=n_nodes)
    for j in _measured(samples):
        # One of the two samples has at least half of a spike.
        if not _has_runs(samples, ordered[j], -(-_SPIKE_COUNT // 2)):
            continue
        x = samples.values[:, j]
        order = np.lexsort((x, node))
        values, owner = x[order], node[order]
        begins = np.ones(len(x), dtype=bool)
        begins[1:] = (values[1:] != values[:-1]) | (owner[1:] != owner[:-1])
        first = np.flatnonzero(begins)
        length = np.diff(np.append(first, len(x)))
        who = owner[first]
        distinct = np.bincount(who, minlength=n_nodes)
        ranked = np.lexsort((length, who))
        last = np.cumsum(distinct) - 1
        there = np.flatnonzero(distinct >= _FEWEST_VALUES)
        top, second = ranked[last[there]], ranked[last[there] - 1]
        clear = length[top] >= np.maximum(_SPIKE_COUNT, _SPIKE_SHARE * size[there])
        clear &= length[top] >= _SPIKE_LEAD * length[second]
        if clear.any():
            found.append(
                _spike(samples, j, there[clear], values[first[top[clear]]], length[top[clear]])
            )
    return found


def _spike(
    samples: NodeSamples, feature: int, where: IntArray, value: FloatArray, length: IntArray
) -> SampleFinding:
    """The finding for spikes of a feature at some nodes, each with its value and its count."""
    nodes, name = labels_of(samples, where), samples.feature_names[feature]
    count = int(length.sum())
    share = count / int((samples.n_reference + samples.n_target)[where].sum())
    same = (value == value[0]).all()
    what = f"the value {value[0]:g} makes" if same else f"single values such as {value[0]:g} make"
    return SampleFinding(
        "spike",
        count,
        nodes,
        name,
        f"{what} up {100 * share:.0f} % of {name!r} {at_nodes(nodes)}: does it stand for a missing "
        "value?",
        ("Replace it by NaN and pass ", Argument("missing", "drop")),
    )


def _measured(samples: NodeSamples) -> list[int]:
    """Features that are not indicators of categories."""
    if samples.encoding is None:
        return list(range(samples.n_features))
    return np.flatnonzero(~samples.encoding.is_indicator).tolist()


def _logged(samples: NodeSamples, feature: int) -> bool:
    """Whether the values of a feature are logarithms already."""
    scaling = samples.scaling
    return scaling is not None and scaling.log is not None and bool(scaling.log[feature])


def _before_logarithm(samples: NodeSamples, row: int, feature: int) -> float:
    """A value in the units that it had before its logarithm, if this was taken."""
    values = samples.values[row]
    if samples.scaling is not None and _logged(samples, feature):
        values = samples.scaling.undo(values, samples.node_index[row])
    return float(values[feature])


def outliers(samples: NodeSamples, ordered: FloatArray) -> list[SampleFinding]:
    """Values far outside the rest of their sample."""
    found: list[SampleFinding] = []
    segment = samples.segments
    for j in _measured(samples):
        first, low, middle, high, last = segment_quartiles(ordered[j], samples)
        # The standard deviation of a normal law with the same quartiles.
        spread = (high - low) / 1.349
        if (np.maximum(middle - first, last - middle) <= _FAR * spread)[spread > 0].all():
            continue
        x = samples.values[:, j]
        away = np.abs(x - middle[segment])
        usual = spread[segment]
        scores = np.divide(away, usual, out=np.zeros_like(away), where=usual > 0)
        beyond = _BEYOND_IN_LOGARITHMS if _logged(samples, j) else _BEYOND
        limit = max(_FAR, beyond * float(np.quantile(scores, 0.99)))
        far = scores > limit
        if not far.any():
            continue
        nodes, name = labels_of(samples, samples.node_index[far]), samples.feature_names[j]
        count = int(far.sum())
        worst = _before_logarithm(samples, int(np.argmax(scores)), j)
        several = "s" if count > 1 else ""
        logarithm = (
            ", or take the logarithm of a feature with a long tail: ",
            Argument("log", name),
        )
        found.append(
            SampleFinding(
                "outliers",
                count,
                nodes,
                name,
                f"{count:,} value{several} of {name!r} lie{'' if several else 's'} far outside the "
                f"rest, such as {worst:g}, {at_nodes(nodes)}",
                (
                    f"Correct {'it' if count == 1 else 'them'}",
                    *(() if _logged(samples, j) else logarithm),
                ),
            )
        )
    return found


def segment_quartiles(ordered: FloatArray, samples: NodeSamples) -> FloatArray:
    """Smallest value, quartiles and largest value of every sample, shape (5, 2 n_nodes).

    `ordered` is one feature of `sorted_samples`. Empty samples give 0.
    """
    sizes = samples.sizes.ravel()
    places = samples.offsets[:-1] + np.arange(5)[:, np.newaxis] * (sizes - 1) // 4
    return np.asarray(np.where(sizes > 0, ordered[np.clip(places, 0, len(ordered) - 1)], 0.0))


def scales(samples: NodeSamples, _: FloatArray) -> list[SampleFinding]:
    """Features whose spreads differ so much that kernels see only the widest."""
    # Imported here to avoid a cycle: alignment imports samples, which import these checks.
    from graphratio.data.alignment import STANDARDIZE, UNEVEN_SCALES, uneven_scales

    uneven = uneven_scales(samples)
    if uneven is None:
        return []
    widest, names = uneven
    return [
        SampleFinding(
            "scales",
            len(names),
            (),
            widest,
            f"the feature {widest!r} varies more than {UNEVEN_SCALES} "
            f"times as much as {', '.join(map(repr, names[:3]))}"
            + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
            STANDARDIZE,
        )
    ]


def node_scales(samples: NodeSamples, ordered: FloatArray) -> list[SampleFinding]:
    """Features that vary so little at some nodes that a change there is hardly seen."""
    found, whole = [], samples.complete.all()
    for j in _measured(samples):
        name = samples.feature_names[j]
        _, low, middle, high, _ = segment_quartiles(ordered[j], samples)
        # The wider of both samples; a constant has no scale, but a spread from rounding.
        spread = (high - low).reshape(-1, 2).max(axis=1)
        varies = spread > _ROUNDING * np.abs(middle).reshape(-1, 2).max(axis=1)
        narrow = np.flatnonzero(varies & (spread * _UNEVEN_NODES < spread.max(initial=0.0)))
        if not narrow.size:
            continue
        nodes = labels_of(samples, narrow)
        useful = not _logged(samples, j) and (samples.values[:, j] > 0).all()
        logarithm = ("take the logarithm, ", Argument("log", name), ", or ") if useful else ()
        found.append(
            SampleFinding(
                "node scales",
                len(nodes),
                nodes,
                name,
                f"{at_nodes(nodes)} {name!r} varies less than 1/{_UNEVEN_NODES} as much as at "
                "others",
                (
                    "All nodes share one unit, in which changes there have hardly any size, even "
                    "if a test finds them: ",
                    *logarithm,
                    *(() if whole else ("leave out nodes without one of the samples and ",)),
                    "standardise each node by itself, ",
                    Argument(STANDARDIZE_NODES),
                ),
            )
        )
    return found


def few(samples: NodeSamples, _: FloatArray) -> list[SampleFinding]:
    """Nodes with a sample of few observations."""
    small = np.any((samples.sizes > 0) & (samples.sizes < FEW_OBSERVATIONS), axis=1)
    if not small.any():
        return []
    nodes = labels_of(samples, np.flatnonzero(small))
    return [
        SampleFinding(
            "few",
            len(nodes),
            nodes,
            None,
            f"a sample has fewer than {FEW_OBSERVATIONS} observations {at_nodes(nodes)}",
            "With a graph that helps, neighbours decide most of their results; otherwise collect "
            "more observations",
        )
    ]


VALUE_RULES = (duplicates, spikes, outliers, scales, node_scales, few)
