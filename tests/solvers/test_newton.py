"""Newton's method for log-ratios against a generic solver, and the derivatives that it uses."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import graphratio as gr
from graphratio.exceptions import ConvergenceWarning
from graphratio.moments.log_ratio import Curvature, LogRatioObjective, row_losses, with_intercepts
from graphratio.moments.losses import LOSSES
from graphratio.moments.node_rows import LOG_RATIO_LOSSES, NodeRows
from graphratio.solvers.bases import basis_of
from graphratio.solvers.newton import solve_log_ratios, solve_newton

N_NODES, M = 7, 4
GRAPHS = {
    "path": gr.Graph.from_edges([(i, i + 1) for i in range(N_NODES - 1)]),
    "star": gr.Graph.from_edges([(0, i) for i in range(1, N_NODES)]),
    "edgeless": gr.Graph.empty(N_NODES),
    "disconnected": gr.Graph.from_edges([(1, 2), (2, 3), (4, 5)], nodes=range(N_NODES)),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
every_loss = pytest.mark.parametrize("name", LOG_RATIO_LOSSES)


def make(name, graph, alpha=0.1, seed=0, lam=(0.3, 2.0), rho=(0.02, 0.2), lacking=True):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 9, size=(N_NODES, 2))
    if lacking:
        sizes[3, 1] = 0
    psi = rng.normal(size=(sizes.sum(), M))
    rows = NodeRows.of(psi, sizes, alpha, LOG_RATIO_LOSSES[name])
    lam = np.array(lam) if graph.n_edges else np.zeros(len(lam))
    return LogRatioObjective(rows, graph.laplacian, lam, np.array(rho)), psi, sizes


def direct(objective):
    """Minimise one candidate with a generic solver."""
    shape = objective.shape
    return minimize(
        lambda z: float(objective.value(z.reshape(shape))[0]),
        np.zeros(np.prod(shape)),
        jac=lambda z: objective.gradient(z.reshape(shape)).ravel(),
        hessp=lambda z, d: objective.hessian_product(z.reshape(shape), d.reshape(shape)).ravel(),
        method="trust-ncg",
        options={"gtol": 1e-10},
    )


@every_loss
@every_graph
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_the_minimum_is_that_of_a_generic_solver(name, graph, alpha):
    objective, _, _ = make(name, graph, alpha)
    basis = basis_of(graph) if graph.n_edges else None
    path = solve_newton(objective, basis, 1e-9, 1000)
    assert (path.residual <= 1e-9).all()
    assert_allclose(objective.residual(path.theta), path.residual, atol=1e-10)
    for c, value in enumerate(objective.value(path.theta)):
        assert value == pytest.approx(direct(objective.restrict(np.array([c]))).fun, rel=1e-8)


@every_loss
def test_candidates_with_and_without_coupling_together(name):
    graph = GRAPHS["path"]
    objective, _, _ = make(name, graph, lam=(0.0, 0.5), rho=(0.1, 0.1))
    together = solve_newton(objective, basis_of(graph), 1e-9, 1000).theta
    for c in range(2):
        one = objective.restrict(np.array([c]))
        assert_allclose(
            together[:, [c]], solve_newton(one, basis_of(graph), 1e-9, 1000).theta, atol=1e-7
        )


@every_loss
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_derivatives_by_finite_differences(name, alpha):
    objective, _, _ = make(name, GRAPHS["star"], alpha)
    rng = np.random.default_rng(1)
    theta, direction = rng.normal(size=(2, *objective.shape))
    step = 1e-5
    high, low = theta + step * direction, theta - step * direction
    slope = np.einsum("vcm,vcm->c", objective.gradient(theta), direction)
    assert_allclose(slope, (objective.value(high) - objective.value(low)) / (2 * step), rtol=1e-7)
    bent = objective.hessian_product(theta, direction)
    numeric = (objective.gradient(high) - objective.gradient(low)) / (2 * step)
    assert_allclose(bent, numeric, atol=1e-7)


@every_loss
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_convexity(name, alpha):
    objective, _, _ = make(name, GRAPHS["path"], alpha, rho=(1e-9, 1e-9))
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 10.0):
        theta, direction = scale * rng.normal(size=(2, *objective.shape))
        bent = objective.hessian_product(theta, direction)
        assert (np.einsum("vcm,vcm->c", bent, direction) >= -1e-9).all()
        middle = objective.value(0.5 * (theta + direction))
        ends = 0.5 * (objective.value(theta) + objective.value(direction))
        assert (middle <= ends + 1e-9).all()


@every_loss
def test_blocks_of_the_curvature_are_the_hessian(name):
    objective, _, _ = make(name, GRAPHS["edgeless"], rho=(1e-300, 1e-300))
    rng = np.random.default_rng(3)
    theta = np.repeat(rng.normal(size=(N_NODES, 1, objective.shape[2])), 2, axis=1)
    direction = rng.normal(size=objective.shape)
    second = Curvature(objective.rows, objective.local(objective.rows.values(theta)))
    product = direction @ second.dense()
    assert_allclose(product, objective.hessian_product(theta, direction), atol=1e-12)
    assert_allclose(second.mean(), second.dense().mean(axis=0), atol=1e-12)
    assert_allclose(second.take(np.array([2, 0])).blocks, second.dense()[[2, 0]])


@every_loss
def test_losses_of_rows_are_those_of_ratios(name):
    """Held-out losses of log-ratios agree with the definition in `losses`."""
    alpha = 0.1
    objective, psi, sizes = make(name, GRAPHS["path"], alpha)
    path = solve_newton(objective, basis_of(GRAPHS["path"]), 1e-8, 1000)
    whole = with_intercepts(objective.rows, path.theta, objective.laplacian, objective.lam)
    loss = LOG_RATIO_LOSSES[name]
    found = row_losses(NodeRows.of(psi, sizes, alpha, loss, constant=True), whole)
    node = np.repeat(np.arange(N_NODES), sizes.sum(axis=1))
    h = np.einsum("im,icm->ic", psi, whole[node, :, :-1]) + whole[node, :, -1]
    for c in range(2):
        if name == "kl":
            ratios = np.exp(np.minimum(h[:, c], -np.log(alpha)))
        else:
            ratios = 1 / (alpha + (1 - alpha) * np.exp(-h[:, c]))
        expected = LOSSES[name].of_nodes(ratios, sizes, alpha)
        assert_allclose(found[:, c], expected, rtol=1e-10)


def test_kl_is_normalised_exactly_and_lacking_nodes_take_the_intercept_of_neighbours():
    graph = GRAPHS["path"]
    objective, psi, sizes = make("kl", graph)
    path = solve_newton(objective, basis_of(graph), 1e-8, 1000)
    whole = with_intercepts(objective.rows, path.theta, graph.laplacian, objective.lam)
    values = NodeRows.of(psi, sizes, 0.1, LOG_RATIO_LOSSES["kl"], constant=True).values(whole)
    for part, g in zip(objective.rows.parts, values, strict=True):
        assert_allclose((np.exp(g) * part.mixture).sum(axis=2), 1.0, rtol=1e-12)
    assert_allclose(whole[3, :, -1], whole[[2, 4], :, -1].mean(axis=0), rtol=1e-6)


@every_loss
def test_single_precision_is_close(name):
    graph = GRAPHS["path"]
    objective, psi, sizes = make(name, graph)
    rows = NodeRows.of(psi.astype(np.float32), sizes, 0.1, LOG_RATIO_LOSSES[name])
    single = LogRatioObjective(rows, graph.laplacian, objective.lam, objective.rho)
    rough = solve_newton(single, basis_of(graph, np.float32), 1e-4, 1000).theta
    exact = solve_newton(objective, basis_of(graph), 1e-9, 1000).theta
    assert rough.dtype == np.float32
    assert_allclose(rough, exact, atol=2e-3 * np.abs(exact).max())


@every_loss
def test_far_apart_samples_need_a_line_search(name):
    """Nearly separated samples with a weak ridge: a full Newton step overshoots."""
    sizes = np.full((N_NODES, 2), 6)
    psi = np.repeat(np.tile([[-1.0], [1.0]], (N_NODES, 1)), 6, axis=0)
    psi = psi + 0.1 * np.random.default_rng(0).normal(size=psi.shape)
    rows = NodeRows.of(psi, sizes, 0.0, LOG_RATIO_LOSSES[name])
    graph = GRAPHS["path"]
    objective = LogRatioObjective(rows, graph.laplacian, np.array([0.1]), np.array([1e-6]))
    path = solve_newton(objective, basis_of(graph), 1e-8, 1000)
    assert path.residual[0] <= 1e-8
    values = np.array(path.history)[:, 0]
    assert path.n_steps < 40
    assert values[-1] < 1e-8 <= values[-2]


def test_an_unreached_tolerance_is_reported():
    objective, _, _ = make("kl", GRAPHS["path"], lam=(0.3,), rho=(0.02,))
    with pytest.warns(ConvergenceWarning, match="newton stopped after .* above the tolerance"):
        found = solve_log_ratios(objective, basis_of(GRAPHS["path"]), 1e-9, 1)
    assert not found.converged
    assert found.residual == pytest.approx(objective.residual(found.theta[:, np.newaxis])[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve_log_ratios(objective, basis_of(GRAPHS["path"]), 1e-9, 1000).converged
