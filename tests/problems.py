"""Small problems shared by the tests."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments, MomentSums
from graphratio.moments.objective import GraphObjective


def path(n: int) -> np.ndarray:
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def star(n: int) -> np.ndarray:
    matrix = np.zeros((n, n))
    matrix[0, 1:] = matrix[1:, 0] = 1
    return matrix


def block(*parts: np.ndarray) -> np.ndarray:
    return sparse.block_diag(parts).toarray()


GRAPHS = {
    "path": path(6),
    "star": star(6),
    "complete": np.ones((6, 6)) - np.eye(6),
    "edgeless": np.zeros((6, 6)),
    "disconnected": block(path(3), star(3)),
    "isolated first": block(np.zeros((1, 1)), path(5)),
    "isolated last": block(star(5), np.zeros((1, 1))),
    "isolated both ends": block(np.zeros((1, 1)), path(4), np.zeros((1, 1))),
    "weighted": path(6) * np.linspace(0.2, 3, 6)[:, None] * np.linspace(0.2, 3, 6),
}


def graph(name: str) -> Graph:
    return Graph.from_adjacency(GRAPHS[name])


def random_moments(n_nodes: int = 6, m: int = 4, seed: int = 0, alpha: float = 0.3) -> Moments:
    """Moments of random features with ragged sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 12, size=(n_nodes, 2))
    psi = rng.normal(size=(int(sizes.sum()), m))
    return MomentSums.of(psi, sizes).mixed(alpha)


def objective(
    name: str, lam: float | np.ndarray, rho: float | np.ndarray, m: int = 4, seed: int = 0
) -> GraphObjective:
    return GraphObjective.of(random_moments(6, m, seed), graph(name).laplacian, lam, rho)


def paper_objective(
    moments: Moments, graph: Graph, lambda_: float | np.ndarray, gamma: float | np.ndarray
) -> GraphObjective:
    """The problem at the paper's lambda and gamma."""
    lam = graph.n_nodes * np.asarray(lambda_)
    return GraphObjective.of(moments, graph.laplacian, lam, lam * gamma)


def dense_solution(problem: GraphObjective, candidate: int = 0) -> np.ndarray:
    """Solve the whole system written out with np.kron, independently of the library's solvers."""
    n_nodes, _, m = problem.shape
    gram = np.eye(m) if problem.gram is None else problem.gram
    lam, rho = problem.lam[candidate], problem.rho[candidate]
    matrix = np.kron(lam * problem.laplacian.toarray() + rho * np.eye(n_nodes), gram)
    for v, second in enumerate(problem.moments.second.dense()):
        rows = slice(v * m, (v + 1) * m)
        matrix[rows, rows] += second
    return np.linalg.solve(matrix, problem.moments.first.ravel()).reshape(n_nodes, m)
