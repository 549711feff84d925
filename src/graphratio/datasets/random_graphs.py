"""Random graphs of the synthetic scenarios, and the groups of their nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphratio._utils.errors import InputError
from graphratio._utils.typing import BoolArray, IntArray

GroupArray = NDArray[np.str_]

CLUSTERS = ("C1", "C2", "C3", "C4")
EGO, COMPLEMENT = "C(u)", "complement"

SEED_NODES = 5
EDGES_PER_NODE = 2


def clustered(n_nodes: int, rng: np.random.Generator) -> tuple[sparse.csr_array, GroupArray]:
    """Adjacency of four equal clusters, and the cluster of each node."""
    size, rest = divmod(n_nodes, len(CLUSTERS))
    if rest:
        raise InputError(
            f"n_nodes={n_nodes} cannot be split into {len(CLUSTERS)} equal clusters",
            f"Use {n_nodes - rest} or {n_nodes - rest + len(CLUSTERS)}",
        )
    adjacency = block_model(len(CLUSTERS), size, inside=0.5, between=0.01, rng=rng)
    return adjacency, np.repeat(np.array(CLUSTERS), size)


def with_ego_network(
    n_nodes: int, graph_rng: np.random.Generator, group_rng: np.random.Generator
) -> tuple[sparse.csr_array, GroupArray]:
    """Adjacency of a growing graph, and the group of each node: near a random node or not."""
    adjacency = preferential_attachment(n_nodes, graph_rng)
    near = random_ego_network(adjacency, radius=2, rng=group_rng)
    return adjacency, np.where(near, EGO, COMPLEMENT)


def block_model(
    n_blocks: int, block_size: int, inside: float, between: float, rng: np.random.Generator
) -> sparse.csr_array:
    """Stochastic block model: chances of an edge `inside` a block and `between` two blocks."""
    size = block_size
    pairs_inside = np.triu_indices(size, k=1)
    tails: list[IntArray] = []
    heads: list[IntArray] = []
    for first in range(n_blocks):
        for second in range(first, n_blocks):
            if first == second:
                drawn = np.flatnonzero(rng.random(len(pairs_inside[0])) < inside)
                rows, columns = pairs_inside[0][drawn], pairs_inside[1][drawn]
            else:
                rows, columns = np.divmod(np.flatnonzero(rng.random(size**2) < between), size)
            tails.append(first * size + rows)
            heads.append(second * size + columns)
    return _symmetric(np.concatenate(tails), np.concatenate(heads), n_blocks * size)


def preferential_attachment(n_nodes: int, rng: np.random.Generator) -> sparse.csr_array:
    """Adjacency of a Barabasi-Albert graph: new nodes are joined to two distinct earlier ones.

    The paper starts from five nodes and does not name their edges. A star gives each of them a
    degree, so that each can be drawn, and keeps the graph connected.
    """
    # A node appears in this list once for each of its edges, so a uniform draw from the list
    # is a draw in proportion to degree.
    ends = [end for leaf in range(1, SEED_NODES) for end in (0, leaf)]
    for new in range(SEED_NODES, n_nodes):
        chosen: set[int] = set()
        while len(chosen) < EDGES_PER_NODE:
            chosen.add(ends[int(rng.random() * len(ends))])
        # Sorted, because later draws depend on the order of the list and sets have none.
        for old in sorted(chosen):
            ends += (old, new)
    pairs = np.array(ends).reshape(-1, 2)
    return _symmetric(pairs[:, 0], pairs[:, 1], n_nodes)


def random_ego_network(
    adjacency: sparse.csr_array, radius: int, rng: np.random.Generator
) -> BoolArray:
    """Mark the nodes within `radius` steps of a node drawn in proportion to its degree."""
    degrees = adjacency.sum(axis=1)
    reached = np.zeros(adjacency.shape[0], dtype=bool)
    reached[rng.choice(len(degrees), p=degrees / degrees.sum())] = True
    for _ in range(radius):
        reached |= adjacency @ reached > 0
    return reached


def _symmetric(tails: IntArray, heads: IntArray, n_nodes: int) -> sparse.csr_array:
    ones = np.ones(2 * len(tails))
    rows, columns = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    return sparse.csr_array((ones, (rows, columns)), shape=(n_nodes, n_nodes))
