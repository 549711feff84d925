"""A representative part of a large graph: a few connected patches.

Hyperparameters of a large graph are chosen on a part of it. Nodes drawn one by one would lose
their neighbours. Patches keep them, except at the rim.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csgraph

from graphratio._utils.typing import BoolArray, IntArray
from graphratio.data.graph import Graph

# Several patches, so that the part does not depend on a single region.
N_PATCHES = 4


def choose_patches(
    graph: Graph, n_nodes: int, start: BoolArray, random_state: np.random.Generator
) -> IntArray:
    """Positions of about `n_nodes` nodes in patches, in increasing order.

    Patches grow breadth-first from random nodes among those that `start` marks.
    """
    taken = np.zeros(graph.n_nodes, dtype=bool)
    each = max(1, -(-n_nodes // N_PATCHES))
    for seed in random_state.permutation(np.flatnonzero(start)):
        left = min(each, n_nodes - int(taken.sum()))
        if left <= 0:
            break
        if taken[seed]:
            continue
        order = csgraph.breadth_first_order(
            graph.adjacency, seed, directed=False, return_predecessors=False
        )
        taken[order[~taken[order]][:left]] = True
    return np.flatnonzero(taken)
