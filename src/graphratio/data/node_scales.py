"""Whether nodes differ so much in level or spread that each should have a scale of its own.

A change that is alike at two nodes may be hidden by their units: a shift by one standard deviation
is a shift by 2 at one station and by 20 at another. A monotone change of units per node leaves the
ratio of every node as it is, so that held-out losses in both units can be compared directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphratio._utils.arrays import column_sums, from_means
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples

# Nodes differ much if their means spread by more than this, relative to the spread inside a node.
FAR_APART = 3.0
# The same for the standard deviation of the logarithm of their spreads, without sampling error.
UNEVEN = 0.35

# Neighbours share little if their means are typically further apart than this many spreads, or
# their spreads differ by more than this factor. For simulated sensors, held-out losses are lower
# with separate scales already a little below both numbers.
NEIGHBOURS_APART = 1.0
NEIGHBOURS_UNEVEN = 1.5
# What neighbours differ by at random is allowed in addition, so many times its variance: nodes that
# are alike are then hardly ever apart, also with lognormal laws or Cauchy's.
_ROOM = 4.0
# The spread of a normal law in mean absolute deviations.
_PER_DEVIATION = math.sqrt(math.pi / 2)


@dataclass(frozen=True)
class Apart:
    """How neighbours differ in a feature: distance of means in spreads, and ratio of spreads."""

    feature: str
    distance: float
    ratio: float

    @property
    def words(self) -> str:
        """The difference in words."""
        if self.distance > NEIGHBOURS_APART:
            return (
                f"neighbouring nodes typically lie {self.distance:.2g} spreads apart in "
                f"{self.feature!r}"
            )
        return (
            f"the spreads of {self.feature!r} at neighbouring nodes typically differ by a factor "
            f"of {self.ratio:.2g}"
        )


def nodes_differ(samples: NodeSamples) -> bool:
    """Whether location or spread of some feature varies much between nodes."""
    level = _Levels.of(samples)
    spread = np.sqrt(level.means(np.square(level.away)))
    typical = np.median(spread, axis=0)
    apart = level.mean.std(axis=0) > FAR_APART * typical
    logs = np.log(np.maximum(spread, 1e-6 * np.maximum(typical, np.finfo(float).tiny)))
    # Half of 1 / n is about the variance of the logarithm of a spread.
    chance = float(np.mean(0.5 / level.count))
    scales = logs.var(axis=0) > UNEVEN**2 + chance
    return bool((_are_numbers(samples) & (typical > 0) & (apart | scales)).any())


def neighbours_apart(samples: NodeSamples, graph: Graph) -> list[Apart]:
    """Features in which neighbours differ so much that they share little, in the order given.

    Typical is the median over the edges; without any, over pairs of nodes from anywhere.

    Examples
    --------
    >>> samples = NodeSamples.from_arrays([[0.0, 2.0, 1.0], [20.0, 24.0, 22.0]], [[1.0], [22.0]])
    >>> print(neighbours_apart(samples, Graph.from_edges([(0, 1)]))[0].words)
    neighbouring nodes typically lie 21 spreads apart in 'x0'
    """
    level = _Levels.of(samples)
    # Unlike the standard deviation this is known well also where tails are heavy.
    deviation = level.means(np.abs(level.away))
    spread = _PER_DEVIATION * deviation
    # Variances of the means and of the logarithms of the spreads, as they vary at random.
    square = level.means(np.square(level.away))
    noise = square / level.count
    ratio = np.divide(square, np.square(deviation), out=np.ones_like(square), where=deviation > 0)
    log_noise = ratio / level.count
    edges = graph.adjacency.tocoo()
    u, v = (edges.row, edges.col) if graph.n_edges else _from_anywhere(samples.n_nodes)
    both = (level.count[u] > 1).ravel() & (level.count[v] > 1).ravel()
    u, v = u[both], v[both]
    if not u.size:
        return []
    scale = (np.square(spread[u]) + np.square(spread[v])) / 2
    varies = (spread[u] > 0) & (spread[v] > 0)
    apart = _share(np.square(level.mean[u] - level.mean[v]), scale, varies)
    by_chance = _share(noise[u] + noise[v], scale, varies)
    uneven = np.abs(np.log(np.where(varies, spread[u], 1.0) / np.where(varies, spread[v], 1.0)))
    square_distance, log_ratio = np.median(apart, axis=0), np.median(uneven, axis=0)
    allowed = NEIGHBOURS_APART**2 + _ROOM * np.median(by_chance, axis=0)
    allowed_log = math.log(NEIGHBOURS_UNEVEN) ** 2 + _ROOM * np.median(
        log_noise[u] + log_noise[v], axis=0
    )
    far = (square_distance > allowed) | (np.square(log_ratio) > allowed_log)
    return [
        Apart(samples.feature_names[j], math.sqrt(square_distance[j]), math.exp(log_ratio[j]))
        for j in np.flatnonzero(far & _are_numbers(samples))
    ]


def said_apart(samples: NodeSamples, graph: Graph) -> str:
    """How neighbours differ most in features without own scales, in words; empty if little."""
    if not (graph.n_edges and samples.complete.all()):
        return ""
    found = neighbours_apart(samples, graph)
    if samples.scaling is not None:
        own = {samples.feature_names[j] for j in np.flatnonzero(samples.scaling.own_mask)}
        found = [apart for apart in found if apart.feature not in own]
    return furthest(found).words if found else ""


def furthest(found: list[Apart]) -> Apart:
    """The feature in which neighbours differ most."""
    return max(found, key=lambda apart: max(apart.distance, apart.ratio))


@dataclass(frozen=True, eq=False)
class _Levels:
    """Mean of every node over both samples, and how far each observation is from it."""

    samples: NodeSamples
    count: FloatArray
    mean: FloatArray
    away: FloatArray

    @classmethod
    def of(cls, samples: NodeSamples) -> _Levels:
        count = np.maximum(samples.sizes.sum(axis=1), 1.0)[:, np.newaxis]
        largest = np.abs(samples.values).max(axis=0, initial=0.0)
        # In units of the largest value, because squares of very large or small numbers are lost.
        values = samples.values / np.where(largest > 0, largest, 1.0)
        return cls(samples, count, *from_means(samples.node_index, values, len(count)))

    def means(self, values: FloatArray) -> FloatArray:
        """Mean at every node over both samples, shape (n_nodes, n_features); 0 without any."""
        sums = column_sums(self.samples.node_index, values, self.samples.n_nodes)
        return np.asarray(sums / self.count)


def _share(values: FloatArray, of: FloatArray, known: BoolArray) -> FloatArray:
    return np.asarray(np.divide(values, of, out=np.zeros_like(of), where=known))


def _from_anywhere(n_nodes: int) -> tuple[IntArray, IntArray]:
    """Pairs of nodes without regard to a graph."""
    u = np.arange(n_nodes)
    return u, np.roll(u, n_nodes // 2)


def _are_numbers(samples: NodeSamples) -> BoolArray:
    """True for features that are not indicators of categories."""
    if samples.encoding is None:
        return np.ones(samples.n_features, dtype=bool)
    return np.logical_not(samples.encoding.is_indicator)
