"""Preconditioners for conjugate gradients, and the coordinates that they work in.

Symbols as in `objectives`, and
V, mu       eigenvectors and eigenvalues of the Laplacian
Abar, U, w  mean of the A_v over nodes, its eigenvectors and eigenvalues
R           residuals, shape (n_nodes, n_candidates, m), in the coordinates of the basis
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from graphratio.objectives import GraphObjective
from graphratio.typing import BoolArray, FloatArray, IntArray

# Abar counts as diagonal when its correlations are this small: rotating twice per iteration
# would then cost more than the iterations it saves.
DIAGONAL_TOLERANCE = 0.3


@dataclass(frozen=True, eq=False)
class SpectralBasis:
    """Coordinates in which the graph penalty is diagonal: rows are Laplacian modes.

    Attributes
    ----------
    modes : ndarray of shape (n_nodes,)
        Eigenvalues mu of the Laplacian.
    vectors : ndarray of shape (n_nodes, n_nodes)
    """

    modes: FloatArray
    vectors: FloatArray

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """From modes to nodes: V x."""
        return (self.vectors @ x.reshape(len(x), -1)).reshape(x.shape)

    def to_modes(self, x: FloatArray) -> FloatArray:
        """From nodes to modes: V' x."""
        return (self.vectors.T @ x.reshape(len(x), -1)).reshape(x.shape)

    def astype(self, dtype: np.dtype[np.floating]) -> SpectralBasis:
        """The same basis in another precision."""
        return SpectralBasis(
            self.modes.astype(dtype, copy=False), self.vectors.astype(dtype, copy=False)
        )


class Preconditioner(Protocol):
    """An approximate inverse of N times the Hessian, symmetric and positive definite."""

    def apply(self, residuals: FloatArray) -> FloatArray:
        """Approximate solution for residuals in the coordinates of the basis."""

    def restrict(self, candidates: IntArray | BoolArray) -> Preconditioner:
        """The same for some of the candidates only."""


@dataclass(frozen=True, eq=False)
class MeanFieldKronecker:
    """Replace every A_v by their mean: Abar (x) I + N lam (lap + gam I) (x) I, inverted exactly.

    Diagonal in the basis of Laplacian modes times eigenvectors of Abar.

    Attributes
    ----------
    inverse : ndarray of shape (n_nodes, n_candidates, m)
        1 / (w_j + N lam (mu_k + gam)).
    rotation : ndarray of shape (m, m), or None
        Eigenvectors U of Abar; None where the features are chosen such that Abar is diagonal.
    """

    inverse: FloatArray
    rotation: FloatArray | None

    @classmethod
    def of(cls, objective: GraphObjective, basis: SpectralBasis) -> MeanFieldKronecker:
        """Set up for an objective in Nystrom form."""
        dtype = objective.moments.second.dtype
        mean = objective.moments.second.mean().astype(np.float64)
        eigenvalues = np.maximum(np.diagonal(mean), 0.0)
        rotation = None
        # Directions far below the leading one are the penalty's business, not the data's.
        size = np.sqrt(eigenvalues + 1e-3 * eigenvalues.max(initial=0) + np.finfo(float).tiny)
        correlations = np.abs(mean - np.diag(np.diagonal(mean))) / np.outer(size, size)
        if correlations.max() > DIAGONAL_TOLERANCE:
            eigenvalues, vectors = np.linalg.eigh(mean)
            rotation = vectors.astype(dtype)
        graph = objective.lam * (basis.modes[:, np.newaxis] + objective.gam)
        data = np.maximum(eigenvalues, 0.0)
        inverse = 1.0 / (objective.shape[0] * graph[:, :, np.newaxis] + data)
        return cls(inverse.astype(dtype), rotation)

    def apply(self, residuals: FloatArray) -> FloatArray:
        """Divide in the eigenbasis."""
        if self.rotation is None:
            return self.inverse * residuals
        return np.asarray(((residuals @ self.rotation) * self.inverse) @ self.rotation.T)

    def restrict(self, candidates: IntArray | BoolArray) -> MeanFieldKronecker:
        """Keep some of the candidates."""
        return replace(self, inverse=self.inverse[:, candidates])


@dataclass(frozen=True, eq=False)
class BlockJacobi:
    """Invert the diagonal blocks A_v + N lam (d_v + gam) I, one eigenproblem per node for all.

    Attributes
    ----------
    basis : SpectralBasis
    inverse : ndarray of shape (n_nodes, n_candidates, m)
    vectors : ndarray of shape (n_nodes, m, m)
        Eigenvectors of the A_v.
    """

    basis: SpectralBasis
    inverse: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, objective: GraphObjective, basis: SpectralBasis) -> BlockJacobi:
        """Set up for an objective in Nystrom form."""
        dtype = objective.moments.second.dtype
        eigenvalues, vectors = np.linalg.eigh(objective.moments.second.dense())
        degrees = objective.laplacian.diagonal()
        graph = objective.lam * (degrees[:, np.newaxis] + objective.gam)
        data = np.maximum(eigenvalues, 0.0)[:, np.newaxis]
        inverse = 1.0 / (objective.shape[0] * graph[:, :, np.newaxis] + data)
        return cls(basis, inverse.astype(dtype), vectors)

    def apply(self, residuals: FloatArray) -> FloatArray:
        """Solve every node by itself."""
        rotated = self.basis.to_nodes(residuals) @ self.vectors
        rotated *= self.inverse
        return self.basis.to_modes(rotated @ self.vectors.transpose(0, 2, 1))

    def restrict(self, candidates: IntArray | BoolArray) -> BlockJacobi:
        """Keep some of the candidates."""
        return replace(self, inverse=self.inverse[:, candidates])


@dataclass(frozen=True, eq=False)
class HalfSum:
    """Half the sum of two preconditioners: each covers the corner where the other is weak."""

    first: Preconditioner
    second: Preconditioner

    def apply(self, residuals: FloatArray) -> FloatArray:
        """Average of both."""
        return 0.5 * (self.first.apply(residuals) + self.second.apply(residuals))

    def restrict(self, candidates: IntArray | BoolArray) -> HalfSum:
        """Keep some of the candidates."""
        return HalfSum(self.first.restrict(candidates), self.second.restrict(candidates))
