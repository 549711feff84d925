import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.problems import GRAPHS, dense_solution, graph, objective, random_moments

from graphratio.data.graph import Graph
from graphratio.exceptions import ConvergenceWarning, InputError
from graphratio.moments.node_moments import Moments, dense_moments, factored_moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.bases import basis_of
from graphratio.solvers.cbcgd import curvatures, levels, solve_cbcgd
from graphratio.solvers.direct import solve_direct, solve_nodes, system_matrix
from graphratio.solvers.path import (
    PRECONDITIONERS,
    SOLVERS,
    solve,
    solve_many,
    solve_path,
    solve_pcg,
)

# For every penalty: one where the data dominate, one where the graph does.
PENALTIES = [(0.06, 0.06), (6.0, 0.6)]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize(("lam", "rho"), PENALTIES)
def test_agrees_with_the_dense_solve(name, method, lam, rho):
    problem = objective(name, lam, rho)
    tol = 1e-13 if method == "cbcgd" else 1e-11
    with pytest.MonkeyPatch.context() as patch:
        # Let "auto" take the iterative way too.
        patch.setattr("graphratio.solvers.path.SMALL_SYSTEM", 0)
        solution = solve(problem, graph(name), method, tol, 200_000)
    truth = dense_solution(problem)
    assert np.linalg.norm(solution.theta - truth) <= 1e-8 * np.linalg.norm(truth)


@pytest.mark.parametrize("name", ["path", "isolated both ends", "edgeless"])
@pytest.mark.parametrize("method", SOLVERS)
def test_reported_residual_is_the_true_one(name, method):
    problem = objective(name, 0.6, 0.3)
    solution = solve(problem, graph(name), method, 1e-9, 100_000)
    matrix_free = problem.operator(solution.theta[:, None])[:, 0] - problem.rhs
    truth = np.linalg.norm(matrix_free) / np.linalg.norm(problem.rhs)
    assert solution.residual == pytest.approx(truth, rel=1e-6)
    assert solution.converged
    assert truth <= (1e-8 if method == "cbcgd" else 1e-9)


def test_auto_says_what_it_chose_and_why():
    problem = objective("path", 0.6, 0.3)
    chosen = solve(problem, graph("path"), "auto", 1e-6, 10)
    assert (chosen.method, chosen.reason) == ("direct", "only 24 unknowns")
    assert chosen.describe() == "direct, chosen automatically: only 24 unknowns"
    alone = objective("edgeless", 0.6, 0.3)
    assert "no edges" in solve(alone, graph("edgeless"), "auto", 1e-6, 10).reason


@pytest.mark.parametrize("preconditioner", PRECONDITIONERS)
@pytest.mark.parametrize("name", ["star", "disconnected", "weighted"])
def test_all_candidates_at_once_equal_one_at_a_time(preconditioner, name):
    lam = 6 * np.array([1e-3, 1e-3, 0.1, 1.0, 10.0])
    rho = lam * np.array([1e-3, 1.0, 1e-4, 1.0, 1e-3])
    problem = objective(name, lam, rho)
    path = solve_path(problem, basis_of(graph(name)), 1e-11, 500, preconditioner)
    for c in range(len(lam)):
        truth = dense_solution(problem, c)
        assert np.linalg.norm(path.theta[:, c] - truth) <= 1e-7 * np.linalg.norm(truth)
    assert (path.progress.residual <= 1e-11).all()


def test_without_rotation_the_kronecker_preconditioner_is_still_exact_for_equal_nodes():
    """With all A_v equal the mean field is the truth, and no iteration is needed."""
    second = random_moments().second.dense()[:1].repeat(6, axis=0)
    data = Moments(DenseSecond(second), random_moments().first, np.ones(6, dtype=bool))
    problem = GraphObjective.of(data, graph("path").laplacian, 3.0, 0.3)
    solution = solve_pcg(problem, basis_of(graph("path")), 1e-10, 50, "kronecker")
    assert solution.n_iter == 0


def test_stopping_early_warns_with_residual_and_remedy():
    problem = objective("path", 6.0, 6e-4)
    with pytest.warns(ConvergenceWarning, match=r"relative residual of .*Raise max_iter"):
        solution = solve_pcg(problem, basis_of(graph("path")), 1e-12, 1)
    assert not solution.converged
    assert solution.n_iter == 1
    assert len(solution.history) == 1


def test_cbcgd_does_not_call_a_small_step_a_solution():
    problem = objective("complete", 600.0, 6e-4)
    with pytest.warns(ConvergenceWarning, match=r'solver="pcg"'):
        solution = solve_cbcgd(problem, 1e-3, 10_000)
    assert solution.history[-1] <= 1e-3
    assert not solution.converged
    assert solution.residual > 1e-3


def literal_cycles(problem: GraphObjective, n_cycles: int) -> np.ndarray:
    """The paper's update written down node by node."""
    n_nodes, _, m = problem.shape
    lam, rho = problem.lam[0], problem.rho[0]
    gram = np.eye(m) if problem.gram is None else problem.gram
    second, first = problem.moments.second.dense(), problem.moments.first
    weights = np.diag(problem.laplacian.diagonal()) - problem.laplacian.toarray()
    theta = np.zeros((n_nodes, m))
    for _ in range(n_cycles):
        for v in range(n_nodes):
            degree = weights[v].sum()
            eta = np.linalg.eigvalsh(second[v] + lam * degree * gram)[-1]
            step = eta * theta[v] - (second[v] @ theta[v] - first[v])
            step -= lam * gram @ (degree * theta[v] - weights[v] @ theta)
            theta[v] = np.linalg.solve(rho * gram + eta * np.eye(m), step)
    return theta


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.filterwarnings("ignore::graphratio.exceptions.ConvergenceWarning")
def test_cbcgd_follows_the_paper_to_the_letter(name, plain):
    problem = objective(name, 1.8, 0.36)
    if plain:
        root = np.random.default_rng(1).normal(size=(4, 4))
        gram = root @ root.T + np.eye(4)
        problem = GraphObjective.of(problem.moments, problem.laplacian, 1.8, 0.36, gram)
    for n_cycles in (1, 4):
        solution = solve_cbcgd(problem, 1e-300, n_cycles)
        assert_allclose(solution.theta, literal_cycles(problem, n_cycles), rtol=1e-11, atol=1e-14)


@pytest.mark.filterwarnings("ignore::graphratio.exceptions.ConvergenceWarning")
def test_cbcgd_stops_at_the_first_small_relative_change():
    problem = objective("star", 1.8, 0.36)
    solution = solve_cbcgd(problem, 1e-4, 10_000)
    changes = []
    for n in range(2, solution.n_iter + 1):
        new, old = literal_cycles(problem, n), literal_cycles(problem, n - 1)
        changes.append(np.linalg.norm(new - old) / np.linalg.norm(old))
    assert_allclose(solution.history, changes, rtol=1e-6)
    assert changes[-1] <= 1e-4 < changes[-2]


def test_curvature_is_the_largest_eigenvalue():
    problem = objective("star", 1.8, 0.36)
    degrees = graph("star").degrees
    for v, eta in enumerate(curvatures(problem)):
        block = problem.moments.second.dense()[v] + 1.8 * degrees[v] * np.eye(4)
        assert eta == pytest.approx(np.linalg.eigvalsh(block).max(), rel=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_levels_are_independent_sets_in_order(name):
    adjacency = graph(name).adjacency
    found = levels(adjacency)
    assert sorted(np.concatenate(found)) == list(range(6))
    level = np.empty(6, dtype=int)
    for k, nodes in enumerate(found):
        level[nodes] = k
    rows, columns = adjacency.nonzero()
    assert ((level[rows] < level[columns]) == (rows < columns)).all()


def test_direct_refuses_what_would_not_fit():
    second = np.broadcast_to(np.eye(2), (6000, 2, 2))
    data = Moments(DenseSecond(second), np.ones((6000, 2)), np.ones(6000, dtype=bool))
    from scipy import sparse

    with pytest.raises(InputError, match=r'12000 unknowns.*solver="pcg"'):
        solve_direct(GraphObjective.of(data, sparse.csr_array((6000, 6000)), 1.0, 1.0), 1e-6)


def test_zero_right_hand_side_gives_zero():
    data = random_moments()
    problem = GraphObjective.of(
        Moments(data.second, np.zeros_like(data.first), data.complete),
        graph("path").laplacian,
        0.6,
        0.06,
    )
    for method in SOLVERS:
        solution = solve(problem, graph("path"), method, 1e-6, 100)
        assert solution.converged
        assert not solution.theta.any()


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "edgeless"])
@pytest.mark.parametrize(("lam", "rho"), [*PENALTIES, (6e3, 6e-3)])
def test_large_graphs_stay_at_the_nodes_and_get_the_same_answer(name, lam, rho, monkeypatch):
    monkeypatch.setattr("graphratio.solvers.bases.LARGEST_SPECTRUM", 0)
    monkeypatch.setattr("graphratio.solvers.preconditioners.aggregation.COARSEST", 2)
    problem = objective(name, lam, rho)
    solution = solve_pcg(problem, basis_of(graph(name)), 1e-10, 500)
    truth = dense_solution(problem)
    assert np.linalg.norm(solution.theta - truth) <= 1e-6 * np.linalg.norm(truth)


def test_single_precision_at_the_nodes_survives_a_strong_penalty(monkeypatch):
    """Without care the Laplacian's rounding, times the penalty, would drown the data."""
    lam, rho = 6e4, 6e-3
    problem = objective("complete", lam, rho)
    small = Moments(
        DenseSecond(problem.moments.second.dense().astype(np.float32)),
        problem.moments.first.astype(np.float32),
        problem.moments.complete,
    )
    monkeypatch.setattr("graphratio.solvers.bases.LARGEST_SPECTRUM", 0)
    monkeypatch.setattr("graphratio.solvers.preconditioners.aggregation.COARSEST", 2)
    single = GraphObjective.of(small, problem.laplacian, lam, rho)
    path = solve_path(single, basis_of(graph("complete"), np.float32), 1e-4, 100)
    truth = dense_solution(problem)
    assert np.linalg.norm(path.theta[:, 0] - truth) <= 1e-3 * np.linalg.norm(truth)


@pytest.mark.parametrize(("largest_spectrum", "expected"), [(800, "mixed"), (0, "multigrid")])
def test_very_different_nodes_make_auto_switch(largest_spectrum, expected, monkeypatch):
    """Every node lives in directions of its own, so their mean is no guide to any of them."""
    monkeypatch.setattr("graphratio.solvers.bases.LARGEST_SPECTRUM", largest_spectrum)
    rng = np.random.default_rng(0)
    n_nodes, m = 30, 24
    second = np.zeros((n_nodes, m, m))
    for v in range(n_nodes):
        directions = rng.normal(size=(m, 3)) * [10.0, 1.0, 0.1]
        second[v] = directions @ directions.T
    data = Moments(DenseSecond(second), rng.normal(size=(n_nodes, m)), np.ones(n_nodes, dtype=bool))
    ring = Graph.from_edges([(v, (v + 1) % n_nodes) for v in range(n_nodes)])
    problem = GraphObjective.of(data, ring.laplacian, 0.3, 3e-4)
    basis = basis_of(ring)
    auto = solve_path(problem, basis, 1e-8, 2000)
    alone = solve_path(problem, basis, 1e-8, 2000, "kronecker")
    assert auto.progress.preconditioner == expected
    assert auto.progress.n_iter[0] < alone.progress.n_iter[0]
    truth = dense_solution(problem)
    assert np.linalg.norm(auto.theta[:, 0] - truth) <= 1e-5 * np.linalg.norm(truth)


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (3, 4)], []])
def test_many_first_moments_at_once(edges):
    """Every right-hand side as if it were solved alone, by the dense system."""
    rng = np.random.default_rng(0)
    nodes = Graph.from_edges(edges, nodes=range(6)) if edges else Graph.empty(6)
    root = rng.normal(size=(6, 4, 4))
    moments = Moments(
        DenseSecond(root @ root.transpose(0, 2, 1)), np.zeros((6, 4)), np.ones(6, dtype=bool)
    )
    problem = GraphObjective.of(moments, nodes.laplacian, 1.8, 0.36)
    first = rng.normal(size=(6, 7, 4))
    basis = basis_of(nodes) if edges else None
    found = solve_many(problem, basis, first, 1e-10, 500)
    rhs = first.transpose(0, 2, 1).reshape(24, 7)
    expected = np.linalg.solve(system_matrix(problem), rhs).reshape(6, 4, 7).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def closed_form(problem: GraphObjective, candidate: int = 0) -> np.ndarray:
    """Every node by itself, written down."""
    gram = np.eye(problem.shape[2]) if problem.gram is None else problem.gram
    blocks = problem.moments.second.dense() + problem.rho[candidate] * gram
    return np.linalg.solve(blocks, problem.moments.first[:, :, None])[:, :, 0]


@pytest.mark.parametrize("name", ["path", "weighted", "isolated both ends", "edgeless"])
@pytest.mark.parametrize("method", SOLVERS)
def test_without_a_graph_penalty_every_node_has_its_closed_form(name, method):
    problem = objective(name, 0.0, 0.3)
    solution = solve(problem, graph(name), method, 1e-12, 200_000)
    assert_allclose(solution.theta, closed_form(problem), rtol=1e-9, atol=1e-11)
    assert solution.converged
    if method == "auto":
        assert solution.method == "per-node closed form"
        reason = "the graph has no edges" if name == "edgeless" else "the graph penalty is 0"
        assert solution.reason == reason


def test_the_closed_form_of_the_plain_dictionary_has_its_gram_matrix():
    root = np.random.default_rng(1).normal(size=(4, 4))
    plain = GraphObjective.of(
        random_moments(), graph("path").laplacian, 0.0, 0.3, root @ root.T + np.eye(4)
    )
    for method in ("auto", "direct"):
        found = solve(plain, graph("path"), method, 1e-12, 100).theta
        assert_allclose(found, closed_form(plain), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("preconditioner", PRECONDITIONERS)
@pytest.mark.parametrize("largest_spectrum", [800, 0], ids=["modes", "nodes"])
@pytest.mark.parametrize("name", ["star", "disconnected", "isolated first"])
def test_uncoupled_candidates_of_a_batch(name, largest_spectrum, preconditioner, monkeypatch):
    """Beside coupled ones, in any order, and with nothing else."""
    monkeypatch.setattr("graphratio.solvers.bases.LARGEST_SPECTRUM", largest_spectrum)
    lam = np.array([0.0, 0.6, 0.0, 60.0])
    rho = np.array([0.3, 0.06, 1e-3, 0.6])
    problem = objective(name, lam, rho)
    basis = basis_of(graph(name))
    path = solve_path(problem, basis, 1e-11, 500, preconditioner)
    for c in (0, 2):
        assert_allclose(path.theta[:, c], closed_form(problem, c), rtol=1e-9, atol=1e-11)
        assert path.progress.n_iter[c] == 0
    for c in (1, 3):
        truth = dense_solution(problem, c)
        assert np.linalg.norm(path.theta[:, c] - truth) <= 1e-7 * np.linalg.norm(truth)
    assert_allclose(path.progress.residual, problem.residual(path.theta), rtol=1e-3, atol=1e-14)
    alone = solve_path(problem.restrict(lam == 0), basis, 1e-11, 500, preconditioner)
    assert_allclose(alone.theta, path.theta[:, lam == 0], rtol=1e-12)
    single = solve_pcg(problem.restrict(np.array([2])), basis, 1e-11, 500, preconditioner)
    assert single.converged
    assert_allclose(single.theta, closed_form(problem, 2), rtol=1e-9, atol=1e-11)


def test_uncoupled_candidates_in_single_precision():
    problem = objective("path", np.array([0.0, 0.6]), np.array([0.3, 0.06]))
    small = Moments(
        DenseSecond(problem.moments.second.dense().astype(np.float32)),
        problem.moments.first.astype(np.float32),
        problem.moments.complete,
    )
    single = GraphObjective.of(small, problem.laplacian, problem.lam, problem.rho)
    path = solve_path(single, basis_of(graph("path"), np.float32), 1e-5, 100)
    assert path.theta.dtype == np.float32
    assert_allclose(path.theta[:, 0], closed_form(problem), rtol=1e-4, atol=1e-5)


def test_many_first_moments_without_a_graph_penalty():
    problem = objective("path", 0.0, 0.3)
    first = np.random.default_rng(0).normal(size=(6, 7, 4))
    blocks = problem.moments.second.dense() + 0.3 * np.eye(4)
    expected = np.linalg.solve(blocks, first.transpose(0, 2, 1)).transpose(0, 2, 1)
    for basis in (basis_of(graph("path")), None):
        assert_allclose(solve_many(problem, basis, first, 1e-10, 500), expected, rtol=1e-10)


def test_a_small_graph_penalty_tends_to_none():
    """From a penalty to none there is no jump."""
    problem = objective("weighted", np.array([1e-9, 0.0]), 0.3)
    path = solve_path(problem, basis_of(graph("weighted")), 1e-12, 500)
    assert_allclose(path.theta[:, 0], path.theta[:, 1], atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nodes_with_few_rows_are_solved_in_their_rows(dtype):
    """Also a node without rows, one without a target, and a very small ridge."""
    rng = np.random.default_rng(2)
    sizes = np.array([[3, 4], [0, 0], [5, 0], [2, 2], [6, 1]])
    psi = rng.normal(size=(sizes.sum(), 12)).astype(dtype)
    rho = np.array([1e-6, 1e-2, 3.0])
    few, dense = (
        solve_nodes(
            GraphObjective.of(
                form(psi, sizes, 0.1, 1.0), Graph.empty(5).laplacian, np.zeros(3), rho
            )
        )
        for form in (factored_moments, lambda *of: dense_moments(of[0].astype("f8"), *of[1:]))
    )
    assert few.dtype == dtype
    for candidate, ridge in enumerate(rho):
        scale = np.abs(dense[:, candidate]).max()
        # Single precision moments have errors of their own, which a small ridge magnifies.
        error = 1e-9 if dtype == np.float64 else 1e-6 / min(ridge, 1.0)
        assert_allclose(few[:, candidate], dense[:, candidate], atol=min(error, 0.5) * scale)
