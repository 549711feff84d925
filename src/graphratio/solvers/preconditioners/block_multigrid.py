"""A multigrid cycle on the whole system, with the second moments of all nodes.

Where the graph couples nodes weakly, or nodes are very different, the mean of the A_v describes
none of them. Here every level has its own blocks: the block of a group is the sum of the blocks
of its members. The coarse levels solve for directions in which no member of a group has data;
the node-by-node inverse solves for the rest. The finest level adds the node-by-node inverse and
the coarse correction, which takes a single pass over the blocks. Levels below apply the inverse
before and after the correction. The last level, with a handful of nodes, is solved exactly.

Everything is in single precision, which is enough for a preconditioner.

Symbols
-------
A, lam, rho     as in `moments.objective`
L, M, P, D      as in `aggregation`; A of a level is the sum of P_vg A_v over v
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import Basis, DenseInverse
from graphratio.solvers.conjugate_gradients import Chosen, Linear, times
from graphratio.solvers.positive_definite import inverses
from graphratio.solvers.preconditioners.aggregation import Hierarchy, Level
from graphratio.solvers.preconditioners.block_jacobi import NodeInverses

# Up to this many unknowns the last level is solved exactly, which is quick.
LARGEST_LAST = 3000

# Damping of the node-by-node inverse; divided by the bound on the eigenvalues.
BLOCK_DAMPING = 4 / 3


@dataclass(frozen=True, eq=False)
class BlockMultigrid:
    """Approximate inverse of blockdiag(A) + (lam lap + rho I) (x) I, in the coordinates of `basis`.

    `second` holds A of every level below the finest, (n, m, m), `inverses` one for every level but
    the last, and `last` that of the last level, exact unless it is too large.
    """

    basis: Basis
    levels: list[Level]
    second: list[FloatArray]
    inverses: list[NodeInverses]
    lam: FloatArray
    rho: FloatArray
    last: Linear

    @classmethod
    def of(cls, objective: GraphObjective, basis: Basis) -> BlockMultigrid:
        """Set up for an objective in Nystrom form."""
        lam, rho, hierarchy = objective.lam, objective.rho, basis.hierarchy
        blocks = objective.moments.second.dense(compact=True)
        second, inverses = [], []
        for level in hierarchy.levels:
            diagonal = level.laplacian.diagonal()[:, np.newaxis]
            ridge = lam * diagonal + rho * level.mass_diagonal[:, np.newaxis]
            inverses.append(NodeInverses.of(blocks, ridge, BLOCK_DAMPING / level.radius))
            blocks = times(level.restriction, blocks).astype(np.float32, copy=False)
            second.append(blocks)
        n, m, _ = blocks.shape
        last: Linear
        if n * m <= LARGEST_LAST:
            last = DenseInverse(_dense_inverse(hierarchy, blocks, lam, rho))
        else:
            ridge = lam * (np.diagonal(hierarchy.laplacian)[:, np.newaxis])
            ridge = ridge + rho * np.diagonal(hierarchy.mass)[:, np.newaxis]
            last = NodeInverses.of(blocks, ridge)
        single = np.float32
        return cls(
            basis, hierarchy.levels, second, inverses, lam.astype(single), rho.astype(single), last
        )

    def apply(self, x: FloatArray) -> FloatArray:
        """One cycle from zero, shape (n_nodes, n_candidates, m)."""
        right = self.basis.to_nodes(x).astype(np.float32, copy=False)
        return self.basis.from_nodes(self._cycle(0, right).astype(x.dtype, copy=False))

    def restrict(self, candidates: Chosen) -> BlockMultigrid:
        """Keep some of the candidates."""
        return replace(
            self,
            inverses=[inverse.restrict(candidates) for inverse in self.inverses],
            lam=self.lam[candidates],
            rho=self.rho[candidates],
            last=self.last.restrict(candidates),
        )

    def _below(self, depth: int, right: FloatArray) -> FloatArray:
        """Two cycles, as in `multigrid`."""
        x = self._cycle(depth, right)
        if depth < len(self.levels):
            x += self._cycle(depth, right - self._operator(depth, x))
        return x

    def _cycle(self, depth: int, right: FloatArray) -> FloatArray:
        if depth == len(self.levels):
            return self.last.apply(right)
        level, inverse = self.levels[depth], self.inverses[depth]
        x = inverse.apply(right)
        left = right - self._operator(depth, x) if depth else right
        x += times(level.interpolation, self._below(depth + 1, times(level.restriction, left)))
        if depth:
            x += inverse.apply(right - self._operator(depth, x))
        return x

    def _operator(self, depth: int, x: FloatArray) -> FloatArray:
        """The system of a level below the finest."""
        level = self.levels[depth]
        product = times(level.mass, x)
        product *= self.rho[:, np.newaxis]
        product += self.lam[:, np.newaxis] * times(level.laplacian, x)
        product += x @ self.second[depth - 1]
        return product


def _dense_inverse(
    hierarchy: Hierarchy, blocks: FloatArray, lam: FloatArray, rho: FloatArray
) -> FloatArray:
    """Inverse of the last level for every candidate, shape (n_candidates, n m, n m)."""
    n, m, _ = blocks.shape
    unit, each = np.eye(m), np.arange(n)
    inverse = np.empty((len(lam), n * m, n * m), dtype=np.float32)
    for candidate, (strength, ridge) in enumerate(zip(lam, rho, strict=True)):
        coupling: Any = strength * hierarchy.laplacian + ridge * hierarchy.mass
        matrix = np.kron(coupling, unit).reshape(n, m, n, m)
        matrix[each, :, each, :] += blocks
        inverse[candidate] = inverses(matrix.reshape(n * m, n * m))
    return inverse
