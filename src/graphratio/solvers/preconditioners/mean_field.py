"""The mean field: an approximate inverse of N times the Hessian.

Symbols as in `objectives` and `bases`, and
Abar, U, w  mean of the A_v over nodes, its eigenvectors and eigenvalues
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.stacks import Linear, Selection

# Abar counts as diagonal when its correlations are this small: rotating twice per iteration
# would then cost more than the iterations it saves.
DIAGONAL_TOLERANCE = 0.3


class MeanFieldBasis(Protocol):
    """Coordinates in which the mean field can be solved."""

    def mean_field(self, w: FloatArray, lam: FloatArray, gam: FloatArray) -> Linear:
        """Approximate inverse of w + lam (lap + gam I), where w has shape (m,)."""


def mean_field(objective: GraphObjective, basis: MeanFieldBasis) -> Linear:
    """Replace every A_v by their mean: (I (x) Abar + N lam (lap + gam I) (x) I)^{-1}.

    A Kronecker structure, diagonal in the eigenvectors of the Laplacian and of Abar.
    """
    dtype = objective.moments.second.dtype
    n_nodes = objective.shape[0]
    mean = objective.moments.second.mean(rough=True).astype(np.float64)
    w = np.maximum(np.diagonal(mean), 0.0)
    rotation = None
    # Directions far below the leading one are the penalty's business, not the data's.
    size = np.sqrt(w + 1e-6 * w.max(initial=0) + np.finfo(float).tiny)
    correlations = np.abs(mean - np.diag(np.diagonal(mean))) / np.outer(size, size)
    if correlations.max() > DIAGONAL_TOLERANCE:
        eigenvalues, vectors = np.linalg.eigh(mean)
        w, rotation = np.maximum(eigenvalues, 0.0), vectors.astype(dtype)
    inverse = basis.mean_field(w, n_nodes * objective.lam, objective.gam)
    return inverse if rotation is None else Rotated(inverse, rotation)


@dataclass(frozen=True, eq=False)
class Rotated:
    """An operator in rotated features: U inner U'."""

    inner: Linear
    rotation: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Rotate, apply, rotate back."""
        return _on_features(self.inner.apply(_on_features(x, self.rotation)), self.rotation.T)

    def restrict(self, candidates: Selection) -> Rotated:
        """Keep some of the candidates."""
        return replace(self, inner=self.inner.restrict(candidates))


def _on_features(x: FloatArray, matrix: FloatArray) -> FloatArray:
    """X times a matrix over the features, as one product instead of one for every node."""
    return np.asarray(x.reshape(-1, x.shape[-1]) @ matrix).reshape(x.shape)
