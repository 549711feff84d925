"""Fit and reweight in turn: the paper's problem with an adaptive penalty on differences.

    Phi(Theta) = (1/N) sum_v [ 1/2 theta_v' A_v theta_v - b_v' theta_v ]
                 + lam sum_uv W_uv phi(|theta_u - theta_v|)      over the edges, each once
                 + (lam gam/2) sum_v |theta_v|^2

with phi from `edges`. Every round solves the problem of `objectives` on the reweighted graph,
which never increases Phi.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scipy import sparse

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import basis_of
from graphratio.solvers.edges import Edges, typical_distance
from graphratio.solvers.path import solve_path


@dataclass(frozen=True, eq=False)
class AdaptiveFit:
    """Coefficients after some rounds.

    Attributes
    ----------
    theta : ndarray of shape (n_nodes, m)
    graph : Graph
        With the weights that were used for them.
    scale : float or None
        Typical distance of the adaptive penalty, None for the quadratic one.
    """

    theta: FloatArray
    graph: Graph
    scale: float | None


def with_weights(graph: Graph, edges: Edges, weights: FloatArray) -> Graph:
    """The same graph with other weights on its edges.

    Examples
    --------
    >>> import numpy as np
    >>> graph = Graph.from_edges([("a", "b"), ("b", "c")])
    >>> with_weights(graph, Edges.of(graph), np.array([0.5, 2.0])).degrees
    array([0.5, 2.5, 2. ])
    """
    shape = (graph.n_nodes, graph.n_nodes)
    upper = sparse.coo_array((weights, (edges.rows, edges.columns)), shape=shape)
    return replace(graph, adjacency=sparse.csr_array(upper + upper.T))


def adaptive_rounds(
    moments: Moments,
    graph: Graph,
    lam: float,
    gam: float,
    n_rounds: int,
    tol: float,
    max_iter: int,
) -> list[AdaptiveFit]:
    """Solve, then reweight and solve `n_rounds` times; all fits in order."""
    edges = Edges.of(graph)
    scale = None
    current = graph
    path: list[AdaptiveFit] = []
    for number in range(n_rounds + 1):
        if number:
            distances = edges.distances(path[-1].theta)
            scale = typical_distance(distances) if scale is None else scale
            weights = edges.reweighted(distances, scale) * (graph.mean_degree or 1.0)
            current = with_weights(graph, edges, weights)
        objective = GraphObjective.of(moments, current.laplacian, lam, gam)
        basis = basis_of(current, moments.second.dtype)
        theta = solve_path(objective, basis, tol, max_iter).theta[:, 0]
        path.append(AdaptiveFit(theta, current, scale))
    return path
