"""The interior-point solver of KLIEP: optimality, an independent solver, hard inputs."""

import numpy as np
import pytest
from scipy import optimize

from graphratio.solvers.interior_point import kliep_residuals, solve_kliep
from graphratio.solvers.interior_step import low_rank_basis


def problem(seed, n_ref=30, n_tgt=25, n_centres=8, bandwidth=1.0, shift=0.5):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n_ref), rng.normal(shift, 1, size=n_tgt)
    centres = y[:n_centres]
    phi_ref = np.exp(-((x[:, None] - centres) ** 2) / (2 * bandwidth**2))
    phi_tgt = np.exp(-((y[:, None] - centres) ** 2) / (2 * bandwidth**2))
    return phi_tgt, phi_ref.mean(axis=0)


def solve_one(rows, mean, ridge, omega=None, **options):
    weights = np.ones(len(rows)) if omega is None else omega
    return solve_kliep(
        rows[None],
        weights[None],
        mean[None],
        np.ones((1, len(mean)), dtype=bool),
        np.array([ridge]),
        **options,
    )[0]


def objective(theta, rows, ridge):
    return np.log(rows @ theta).mean() - ridge / 2 * theta @ theta


# Said by SLSQP of older SciPy, of points it tries in between.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("ridge", [0.0, 1e-5, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 2.0])
def test_agrees_with_a_generic_solver(ridge, bandwidth):
    rows, mean = problem(1, bandwidth=bandwidth)
    solution = solve_one(rows, mean, ridge)
    start = np.full(len(mean), 1 / mean.sum())
    generic = optimize.minimize(
        lambda theta: -objective(theta, rows, ridge),
        start,
        jac=lambda theta: -(rows / (rows @ theta)[:, None]).mean(axis=0) + ridge * theta,
        method="SLSQP",
        bounds=[(1e-12, None)] * len(mean),
        constraints={"type": "eq", "fun": lambda t: mean @ t - 1, "jac": lambda t: mean},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    theta = solution.theta[0]
    assert objective(theta, rows, ridge) == pytest.approx(-generic.fun, abs=1e-6)
    assert objective(theta, rows, ridge) >= -generic.fun - 1e-7
    np.testing.assert_allclose(rows @ theta, rows @ generic.x, atol=2e-3)


@pytest.mark.parametrize("ridge", [0.0, 1e-5, 1e-3, 0.1, 10.0, 1e4])
def test_optimality_conditions_written_out(ridge):
    rows, mean = problem(2, n_tgt=60, n_centres=40, bandwidth=0.7)
    solution = solve_one(rows, mean, ridge)
    theta = solution.theta[0]
    assert solution.converged
    assert solution.residual < 1e-7
    assert solution.history[-1] < solution.history[0]
    assert mean @ theta == pytest.approx(1, abs=1e-12)
    assert theta.min() >= 0
    gradient = (rows / (rows @ theta)[:, None]).mean(axis=0) - ridge * theta
    multiplier = 1 - ridge * theta @ theta
    size = 1 + ridge * theta @ theta
    assert (gradient - multiplier * mean).max() < 1e-6 * size
    assert np.abs(theta * (gradient - multiplier * mean)).max() < 1e-6 * size


def test_residual_notices_what_is_wrong():
    rows, mean = problem(3)
    theta = solve_one(rows, mean, 0.1).theta

    def residual(candidate):
        omega = np.full((1, len(rows)), 1 / len(rows))
        return kliep_residuals(candidate, rows[None], omega, mean[None], np.array([0.1]))[0]

    assert residual(theta) < 1e-7
    assert residual(2 * theta) > 0.1
    uniform = np.full_like(theta, 1 / mean.sum())
    assert residual(uniform) > 1e-3


def test_problems_of_a_batch_do_not_influence_each_other():
    first, second = problem(4, bandwidth=0.4), problem(5, bandwidth=2.0)
    ridges = np.array([1e-4, 1.0])
    both, residuals = solve_kliep(
        np.stack([first[0], second[0]]),
        np.ones((2, 25)),
        np.stack([first[1], second[1]]),
        np.ones((2, 8), dtype=bool),
        ridges,
    )
    for each, (rows, mean) in enumerate((first, second)):
        alone = solve_one(rows, mean, ridges[each])
        np.testing.assert_allclose(both.theta[each], alone.theta[0], rtol=1e-9, atol=1e-12)
    assert both.residual == residuals.max()


def test_padding_changes_nothing():
    rows, mean = problem(6)
    padded_rows = np.zeros((1, 30, 11))
    padded_rows[0, :25, :8] = rows
    omega = np.zeros((1, 30))
    omega[0, :25] = 1
    present = np.arange(11)[None] < 8
    padded_mean = np.append(mean, np.zeros(3))[None]
    padded, _ = solve_kliep(padded_rows, omega, padded_mean, present, np.array([0.01]))
    np.testing.assert_allclose(padded.theta[0, :8], solve_one(rows, mean, 0.01).theta[0], rtol=1e-8)
    assert (padded.theta[0, 8:] == 0).all()


def test_rows_of_weight_zero_are_held_out():
    rows, mean = problem(7)
    omega = (np.arange(25) % 5 != 0).astype(float)
    held = solve_one(rows, mean, 0.01, omega)
    removed = solve_one(rows[omega > 0], mean, 0.01)
    np.testing.assert_allclose(held.theta, removed.theta, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-60, 1e-8, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-5, 10.0])
def test_reference_far_away_still_converges(scale, ridge):
    rows, mean = problem(8)
    solution = solve_one(rows, mean * scale, ridge)
    assert solution.converged
    assert np.isfinite(solution.theta).all()


def test_duplicate_centres_and_rows_converge():
    rows, mean = problem(9)
    rows = np.repeat(np.concatenate([rows, rows], axis=1), 2, axis=0)
    mean = np.concatenate([mean, mean])
    for ridge in (0.0, 1e-5, 0.1):
        assert solve_one(rows, mean, ridge).converged


def test_stopping_early_is_reported():
    rows, mean = problem(10)
    solution = solve_one(rows, mean, 1e-5, max_iter=2)
    assert not solution.converged
    assert solution.n_iter == 2
    assert solution.residual > 1e-8


@pytest.mark.parametrize("ridge", [1e-5, 1e-3, 0.1, 10.0])
def test_low_rank_newton_matrix_leads_to_the_same_solution(ridge):
    rows, mean = problem(11, n_tgt=80, n_centres=50)
    basis = low_rank_basis(rows[None])
    assert basis is not None
    assert basis.shape[2] < 20
    assert low_rank_basis(np.eye(3)[None]) is None
    exact = solve_one(rows, mean, ridge)
    fast = solve_one(rows, mean, ridge, basis=basis, tol=1e-3)
    assert fast.converged
    difference = objective(exact.theta[0], rows, ridge) - objective(fast.theta[0], rows, ridge)
    assert 0 <= difference + 1e-9 < 2e-3
