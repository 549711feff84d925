"""The correlation between nodes that were observed at the same times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.block_cutting import sorted_feature
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples

# The test warns above this correlation between nodes. In the calibration study a correlation of
# 0.3 gave a single node 11 % false alarms at a nominal 5 %.
CORRELATION_BOUND = 0.2

# The estimate uses at most this many pairs of nodes, with at least this many shared times, or
# shared blocks, each.
_MOST_PAIRS = 1000
FEWEST_SHARED = 5

# A spread below this share of the largest value is rounding.
_ROUNDING = 1e-13

# Pairs of nodes two steps apart are skipped in graphs with more entries than this.
_MOST_EDGES = 200_000


# What some pairs of nodes add up to: by how much their squared correlations exceed what chance
# gives, their degrees of freedom, and the number of pairs.
PairSums = tuple[float, float, int]


def check_stamps(samples: NodeSamples) -> None:
    """Refuse a time in the reference of one node and in the target of another."""
    stamps = _stamps(samples)
    mixed = mixed_times(samples)
    if mixed.size:
        row = int(np.flatnonzero(stamps == mixed[0])[0])
        raise InputError(
            f"{mixed.size} times are in the reference of some nodes and in the target of "
            f"others (one of them at node {samples.nodes[samples.node_index[row]]!r})",
            "For the global null every time must belong to the same sample at all nodes",
        )


def mixed_times(samples: NodeSamples) -> IntArray:
    """Numbers of the times that are in the reference of some node and in the target of another."""
    stamps = _stamps(samples)
    sides = np.zeros((int(stamps.max()) + 1, 2), dtype=bool)
    sides[stamps, samples.is_target.astype(int)] = True
    return np.flatnonzero(sides.all(axis=1))


def with_positions_as_times(samples: NodeSamples) -> NodeSamples:
    """The same samples with the positions of observations in their sample as times.

    For nodes that are correlated position by position: the same position is then the same time.
    Given blocks stay; block="auto" measures them in this order.
    """
    return replace(samples, time=read_only(_positions(samples).astype(float)), inherited=None)


def _positions(samples: NodeSamples) -> IntArray:
    """Position of every observation in its sample; targets count on after the references."""
    place = np.arange(samples.n_observations) - samples.offsets[samples.segments]
    return np.asarray(place + samples.is_target * int(samples.n_reference.max(initial=0)))


def _stamps(samples: NodeSamples) -> IntArray:
    """Number of the time of every observation."""
    return np.unique(np.asarray(samples.time), return_inverse=True)[1]


@dataclass(frozen=True)
class Correlation:
    """Typical correlation between nodes; `noise` is the value that chance alone can produce.

    Observations were matched by time if `by_stamp`, else by position.
    """

    value: float
    noise: float
    by_stamp: bool

    @property
    def is_high(self) -> bool:
        """Whether it exceeds both chance and the bound for tests of single nodes."""
        return self.value > max(CORRELATION_BOUND, self.noise)


def cross_correlation(
    samples: NodeSamples, graph: Graph, rng: np.random.Generator
) -> Correlation | None:
    """Estimate the correlation between nodes; None if no two nodes can be matched.

    Returns the largest of three estimates: over edges, over nodes two steps apart, over random
    pairs.

    Observations are matched by time, or by their position in the sample. Each sample is centred
    and scaled by itself, so that a change does not count as correlation. For every pair the
    squared correlation is averaged over features and its expectation under independence is
    subtracted. The value is the root of the mean over pairs, the noise the root of three standard
    deviations of this mean under independence.
    """
    return correlation_from([pair_sums(samples, graph, rng)], by_stamp=samples.time is not None)


def pair_sums(samples: NodeSamples, graph: Graph, rng: np.random.Generator) -> dict[str, PairSums]:
    """Sums for `correlation_from` over each kind of pairs; without those that cannot be matched."""
    by_stamp = samples.time is not None
    if not samples.n_observations or (not by_stamp and sorted_feature(samples) is not None):
        # Values of the same rank are alike at all nodes, whatever their times.
        return {}
    stamps = _stamps(samples) if by_stamp else _positions(samples)
    if samples.has_blocks and samples.blocks.shared:
        # Observations that depend on each other would show correlations by chance.
        stamps = samples.blocks.number
    values, stamps, starts = _means_by_stamp(samples, stamps)
    return {
        kind: found
        for kind, pairs in _pairs(graph, rng).items()
        if (found := _sums(values, stamps, starts, pairs)) is not None
    }


def correlation_from(parts: Iterable[dict[str, PairSums]], *, by_stamp: bool) -> Correlation | None:
    """The correlation from sums over pairs of nodes, which may come from parts of the graph."""
    totals: dict[str, PairSums] = {}
    for part in parts:
        for kind, (excess, free, count) in part.items():
            before = totals.get(kind, (0.0, 0.0, 0))
            totals[kind] = before[0] + excess, before[1] + free, before[2] + count
    known = []
    for excess, free, count in totals.values():
        noise = 3 * np.sqrt(2.0) / (free / count) / np.sqrt(count)
        value = np.sqrt(max(excess / count, 0.0))
        known.append(Correlation(float(value), float(np.sqrt(noise)), by_stamp))
    # A high correlation wins, then the largest excess over chance.
    return max(known, key=lambda one: (one.is_high, one.value - one.noise), default=None)


def high_correlation(samples: NodeSamples, graphs: Iterable[Graph]) -> Correlation | None:
    """The largest correlation over several graphs, if it is high; None without graphs."""
    # Pairs are always drawn in the same way, so that they do not depend on a seed.
    found = [cross_correlation(samples, graph, np.random.default_rng(0)) for graph in graphs]
    high = [one for one in found if one is not None and one.is_high]
    return max(high, key=lambda one: one.value, default=None)


def held_out_together(samples: NodeSamples) -> NodeSamples:
    """Return the samples with blocks of the same times, or positions, at all nodes."""
    timed = samples if samples.time is not None else with_positions_as_times(samples)
    if not (timed.has_blocks and timed.blocks.exist):
        timed = replace(timed, block=1, inherited=None)
    return timed.jointly_blocked()


def _sums(
    values: FloatArray, stamps: IntArray, starts: IntArray, pairs: IntArray
) -> PairSums | None:
    """Sums over pairs of nodes; None if no two nodes can be matched."""
    counts = np.diff(starts)
    width = int(stamps.max(initial=0)) + 1
    codes = np.repeat(np.arange(len(counts)), counts) * width + stamps
    # Every row of the first node of a pair, and the row of the second node with the same stamp.
    length = counts[pairs[:, 0]]
    pair = np.repeat(np.arange(len(pairs)), length)
    first = np.arange(length.sum()) + (starts[pairs[:, 0]] - np.cumsum(length) + length)[pair]
    wanted = pairs[pair, 1] * width + stamps[first]
    second = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    matched = codes[second] == wanted
    pair, first, second = pair[matched], first[matched], second[matched]
    shared = np.bincount(pair, minlength=len(pairs))
    enough = shared >= FEWEST_SHARED
    if not enough.any():
        return None

    def sums(products: FloatArray) -> FloatArray:
        return np.array([np.bincount(pair, one, minlength=len(pairs)) for one in products.T])

    x, y = values[first], values[second]
    size = np.sqrt(sums(x * x) * sums(y * y))
    r = sums(x * y) / np.where(size > 0, size, 1.0)
    free = np.maximum(shared - 2, 1)
    excess = np.mean(r**2, axis=0) - 1 / free
    return float(excess[enough].sum()), float(free[enough].sum()), int(enough.sum())


def _means_by_stamp(
    samples: NodeSamples, stamps: IntArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Mean standard scores of every node at every stamp, their stamps, and where nodes start."""
    scores = _standard_scores(samples)
    width = int(stamps.max()) + 1
    codes, place, count = np.unique(
        samples.node_index * width + stamps, return_inverse=True, return_counts=True
    )
    means = [np.bincount(place, column, minlength=len(codes)) / count for column in scores.T]
    starts = np.searchsorted(codes // width, np.arange(samples.n_nodes + 1))
    return np.column_stack(means), codes % width, starts


def _standard_scores(samples: NodeSamples) -> FloatArray:
    segment = samples.segments
    counts = np.maximum(np.bincount(segment, minlength=2 * samples.n_nodes), 1)
    scores = np.empty_like(samples.values)
    for j, column in enumerate(samples.values.T):
        mean = np.bincount(segment, column, minlength=counts.size) / counts
        centred = column - mean[segment]
        spread = np.sqrt(np.bincount(segment, centred**2, minlength=counts.size) / counts)
        # The mean of equal values is off by rounding, which is no spread.
        rounding = _ROUNDING * np.abs(column).max(initial=0.0)
        scores[:, j] = centred / np.where(spread > rounding, spread, np.inf)[segment]
    return scores


def _pairs(graph: Graph, rng: np.random.Generator) -> dict[str, IntArray]:
    """Neighbours, nodes two steps apart, and random pairs; at most `_MOST_PAIRS` of each.

    A prediction travels further than one edge, so correlated nodes need not be neighbours.
    """
    found = {}
    steps = graph.adjacency.astype(bool).astype(float)
    if graph.n_edges:
        found["neighbours"] = _upper(steps)
        if steps.nnz <= _MOST_EDGES:
            found["two steps apart"] = _upper(steps @ steps)
    u, v = rng.integers(graph.n_nodes, size=(2, _MOST_PAIRS))
    found["random"] = np.unique(np.sort(np.column_stack([u, v])[u != v], axis=1), axis=0)
    return {
        kind: pairs[rng.choice(len(pairs), _MOST_PAIRS, replace=False)]
        if len(pairs) > _MOST_PAIRS
        else pairs
        for kind, pairs in found.items()
    }


def _upper(matrix: sparse.csr_array) -> IntArray:
    """Pairs of nodes with an entry, each once."""
    entries = matrix.tocoo()
    keep = entries.row < entries.col
    return np.column_stack([entries.row[keep], entries.col[keep]])
