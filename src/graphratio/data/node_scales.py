"""Whether nodes differ so much in level or spread that each should have a scale of its own.

A change that is alike at two nodes may be hidden by their units: a shift by one standard deviation
is a shift by 2 at one station and by 20 at another. A monotone change of units per node leaves the
ratio of every node as it is, so that held-out losses in both units can be compared directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphratio._utils.arrays import column_sums
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples

# Nodes differ much if their means spread by more than this, relative to the spread inside a node.
FAR_APART = 3.0
# The same for the standard deviation of the logarithm of their spreads, without sampling error.
UNEVEN = 0.35

# Neighbours share little if their means are typically further apart than this many spreads, or
# their spreads differ by more than this factor. Held-out losses of simulated sensors with levels
# and spreads of their own begin to favour separate scales a little below both.
NEIGHBOURS_APART = 1.0
NEIGHBOURS_UNEVEN = 1.5
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
    node = samples.node_index
    mean = _means(samples, samples.values)
    spread = np.sqrt(_means(samples, np.square(samples.values - mean[node])))
    # Rounding gives a constant feature about this spread, not exactly zero.
    spread[spread <= 8 * np.finfo(np.float64).eps * np.abs(mean)] = 0.0
    typical = np.median(spread, axis=0)
    apart = mean.std(axis=0) > FAR_APART * typical
    logs = np.log(np.maximum(spread, 1e-6 * np.maximum(typical, np.finfo(float).tiny)))
    # Half of 1 / n is about the variance of the logarithm of a spread.
    chance = float(np.mean(0.5 / np.maximum(samples.sizes.sum(axis=1), 1)))
    scales = logs.var(axis=0) > UNEVEN**2 + chance
    return bool((_are_numbers(samples) & (typical > 0) & (apart | scales)).any())


def neighbours_apart(samples: NodeSamples, graph: Graph) -> Apart | None:
    """The feature in which neighbours differ most, or None if they differ little.

    Typical is the median over the edges.

    Examples
    --------
    >>> samples = NodeSamples.from_arrays([[0.0, 2.0], [10.0, 14.0]], [[1.0], [12.0]])
    >>> print(neighbours_apart(samples, Graph.from_edges([(0, 1)])).words)
    neighbouring nodes typically lie 8.3 spreads apart in 'x0'
    """
    node, count = samples.node_index, samples.sizes.sum(axis=1)
    mean = _means(samples, samples.values)
    # Unlike the standard deviation this is known well also where tails are heavy.
    away = np.abs(samples.values - mean[node])
    spread = _PER_DEVIATION * _means(samples, away)
    observed = count > 1
    edges = graph.adjacency.tocoo()
    u, v = edges.row, edges.col
    both = observed[u] & observed[v]
    u, v = u[both], v[both]
    if not u.size:
        return None
    usual = np.sqrt((np.square(spread[u]) + np.square(spread[v])) / 2)
    varies = usual > 0
    apart = np.divide(np.abs(mean[u] - mean[v]), usual, out=np.zeros_like(usual), where=varies)
    varies = (spread[u] > 0) & (spread[v] > 0)
    ratio = np.divide(spread[u], spread[v], out=np.ones_like(usual), where=varies)
    distance, log_ratio = np.median(apart, axis=0), np.median(np.abs(np.log(ratio)), axis=0)
    # Means and logarithms of spreads of few observations differ by chance.
    chance = float(np.median(2 / count[observed]))
    excess = np.maximum(
        np.square(distance) / (NEIGHBOURS_APART**2 + 2 * chance),
        np.square(log_ratio) / (math.log(NEIGHBOURS_UNEVEN) ** 2 + chance),
    )
    excess[~_are_numbers(samples)] = 0.0
    most = int(np.argmax(excess))
    if excess[most] <= 1:
        return None
    name = samples.feature_names[most]
    return Apart(name, float(distance[most]), float(np.exp(log_ratio[most])))


def said_apart(samples: NodeSamples, graph: Graph) -> str:
    """How neighbours differ, in words; empty if little, or if every node has its own scale."""
    if not graph.n_edges or (samples.scaling is not None and samples.scaling.nodes is not None):
        return ""
    apart = neighbours_apart(samples, graph)
    return "" if apart is None else apart.words


def _means(samples: NodeSamples, values: FloatArray) -> FloatArray:
    """Mean at every node over both samples, shape (n_nodes, n_features); 0 without any."""
    count = samples.sizes.sum(axis=1)[:, np.newaxis]
    sums = column_sums(samples.node_index, values, samples.n_nodes)
    return np.asarray(sums / np.maximum(count, 1))


def _are_numbers(samples: NodeSamples) -> BoolArray:
    """True for features that are not indicators of categories."""
    if samples.encoding is None:
        return np.ones(samples.n_features, dtype=bool)
    return np.logical_not(samples.encoding.is_indicator)
