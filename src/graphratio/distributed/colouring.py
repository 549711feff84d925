"""Colours for the nodes, so that neighbours differ and a colour can be updated at once."""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import IntArray
from graphratio.data.graph import Graph
from graphratio.solvers.cbcgd import levels


def colour_nodes(graph: Graph) -> IntArray:
    """Colour every node differently from its neighbours, shape (n_nodes,).

    First fit in a fixed random order. Nodes none of whose neighbours are still to come before
    them are coloured together, so the number of passes grows with the logarithm of the number
    of nodes and not with it.

    Examples
    --------
    >>> ring = Graph.from_edges([(i, (i + 1) % 6) for i in range(6)])
    >>> colours = colour_nodes(ring)
    >>> all(colours[i] != colours[(i + 1) % 6] for i in range(6))
    True
    """
    order = np.random.default_rng(0).permutation(graph.n_nodes)
    adjacency = graph.adjacency[order][:, order]
    colour = np.full(graph.n_nodes, -1, dtype=np.intp)
    for members in levels(adjacency):
        near = adjacency[members]
        row = np.repeat(np.arange(members.size), np.diff(near.indptr))
        seen = colour[near.indices]
        taken = np.zeros((members.size, int(colour.max()) + 2), dtype=bool)
        taken[row[seen >= 0], seen[seen >= 0]] = True
        # The last column is free for everybody, so there is always a first free colour.
        colour[members] = np.argmin(taken, axis=1)
    result = np.empty_like(colour)
    result[order] = colour
    return result
