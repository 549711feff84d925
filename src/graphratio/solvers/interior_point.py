"""KLIEP: the largest likelihood of the target under a normalised, non-negative ratio.

For every problem, one node with one bandwidth, ridge and set of training rows:

    maximise    sum_j omega_j log(theta' y_j) - gam/2 ||theta||^2
    subject to  b' theta = 1,  theta >= 0

Symbols
-------
y_j         features of target row j (C,), non-negative; Y has these rows (T, C)
omega       weights of the target rows, summing to one; zero for held-out rows and padding
b           mean of the features over the reference sample: b' theta is the mean ratio there
gam         ridge
z, mu       multipliers of theta >= 0 and of the normalisation
f, u        ratios Y theta at the target rows, and omega / f

Optimality (KKT), with the multiplier of the normalisation in closed form because
theta' (stationarity) gives mu = 1 - gam ||theta||^2:

    z = mu b + gam theta - Y' (omega / f) >= 0,   theta >= 0,   theta_k z_k = 0,   b' theta = 1.

Method. A primal-dual interior-point method, Newton's method on

    gam theta + mu b - z - Y' u = 0,  b' theta = 1,  theta_k z_k = tau,  f_j u_j = omega_j

with tau driven to zero, all problems at once: one C x C system per problem and iteration.
With u as a variable of its own the equations are bilinear, so a poor start does no harm. Before
that, theta is scaled so that max b = 1, the rows of Y so that their largest entry is 1 (which
adds constants to the logarithms) and the objective by 1 + gam (scaled).
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.solvers.interior_step import ratios_of, slope_of, start, step
from graphratio.solvers.solution import Solution

# A smaller kernel between reference and centres counts as zero: then no ratio has mean one over
# the reference.
SMALLEST_MEAN = 1e-100

# Iterations stop at this share of the tolerance, so that undoing the scaling cannot exceed it.
_AIM = 0.5


def kliep_residuals(
    theta: FloatArray, rows: FloatArray, omega: FloatArray, mean: FloatArray, ridge: FloatArray
) -> FloatArray:
    """KKT residual of several problems at given coefficients, shape (k,).

    The largest of |b' theta - 1|, of (-z_k)_+ / (s max b) and of the duality gap sum_k theta_k
    |z_k| / s, with s = 1 + gam ||theta||^2, the size of the terms that cancel in z. Arguments as in
    `solve_kliep`.
    """
    slope = slope_of(rows, omega, ratios_of(rows, theta))
    return _residuals(theta, slope, mean, ridge)


def solve_kliep(
    rows: FloatArray,
    omega: FloatArray,
    mean: FloatArray,
    present: BoolArray,
    ridge: FloatArray,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    basis: FloatArray | None = None,
) -> tuple[Solution, FloatArray]:
    """Solve several problems at once, to a KKT residual of `tol` (see `kliep_residuals`).

    Target features `rows` (k, T, C), their weights `omega` (k, T), reference means `mean` (k, C),
    at least `SMALLEST_MEAN` for some centre, and `ridge` (k,). Rows without a positive feature are
    left out; centres that are not `present` (k, C) have the coefficient zero. A `basis` from
    `low_rank_basis` makes iterations faster, for tolerances of about 1e-3. Returns the solution,
    whose `theta` (k, C) gives a mean ratio of exactly one, and the residual of every problem, (k,).
    """
    largest = rows.max(axis=2)
    omega = np.where(largest > 0, omega, 0.0)
    omega = omega / np.maximum(omega.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    scaled_rows = rows / np.where(largest > 0, largest, 1.0)[:, :, np.newaxis]
    unit = 1.0 / mean.max(axis=1)  # theta = unit * (scaled theta)
    state = start(
        scaled_rows, omega, mean * unit[:, np.newaxis], present.astype(float), ridge * unit**2
    )
    if basis is not None:
        state.basis, state.reduced = basis, scaled_rows @ basis
    best = state.theta.copy()
    residuals = np.full(len(best), np.inf)
    active: IntArray = np.arange(len(best))
    history: list[float] = []
    for _ in range(max_iter):
        state = step(state)
        slope = slope_of(state.rows, state.omega, ratios_of(state.rows, state.theta))
        reached = _residuals(state.theta * state.present, slope, state.mean, state.ridge)
        better = reached < residuals[active]
        best[active[better]] = state.theta[better]
        residuals[active[better]] = reached[better]
        history.append(float(residuals.max()))
        unfinished = residuals[active] > _AIM * tol
        if not unfinished.any():
            break
        if not unfinished.all():
            state, active = state.keep(unfinished), active[unfinished]
    theta = best * present * unit[:, np.newaxis]
    theta /= np.einsum("kc,kc->k", mean, theta)[:, np.newaxis]
    residuals = kliep_residuals(theta, rows, omega, mean, ridge)
    residual = float(residuals.max())
    solution = Solution(theta, residual <= tol, len(history), residual, history, "interior point")
    return solution, residuals


def _residuals(
    theta: FloatArray, slope: FloatArray, mean: FloatArray, ridge: FloatArray
) -> FloatArray:
    shrinkage = ridge * np.einsum("kc,kc->k", theta, theta)
    size = (1 + shrinkage)[:, np.newaxis]
    z = (1 - shrinkage)[:, np.newaxis] * mean + ridge[:, np.newaxis] * theta - slope
    normalisation = np.abs(np.einsum("kc,kc->k", mean, theta) - 1)
    sign = np.maximum(-z, 0) / (size * mean.max(axis=1, keepdims=True))
    complementarity = np.einsum("kc,kc->k", theta, np.abs(z)) / size[:, 0]
    return np.asarray(np.maximum(np.maximum(normalisation, complementarity), sign.max(axis=1)))
