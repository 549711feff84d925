"""Graphs in pieces or clusters: means over them are solved with their own data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from tests.problems import dense_solution, paper_objective
from tests.solvers.test_multigrid import grid_graph, plane_moments, ragged_graph

from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments, MomentSums
from graphratio.moments.second_moments import DenseSecond, FactoredSecond
from graphratio.solvers.bases import (
    Corrected,
    NodeBasis,
    basis_of,
    corrected_mean_field,
    mean_field,
)
from graphratio.solvers.conjugate_gradients import Progress, StackIterates, iterate
from graphratio.solvers.node_basis import component_indicators, low_modes
from graphratio.solvers.path import _System, solve_path, solve_pcg

BASES = {"modes": basis_of, "nodes": NodeBasis.of}


def rings(count, length=8):
    ring = np.roll(np.eye(length), 1, axis=1)
    return sparse.block_diag([ring + ring.T] * count)


def as_matrix(operator, basis, n_nodes, m):
    unit = np.eye(n_nodes * m).reshape(n_nodes * m, n_nodes, 1, m)
    columns = [basis.to_nodes(operator.apply(basis.from_nodes(x))).ravel() for x in unit]
    return np.array(columns)


@pytest.mark.parametrize("where", BASES)
def test_means_over_components_are_solved_exactly(where):
    graph = ragged_graph()
    m = 3
    moments = plane_moments(graph.n_nodes, alike=False, m=m)
    objective = paper_objective(moments, graph, 0.01, 1e-2)
    basis = BASES[where](graph)
    matrix = as_matrix(corrected_mean_field(objective, basis), basis, graph.n_nodes, m)
    largest = np.abs(matrix).max()
    assert_allclose(matrix, matrix.T, atol=1e-5 * largest)
    assert np.linalg.eigvalsh(matrix + matrix.T).min() > 0
    blocks, ridge = objective.moments.second.dense(), objective.rho[0]
    rng = np.random.default_rng(0)
    for component in np.unique(graph.components)[1:]:
        inside = graph.components == component
        value = rng.normal(size=m)
        found = (matrix @ np.outer(inside, value).ravel()).reshape(-1, m)
        exact = np.linalg.solve(blocks[inside].mean(axis=0) + ridge * np.eye(m), value)
        assert_allclose(found, np.outer(inside, exact), rtol=1e-4, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("where", BASES)
@pytest.mark.parametrize("lambda_", [1e-5, 1e-2])
def test_solutions_are_the_dense_ones(where, lambda_):
    graph = ragged_graph()
    moments = plane_moments(graph.n_nodes, alike=False, m=4)
    objective = paper_objective(moments, graph, lambda_, 1e-3)
    solution = solve_pcg(objective, BASES[where](graph), 1e-9, 400)
    truth = dense_solution(objective)
    assert np.linalg.norm(solution.theta - truth) <= 1e-5 * np.linalg.norm(truth)


@pytest.mark.parametrize("where", BASES)
def test_a_few_stray_nodes_cost_no_iterations(where):
    """Small pieces beside a large one, whose mean says little about them."""
    whole = grid_graph(24)
    apart = Graph.from_adjacency(sparse.block_diag([whole.adjacency, rings(20), np.zeros((5, 5))]))
    counts = {}
    for name, graph in {"whole": whole, "apart": apart}.items():
        moments = plane_moments(graph.n_nodes, alike=False)
        objective = paper_objective(moments, graph, 1.0, 1e-5)
        counts[name] = solve_pcg(objective, BASES[where](graph), 1e-6, 300, "kronecker").n_iter
    assert counts["apart"] <= counts["whole"] + 3


def test_connected_graphs_and_large_components_are_left_alone():
    single, most = grid_graph(12), sparse.block_diag([grid_graph(12).adjacency, rings(1)])
    for graph, n_corrected in ((single, 0), (Graph.from_adjacency(most), 1)):
        moments = plane_moments(graph.n_nodes, alike=True, m=3)
        objective = paper_objective(moments, graph, 1e-3, 1e-2)
        operator = corrected_mean_field(objective, NodeBasis.of(graph))
        count = operator.functions.shape[1] if isinstance(operator, Corrected) else 0
        assert count == n_corrected


def test_many_candidates_at_once_equal_one_by_one():
    graph = ragged_graph()
    moments = plane_moments(graph.n_nodes, alike=False, m=3)
    lambdas = np.geomspace(1e-4, 1, 5)
    basis = basis_of(graph)
    x = np.random.default_rng(0).normal(size=(graph.n_nodes, 5, 3))
    together = corrected_mean_field(paper_objective(moments, graph, lambdas, 1e-2), basis)
    for i, value in enumerate(lambdas):
        alone = corrected_mean_field(paper_objective(moments, graph, value, 1e-2), basis)
        expected = alone.apply(x[:, [i]])
        tolerance = {"rtol": 1e-4, "atol": 1e-5 * np.abs(expected).max()}
        assert_allclose(together.apply(x)[:, [i]], expected, **tolerance)
        assert_allclose(together.restrict(np.array([i])).apply(x[:, [i]]), expected, **tolerance)


@pytest.mark.parametrize("chunk", [3, 2048])
def test_every_form_of_the_moments_gives_the_same_correction(chunk, monkeypatch):
    monkeypatch.setattr("graphratio.solvers.bases.SUMMED_AT_ONCE", chunk)
    graph, m, rng = Graph.from_adjacency(rings(4, 5)), 3, np.random.default_rng(0)
    psi, weights = rng.normal(size=(20, 6, m)), rng.random((20, 6))
    # In two rectangles, out of order, and with a node that has no rows at all.
    order = rng.permutation(20)[:-1]
    parts = [(nodes, psi[nodes], weights[nodes]) for nodes in (order[:8], order[8:])]
    factored = FactoredSecond(20, parts)
    forms = [
        factored,
        DenseSecond(factored.dense()),
        DenseSecond(factored.dense(compact=True), compact=True),
    ]
    x = rng.normal(size=(20, 1, m))
    found = []
    for second in forms:
        moments = Moments(second, np.zeros((20, m)), np.ones(20, bool))
        objective = paper_objective(moments, graph, 0.1, 0.1)
        found.append(corrected_mean_field(objective, NodeBasis.of(graph)).apply(x))
        nodes = np.array([7, 3, int(np.setdiff1d(np.arange(20), order)[0])])
        assert_allclose(second.take(nodes).dense(), factored.dense()[nodes], rtol=1e-6, atol=1e-6)
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=1e-4, atol=1e-5)


def clustered_problem(n_candidates=1):
    """Four crowded clusters whose nodes have their own laws."""
    rng = np.random.default_rng(0)
    cluster = np.arange(320) // 80
    chance = np.where(cluster[:, np.newaxis] == cluster, 0.6, 0.02)
    upper = np.triu(rng.random((320, 320)) < chance, 1)
    graph = Graph.from_adjacency((upper + upper.T).astype(float))
    psi = (
        rng.normal(size=(320, 30, 4)) * (1 + 3 * (cluster[:, np.newaxis] == np.arange(4)))[:, None]
    )
    moments = MomentSums.of(psi.reshape(-1, 4), np.full((320, 2), 15)).mixed(0.1)
    lambdas = np.geomspace(1e-3, 1.0, n_candidates)
    return graph, paper_objective(moments, graph, lambdas, 1e-4)


def test_clusters_of_crowded_graphs_are_solved_with_their_own_data():
    graph, objective = clustered_problem()
    basis = NodeBasis.of(graph)
    assert basis.crowded
    operator = corrected_mean_field(objective, basis)
    assert operator.functions.shape == (320, 4)
    matrix = as_matrix(operator, basis, 320, 4)
    assert_allclose(matrix, matrix.T, atol=1e-5 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix + matrix.T).min() > 0
    # On the span of P it is the inverse of the whole system restricted to that span.
    P = np.kron(operator.functions, np.eye(4))
    coupling = objective.lam[0] * graph.laplacian.toarray() + objective.rho[0] * np.eye(320)
    system = np.kron(coupling, np.eye(4))
    for v, block in enumerate(objective.moments.second.dense()):
        rows = slice(4 * v, 4 * v + 4)
        system[rows, rows] += block
    restricted = np.linalg.inv(P.T @ system @ P)
    assert_allclose(P.T @ matrix @ P, restricted, atol=1e-3 * np.abs(restricted).max())


def test_clusters_save_iterations_and_leave_the_answer():
    graph, objective = clustered_problem(5)
    basis = NodeBasis.of(graph)
    path = solve_path(objective, basis, 1e-8, 300, "kronecker")
    for candidate in range(5):
        truth = dense_solution(objective, candidate)
        apart = np.linalg.norm(path.theta[:, candidate] - truth)
        assert apart <= 1e-5 * np.linalg.norm(truth)
    plain = CountingInverse(mean_field(objective, basis))
    rhs = np.repeat(objective.moments.first[:, np.newaxis], 5, axis=1)
    iterates = StackIterates(_System(objective, basis), plain, rhs, plain.apply(rhs))
    iterate(iterates, Progress.start(5), 1e-8, 300)
    assert path.progress.n_iter.max() < 0.7 * plain.count


class CountingInverse:
    def __init__(self, inner):
        self.inner, self.count = inner, -1

    def apply(self, x):
        self.count += 1
        return self.inner.apply(x)

    def restrict(self, candidates):
        self.inner = self.inner.restrict(candidates)
        return self


def test_the_lowest_modes_of_a_ring():
    ring = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    modes, vectors = low_modes(ring, 3, component_indicators(ring, 1))
    assert_allclose(modes[:2], [0.0, 2 - 2 * np.cos(2 * np.pi / 30)], atol=1e-6)
    assert_allclose(vectors.T @ vectors, np.eye(len(modes)), atol=1e-10)
