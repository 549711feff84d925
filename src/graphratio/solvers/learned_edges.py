"""Learned edges: a penalty that lets edges between different nodes break.

    Phi(Theta) = sum_v loss_v(theta_v)                           quadratic, or of log-ratios
                 + lam sum_uv W_uv phi(|theta_u - theta_v|)      over the edges, each once
                 + (rho/2) sum_v |theta_v|^2

Symbols
-------
W           weights of the given edges
t           distance between the two ends of an edge
s           typical distance, at which an edge keeps about the weight it was given
phi         penalty of a distance: t^2 / 2, or adaptive
            phi(t) = s^2 / 2 log(1 + t^2 / (e s^2)) with e = `SOFTENING`

The adaptive penalty is quadratic at small distances and hardly grows at large ones. It joins
nodes of one kind and lets edges between kinds break. phi is concave in t^2, so its tangent at
the present distances bounds it from above. Minimising the quadratic penalty with the weights
phi'(t) / t = 1 / (t^2 / s^2 + e) therefore never increases the objective. This is
majorise-minimise: every round reweights the graph and solves the problem of
`moments.objective` or `moments.log_ratio` on it once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.moments.log_ratio import LogRatioObjective, with_intercepts
from graphratio.moments.node_moments import Moments
from graphratio.moments.node_rows import NodeRows
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import basis_of
from graphratio.solvers.newton import solve_newton
from graphratio.solvers.path import solve_path

# Squared distance, relative to the typical one, below which the penalty is about quadratic.
SOFTENING = 0.2


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a graph, each once, shape (n_edges,); `weights` in units of the mean degree."""

    n_nodes: int
    rows: IntArray
    columns: IntArray
    weights: FloatArray
    unit: float

    @classmethod
    def of(cls, graph: Graph) -> Edges:
        """Edges of a graph."""
        upper = sparse.triu(graph.adjacency, k=1).tocoo()
        unit = graph.mean_degree or 1.0
        rows, columns = upper.row.astype(np.intp), upper.col.astype(np.intp)
        return cls(graph.n_nodes, rows, columns, upper.data / unit, unit)

    def distances(self, points: FloatArray) -> FloatArray:
        """Distance between the ends of every edge, for points of shape (n_nodes, k)."""
        return np.asarray(np.linalg.norm(points[self.rows] - points[self.columns], axis=1))

    def reweighted(self, distances: FloatArray, scale: float) -> FloatArray:
        """Weights of the quadratic upper bound on the adaptive penalty at these distances."""
        return np.asarray(self.weights / (np.square(distances / scale) + SOFTENING))

    def penalty(self, distances: FloatArray, scale: float | None) -> float:
        """Sum of W phi(t); without a scale phi is quadratic."""
        if scale is None:
            return float(0.5 * self.weights @ np.square(distances))
        growth = np.log1p(np.square(distances / scale) / SOFTENING)
        return float(0.5 * scale**2 * self.weights @ growth)

    def quadratic(self, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Sum of w (x_u - x_v)(x_u - x_v)' over the edges, shape (k, k)."""
        differences = points[self.rows] - points[self.columns]
        return np.asarray((differences * weights[:, np.newaxis]).T @ differences)

    def dense_laplacian(self, weights: FloatArray) -> FloatArray:
        """Laplacian for other weights on the edges, as a full matrix."""
        matrix = np.zeros((self.n_nodes, self.n_nodes))
        matrix[self.rows, self.columns] = -weights
        matrix += matrix.T
        matrix[np.diag_indices(self.n_nodes)] = -matrix.sum(axis=1)
        return matrix

    def laplacian(self, weights: FloatArray) -> sparse.csr_array:
        """Laplacian for other weights on the edges, sparse."""
        adjacency = self.adjacency(weights)
        return sparse.csr_array(sparse.diags_array(adjacency.sum(axis=1)) - adjacency)

    def adjacency(self, weights: FloatArray) -> sparse.csr_array:
        """Adjacency matrix for other weights on the edges."""
        shape = (self.n_nodes, self.n_nodes)
        upper = sparse.coo_array((weights, (self.rows, self.columns)), shape=shape).tocsr()
        return sparse.csr_array(upper + upper.T)


def typical_distance(distances: FloatArray) -> float:
    """Median distance, or the mean if the median is zero."""
    if not distances.size:
        return 1.0
    return float(np.median(distances)) or float(distances.mean()) or 1.0


@dataclass(frozen=True, eq=False)
class AdaptiveFit:
    """Coefficients (n_nodes, m) after some rounds, and the reweighted graph that gave them."""

    theta: FloatArray
    graph: Graph
    scale: float | None


def with_weights(graph: Graph, edges: Edges, weights: FloatArray) -> Graph:
    """The same graph with other weights on its edges, in units of the mean degree."""
    return replace(graph, adjacency=edges.adjacency(edges.unit * weights))


def adaptive_rounds(
    data: Moments | NodeRows,
    graph: Graph,
    lam: float,
    rho: float,
    n_rounds: int,
    tol: float,
    max_iter: int,
) -> list[AdaptiveFit]:
    """Solve, then reweight and solve `n_rounds` times; returns all fits in order.

    Coefficients of log-ratios have their intercept last.
    """
    n_distinct = data.m if isinstance(data, NodeRows) else data.first.shape[1]
    edges = Edges.of(graph)
    scale = None
    current = graph
    path: list[AdaptiveFit] = []
    for number in range(n_rounds + 1):
        if number:
            # The intercept of a log-ratio does not count in distances.
            distances = edges.distances(path[-1].theta[:, :n_distinct])
            scale = typical_distance(distances) if scale is None else scale
            current = with_weights(graph, edges, edges.reweighted(distances, scale))
        theta = _solved(data, current, lam, rho, tol, max_iter)
        path.append(AdaptiveFit(theta, current, scale))
    return path


def _solved(
    data: Moments | NodeRows, graph: Graph, lam: float, rho: float, tol: float, max_iter: int
) -> FloatArray:
    """Coefficients at given weights, shape (n_nodes, m)."""
    if isinstance(data, NodeRows):
        problem = LogRatioObjective(data, graph.laplacian, np.array([lam]), np.array([rho]))
        theta = solve_newton(problem, basis_of(graph, data.dtype), tol, max_iter).theta
        return with_intercepts(data, theta, graph, problem.lam)[:, 0]
    objective = GraphObjective.of(data, graph.laplacian, lam, rho)
    basis = basis_of(graph, data.second.dtype)
    return solve_path(objective, basis, tol, max_iter).theta[:, 0]
