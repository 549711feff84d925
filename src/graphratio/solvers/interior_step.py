"""One step of the interior-point method of KLIEP, for all problems at once.

Symbols as in `interior_point`: Y, omega, b, gam, theta, z, mu, f, u, tau.

Smooth kernels make Y close to a matrix of low rank r, Y = F V' with orthonormal V (C, r). The
many solves of a selection may use this factor in the matrix of the Newton system,

    gam I + diag(z/theta) + V F' diag(u/f) F V',

and invert it by the Woodbury identity through an r x r system. Ratios, gradients and residuals
use Y itself, so the solution is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray

# A factor leaves out directions in which Y is below this share of its largest. The error of the
# Newton matrix is the square of it, small against z/theta at the accuracy of a selection.
_RANK_TOLERANCE = 1e-4

# Share of the way to the boundary that a step may go.
_TO_BOUNDARY = 0.995


@dataclass
class State:
    """Scaled problems that have not converged; the first axis of every array counts them."""

    rows: FloatArray  # Y (k, T, C)
    omega: FloatArray  # (k, T)
    mean: FloatArray  # b (k, C)
    present: FloatArray  # (k, C), 0 for centres that are padding
    ridge: FloatArray  # gam (k,)
    theta: FloatArray
    z: FloatArray
    u: FloatArray
    mu: FloatArray
    centring: FloatArray
    basis: FloatArray | None = None  # V (k, C, r)
    reduced: FloatArray | None = None  # F (k, T, r), of the scaled rows

    def keep(self, which: BoolArray) -> State:
        """Keep some of the problems."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{k: v[which] for k, v in values.items() if v is not None})


def low_rank_basis(rows: FloatArray) -> FloatArray | None:
    """Orthonormal V (k, C, r) with rows V V' close to rows (k, T, C), or None if it costs more."""
    values, vectors = np.linalg.eigh(rows.transpose(0, 2, 1) @ rows)
    rank = max(1, int((values > _RANK_TOLERANCE**2 * values[:, -1:]).sum(axis=1).max()))
    return vectors[:, :, -rank:] if 2 * rank <= rows.shape[2] else None


def ratios_of(rows: FloatArray, theta: FloatArray) -> FloatArray:
    """Ratios at the rows of every problem, shape (n_problems, n_rows)."""
    return np.asarray((rows @ theta[:, :, np.newaxis])[:, :, 0])


def slope_of(rows: FloatArray, omega: FloatArray, ratios: FloatArray) -> FloatArray:
    """Y' (omega / f), shape (k, C); rows of weight zero may have ratios of zero."""
    pull = np.divide(omega, ratios, out=np.zeros_like(omega), where=omega > 0)
    return np.asarray((pull[:, np.newaxis, :] @ rows)[:, 0])


def start(
    rows: FloatArray, omega: FloatArray, mean: FloatArray, present: FloatArray, ridge: FloatArray
) -> State:
    """The constant coefficients that satisfy the normalisation, and positive multipliers."""
    total = mean.sum(axis=1, keepdims=True)
    theta = np.where(present > 0, 1.0 / total, 1.0)
    likelihood = (1.0 / (1.0 + ridge))[:, np.newaxis]
    ratios = np.maximum(ratios_of(rows, theta * present), np.finfo(float).tiny)
    u = np.where(omega > 0, likelihood * omega / ratios, 0.0)
    mu = likelihood[:, 0] * (1 - ridge * np.einsum("kc,kc->k", theta * present, theta))
    centring = np.full(len(theta), 0.1)
    return State(rows, omega, mean, present, ridge, theta, present.copy(), u, mu, centring)


def step(state: State) -> State:
    """One Newton step towards smaller tau."""
    rows, mean, present, theta = state.rows, state.mean, state.present, state.theta
    likelihood = 1.0 / (1.0 + state.ridge)
    ridge = (state.ridge * likelihood)[:, np.newaxis] * present
    goal = likelihood[:, np.newaxis] * state.omega
    ratios = np.maximum(ratios_of(rows, theta * present), np.finfo(float).tiny)
    n_centres = present.sum(axis=1)
    gap = np.einsum("kc,kc->k", theta, state.z) / n_centres
    tau = (state.centring * gap)[:, np.newaxis]

    # Eliminating z and u: (gam I + diag(z/theta) + Y' diag(u/f) Y) d + b dmu = right, b'd = -r.
    diagonal = ridge + np.where(present > 0, state.z / theta, 1.0)
    right = tau / theta - ridge * theta - state.mu[:, np.newaxis] * mean
    right += ((goal / ratios)[:, np.newaxis, :] @ rows)[:, 0]
    both = _solve(state, diagonal, state.u / ratios, np.stack([right * present, mean], axis=2))
    gained = np.einsum("kc,kct->kt", mean, both)
    miss = np.einsum("kc,kc->k", mean, theta * present) - 1
    d_mu = (gained[:, 0] + miss) / gained[:, 1]
    d_theta = (both[:, :, 0] - both[:, :, 1] * d_mu[:, np.newaxis]) * present
    d_z = (tau - state.z * d_theta) / theta * present - state.z
    d_u = (goal - state.u * ratios_of(rows, d_theta)) / ratios - state.u

    primal = _step_length(theta, d_theta)
    dual = np.minimum(_step_length(state.z, d_z), _step_length(state.u, d_u))
    shortest = np.minimum(primal, dual)
    return replace(
        state,
        theta=theta + primal[:, np.newaxis] * d_theta,
        z=state.z + dual[:, np.newaxis] * d_z,
        u=state.u + dual[:, np.newaxis] * d_u,
        mu=state.mu + dual * d_mu,
        # Long steps mean that the path is followed well: aim further down it.
        centring=np.clip((1 - shortest) ** 2, 0.02, 0.8),
    )


def _solve(
    state: State, diagonal: FloatArray, weights: FloatArray, right: FloatArray
) -> FloatArray:
    """(diag + Y' diag(weights) Y)^{-1} right, shape (k, C, 2)."""
    if state.basis is None or state.reduced is None:
        rows = state.rows
        system = rows.transpose(0, 2, 1) @ (rows * weights[:, :, np.newaxis])
        each = np.arange(system.shape[1])
        system[:, each, each] += diagonal
        return np.asarray(np.linalg.solve(system, right))
    # With S = F' diag(weights) F and G = V' diag^{-1} V:
    # diag^{-1} right - diag^{-1} V (I + S G)^{-1} S V' diag^{-1} right.
    basis, reduced = state.basis, state.reduced
    scaled = right / diagonal[:, :, np.newaxis]
    over = basis / diagonal[:, :, np.newaxis]
    inner = reduced.transpose(0, 2, 1) @ (reduced * weights[:, :, np.newaxis])
    system = inner @ (basis.transpose(0, 2, 1) @ over)
    each = np.arange(system.shape[1])
    system[:, each, each] += 1.0
    coefficients = np.linalg.solve(system, inner @ (basis.transpose(0, 2, 1) @ scaled))
    return np.asarray(scaled - over @ coefficients)


def _step_length(values: FloatArray, change: FloatArray) -> FloatArray:
    """Longest step up to 1 that keeps positive values positive, shape (k,)."""
    rate = np.divide(-change, values, out=np.zeros_like(values), where=values > 0)
    return np.asarray(np.minimum(1.0, _TO_BOUNDARY / np.maximum(rate.max(axis=1), 1e-300)))
