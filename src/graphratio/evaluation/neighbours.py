"""A graph learned from the data: every node is joined to the nodes with the nearest ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from graphratio._utils.typing import FloatArray, Label
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.selection.cross_validation import Coupling, Fit
from graphratio.solvers.direct import solve_nodes

# Ridge of the fits by which nodes are compared, relative to a second moment of features.
COMPARISON_RIDGE = 0.1
# Only the leading directions separate kinds of change; the others hold noise.
COMPARED_DIRECTIONS = 6


@dataclass(frozen=True, eq=False)
class LearnedFit:
    """Learn the graph from the training data, then fit the nodes together as `joined` does."""

    nodes: tuple[Label, ...]
    n_neighbors: int
    joined: Callable[[Graph], Fit] = Coupling

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""
        graph = learned_graph(moments, self.nodes, self.n_neighbors)
        return self.joined(graph).solve(moments, lam, rho)


def learned_graph(moments: Moments, nodes: tuple[Label, ...], n_neighbors: int) -> Graph:
    """Join nodes whose ratios, each fitted by itself, are nearest to each other.

    The distance of two ratios is that of their values on the data of all nodes, in the
    directions in which the ratios differ most. Nodes without both samples get no edges.
    """
    n_nodes = len(nodes)
    lonely = Graph.empty(1).laplacian
    objective = GraphObjective.of(moments, lonely, 0.0, COMPARISON_RIDGE)
    theta = solve_nodes(objective)[:, 0].astype(np.float64)
    used = np.flatnonzero(moments.complete)
    values = theta[used] @ _root(moments.second.mean().astype(np.float64))
    centred = values - values.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points = centred @ directions[:COMPARED_DIRECTIONS].T
    count = min(n_neighbors, len(used) - 1)
    if count < 1:
        return Graph.empty(nodes)
    _, near = cKDTree(points).query(points, k=count + 1)
    rows = np.repeat(used, count + 1)
    columns = used[near.ravel()]
    joined = rows != columns
    ones = np.ones(int(joined.sum()))
    matrix = sparse.csr_array((ones, (rows[joined], columns[joined])), shape=(n_nodes, n_nodes))
    return Graph.from_adjacency(matrix.maximum(matrix.T), nodes=nodes)


def _root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
