"""Approximate inverse of the mean field within a partition.

Symbols
-------
lap         Laplacian at own nodes, its diagonal has the full degrees d
w           eigenvalues of the mean second moment of the partition, shape (m,)
T           w + lam lap + rho I, for every candidate and every direction
D           diagonal of T
r           bound on the spectral radius of I - D^{-1} T

The eigenvalues of D^{-1} T lie in [1 - r, 1 + r]. A fixed number of steps of the Chebyshev
iteration is a polynomial in D^{-1} T, hence a symmetric positive definite operator. It is
accurate for eigenvalues above a floor; the coarse space handles those below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import mean_field
from graphratio.solvers.conjugate_gradients import Chosen, Linear, pick
from graphratio.solvers.preconditioners.block_jacobi import HalfSum, node_inverses

# Largest ratio of the eigenvalues that the polynomial covers, and its accuracy there.
EIGENVALUE_SPREAD = 150.0
ACCURACY = 0.1

# Smallest coupling, so that the interval has a length.
SMALLEST_RADIUS = 0.01


@dataclass(frozen=True, eq=False)
class LocalBasis:
    """The own nodes of a partition as coordinates for the mean field of the library."""

    laplacian: sparse.csr_array
    dtype: Any

    def mean_field(self, w: FloatArray, lam: FloatArray, rho: FloatArray) -> Chebyshev:
        """Approximate inverse of w + lam lap + rho I."""
        return Chebyshev.of(self.laplacian.astype(self.dtype), w, lam, rho)


@dataclass(frozen=True, eq=False)
class Chebyshev:
    """A polynomial in D^{-1} T; `centre` and `radius` are those of the interval of eigenvalues.

    `constant` is w + rho and, as they, has shape (1, n_candidates, m); `lam` has shape
    (n_candidates, 1) and `inverse`, 1 / D, shape (n_own, n_candidates, m).
    """

    laplacian: sparse.csr_array
    constant: FloatArray
    lam: FloatArray
    inverse: FloatArray
    centre: FloatArray
    radius: FloatArray
    degree: int

    @classmethod
    def of(
        cls, laplacian: sparse.csr_array, w: FloatArray, lam: FloatArray, rho: FloatArray
    ) -> Chebyshev:
        """Set up for all candidates and directions."""
        dtype = laplacian.dtype
        degrees = laplacian.diagonal().astype(np.float64)
        constant = rho[:, np.newaxis] + w
        largest = lam[:, np.newaxis] * degrees.max(initial=0.0)
        coupling = np.clip(largest / (constant + largest), SMALLEST_RADIUS, 1.0)
        high = 1.0 + coupling
        low = np.maximum(1.0 - coupling, high / EIGENVALUE_SPREAD)
        ratio = float((high / low).max())
        degree = int(np.ceil(0.5 * np.sqrt(ratio) * np.log(2.0 / ACCURACY)))
        diagonal = constant + lam[:, np.newaxis] * degrees[:, np.newaxis, np.newaxis]
        return cls(
            laplacian,
            constant[np.newaxis].astype(dtype),
            lam[:, np.newaxis].astype(dtype),
            (1.0 / diagonal).astype(dtype),
            (0.5 * (high + low))[np.newaxis].astype(dtype),
            (0.5 * (high - low))[np.newaxis].astype(dtype),
            degree,
        )

    def apply(self, x: FloatArray) -> FloatArray:
        """Run the iteration from zero."""
        left = self.inverse * x
        step = left / self.centre
        result = step.copy()
        ratio = self.centre / self.radius
        factor = 1.0 / ratio
        for _ in range(self.degree - 1):
            product = (self.laplacian @ step.reshape(len(step), -1)).reshape(step.shape)
            product *= self.lam
            product += self.constant * step
            product *= self.inverse
            left -= product
            previous, factor = factor, 1.0 / (2.0 * ratio - factor)
            step *= factor * previous
            step += (2.0 * factor / self.radius) * left
            result += step
        return result

    def restrict(self, candidates: Chosen) -> Chebyshev:
        """Keep some of the candidates."""
        return replace(
            self,
            constant=pick(self.constant, candidates),
            lam=self.lam[candidates],
            inverse=pick(self.inverse, candidates),
            centre=pick(self.centre, candidates),
            radius=pick(self.radius, candidates),
        )


def local_inverse(name: str, objective: GraphObjective, basis: LocalBasis) -> Linear:
    """Inverse of own nodes: the "mean field", the diagonal "blocks", or the "mixed" half sum."""
    if name == "mean field":
        return mean_field(objective, basis)
    blocks = node_inverses(objective, basis.dtype)
    return blocks if name == "blocks" else HalfSum(mean_field(objective, basis), blocks)
