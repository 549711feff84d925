"""A partition's rows of the linear system, and its rows of conjugate gradients.

Symbols as in `moments.objective`. X, R, Z, P, Q are the iterates at own nodes, shape (n_own,
n_candidates, m): solution, residual, preconditioned residual, direction, and the system times the
direction; V are the low modes of the graph at own nodes, shape (n_own, k).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.distributed.chebyshev import LocalBasis, local_inverse
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.protocol import Mail
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import FactoredSecond, SecondMoment
from graphratio.solvers.conjugate_gradients import pick, times

# R'R, R'Z and V'R.
Residual = tuple[FloatArray, FloatArray, FloatArray]

# Blocks of second moments that are formed at a time.
BLOCKS_AT_ONCE = 256


class SystemRows:
    """The Hessian and the right-hand side, at own nodes with the given moments."""

    def __init__(
        self, plan: PartitionPlan, moments: Moments, lam: FloatArray, rho: FloatArray
    ) -> None:
        dtype = moments.second.dtype
        self.plan = plan
        self.objective = GraphObjective.of(moments, plan.inner, lam, rho)
        self.second = moments.second
        self.rhs = moments.first.astype(dtype, copy=False)
        self.inner, self.outer = plan.inner.astype(dtype), plan.outer.astype(dtype)
        self.modes, self.halo_modes = plan.modes.astype(dtype), plan.halo_modes.astype(dtype)
        self.lam = lam[:, np.newaxis].astype(dtype)
        self.rho = rho[:, np.newaxis].astype(dtype)

    def apply(self, x: FloatArray, halo: FloatArray) -> FloatArray:
        """Multiply; `halo` has the rows of the neighbours outside.

        A common value is subtracted first: a strong penalty would amplify its rounding error.
        """
        common = x.mean(axis=0, keepdims=True)
        graph = times(self.inner, x - common) - times(self.outer, halo - common)
        graph *= self.lam
        graph += self.rho * x
        graph += self.second.apply(x)
        return graph

    def restrict(self, keep: BoolArray) -> SystemRows:
        """The same for some of the candidates only."""
        smaller = copy(self)
        smaller.lam, smaller.rho = self.lam[keep], self.rho[keep]
        return smaller

    def coarse_blocks(self) -> FloatArray:
        """Own part of V_k' A V_k for every low mode k, shape (k, m, m)."""
        squares = np.square(self.plan.modes)
        m = self.second.shape[1]
        total = np.zeros((squares.shape[1], m * m))
        for nodes, blocks in _some_blocks(self.second):
            total += squares[nodes].T @ blocks.reshape(len(blocks), -1).astype(np.float64)
        return total.reshape(-1, m, m)


class ConjugateRows:
    """Own rows of conjugate gradients; `local_inverse` names the preconditioners.

    The neighbours' rows come in the `inbox`, and own rows for them go into the `outbox`.
    """

    inbox: Mail
    outbox: Mail
    z: FloatArray

    def __init__(self, system: SystemRows, preconditioner: str) -> None:
        self.plan, self.all = system.plan, system
        basis = LocalBasis(self.plan.inner, system.rhs.dtype)
        self.inverse_of_all = local_inverse(preconditioner, system.objective, basis)
        self.shape = (len(self.plan.nodes), len(system.lam), system.rhs.shape[1])

    def place(self, theta: FloatArray | None) -> None:
        """Take over coefficients, default zero, of all candidates, and tell the neighbours."""
        dtype = self.all.rhs.dtype
        self.system, self.inverse = self.all, self.inverse_of_all
        self.active = np.arange(self.shape[1])
        self.solution = np.zeros(self.shape, dtype) if theta is None else theta.astype(dtype)
        self.x = self.solution.copy()
        self._tell_neighbours(self.solution)

    def restart(self) -> Residual:
        """Residual of the coefficients in place, from scratch."""
        halo = np.zeros((len(self.plan.halo), *self.shape[1:]), dtype=self.x.dtype)
        self.plan.into_halo(halo, self.inbox)
        self.r = self.system.rhs[:, np.newaxis] - self.system.apply(self.x, halo)
        self.p, self.halo_p = np.zeros_like(self.r), np.zeros_like(halo)
        return self._residual()

    def direction(
        self, coarse: FloatArray, ratio: FloatArray, keep: BoolArray | None
    ) -> FloatArray:
        """Next direction, here and at the neighbours; returns P'Q.

        `coarse`, shape (k, n_candidates, m), is the coarse space's share in Z, `ratio` the share of
        the previous direction that is kept. Only the candidates in `keep` continue.
        """
        dtype = self.r.dtype
        halo_z = np.empty_like(self.halo_p)
        self.plan.into_halo(halo_z, self.inbox)
        if keep is not None:
            self.solution[:, self.active] = self.x
            self.active = self.active[keep]
            self.system = self.system.restrict(keep)
            self.inverse = self.inverse.restrict(keep)
            self.x, self.r, self.z = (pick(a, keep) for a in (self.x, self.r, self.z))
            self.p, self.halo_p, halo_z = (pick(a, keep) for a in (self.p, self.halo_p, halo_z))
        coarse, ratio = coarse.astype(dtype), ratio[:, np.newaxis].astype(dtype)
        self.p *= ratio
        self.p += self.z
        self.p += times(self.system.modes, coarse)
        self.halo_p *= ratio
        self.halo_p += halo_z
        self.halo_p += times(self.system.halo_modes, coarse)
        self.q = self.system.apply(self.p, self.halo_p)
        return _dots(self.p, self.q)

    def advance(self, length: FloatArray) -> Residual:
        """Go along the direction; returns what `_residual` does."""
        step = length[:, np.newaxis].astype(self.r.dtype)
        self.x += step * self.p
        self.r -= step * self.q
        return self._residual()

    def coefficients(self) -> FloatArray:
        """Rows of the solution, shape (n_own, n_candidates, m)."""
        self.solution[:, self.active] = self.x
        return self.solution

    def refresh(self) -> None:
        """Restart all candidates at their coefficients, and tell the neighbours."""
        self.place(self.coefficients())

    def _residual(self) -> Residual:
        """R'R, R'Z and V'R; the neighbours get their rows of Z."""
        self.z = self.inverse.apply(self.r)
        low = times(self.system.modes.T, self.r).astype(np.float64)
        self._tell_neighbours(self.z)
        return _dots(self.r, self.r), _dots(self.r, self.z), low

    def _tell_neighbours(self, x: FloatArray) -> None:
        self.outbox = {receiver: x[rows] for receiver, rows in self.plan.sends.items()}


def _some_blocks(second: SecondMoment) -> Iterator[tuple[IntArray, FloatArray]]:
    """Nodes and their blocks, a few at a time, since all may not fit into memory."""
    if not isinstance(second, FactoredSecond):
        blocks = second.dense()
        for begin in range(0, len(blocks), BLOCKS_AT_ONCE):
            some = np.arange(begin, min(begin + BLOCKS_AT_ONCE, len(blocks)))
            yield some, blocks[some]
        return
    for nodes, psi, weights in second.parts:
        for begin in range(0, len(nodes), BLOCKS_AT_ONCE):
            rows = slice(begin, begin + BLOCKS_AT_ONCE)
            scaled = psi[rows] * weights[rows, :, np.newaxis]
            yield nodes[rows], scaled.transpose(0, 2, 1) @ psi[rows]


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products over own rows, shape (n_candidates,), in double precision."""
    return np.asarray(np.einsum("vcm,vcm->c", a, b).astype(np.float64))
