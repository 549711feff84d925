"""Preconditioned conjugate gradients for many pairs of penalties at once.

All candidates (lam, gam) share the data, so their iterates are kept as one array of shape
(n_nodes, n_candidates, m): the products become a few large matrix products. Candidates that
have converged drop out.

Symbols as in `mean_field`; X, R, Z, P are the usual iterates: solution, residual,
preconditioned residual, direction.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import Basis, SpectralBasis
from graphratio.solvers.preconditioners.block_jacobi import HalfSum
from graphratio.solvers.preconditioners.block_multigrid import BlockMultigrid
from graphratio.solvers.preconditioners.corrections import with_own_means
from graphratio.solvers.preconditioners.mean_field import mean_field
from graphratio.solvers.solution import Solution
from graphratio.solvers.stacks import Linear, Selection, pick, row_chunks

PRECONDITIONERS = ("auto", "kronecker", "mixed", "multigrid")

# Converged candidates are dropped once no more than this share of the batch is still going.
KEEP_SHARE = 0.8

# lam * N * mean degree below which the blocks of the nodes have to enter from the start.
WEAK_COUPLING = 0.05

# Iterations after which the mean field gives way to a preconditioner with the blocks of the
# nodes.
PATIENCE = 30

# Rounding separates the recursive residual from the true one; a restart from the current
# iterate repairs that, and more than a few mean that the tolerance is out of reach.
MAX_RESTARTS = 3


@dataclass(frozen=True, eq=False)
class PathSolution:
    """Solutions of several candidates.

    Attributes
    ----------
    theta : ndarray of shape (n_nodes, n_candidates, m)
    n_iter : ndarray of shape (n_candidates,)
    residual : ndarray of shape (n_candidates,)
        Relative residuals, computed from scratch in double precision.
    history : list of ndarray of shape (n_candidates,)
        Relative residuals after every iteration; those of candidates that had converged stay.
    preconditioner : str
        The one used last.
    """

    theta: FloatArray
    n_iter: IntArray
    residual: FloatArray
    history: list[FloatArray]
    preconditioner: str


def solve_pcg(
    objective: GraphObjective,
    basis: Basis,
    tol: float,
    max_iter: int,
    preconditioner: str = "auto",
) -> Solution:
    """Solve a single candidate.

    Parameters
    ----------
    objective : GraphObjective
        In Nystrom form, with one candidate.
    basis : Basis
        Coordinates over the graph, from `bases.basis_of`.
    tol : float
        Bound on the relative residual.
    max_iter : int
    preconditioner : {"auto", "kronecker", "mixed", "multigrid"}
        The mean field; its average with the inverses at every node; multigrid on the whole
        system; or first the one and then, by the size of the graph, one of the others.
    """
    path = solve_path(objective, basis, tol, max_iter, preconditioner)
    residual = float(path.residual[0])
    history = [float(step[0]) for step in path.history]
    method = f"pcg ({path.preconditioner} preconditioner)"
    n_iter = int(path.n_iter[0])
    solution = Solution(path.theta[:, 0], residual <= tol, n_iter, residual, history, method)
    return solution.warn_unless_converged(
        tol, "Raise max_iter, raise node_penalty or graph_penalty, or accept a larger tol"
    )


def solve_path(
    objective: GraphObjective,
    basis: Basis,
    tol: float,
    max_iter: int,
    preconditioner: str = "auto",
) -> PathSolution:
    """Solve all candidates of an objective at once, in the precision of its moments.

    The basis must be in the same precision. The iteration starts from the preconditioner's own
    answer, so `n_iter` counts what comes after it.
    """
    check_choice(preconditioner, "preconditioner", PRECONDITIONERS)
    dtype = objective.moments.second.dtype
    n_candidates = len(objective.lam)
    one = basis.from_nodes(objective.moments.first.astype(dtype, copy=False))
    rhs = np.repeat(one[:, np.newaxis], n_candidates, axis=1)
    n_iter = np.zeros(n_candidates, dtype=np.intp)
    residual = np.full(n_candidates, np.inf)
    history: list[FloatArray] = []
    x: FloatArray = np.zeros_like(rhs)
    for name, patience in _plan(preconditioner, objective, basis, max_iter):
        going = np.flatnonzero(residual > tol)
        part = replace(objective, lam=objective.lam[going], gam=objective.gam[going])
        inverse = _build(name, part, basis)
        if np.isinf(residual).all():
            # The mean-field solution is close already, and the preconditioner gives it at once.
            x = inverse.apply(rhs)
        current = pick(x, going)
        left = min(patience, max_iter - int(n_iter.max(initial=0)))
        counts, trace, relative = _iterate(
            _System(part, basis), inverse, pick(rhs, going), current, tol, left
        )
        x[:, going] = current
        n_iter[going] += counts
        for step in trace:
            history.append(residual.copy())
            history[-1][going] = step
        # In single precision a residual from scratch says no more than the recursive one.
        exact = dtype == np.float64
        residual[going] = part.residual(basis.to_nodes(current)) if exact else relative
        if (residual <= tol).all() or n_iter.max() >= max_iter:
            break
    return PathSolution(basis.to_nodes(x), n_iter, residual, history, name)


def solve_many(
    objective: GraphObjective, basis: Basis | None, first: FloatArray, tol: float, max_iter: int
) -> FloatArray:
    """Solve one pair of penalties for many first moments, shape (n_nodes, n_sets, m).

    Parameters
    ----------
    objective : GraphObjective
        With one candidate; its own first moment is not used.
    basis : Basis or None
        None for a graph without edges, where every node has its closed form.
    first : ndarray of shape (n_nodes, n_sets, m)
    tol : float
        Bound on the relative residual of each solution.
    max_iter : int
    """
    if basis is None:
        n_nodes, _, m = objective.shape
        ridge = objective.lam[0] * objective.gam[0] * n_nodes
        blocks = objective.moments.second.dense() + ridge * np.eye(m)
        return np.linalg.solve(blocks, first.transpose(0, 2, 1)).transpose(0, 2, 1)
    n_sets = first.shape[1]
    repeated = replace(
        objective, lam=np.repeat(objective.lam, n_sets), gam=np.repeat(objective.gam, n_sets)
    )
    rhs = basis.from_nodes(first)
    inverse = _build("kronecker", repeated, basis)
    x = inverse.apply(rhs)
    _iterate(_System(repeated, basis), inverse, rhs, x, tol, max_iter)
    return basis.to_nodes(x)


def _plan(
    name: str, objective: GraphObjective, basis: Basis, max_iter: int
) -> list[tuple[str, int]]:
    """Which preconditioners to use in turn, and for how many iterations at the most.

    Replacing every A_v by their mean is right where the graph penalty is what matters. Where it
    is small against the data, or the nodes are of very different kinds, their own blocks have
    to enter; the first is known beforehand, the second shows in slow progress.
    """
    if name == "auto":
        mean_degree = objective.laplacian.diagonal().mean()
        coupling = objective.lam.min() * mean_degree * objective.shape[0]
        second = "mixed" if isinstance(basis, SpectralBasis) else "multigrid"
        patient = [(second, max_iter)] * MAX_RESTARTS
        return patient if coupling < WEAK_COUPLING else [("kronecker", PATIENCE), *patient]
    return [(name, max_iter)] * MAX_RESTARTS


def _build(name: str, objective: GraphObjective, basis: Basis) -> Linear:
    if name == "multigrid":
        return BlockMultigrid.of(objective, basis, basis.hierarchy)
    field = with_own_means(mean_field(objective, basis), objective, basis)
    return field if name == "kronecker" else HalfSum.of(objective, basis, field)


class _System:
    """Hessian of some of the candidates in the coordinates of the basis, times N."""

    def __init__(self, objective: GraphObjective, basis: Basis) -> None:
        self.second = objective.moments.second
        self.basis = basis
        self.penalty: Linear = basis.penalty(objective.shape[0] * objective.lam, objective.gam)

    def restrict(self, candidates: Selection) -> _System:
        smaller = copy(self)
        smaller.penalty = self.penalty.restrict(candidates)
        return smaller

    def apply(self, x: FloatArray) -> FloatArray:
        product = self.basis.from_nodes(self.second.apply(self.basis.to_nodes(x)))
        product += self.penalty.apply(x)
        return product


def _iterate(
    system: _System,
    inverse: Linear,
    rhs: FloatArray,
    x: FloatArray,
    tol: float,
    max_iter: int,
) -> tuple[IntArray, list[FloatArray], FloatArray]:
    """Conjugate gradients on all candidates; `x` is updated in place.

    Returns the iterations of every candidate, and their relative residuals after each and in
    the end.
    """
    n_candidates = x.shape[1]
    norm = np.sqrt(_dots(rhs, rhs))
    norm[norm == 0] = 1.0
    r: FloatArray = rhs - system.apply(x)
    active = np.arange(n_candidates)
    relative = np.sqrt(_dots(r, r)) / norm
    counts = np.zeros(n_candidates, dtype=np.intp)
    history: list[FloatArray] = []
    # Steps of the active candidates, added to x when the set of them changes.
    p: FloatArray = np.zeros_like(r)
    part: FloatArray = p
    rho: FloatArray = np.zeros(n_candidates, dtype=x.dtype)
    for step in range(max_iter):
        going = relative[active] > tol
        if not going.any():
            break
        if step == 0 or going.mean() <= KEEP_SHARE:
            x[:, active] += part
            active = active[going]
            system, inverse = system.restrict(going), inverse.restrict(going)
            r, p, rho = pick(r, going), pick(p, going), rho[going]
            part = np.zeros_like(r)
        counts[active[relative[active] > tol]] += 1
        z = inverse.apply(r)
        previous, rho = rho, _dots(r, z)
        _turn(p, z, _ratio(rho, previous))
        q = system.apply(p)
        length = _ratio(rho, _dots(p, q))
        relative[active] = np.sqrt(_advance(part, r, p, q, length)) / norm[active]
        history.append(relative.copy())
    x[:, active] += part
    return counts, history, relative


def _turn(p: FloatArray, z: FloatArray, share: FloatArray) -> None:
    """The next direction, in place: z plus a share of the last one."""
    for rows in row_chunks(p):
        p[rows] *= _broadcast(share)
        p[rows] += z[rows]


def _advance(
    x: FloatArray, r: FloatArray, p: FloatArray, q: FloatArray, length: FloatArray
) -> FloatArray:
    """Go along a direction p with image q, in place, and return the squares of the residuals.

    `q` is lost.
    """
    squares: FloatArray = np.zeros_like(length)
    for rows in row_chunks(p):
        x[rows] += _broadcast(length) * p[rows]
        q[rows] *= _broadcast(length)
        r[rows] -= q[rows]
        squares += _dots(r[rows], r[rows])
    return squares


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products of every candidate, shape (n_candidates,)."""
    flat = np.einsum("vk,vk->k", a.reshape(len(a), -1), b.reshape(len(b), -1))
    return np.asarray(flat.reshape(a.shape[1:]).sum(axis=1))


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Top / bottom, and zero where the direction has vanished."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _broadcast(per_candidate: FloatArray) -> FloatArray:
    return per_candidate[:, np.newaxis]
