"""Groups of nodes that are tested together, each against what the other groups say."""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import IntArray
from graphratio.data.graph import Graph

N_GROUPS = 5

# Parts of a group, for what is cheap enough to be learned once for every part.
N_PARTS = 4

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


def group_parts(groups: IntArray, nodes: IntArray) -> list[IntArray]:
    """Split the given nodes of every group into parts, each with nodes of one group only.

    Examples
    --------
    >>> [part.tolist() for part in group_parts(np.array([0, 1, 0, 1, 0]), np.array([0, 1, 2, 4]))]
    [[0], [2], [4], [1]]
    """
    own = (nodes[groups[nodes] == group] for group in np.unique(groups[nodes]))
    return [part for members in own for part in _split(members)]


def _split(members: IntArray) -> list[IntArray]:
    return np.array_split(members, min(N_PARTS, members.size))
