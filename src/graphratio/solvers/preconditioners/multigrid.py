"""Many shifted Laplacians solved at once, approximately, by one cycle over a hierarchy.

With every A_v replaced by their mean, and the features rotated so that the mean is diagonal,
the system falls apart into one problem on the graph per feature and candidate,

    (w + rho) I + lam lap = lam (tau I + lap),      tau = (w + rho) / lam,

which differ only in the number tau. They share the hierarchy of `aggregation`, so a cycle is a
few products of sparse matrices with all columns together: smooth, restrict the residual, correct
from the next level, smooth again. A small level is solved in its eigenvectors. The cycle takes
the same damped Jacobi step before and after the correction, so it is symmetric and positive
definite, as conjugate gradients require.

Symbols
-------
tau         shift of every column, shape (n_columns,)
L, M, P, D  as in `aggregation`
omega       damping
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.solvers.conjugate_gradients import Chosen, by_columns, pick
from graphratio.solvers.preconditioners.aggregation import Hierarchy, Level

# Damping for eigenvalues of D^{-1} (tau M + L) up to one; divided by their bound.
DAMPING = 1.5


@dataclass(frozen=True, eq=False)
class Multigrid:
    """Approximate inverse of lam (tau I + lap) for stacks of shape (n_nodes, n_candidates, m).

    `diagonals` are those of L and M over omega, (n, 1) each, of every level above the diagonalised
    one. There `vectors`, (n_last, n_last), diagonalise L and M, and `last`, (n_last, n_candidates,
    m), holds the reciprocals of the eigenvalues. `tau` has shape (n_candidates, m).
    """

    hierarchy: Hierarchy
    lam: FloatArray
    tau: FloatArray
    diagonals: list[tuple[FloatArray, FloatArray]]
    vectors: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, hierarchy: Hierarchy, w: FloatArray, lam: FloatArray, rho: FloatArray) -> Multigrid:
        """Set up for w + lam lap + rho I, where w has shape (m,)."""
        dtype = np.float32
        tau = ((w + rho[:, np.newaxis]) / lam[:, np.newaxis]).astype(dtype)
        small = hierarchy.dense_level
        diagonals = []
        for level in hierarchy.levels[: small.depth]:
            both = (level.laplacian.diagonal(), level.mass_diagonal)
            edges, mass = (d[:, np.newaxis] * (level.radius / DAMPING) for d in both)
            diagonals.append((edges.astype(dtype), mass.astype(dtype)))
        last = 1.0 / (small.modes[:, np.newaxis, np.newaxis] + tau)
        return cls(
            hierarchy,
            lam.astype(dtype),
            tau,
            diagonals,
            small.vectors.astype(dtype),
            last.astype(dtype),
        )

    def apply(self, x: FloatArray) -> FloatArray:
        """One cycle from zero."""
        lam = np.repeat(self.lam, x.shape[2])

        def work(columns: FloatArray, which: slice) -> FloatArray:
            tau = self.tau.ravel()[which]
            cycle = _Cycle(
                self.hierarchy.levels,
                tau,
                [np.reciprocal(edges + tau * mass) for edges, mass in self.diagonals],
                self.vectors,
                self.last.reshape(len(self.last), -1)[:, which],
            )
            return cycle(0, (columns / lam[which]).astype(np.float32, copy=False))

        return by_columns(work, x)

    def restrict(self, candidates: Chosen) -> Multigrid:
        """Keep some of the candidates."""
        return replace(
            self,
            lam=self.lam[candidates],
            tau=self.tau[candidates],
            last=pick(self.last, candidates),
        )


@dataclass(frozen=True, eq=False)
class _Cycle:
    """The cycle on some columns; attributes of `Multigrid`, flattened. `steps` are omega / D."""

    levels: list[Level]
    tau: FloatArray
    steps: list[FloatArray]
    vectors: FloatArray
    last: FloatArray

    def __call__(self, depth: int, right: FloatArray) -> FloatArray:
        if depth == len(self.steps):
            return np.asarray(self.vectors @ (self.last * (self.vectors.T @ right)))
        level, step = self.levels[depth], self.steps[depth]
        if level.mass is None:
            return self._finest(level, step, right)
        x: FloatArray = step * right
        left = self._left(level, right, x)
        x += level.interpolation @ self._below(depth + 1, level.restriction @ left)
        left = self._left(level, right, x)
        left *= step
        x += left
        return x

    def _finest(self, level: Level, step: FloatArray, right: FloatArray) -> FloatArray:
        """The same with M = I, where step (tau + D) is one number.

        Then right - (tau I + L) (step right) = (1 - omega) right + W (step right), with W the
        off-diagonal part of -L, so the diagonal needs no product.
        """
        rest = step.dtype.type(1 - DAMPING / level.radius)
        x: FloatArray = step * right
        left: FloatArray = level.neighbours @ x
        left += rest * right
        x += level.interpolation @ self._below(1, level.restriction @ left)
        left = level.neighbours @ x
        left += right
        left *= step
        x *= rest
        x += left
        return x

    def _below(self, depth: int, right: FloatArray) -> FloatArray:
        """Two cycles: cheap on a small level, and many levels stay as accurate as two."""
        x = self(depth, right)
        if depth < len(self.steps):
            x += self(depth, self._left(self.levels[depth], right, x))
        return x

    def _left(self, level: Level, right: FloatArray, x: FloatArray) -> FloatArray:
        """Residual right - (tau M + L) X."""
        product: FloatArray = self.tau * (x if level.mass is None else level.mass @ x)
        product += level.laplacian @ x
        return np.subtract(right, product, out=product)
