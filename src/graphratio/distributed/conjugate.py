"""Conjugate gradients on partitions, for many pairs of penalties in lockstep.

The loop knows an engine and nothing of where its partitions are. An iteration takes two steps:
`direction`, before which the neighbours' rows of the preconditioned residual arrive, and
`advance`. What travels are these rows, and per candidate a few numbers and its residual in the
low modes of the graph. The preconditioner is the sum of an approximate inverse within every
partition (`chebyshev`) and of the coarse space (`coarse`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.distributed.coarse import CoarseInverse
from graphratio.distributed.protocol import Engine, ordered_sum
from graphratio.distributed.recovery import Fleet

# Converged candidates are dropped once no more than this share of the batch is still going.
KEEP_SHARE = 0.95

# Rounding separates the recursive residual from the true one; a restart repairs that.
MAX_RESTARTS = 3

# N * lam * mean degree below which the nodes' own blocks are needed from the start, and
# iterations after which they are brought in.
WEAK_COUPLING = 0.05
PATIENCE = 40


@dataclass(frozen=True, eq=False)
class Problem:
    """What the driver knows of the system that the partitions hold.

    Attributes
    ----------
    lam, gam : ndarray of shape (n_candidates,)
    n_nodes : int
    modes : ndarray of shape (k,)
        Lowest eigenvalues of the Laplacian.
    mean_degree : float
    exact : bool
        Copy the coefficients in the end and compute the residual from scratch.
    """

    lam: FloatArray
    gam: FloatArray
    n_nodes: int
    modes: FloatArray
    mean_degree: float
    exact: bool = True


@dataclass(eq=False)
class Progress:
    """Where a solve stands, beyond what the partitions hold.

    Attributes
    ----------
    n_iter : ndarray of shape (n_candidates,)
    relative : ndarray of shape (n_candidates,)
        Relative residuals.
    history : list of ndarray
        The same after every iteration.
    preconditioner : str
        The one used last.
    """

    n_iter: IntArray
    relative: FloatArray
    history: list[FloatArray] = field(default_factory=list)
    preconditioner: str = ""


def solve_conjugate(
    fleet: Fleet,
    problem: Problem,
    tol: float,
    max_iter: int,
    *,
    every: int | None,
    start: list[FloatArray] | None = None,
) -> Progress:
    """Solve for all candidates; the partitions then hold the coefficients.

    Parameters
    ----------
    fleet : Fleet
        Its partitions have their moments.
    problem : Problem
    tol : float
        Bound on the relative residuals.
    max_iter : int
    every : int, optional
        Iterations between copies of the coefficients; None for no copies.
    start : list of ndarray of shape (n_own, n_candidates, m), optional
        Default zero.
    """
    n = len(problem.lam)
    progress = Progress(np.zeros(n, dtype=np.intp), np.full(n, np.inf))
    fleet.begin(start)
    norm, coarse = 1.0, None
    for name, patience in _plan(problem, max_iter):
        if coarse is None or name != progress.preconditioner:
            norm, coarse = set_problem(fleet, problem, "pcg", name)
            progress.preconditioner = name
        run = _Run(fleet, coarse, progress, norm, tol, every, problem.exact)
        limit = min(max_iter, int(progress.n_iter.max()) + patience)
        fleet.attempt(partial(run, limit))
        if (progress.relative <= tol).all() or progress.n_iter.max() >= max_iter:
            break
    return progress


def set_problem(
    fleet: Fleet, problem: Problem, algorithm: str, preconditioner: str
) -> tuple[float, CoarseInverse]:
    """Let the partitions set up their rows; returns the norm of b and the coarse space."""
    parts = fleet.setup(
        "set_problem",
        lam=problem.lam,
        gam=problem.gam,
        algorithm=algorithm,
        preconditioner=preconditioner,
    )
    square, blocks = ordered_sum(parts)
    scaled = problem.n_nodes * problem.lam
    return float(np.sqrt(square)) or 1.0, CoarseInverse.of(
        blocks, problem.modes, scaled, problem.gam
    )


def _plan(problem: Problem, max_iter: int) -> list[tuple[str, int]]:
    """Which preconditioners to use in turn, and for how many iterations at the most.

    Replacing every A_v by their mean is right where the graph penalty is what matters;
    otherwise the nodes' own blocks have to enter. Without edges they are the whole system.
    """
    if problem.mean_degree == 0:
        return [("blocks", max_iter)] * MAX_RESTARTS
    coupling = problem.lam.min() * problem.mean_degree * problem.n_nodes
    patient = [("mixed", max_iter)] * MAX_RESTARTS
    return patient if coupling < WEAK_COUPLING else [("mean field", PATIENCE), *patient]


class _Run:
    """Conjugate gradients from the last copy of the coefficients on."""

    def __init__(
        self,
        fleet: Fleet,
        coarse: CoarseInverse,
        progress: Progress,
        norm: float,
        tol: float,
        every: int | None,
        exact: bool,
    ) -> None:
        self.fleet, self.engine = fleet, fleet.engine
        self.coarse, self.progress, self.norm = coarse, progress, norm
        self.tol, self.every, self.exact = tol, every, exact
        self.first = progress.n_iter.copy()

    def __call__(self, limit: int) -> None:
        """Iterate until all candidates have converged or one has made `limit` iterations."""
        if self.fleet.saved is None:
            # Nothing is left of iterations that a loss has cut short, so they do not count.
            self.progress.n_iter[:] = self.first
            del self.progress.history[self.first.max() :]
        place(self.engine, "conjugate", self.fleet.saved)
        self._iterate(limit)
        if not self.exact:
            return
        self._copy()
        self.engine.step("conjugate.refresh")
        squares, _, _ = self.engine.step("conjugate.restart")
        self.progress.relative = np.sqrt(squares) / self.norm

    def _iterate(self, limit: int) -> None:
        progress, coarse, engine = self.progress, self.coarse, self.engine
        squares, dots, low = engine.step("conjugate.restart")
        active = np.arange(len(progress.n_iter))
        previous = np.zeros(len(active))
        since_copy = 0
        while True:
            progress.relative[active] = np.sqrt(squares) / self.norm
            going = progress.relative[active] > self.tol
            if not going.any() or progress.n_iter.max() >= limit:
                return
            keep = None
            if going.mean() <= KEEP_SHARE:
                keep, active, previous = going, active[going], previous[going]
                coarse, dots, low = coarse.restrict(going), dots[going], low[:, going]
                going = going[going]
            progress.n_iter[active[going]] += 1
            addition = coarse.apply(low)
            rho = dots + np.einsum("kcm,kcm->c", low, addition)
            ratio = _ratio(rho, previous)
            curvature = engine.step("conjugate.direction", coarse=addition, ratio=ratio, keep=keep)
            squares, dots, low = engine.step("conjugate.advance", length=_ratio(rho, curvature))
            previous = rho
            progress.history.append(progress.relative.copy())
            since_copy += 1
            if self.every is not None and since_copy == self.every:
                self._copy()
                since_copy = 0

    def _copy(self) -> None:
        parts = self.engine.gather("conjugate.coefficients")
        self.fleet.save(parts, int(self.progress.n_iter.max()))


def place(engine: Engine, part: str, theta: list[FloatArray] | None) -> None:
    """Give every partition its coefficients, zero for None."""
    rows: list[dict[str, Any]] = [
        {"theta": None if theta is None else theta[p]} for p in range(engine.n_partitions)
    ]
    engine.step(f"{part}.place", rows)


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Top / bottom, and zero where the direction has vanished."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
