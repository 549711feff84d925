"""The coarse space: low modes of the graph, which neighbours alone cannot even out.

Symbols
-------
mu, V       lowest eigenvalues and eigenvectors of the Laplacian, (k,) and (n_nodes, k)
B_k         V_k' A V_k, the second moment averaged with the squares of mode k, (m, m)

Coupling between different modes is left out, so the coarse problem is one (m, m) problem for
every mode, B_k + N lam (mu_k + gam), and one eigendecomposition of B_k serves all candidates.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.solvers.preconditioners.low_modes import component_indicators, low_modes

# Modes that are used: more on larger graphs, between these bounds.
FEWEST_MODES = 8
MOST_MODES = 48
NODES_PER_MODE = 40

# Up to this many nodes all modes are computed and the lowest taken.
SMALL_GRAPH = 300


def coarse_modes(graph: Graph) -> tuple[FloatArray, FloatArray]:
    """Lowest modes of a graph, shapes (k,) and (n_nodes, k); none without edges.

    Examples
    --------
    >>> mu, vectors = coarse_modes(Graph.from_edges([(0, 1), (1, 2)]))
    >>> mu.round(6), vectors.shape
    (array([0., 1., 3.]), (3, 3))
    """
    if graph.n_edges == 0:
        return np.empty(0), np.empty((graph.n_nodes, 0))
    count = min(max(FEWEST_MODES, graph.n_nodes // NODES_PER_MODE), MOST_MODES)
    if graph.n_nodes <= SMALL_GRAPH:
        modes, vectors = graph.spectrum
    else:
        modes, vectors = low_modes(graph, count, component_indicators(graph, count))
    return modes[:count], vectors[:, :count]
