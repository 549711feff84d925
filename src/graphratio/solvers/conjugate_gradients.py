"""Preconditioned conjugate gradients on many candidates at once: the one loop, and its stages.

Candidates share the data, so they go through the loop together: products with all of their
iterates are a few large ones. The loop sees a number per candidate and nothing else. The
iterates are arrays in this process (`iterates`) or rows on partitions (`distributed.conjugate`).

Symbols
-------
X, R        solution and residual
Z           the preconditioner applied to R
P, Q        direction, and the system applied to it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.solvers.solution import Solution

# N * lam * mean degree below which the blocks of the nodes have to enter from the start.
WEAK_COUPLING = 0.05

# Rounding separates the recursive residual from the true one; a restart from the current
# iterate repairs that, and more than a few mean that the tolerance is out of reach.
MAX_RESTARTS = 3

REMEDY = "Raise max_iter, raise node_penalty or graph_penalty, or accept a larger tol"


class Iterates(Protocol):
    """X, R, Z, P and Q of all candidates that are still going.

    Attributes
    ----------
    norms : ndarray of shape (n_candidates,)
        Norms of the right-hand sides of all candidates, one for those that are zero.
    keep_share : float
        Converged candidates are dropped once no more than this share of the batch is going.
    """

    norms: FloatArray
    keep_share: float

    def restart(self) -> FloatArray:
        """Compute R from scratch for all candidates; returns R'R."""

    def keep(self, going: BoolArray) -> None:
        """Drop all other candidates."""

    def slope(self) -> FloatArray:
        """R'Z."""

    def turn(self, share: FloatArray) -> FloatArray:
        """Set P to Z plus a share of the last P; returns P'Q."""

    def advance(self, length: FloatArray) -> FloatArray:
        """Go this far along P; returns R'R."""


@dataclass(eq=False)
class Progress:
    """How far every candidate has come.

    Attributes
    ----------
    n_iter : ndarray of shape (n_candidates,)
    residual : ndarray of shape (n_candidates,)
        Relative residuals.
    history : list of ndarray of shape (n_candidates,)
        Relative residuals after every iteration; those of dropped candidates stay.
    preconditioner : str
        The one used last.
    """

    n_iter: IntArray
    residual: FloatArray
    history: list[FloatArray] = field(default_factory=list)
    preconditioner: str = ""

    @classmethod
    def start(cls, n_candidates: int) -> Progress:
        """Before the first iteration."""
        return cls(np.zeros(n_candidates, dtype=np.intp), np.full(n_candidates, np.inf))

    def solution(self, theta: FloatArray, tol: float, **details: Any) -> Solution:
        """The solution of the only candidate; warns if its residual is above the tolerance."""
        residual, history = float(self.residual[0]), [float(step[0]) for step in self.history]
        details["preconditioner"] = self.preconditioner
        n_iter = int(self.n_iter[0])
        solution = Solution(theta, residual <= tol, n_iter, residual, history, "pcg", **details)
        return solution.warn_unless_converged(tol, REMEDY)


def iterate(iterates: Iterates, progress: Progress, tol: float, max_iter: int) -> None:
    """Iterate until all candidates have converged, at most `max_iter` times.

    `progress` is kept up to date throughout, since partitions can be lost on the way.
    """
    active = np.arange(len(progress.n_iter))
    squares = iterates.restart()
    progress.residual[:] = np.sqrt(squares) / iterates.norms
    rho = np.zeros_like(squares)
    for step in range(max_iter):
        going = progress.residual[active] > tol
        if not going.any():
            return
        if not going.all() and (step == 0 or going.mean() <= iterates.keep_share):
            iterates.keep(going)
            active, rho, going = active[going], rho[going], going[going]
        progress.n_iter[active[going]] += 1
        previous, rho = rho, iterates.slope()
        curvature = iterates.turn(_ratio(rho, previous))
        squares = iterates.advance(_ratio(rho, curvature))
        progress.residual[active] = np.sqrt(squares) / iterates.norms[active]
        progress.history.append(progress.residual.copy())


def stages(
    progress: Progress,
    tol: float,
    max_iter: int,
    preconditioner: str,
    *,
    first: str | None = None,
    coupling: float = 0.0,
    patience: int = 0,
) -> Iterator[tuple[str, int]]:
    """Preconditioners to use in turn, each with the most iterations it may take.

    The mean field replaces every A_v by their mean. That is right where the graph penalty
    decides. Where it is small against the data, or the nodes are very different, their own
    blocks have to enter; the first is known beforehand, the second shows in slow progress.

    Parameters
    ----------
    progress : Progress
        Updated by the caller before the next stage, with residuals from scratch if it can.
    tol : float
    max_iter : int
        Of all stages together.
    preconditioner : str
        With the blocks of the nodes.
    first : str, optional
        The mean field, to be tried before unless the coupling is weak.
    coupling : float
        N * lam * mean degree, the smallest of all candidates.
    patience : int
        Iterations after which the first gives way.
    """
    plan = [(preconditioner, max_iter)] * MAX_RESTARTS
    if first is not None and coupling >= WEAK_COUPLING:
        plan.insert(0, (first, patience))
    for name, most in plan:
        progress.preconditioner = name
        yield name, min(most, max_iter - int(progress.n_iter.max(initial=0)))
        if (progress.residual <= tol).all() or progress.n_iter.max() >= max_iter:
            return


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Top / bottom, and zero where the direction has vanished."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
