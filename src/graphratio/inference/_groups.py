"""Groups of nodes that are tested together, each against what the other groups say."""

from __future__ import annotations

import numpy as np

from graphratio.graph import Graph
from graphratio.typing import IntArray

N_GROUPS = 5

# Rounds of exchanges that move neighbours into different groups.
_ROUNDS = 60


def node_groups(graph: Graph, rng: np.random.Generator) -> IntArray:
    """Split the nodes into groups of equal size with few edges inside, shape (n_nodes,).

    What is learned for a node comes from the other groups, so its neighbours had better be in
    them. Starts at random; random pairs of nodes swap their groups where that takes edges out
    of groups.

    Examples
    --------
    >>> path = Graph.from_edges([(i, i + 1) for i in range(9)])
    >>> groups = node_groups(path, np.random.default_rng(0))
    >>> np.bincount(groups), int((groups[1:] == groups[:-1]).sum())
    (array([2, 2, 2, 2, 2]), 0)
    """
    n_nodes = graph.n_nodes
    count = min(N_GROUPS, n_nodes)
    groups = np.empty(n_nodes, dtype=np.intp)
    groups[rng.permutation(n_nodes)] = np.arange(n_nodes) % count
    if not graph.n_edges:
        return groups
    joined = graph.adjacency.astype(bool).astype(float)
    half = n_nodes // 2
    for _ in range(_ROUNDS):
        inside = joined @ np.eye(count)[groups]
        shuffled = rng.permutation(n_nodes)
        u, v = shuffled[:half], shuffled[half : 2 * half]
        gain = inside[u, groups[u]] + inside[v, groups[v]]
        gain -= inside[u, groups[v]] + inside[v, groups[u]]
        # Not all at once, since exchanges that help alone can undo each other.
        swap = (gain > 0) & (rng.random(half) < 0.5)
        u, v = u[swap], v[swap]
        groups[u], groups[v] = groups[v], groups[u]
    return groups
