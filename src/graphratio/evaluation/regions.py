"""Regions of a graph: groups of nodes that are near each other.

Nodes next to each other are not independent: each takes part in the estimate of the other, and
what changes one often changes the other. Regions are the units that a bootstrap draws, and by
which the gains of a graph are shown.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph

# Fewest nodes of a region that is shown, and most regions that are shown.
SMALLEST_REGION = 10
MOST_REGIONS = 20


def shown_regions(graph: Graph) -> IntArray:
    """Number of the region of every node, for regions that are judged one by one, (n_nodes,)."""
    return regions_of(graph, max(SMALLEST_REGION, -(-graph.n_nodes // MOST_REGIONS)))


def regions_of(graph: Graph, size: int) -> IntArray:
    """Number of the region of every node, shape (n_nodes,); about `size` nodes each.

    Every region grows from the first node that is left, over edges, nearest nodes first. Pieces
    of fewer than half the size join a region next to them. Nodes without edges are regions of
    their own.

    Examples
    --------
    >>> path = Graph.from_edges([(i, i + 1) for i in range(6)], nodes=range(7))
    >>> regions_of(path, 3)
    array([0, 0, 0, 1, 1, 1, 1])
    """
    pointer, columns = graph.adjacency.indptr, graph.adjacency.indices
    region = np.full(graph.n_nodes, -1, dtype=np.intp)
    members: list[list[int]] = []
    for first in range(graph.n_nodes):
        if region[first] >= 0:
            continue
        grown = [first]
        region[first] = len(members)
        for node in grown:
            for near in columns[pointer[node] : pointer[node + 1]]:
                if region[near] < 0 and len(grown) < size:
                    region[near] = len(members)
                    grown.append(int(near))
        members.append(grown)
    for number, grown in enumerate(members):
        if 2 * len(grown) >= size:
            continue
        around = [
            region[near] for node in grown for near in columns[pointer[node] : pointer[node + 1]]
        ]
        others = [other for other in around if other != number]
        if others:
            region[grown] = np.bincount(others).argmax()
    return np.asarray(np.unique(region, return_inverse=True)[1], dtype=np.intp)


def resampled_regions(
    values: FloatArray, region: IntArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Means over the nodes of regions drawn with replacement, shape (n_draws, k).

    `values` has shape (n_nodes, k), `region` (n_nodes,).
    """
    sums, counts = _by_region(values, region)
    evenly = np.full(len(counts), 1 / len(counts))
    weights = rng.multinomial(len(counts), evenly, size=n_draws)
    return np.asarray((weights @ sums) / (weights @ counts)[:, np.newaxis])


def variances_by_region(values: FloatArray, region: IntArray) -> tuple[float, float]:
    """Variance of nodes within regions, and of regions beyond it, both summed over columns.

    Examples
    --------
    >>> values, region = np.array([[1.0], [3.0], [11.0], [13.0]]), np.array([0, 0, 1, 1])
    >>> variances_by_region(values, region)  # means 2 and 12 vary by 50, of which 1 is noise
    (2.0, 49.0)
    """
    sums, counts = _by_region(values, region)
    spare = len(values) - len(counts)
    if spare < 1 or len(counts) < 2:
        return 1.0, 0.0
    means = sums / counts[:, np.newaxis]
    squares = np.square(values).sum() - (np.square(means).sum(axis=1) * counts).sum()
    within = max(float(squares) / spare, 0.0)
    spread = float(means.var(axis=0, ddof=1).sum())
    return within, max(spread - within * float(np.mean(1 / counts)), 0.0)


def _by_region(values: FloatArray, region: IntArray) -> tuple[FloatArray, IntArray]:
    """Sums over the nodes of every region, (n_regions, k), and their numbers of nodes."""
    place = np.unique(region, return_inverse=True)[1]
    counts = np.bincount(place)
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, place, values)
    return sums, counts
