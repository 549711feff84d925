"""The graph penalty on differences, quadratic or adaptive, and the weights it gives to edges.

Symbols
-------
W           weights of the given edges
t           how differently the two ends of an edge behave, a distance
s           typical distance, at which an edge keeps about the weight it was given
phi         penalty of a distance: t^2 / 2, or adaptive
            phi(t) = s^2 / 2 log(1 + t^2 / (e s^2)) with e = `SOFTENING`

The adaptive penalty is quadratic for ends that behave alike and hardly grows any more for ends
that do not: it joins nodes of one kind and lets edges between kinds break. phi is concave in
t^2, so that its tangent at the present distances bounds it from above: minimising the quadratic
penalty with the weights phi'(t) / t = 1 / (t^2 / s^2 + e) never increases the objective. This
is majorise-minimise; every round reweights and solves once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph

# Squared distance, relative to the typical one, below which the penalty is about quadratic.
SOFTENING = 0.2


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a graph, each once.

    Attributes
    ----------
    n_nodes : int
    rows, columns : ndarray of shape (n_edges,)
    weights : ndarray of shape (n_edges,)
        Divided by the mean degree, so that penalties do not depend on the units of the weights.
    """

    n_nodes: int
    rows: IntArray
    columns: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, graph: Graph) -> Edges:
        """Take the edges of a graph.

        Examples
        --------
        >>> edges = Edges.of(Graph.from_edges([("a", "b"), ("b", "c")]))
        >>> edges.rows, edges.columns, edges.weights
        (array([0, 1]), array([1, 2]), array([0.75, 0.75]))
        """
        upper = sparse.triu(graph.adjacency, k=1).tocoo()
        scale = graph.mean_degree or 1.0
        rows, columns = upper.row.astype(np.intp), upper.col.astype(np.intp)
        return cls(graph.n_nodes, rows, columns, upper.data / scale)

    def distances(self, points: FloatArray) -> FloatArray:
        """Distance between the ends of every edge, for points of shape (n_nodes, k)."""
        return np.asarray(np.linalg.norm(points[self.rows] - points[self.columns], axis=1))

    def reweighted(self, distances: FloatArray, scale: float) -> FloatArray:
        """Weights of the quadratic bound on the adaptive penalty at these distances.

        Examples
        --------
        >>> edges = Edges.of(Graph.from_edges([("a", "b"), ("b", "c")]))
        >>> edges.reweighted(np.array([0.0, 7.0]), scale=1.0).round(3)  # alike, and different
        array([3.75 , 0.015])
        """
        return np.asarray(self.weights / (np.square(distances / scale) + SOFTENING))

    def penalty(self, distances: FloatArray, scale: float | None) -> float:
        """Sum of W phi(t); a scale of None stands for the quadratic penalty."""
        if scale is None:
            return float(0.5 * self.weights @ np.square(distances))
        growth = np.log1p(np.square(distances / scale) / SOFTENING)
        return float(0.5 * scale**2 * self.weights @ growth)

    def quadratic(self, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Sum of w (x_u - x_v)(x_u - x_v)' over the edges, shape (k, k)."""
        differences = points[self.rows] - points[self.columns]
        return np.asarray((differences * weights[:, np.newaxis]).T @ differences)

    def dense_laplacian(self, weights: FloatArray) -> FloatArray:
        """Laplacian of the graph with other weights on its edges, as a full matrix."""
        matrix = np.zeros((self.n_nodes, self.n_nodes))
        matrix[self.rows, self.columns] = -weights
        matrix += matrix.T
        matrix[np.diag_indices(self.n_nodes)] = -matrix.sum(axis=1)
        return matrix

    def laplacian(self, weights: FloatArray) -> sparse.csr_array:
        """Laplacian of the graph with other weights on its edges, sparse."""
        shape = (self.n_nodes, self.n_nodes)
        upper = sparse.coo_array((weights, (self.rows, self.columns)), shape=shape).tocsr()
        adjacency = upper + upper.T
        return sparse.csr_array(sparse.diags_array(adjacency.sum(axis=1)) - adjacency)


def typical_distance(distances: FloatArray) -> float:
    """Median distance; where most edges join equal ends, the mean."""
    if not distances.size:
        return 1.0
    return float(np.median(distances)) or float(distances.mean()) or 1.0
