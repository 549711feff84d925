"""Newton's method for log-ratios, for many pairs of penalties at once.

A Newton step solves a quadratic problem of the kind of `moments.objective`: its second moments are
those of the features with the weights of the current estimate. Conjugate gradients solve it
roughly, with the mean field of the re-weighted moments, averaged over candidates, as
preconditioner. A line search along the step moves log-ratios of rows only, so that another length
costs no product with the features. The loss is convex, so a step is accepted where the slope
along it has not become steep in the other direction and the value is not larger.

The norm of the gradient, relative to that at zero, certifies the solution. At zero it is the norm
of the right-hand side of the quadratic problem, so `tol` means the same for all losses.

Symbols as in `moments.log_ratio`, and
x           coefficients in the coordinates of a basis, see `bases`
d           Newton step
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import cast

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.moments.log_ratio import Curvature, LogRatioObjective, data_value
from graphratio.moments.node_moments import Moments
from graphratio.moments.node_rows import Local, NodeRows
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import SecondMoment
from graphratio.solvers.bases import Basis, Diagonal
from graphratio.solvers.conjugate_gradients import (
    REMEDY,
    Chosen,
    Linear,
    Progress,
    StackIterates,
    iterate,
    pick,
)
from graphratio.solvers.path import preconditioner_of
from graphratio.solvers.preconditioners.block_jacobi import NodeInverses
from graphratio.solvers.solution import Solution

# Conjugate gradients reduce the gradient by this factor in early steps.
ROUGH = 0.1

# Iterations with the mean field before the blocks of the nodes enter the preconditioner.
NEWTON_PATIENCE = 20

# A step is too long if the slope at its end exceeds this share of that at its beginning.
STEEP = 0.5
MOST_LENGTHS = 30

# Largest number of Newton steps.
MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class NewtonPath:
    """Coefficients (n_nodes, n_candidates, m), relative gradient norms, and work."""

    theta: FloatArray
    residual: FloatArray
    n_steps: int
    n_products: int
    history: list[FloatArray]


class _AtNodes:
    """The nodes as coordinates, for candidates without a graph penalty."""

    def to_nodes(self, x: FloatArray) -> FloatArray:
        return x

    def from_nodes(self, x: FloatArray) -> FloatArray:
        return x

    def penalty(self, lam: FloatArray, rho: FloatArray) -> Diagonal:
        return Diagonal(rho[np.newaxis, :, np.newaxis])


class _Hessian:
    """The Hessian at the current estimate, in the coordinates of a basis."""

    def __init__(
        self,
        rows: NodeRows,
        local: Sequence[Local],
        basis: Basis | _AtNodes,
        penalty: Linear,
        blocks: FloatArray | None,
    ) -> None:
        self.rows, self.local, self.basis = rows, local, basis
        self.penalty, self.blocks = penalty, blocks

    def restrict(self, candidates: Chosen) -> _Hessian:
        smaller = copy(self)
        smaller.penalty = self.penalty.restrict(candidates)
        smaller.local = [each.restrict(candidates) for each in self.local]
        return smaller

    def apply(self, x: FloatArray) -> FloatArray:
        at_nodes = self.basis.to_nodes(x)
        # Blocks where all candidates have the same weights.
        data = self._bent(at_nodes) if self.blocks is None else at_nodes @ self.blocks
        product = self.basis.from_nodes(data)
        product += self.penalty.apply(x)
        return product

    def _bent(self, at_nodes: FloatArray) -> FloatArray:
        along = self.rows.values(at_nodes)
        bent = [each.bend(values) for each, values in zip(self.local, along, strict=True)]
        return self.rows.sums(bent, at_nodes.shape[1])


class _State:
    """Estimate of the unfinished candidates, the log-ratios of all rows, and the losses there."""

    def __init__(self, objective: LogRatioObjective, basis: Basis | _AtNodes) -> None:
        self.objective, self.basis = objective, basis
        n_nodes, n_candidates, m = objective.shape
        dtype = objective.rows.dtype
        self.penalty: Linear = basis.penalty(
            objective.lam.astype(dtype), objective.rho.astype(dtype)
        )
        self.x: FloatArray = np.zeros((n_nodes, n_candidates, m), dtype=dtype)
        self.penalised: FloatArray = np.zeros_like(self.x)
        self.values: list[FloatArray] = [
            np.zeros((len(part.nodes), 1, part.psi.shape[1]), dtype=dtype)
            for part in objective.rows.parts
        ]
        self.local = objective.local(self.values)
        self.at_zero = True

    def value(self) -> FloatArray:
        n_candidates = self.x.shape[1]
        return data_value(self.local, n_candidates) + 0.5 * _dots(self.x, self.penalised)

    def gradient(self) -> FloatArray:
        rows, n_candidates = self.objective.rows, self.x.shape[1]
        slopes = [each.slope for each in self.local]
        data = rows.sums(slopes, 1 if self.at_zero else n_candidates)
        result = self.basis.from_nodes(data) + self.penalised
        return np.ascontiguousarray(result)

    def restrict(self, going: BoolArray) -> None:
        self.objective = self.objective.restrict(going)
        self.penalty = self.penalty.restrict(going)
        self.x, self.penalised = pick(self.x, going), pick(self.penalised, going)
        if not self.at_zero:
            self.values = [np.ascontiguousarray(each[:, going]) for each in self.values]
            self.local = [each.restrict(going) for each in self.local]

    def move(self, step: FloatArray, slope: FloatArray) -> None:
        """Go along a step as far as the line search allows; `slope` is that at the beginning."""
        rows, before = self.objective.rows, self.value()
        along = rows.values(self.basis.to_nodes(step))
        bent = self.penalty.apply(step)
        across, own = _dots(step, self.penalised), _dots(step, bent)
        start, length = self.values, np.ones(len(slope))
        low, high = np.zeros_like(length), np.full_like(length, np.inf)
        slope_low = slope.copy()
        slack = 100 * float(np.finfo(rows.dtype).eps) * (1 + np.abs(before))
        for number in range(MOST_LENGTHS):
            t = length.astype(rows.dtype)[:, np.newaxis]
            self.values = [g + t * d for g, d in zip(start, along, strict=True)]
            self.local = self.objective.local(self.values)
            now = across + length * own
            for each, d in zip(self.local, along, strict=True):
                now += np.einsum("kcr,kcr->c", each.slope, d)
            penalty = length * across + 0.5 * length**2 * own
            value = data_value(self.local, len(length)) + penalty
            value += 0.5 * _dots(self.x, self.penalised)
            long = (now > -STEEP * slope) | ~(value <= before + slack)
            if not long.any() or number == MOST_LENGTHS - 1:
                break
            high = np.where(long, length, high)
            # Where the slope would vanish if it were linear, well inside the bracket.
            guess = np.where(now > 0, -slope_low / np.where(now > 0, now - slope_low, 1.0), 0.5)
            inside = low + np.clip(guess, 0.1, 0.7) * (high - low)
            length = np.where(long, inside, length)
        self.at_zero = False
        far = length.astype(rows.dtype)[:, np.newaxis]
        self.x += far * step
        self.penalised += far * bent


def solve_newton(
    objective: LogRatioObjective,
    basis: Basis | None,
    tol: float,
    max_iter: int,
    *,
    max_steps: int = MOST_STEPS,
) -> NewtonPath:
    """Solve all candidates to a relative gradient norm of `tol`, in the precision of the rows.

    `max_iter` bounds the iterations of conjugate gradients of all steps together. Candidates
    without a graph penalty need no basis.
    """
    alone = objective.lam == 0
    if basis is None or alone.all():
        return _newton(objective, _AtNodes(), tol, max_iter, max_steps)
    if not alone.any():
        return _newton(objective, basis, tol, max_iter, max_steps)
    theta = np.empty(objective.shape, dtype=objective.rows.dtype)
    residual = np.empty(len(alone))
    paths = []
    for chosen, where in ((alone, None), (~alone, basis)):
        path = solve_newton(objective.restrict(chosen), where, tol, max_iter, max_steps=max_steps)
        theta[:, chosen], residual[chosen] = path.theta, path.residual
        paths.append(path)
    steps, products = (max(getattr(p, n) for p in paths) for n in ("n_steps", "n_products"))
    return NewtonPath(theta, residual, steps, products, [])


def _newton(
    objective: LogRatioObjective,
    basis: Basis | _AtNodes,
    tol: float,
    max_iter: int,
    max_steps: int,
) -> NewtonPath:
    n_nodes, n_candidates, m = objective.shape
    state = _State(objective, basis)
    theta: FloatArray = np.zeros((n_nodes, n_candidates, m), dtype=objective.rows.dtype)
    residual, active = np.zeros(n_candidates), np.arange(n_candidates)
    gradient = state.gradient()
    norm = objective.first_gradient_norm
    history: list[FloatArray] = []
    products, heavy = 0, False
    for n_steps in range(max_steps + 1):
        residual[active] = np.sqrt(_dots(gradient, gradient)) / norm
        history.append(residual.copy())
        going = residual[active] > tol
        if products >= max_iter or n_steps == max_steps:
            going[:] = False
        if not going.all():
            theta[:, active[~going]] = basis.to_nodes(pick(state.x, ~going))
            if not going.any():
                break
            active, gradient = active[going], pick(gradient, going)
            state.restrict(going)
        worst = float(residual[active].max())
        # Few digits while the weights still change, as many as needed at the end.
        goal = max(min(ROUGH, worst), 0.5 * tol / worst)
        second = Curvature(objective.rows, state.local)
        inverse = _preconditioner(state, second, heavy=heavy)
        shared = second.dense() if state.at_zero else None
        system = _Hessian(objective.rows, state.local, basis, state.penalty, shared)
        rhs = -gradient
        iterates = StackIterates(system, inverse, rhs, inverse.apply(rhs))
        progress = Progress.start(len(active))
        iterate(iterates, progress, goal, min(NEWTON_PATIENCE if not heavy else max_iter, max_iter))
        products += int(progress.n_iter.max(initial=0)) + 1
        heavy = heavy or bool((progress.residual > goal).any())
        step = iterates.solution()
        state.move(step, _dots(gradient, step))
        gradient = state.gradient()
    return NewtonPath(theta, residual, n_steps, products, history)


def _preconditioner(state: _State, second: Curvature, *, heavy: bool) -> Linear:
    """The mean field of the re-weighted moments; if `heavy`, with the blocks of the nodes."""
    objective, basis = state.objective, state.basis
    if isinstance(basis, _AtNodes):
        ridge = np.tile(objective.rho, (objective.shape[0], 1))
        return NodeInverses.of(second.dense(), ridge, dtype=second.dtype)
    # It has all methods of second moments that preconditioners call.
    blocks = cast(SecondMoment, second)
    moments = Moments(blocks, np.zeros(second.shape, dtype=second.dtype), objective.rows.complete)
    quadratic = GraphObjective(moments, objective.laplacian, objective.lam, objective.rho)
    return preconditioner_of(quadratic, basis, heavy=heavy)


def solve_log_ratios(
    objective: LogRatioObjective, basis: Basis | None, tol: float, max_iter: int
) -> Solution:
    """Solve a single candidate; warns if the gradient norm is above `tol`."""
    path = solve_newton(objective, basis, tol, max_iter)
    # From scratch, at the nodes.
    residual = float(objective.residual(path.theta)[0])
    solution = Solution(
        theta=path.theta[:, 0],
        converged=residual <= tol,
        n_iter=path.n_products,
        residual=residual,
        history=[float(step[0]) for step in path.history],
        method="newton",
    )
    return solution.warn_unless_converged(tol, REMEDY)


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products of every candidate, shape (n_candidates,), in double precision."""
    return np.asarray(np.einsum("vcm,vcm->vc", a, b).sum(axis=0, dtype=np.float64))
