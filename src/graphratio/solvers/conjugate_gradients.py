"""Preconditioned conjugate gradients on many candidates at once: the one loop, and its stages.

Candidates share the data, so they go through the loop together: a few large products serve them
all. The loop sees one number per candidate and nothing else. The iterates are stacks of shape
(n_nodes, n_candidates, m) in this process (`StackIterates`) or rows on partitions
(`distributed.conjugate`). Systems and preconditioners are `Linear` operators on stacks.

Symbols
-------
X, R        solution and residual
Z           the preconditioner applied to R
P, Q        direction, and the system applied to it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np

from graphratio._utils.jobs import in_parallel, n_threads
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.solvers.solution import Solution

Chosen = IntArray | BoolArray

# lam * mean degree below which the preconditioner uses the blocks of the nodes from the start.
WEAK_COUPLING = 0.05

# Rounding separates the recursive residual from the true one. A restart from the current iterate
# repairs that; if a few do not help, the tolerance is out of reach.
MAX_RESTARTS = 3

# Dropping candidates copies all iterates, so it has to save something.
KEEP_SHARE = 0.8

REMEDY = "Raise max_iter, raise ridge or graph_penalty, or accept a larger tol"

# Most entries of a group of columns, so that intermediate results stay in the cache, and fewest
# columns, since a pass over a sparse matrix has a cost of its own.
GROUP_ENTRIES = 2**18
GROUP_COLUMNS = 16

# Entries of a chunk of nodes, so that several arrays share the cache.
ROW_ENTRIES = 2**15


class Linear(Protocol):
    """A linear operator on stacks, candidate by candidate."""

    def apply(self, x: FloatArray) -> FloatArray:
        """Apply it, shape (n_nodes, n_candidates, m)."""

    def restrict(self, candidates: Chosen) -> Linear:
        """The same for some of the candidates only."""


def pick(x: FloatArray, candidates: Chosen) -> FloatArray:
    """Some of the candidates of a stack, contiguous in memory: indexing would take four times."""
    if candidates.dtype == bool:
        candidates = np.flatnonzero(candidates)
    return x.take(candidates, axis=1)


def times(matrix: Any, x: FloatArray) -> FloatArray:
    """Product of a dense or sparse matrix over the nodes with a stack."""
    return np.asarray(matrix @ x.reshape(len(x), prod(x.shape[1:]))).reshape(-1, *x.shape[1:])


def by_columns(
    work: Callable[[FloatArray, slice], FloatArray], x: FloatArray, entries: int | None = None
) -> FloatArray:
    """Apply `work` to groups of columns of a stack; it takes (n_nodes, n_columns) and their slice.

    A group has at most `entries` entries, by default few enough for the cache.
    """
    flat = x.reshape(len(x), -1)
    n_columns = flat.shape[1]
    count = min(-(-flat.size // (entries or GROUP_ENTRIES)), -(-n_columns // GROUP_COLUMNS))
    if count <= 1:
        return np.asarray(work(flat, slice(0, n_columns)), dtype=x.dtype).reshape(x.shape)
    # Every thread gets the same number of groups.
    count = min(n_columns, -(-count // n_threads()) * n_threads())
    ends = np.linspace(0, n_columns, count + 1).astype(int)
    result = np.empty_like(flat)

    def one(i: int) -> None:
        columns = slice(int(ends[i]), int(ends[i + 1]))
        result[:, columns] = work(flat[:, columns], columns)

    in_parallel(one, count)
    return result.reshape(x.shape)


class Iterates(Protocol):
    """X, R, Z, P and Q of all active candidates.

    `norms`, (n_candidates,), are those of the right-hand sides, 1 if zero. Converged candidates are
    dropped once at most `keep_share` of the batch is unfinished.
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


class StackIterates:
    """Iterates as stacks; starts from `x` and overwrites it, with `inverse` as preconditioner."""

    def __init__(
        self,
        system: Linear,
        inverse: Linear,
        rhs: FloatArray,
        x: FloatArray,
        keep_share: float = KEEP_SHARE,
    ) -> None:
        self.system, self.inverse, self.keep_share = system, inverse, keep_share
        self.rhs, self.x = rhs, x
        self.norms = np.sqrt(_dots(rhs, rhs))
        self.norms[self.norms == 0] = 1.0

    def restart(self) -> FloatArray:
        """Compute R; returns R'R."""
        self.active = np.arange(self.x.shape[1])
        self.r: FloatArray = self.rhs - self.system.apply(self.x)
        self.p: FloatArray = np.zeros(self.r.shape, self.r.dtype)
        # Steps of the active candidates; added to x when some are dropped.
        self.steps: FloatArray = np.zeros(self.r.shape, self.r.dtype)
        return _dots(self.r, self.r)

    def keep(self, going: BoolArray) -> None:
        """Drop all other candidates."""
        self._add(self.active[~going], pick(self.steps, ~going))
        self.active = self.active[going]
        self.system, self.inverse = self.system.restrict(going), self.inverse.restrict(going)
        self.r, self.p, self.steps = (pick(stack, going) for stack in (self.r, self.p, self.steps))

    def slope(self) -> FloatArray:
        """R'Z. Z is computed here, since the last residual needs none."""
        self.z = self.inverse.apply(self.r)
        return _dots(self.r, self.z)

    def turn(self, share: FloatArray) -> FloatArray:
        """Set P to Z plus a share of the last P; returns P'Q."""
        for rows in row_chunks(self.p):
            self.p[rows] *= share[:, np.newaxis]
            self.p[rows] += self.z[rows]
        del self.z
        self.q = self.system.apply(self.p)
        return _dots(self.p, self.q)

    def advance(self, length: FloatArray) -> FloatArray:
        """Go along P; returns R'R."""
        far, q = length[:, np.newaxis], self.q
        squares: FloatArray = np.zeros_like(length)
        for rows in row_chunks(self.p):
            self.steps[rows] += far * self.p[rows]
            q[rows] *= far
            self.r[rows] -= q[rows]
            squares += _dots(self.r[rows], self.r[rows])
        del self.q
        return squares

    def solution(self) -> FloatArray:
        """X of all candidates."""
        self._add(self.active, self.steps)
        self.steps = np.zeros(self.r.shape, self.r.dtype)
        return self.x

    def _add(self, candidates: IntArray, steps: FloatArray) -> None:
        """Add steps to X of some candidates."""
        if len(candidates) == self.x.shape[1]:
            self.x += steps
        else:
            self.x[:, candidates] = pick(self.x, candidates) + steps


@dataclass(eq=False)
class Progress:
    """Iterations and relative residuals of every candidate, and residuals after each iteration."""

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
    """Iterate until all candidates have converged; `progress` is valid after every iteration."""
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
    """Preconditioners to use in turn, each with its largest number of iterations.

    The mean field, `first`, works where the graph penalty dominates. If `coupling`, the smallest
    lam * mean degree, is weak, or `patience` iterations were not enough because nodes differ, then
    `preconditioner` takes over, with the blocks of the nodes. The caller updates `progress`.
    """
    plan = [(preconditioner, max_iter)] * MAX_RESTARTS
    if first is not None and coupling >= WEAK_COUPLING:
        plan.insert(0, (first, patience))
    for name, most in plan:
        progress.preconditioner = name
        yield name, min(most, max_iter - int(progress.n_iter.max(initial=0)))
        if (progress.residual <= tol).all() or progress.n_iter.max() >= max_iter:
            return


def row_chunks(x: FloatArray) -> list[slice]:
    """Chunks of nodes that are small enough for several arrays to share the cache."""
    step = max(1, ROW_ENTRIES * len(x) // max(x.size, 1))
    return [slice(begin, min(begin + step, len(x))) for begin in range(0, len(x), step)]


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Top / bottom; zero where the direction has vanished."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products of every candidate, shape (n_candidates,)."""
    flat = np.einsum("vk,vk->k", a.reshape(len(a), -1), b.reshape(len(b), -1))
    return np.asarray(flat.reshape(a.shape[1:]).sum(axis=1))
