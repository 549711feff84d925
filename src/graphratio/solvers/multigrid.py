"""Many shifted Laplacians solved at once, approximately, by one cycle over a hierarchy.

With every A_v replaced by their mean, and the features rotated so that the mean is diagonal,
the system falls apart into one problem on the graph per feature and candidate,

    (w + lam gam) I + lam lap = lam (tau I + lap),      tau = w / lam + gam,

which differ in the number tau only. They share the hierarchy of `aggregation`, so a cycle is a
few products of sparse matrices with all columns together: smooth, restrict what is left,
correct from the next level, smooth again. The last level is solved in its eigenvectors. Before
and after the correction the same damped Jacobi step is taken, so the cycle is symmetric and
positive definite, as conjugate gradients need.

Symbols
-------
tau         shift of every column, shape (n_columns,)
L, M, P, D  as in `aggregation`
omega       damping
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from graphratio.solvers.aggregation import Hierarchy, Level
from graphratio.solvers.stacks import Selection, pick, times
from graphratio.typing import FloatArray

# Damping for eigenvalues of D^{-1} (tau M + L) of up to one; divided by their bound.
DAMPING = 1.5


@dataclass(frozen=True, eq=False)
class Multigrid:
    """Approximate inverse of lam (tau I + lap) for stacks of shape (n_nodes, n_candidates, m).

    Attributes
    ----------
    hierarchy : Hierarchy
    lam : ndarray of shape (n_candidates,)
    tau : ndarray of shape (n_candidates, m)
    steps : list of ndarray of shape (n, n_candidates, m)
        omega / D of every level.
    vectors : ndarray of shape (n_last, n_last)
        Of the last level, with vectors' M vectors = I and vectors' L vectors diagonal.
    last : ndarray of shape (n_last, n_candidates, m)
        Reciprocals of the eigenvalues on the last level.
    """

    hierarchy: Hierarchy
    lam: FloatArray
    tau: FloatArray
    steps: list[FloatArray]
    vectors: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, hierarchy: Hierarchy, w: FloatArray, lam: FloatArray, gam: FloatArray) -> Multigrid:
        """Set up for w + lam (lap + gam I), where w has shape (m,)."""
        dtype = np.float32
        tau = (w / lam[:, np.newaxis] + gam[:, np.newaxis]).astype(dtype)
        steps = [_damped_reciprocal(level, tau) for level in hierarchy.levels]
        if len(hierarchy.laplacian):
            modes, vectors = linalg.eigh(hierarchy.laplacian, hierarchy.mass)
        else:
            modes, vectors = np.empty(0), np.empty((0, 0))
        last = 1.0 / (np.maximum(modes, 0.0)[:, np.newaxis, np.newaxis] + tau)
        return cls(
            hierarchy, lam.astype(dtype), tau, steps, vectors.astype(dtype), last.astype(dtype)
        )

    def apply(self, x: FloatArray) -> FloatArray:
        """One cycle from zero."""
        right = (x / self.lam[:, np.newaxis]).astype(self.tau.dtype, copy=False)
        return self._cycle(0, right).astype(x.dtype, copy=False)

    def restrict(self, candidates: Selection) -> Multigrid:
        """Keep some of the candidates."""
        return replace(
            self,
            lam=self.lam[candidates],
            tau=self.tau[candidates],
            steps=[pick(step, candidates) for step in self.steps],
            last=pick(self.last, candidates),
        )

    def _below(self, depth: int, right: FloatArray) -> FloatArray:
        """Two cycles, which cost little on a small level and keep many levels as good as two."""
        x = self._cycle(depth, right)
        if depth < len(self.hierarchy.levels):
            x += self._cycle(depth, right - _shifted(self.hierarchy.levels[depth], self.tau, x))
        return x

    def _cycle(self, depth: int, right: FloatArray) -> FloatArray:
        if depth == len(self.hierarchy.levels):
            return times(self.vectors, self.last * times(self.vectors.T, right))
        level, step = self.hierarchy.levels[depth], self.steps[depth]
        x: FloatArray = step * right
        left: FloatArray = right - _shifted(level, self.tau, x)
        x += times(level.interpolation, self._below(depth + 1, times(level.restriction, left)))
        left = _shifted(level, self.tau, x)
        np.subtract(right, left, out=left)
        left *= step
        x += left
        return x


def _shifted(level: Level, tau: FloatArray, x: FloatArray) -> FloatArray:
    """(tau M + L) X."""
    product = times(level.laplacian, x)
    product += tau * (x if level.mass is None else times(level.mass, x))
    return product


def _damped_reciprocal(level: Level, tau: FloatArray) -> FloatArray:
    degrees = level.laplacian.diagonal()[:, np.newaxis, np.newaxis]
    diagonal: FloatArray = degrees + tau * level.mass_diagonal[:, np.newaxis, np.newaxis]
    return np.asarray(tau.dtype.type(DAMPING / level.radius) / diagonal)
