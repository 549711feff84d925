"""Iterates of conjugate gradients as stacks in this process, shape (n_nodes, n_candidates, m).

Large stacks do not fit into the cache, so updates go through them in chunks of nodes, once.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.solvers.stacks import Linear, pick, row_chunks

# Dropping candidates copies all iterates, so it has to save something.
KEEP_SHARE = 0.8


class StackIterates:
    """The iterates of a linear system; symbols as in `conjugate_gradients`.

    Parameters
    ----------
    system, inverse : Linear
        The system and its preconditioner.
    rhs : ndarray of shape (n_nodes, n_candidates, m)
    x : ndarray of shape (n_nodes, n_candidates, m)
        Where to start; overwritten.
    keep_share : float
        See `Iterates`.
    """

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
        # Steps of the active candidates, added to x when the set of them changes.
        self.steps: FloatArray = np.zeros(self.r.shape, self.r.dtype)
        return _dots(self.r, self.r)

    def keep(self, going: BoolArray) -> None:
        """Drop all other candidates."""
        self.solution()
        self.active = self.active[going]
        self.system, self.inverse = self.system.restrict(going), self.inverse.restrict(going)
        self.r, self.p = pick(self.r, going), pick(self.p, going)
        self.steps = np.zeros(self.r.shape, self.r.dtype)

    def slope(self) -> FloatArray:
        """R'Z; Z is computed here, so that the last residual needs none."""
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
        self.x[:, self.active] += self.steps
        self.steps = np.zeros(self.r.shape, self.r.dtype)
        return self.x


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products of every candidate, shape (n_candidates,)."""
    flat = np.einsum("vk,vk->k", a.reshape(len(a), -1), b.reshape(len(b), -1))
    return np.asarray(flat.reshape(a.shape[1:]).sum(axis=1))
