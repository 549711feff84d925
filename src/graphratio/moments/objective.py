"""The quadratic problem that the estimates solve.

    Phi(Theta) = sum_v [ 1/2 theta_v' A_v theta_v - b_v' theta_v ]
                 + (lam/4) sum_uv W_uv (theta_u - theta_v)' K (theta_u - theta_v)
                 + (rho/2) sum_v theta_v' K theta_v

Symbols
-------
A, b        mixed second and first moment of the features per node (see `node_moments`)
lap         graph Laplacian, degrees minus adjacency
lam, rho    graph penalty and ridge; in the paper's letters N lambda and N lambda gamma
K           Gram matrix of the dictionary in the plain form, identity in the Nystrom form
Theta       coefficients, shape (n_nodes, n_candidates, m)

This is N times the paper's quadratic problem over all nodes, so that both penalties act on a
node in the same way whatever the size of the graph. Setting its gradient to zero gives the linear
system (blockdiag(A) + (lam lap + rho I) (x) K) Theta = b, without the factors one half of the
printed matrix. One objective holds several pairs (lam, rho), which share the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.node_moments import Moments


@dataclass(frozen=True, eq=False)
class GraphObjective:
    """The problem for pairs of penalties lam, rho of shape (n_candidates,).

    `gram` is None for the identity.
    """

    moments: Moments
    laplacian: sparse.csr_array
    lam: FloatArray
    rho: FloatArray
    gram: FloatArray | None = None

    @classmethod
    def of(
        cls,
        moments: Moments,
        laplacian: sparse.csr_array,
        lam: float | FloatArray,
        rho: float | FloatArray,
        gram: FloatArray | None = None,
    ) -> GraphObjective:
        """Build from penalties given as numbers or as arrays of equal length."""
        lams, rhos = np.broadcast_arrays(np.atleast_1d(lam), np.atleast_1d(rho))
        return cls(moments, laplacian, np.asarray(lams, float), np.asarray(rhos, float), gram)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_nodes, n_candidates, m)."""
        n_nodes, m = self.moments.second.shape
        return n_nodes, len(self.lam), m

    def restrict(self, candidates: IntArray | BoolArray) -> GraphObjective:
        """Keep some of the candidates."""
        return replace(self, lam=self.lam[candidates], rho=self.rho[candidates])

    def operator(self, theta: FloatArray) -> FloatArray:
        """Hessian times theta, matrix-free, shape (n_nodes, n_candidates, m)."""
        return self.moments.second.apply(theta) + self.penalty_gradient(theta)

    def penalty_gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of both penalties, (lam lap + rho I) Theta K."""
        coupled = (self.laplacian @ theta.reshape(len(theta), -1)).reshape(theta.shape)
        coupled *= self.lam[:, np.newaxis]
        coupled += self.rho[:, np.newaxis] * theta
        return np.asarray(coupled if self.gram is None else coupled @ self.gram)

    @property
    def rhs(self) -> FloatArray:
        """Right-hand side b of the linear system, shape (n_nodes, m)."""
        return self.moments.first

    def value(self, theta: FloatArray) -> FloatArray:
        """Objective value of every candidate, shape (n_candidates,)."""
        stack = self._stack(theta)
        quadratic = 0.5 * np.einsum("vcm,vcm->c", stack, self.operator(stack))
        return np.asarray(quadratic - np.einsum("vcm,vm->c", stack, self.rhs))

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of every candidate, shape (n_nodes, n_candidates, m)."""
        return self.operator(self._stack(theta)) - self.rhs[:, np.newaxis]

    def residual(self, theta: FloatArray) -> FloatArray:
        """Relative residual ||Hessian Theta - b|| / ||b||, shape (n_candidates,).

        With b = 0 the solution is zero and the residual is the norm itself.
        """
        norm = float(np.linalg.norm(self.rhs)) or 1.0
        gradient = self.gradient(theta)
        return np.asarray(np.sqrt(np.einsum("vcm,vcm->c", gradient, gradient)) / norm)

    def _stack(self, theta: FloatArray) -> FloatArray:
        """Accept (n_nodes, m) for a problem with a single candidate."""
        return theta if theta.ndim == 3 else theta[:, np.newaxis]
