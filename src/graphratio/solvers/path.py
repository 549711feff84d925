"""Solve for one pair of penalties, for many pairs, or for many first moments.

`solve` chooses between the solvers. Conjugate gradients solve all candidates (lam, rho) at
once, since they share the data, see `conjugate_gradients`. A solution from moments in single
precision is refined: the residual comes from the observations, and its correction, solved with the
same moments, gains about as many digits as single precision has. Symbols as in `bases`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.moments.memory import StreamedData
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import Basis, SpectralBasis, basis_of, corrected_mean_field
from graphratio.solvers.cbcgd import solve_cbcgd
from graphratio.solvers.conjugate_gradients import (
    REMEDY,
    Chosen,
    Linear,
    Progress,
    StackIterates,
    iterate,
    pick,
    stages,
)
from graphratio.solvers.direct import solve_direct, solve_nodes, solve_per_node
from graphratio.solvers.preconditioners.block_jacobi import (
    HalfSum,
    NodeInverses,
    RowInverses,
    node_inverses,
)
from graphratio.solvers.preconditioners.block_multigrid import BlockMultigrid
from graphratio.solvers.solution import Solution, without_judgement

SOLVERS = ("auto", "direct", "pcg", "cbcgd")

# Up to this many unknowns a dense factorisation takes a few milliseconds.
SMALL_SYSTEM = 600

PRECONDITIONERS = ("auto", "kronecker", "mixed", "multigrid")

# Iterations with the mean field before a preconditioner with the blocks of the nodes takes over.
PATIENCE = 30

# Corrections of a solution with moments in single precision.
MAX_CORRECTIONS = 3


@dataclass(frozen=True, eq=False)
class PathSolution:
    """Solutions of several candidates, (n_nodes, n_candidates, m), and how they were found."""

    theta: FloatArray
    progress: Progress


def solve(
    objective: GraphObjective, graph: Graph, method: str, tol: float, max_iter: int
) -> Solution:
    """Solve with the given method; "auto" chooses one and says why in `Solution.reason`."""
    n_nodes, _, m = objective.shape
    coupled = graph.n_edges > 0 and bool(objective.lam[0])
    if method == "direct":
        return solve_direct(objective, tol)
    if method == "cbcgd":
        return solve_cbcgd(objective, tol, max_iter)
    if method == "pcg" and (coupled or not graph.n_edges):
        return solve_pcg(objective, basis_of(graph), tol, max_iter)
    if not coupled:
        reason = "the graph penalty is 0" if graph.n_edges else "the graph has no edges"
        chosen = solve_per_node(objective, tol)
    elif n_nodes * m <= SMALL_SYSTEM:
        chosen, reason = solve_direct(objective, tol), f"only {n_nodes * m} unknowns"
    else:
        chosen = solve_pcg(objective, basis_of(graph), tol, max_iter)
        reason = f"{n_nodes * m} unknowns"
    return replace(chosen, reason=reason)


def solve_streamed(
    objective: GraphObjective,
    data: StreamedData,
    graph: Graph,
    method: str,
    tol: float,
    max_iter: int,
) -> tuple[Solution, FloatArray]:
    """Solve a single candidate; the residual comes from the observations in `data`.

    Also returns psi' theta at every observation, shape (n_observations,).
    """
    norm = float(np.linalg.norm(objective.rhs)) or 1.0
    total = Solution(np.zeros_like(objective.rhs), False, 0, 1.0, [], "")
    first = objective.moments.first
    goal = tol
    for _ in range(1 + MAX_CORRECTIONS):
        problem = replace(objective, moments=replace(objective.moments, first=first))
        # Only the residual from the observations counts, below.
        with without_judgement():
            found = solve(problem, graph, method, goal, max_iter)
        total = replace(
            found,
            theta=total.theta + found.theta,
            n_iter=total.n_iter + found.n_iter,
            history=total.history + [total.residual * step for step in found.history],
        )
        product, fitted = data.apply(total.theta)
        gradient = product - objective.rhs
        gradient += objective.penalty_gradient(total.theta[:, np.newaxis])[:, 0]
        residual = float(np.linalg.norm(gradient)) / norm
        total = replace(total, residual=residual, converged=residual <= tol)
        if total.converged or total.n_iter >= max_iter:
            break
        first = -gradient
        # `tol` is relative to the first right-hand side; half of it for safety.
        goal = min(0.5, 0.5 * tol / residual)
    return total.warn_unless_converged(tol, REMEDY), fitted


def solve_pcg(
    objective: GraphObjective, basis: Basis, tol: float, max_iter: int, preconditioner: str = "auto"
) -> Solution:
    """Solve a single candidate in Nystrom form by conjugate gradients; `tol` bounds the residual.

    Preconditioners: "kronecker", the mean field; "mixed", its average with the inverses at the
    nodes; "multigrid", on the whole system; "auto", the mean field first, then one of the others.
    """
    path = solve_path(objective, basis, tol, max_iter, preconditioner)
    return path.progress.solution(path.theta[:, 0], tol)


def solve_path(
    objective: GraphObjective, basis: Basis, tol: float, max_iter: int, preconditioner: str = "auto"
) -> PathSolution:
    """Solve all candidates of an objective at once, in the precision of its moments and the basis.

    The iteration starts from the solution of the preconditioner; `n_iter` counts the corrections.
    """
    check_choice(preconditioner, "preconditioner", PRECONDITIONERS)
    if not objective.lam.all():
        return _solve_uncoupled_apart(objective, basis, tol, max_iter, preconditioner)
    first = None
    if preconditioner == "auto":
        first = "kronecker"
        preconditioner = "mixed" if isinstance(basis, SpectralBasis) else "multigrid"
    mean_degree = objective.laplacian.diagonal().mean()
    coupling = float(objective.lam.min() * mean_degree)
    dtype = objective.moments.second.dtype
    n_candidates = len(objective.lam)
    one = basis.from_nodes(objective.moments.first.astype(dtype, copy=False))
    rhs = np.repeat(one[:, np.newaxis], n_candidates, axis=1)
    x: FloatArray = np.zeros_like(rhs)
    total = Progress.start(n_candidates)
    for name, limit in stages(
        total, tol, max_iter, preconditioner, first=first, coupling=coupling, patience=PATIENCE
    ):
        going = np.flatnonzero(total.residual > tol)
        part = objective.restrict(going)
        inverse = _build(name, part, basis)
        if np.isinf(total.residual).all():
            # The preconditioner gives the mean-field solution at once, which is close already.
            x = inverse.apply(rhs)
        system = _System(part, basis)
        iterates = StackIterates(system, inverse, pick(rhs, going), pick(x, going))
        progress = Progress.start(len(going))
        iterate(iterates, progress, tol, limit)
        current = iterates.solution()
        x[:, going] = current
        total.n_iter[going] += progress.n_iter
        for step in progress.history:
            total.history.append(total.residual.copy())
            total.history[-1][going] = step
        # In single precision a residual from scratch is no better than the recursive one.
        exact = dtype == np.float64
        total.residual[going] = (
            part.residual(basis.to_nodes(current)) if exact else progress.residual
        )
    return PathSolution(basis.to_nodes(x), total)


def _solve_uncoupled_apart(
    objective: GraphObjective, basis: Basis, tol: float, max_iter: int, preconditioner: str
) -> PathSolution:
    """Solve the candidates without a graph penalty node by node, the others together."""
    alone = objective.lam == 0
    theta = np.empty(objective.shape, dtype=objective.moments.second.dtype)
    progress = Progress.start(len(alone))
    part = objective.restrict(alone)
    theta[:, alone] = solve_nodes(part)
    progress.residual[alone] = part.residual(theta[:, alone])
    if not alone.all():
        rest = objective.restrict(~alone)
        coupled = solve_path(rest, basis, tol, max_iter, preconditioner)
        theta[:, ~alone] = coupled.theta
        progress.n_iter[~alone] = coupled.progress.n_iter
        progress.residual[~alone] = coupled.progress.residual
    return PathSolution(theta, progress)


def solve_many(
    objective: GraphObjective, basis: Basis | None, first: FloatArray, tol: float, max_iter: int
) -> FloatArray:
    """Solve one pair of penalties for many first moments `first`, shape (n_nodes, n_sets, m).

    Without a basis or a graph penalty every node has a closed form.
    """
    if basis is None or not objective.lam[0]:
        blocks = objective.moments.second.dense() + objective.rho[0] * np.eye(objective.shape[2])
        return np.linalg.solve(blocks, first.transpose(0, 2, 1)).transpose(0, 2, 1)
    n_sets = first.shape[1]
    repeated = replace(
        objective, lam=np.repeat(objective.lam, n_sets), rho=np.repeat(objective.rho, n_sets)
    )
    rhs = basis.from_nodes(first)
    inverse = _build("kronecker", repeated, basis)
    iterates = StackIterates(_System(repeated, basis), inverse, rhs, inverse.apply(rhs))
    iterate(iterates, Progress.start(n_sets), tol, max_iter)
    return basis.to_nodes(iterates.solution())


def preconditioner_of(objective: GraphObjective, basis: Basis, *, heavy: bool) -> Linear:
    """The mean field; if `heavy`, with the blocks of the nodes."""
    if not heavy:
        return _build("kronecker", objective, basis)
    return _build("mixed" if isinstance(basis, SpectralBasis) else "multigrid", objective, basis)


def _build(name: str, objective: GraphObjective, basis: Basis) -> Linear:
    if name == "multigrid":
        return BlockMultigrid.of(objective, basis)
    field = corrected_mean_field(objective, basis)
    if name == "kronecker":
        return field
    return HalfSum(field, _InCoordinates(node_inverses(objective), basis))


@dataclass(frozen=True, eq=False)
class _InCoordinates:
    """Inverses at the nodes, in the coordinates of a basis."""

    nodes: NodeInverses | RowInverses
    basis: Basis

    def apply(self, x: FloatArray) -> FloatArray:
        """Solve every node by itself."""
        own = self.nodes.apply(self.basis.to_nodes(x).astype(np.float32, copy=False))
        return self.basis.from_nodes(own.astype(x.dtype, copy=False))

    def restrict(self, candidates: Chosen) -> _InCoordinates:
        """Keep some of the candidates."""
        return replace(self, nodes=self.nodes.restrict(candidates))


class _System:
    """The Hessian in the coordinates of the basis."""

    def __init__(self, objective: GraphObjective, basis: Basis) -> None:
        self.second = objective.moments.second
        self.basis = basis
        self.penalty: Linear = basis.penalty(objective.lam, objective.rho)

    def restrict(self, candidates: Chosen) -> _System:
        smaller = copy(self)
        smaller.penalty = self.penalty.restrict(candidates)
        return smaller

    def apply(self, x: FloatArray) -> FloatArray:
        product = self.basis.from_nodes(self.second.apply(self.basis.to_nodes(x)))
        product += self.penalty.apply(x)
        return product
