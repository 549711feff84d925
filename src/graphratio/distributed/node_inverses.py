"""Every node of a partition by itself, in double precision.

Symbols as in `objectives`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.stacks import Linear, Selection, pick


@dataclass(frozen=True, eq=False)
class BlockJacobi:
    """Invert the diagonal blocks A_v + N lam (d_v + gam) I, one eigenproblem per node for all.

    Attributes
    ----------
    inverse : ndarray of shape (n_nodes, n_candidates, m)
    vectors : ndarray of shape (n_nodes, m, m)
        Eigenvectors of the A_v.
    """

    inverse: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, objective: GraphObjective) -> BlockJacobi:
        """Set up for an objective in Nystrom form."""
        dtype = objective.moments.second.dtype
        eigenvalues, vectors = np.linalg.eigh(objective.moments.second.dense())
        degrees = objective.laplacian.diagonal()
        graph = objective.lam * (degrees[:, np.newaxis] + objective.gam)
        data = np.maximum(eigenvalues, 0.0)[:, np.newaxis]
        inverse = 1.0 / (objective.shape[0] * graph[:, :, np.newaxis] + data)
        return cls(inverse.astype(dtype), vectors)

    def apply(self, x: FloatArray) -> FloatArray:
        """Solve every node by itself."""
        rotated = x @ self.vectors
        rotated *= self.inverse
        return np.asarray(rotated @ self.vectors.transpose(0, 2, 1))

    def restrict(self, candidates: Selection) -> BlockJacobi:
        """Keep some of the candidates."""
        return replace(self, inverse=pick(self.inverse, candidates))


@dataclass(frozen=True, eq=False)
class HalfSum:
    """Half the sum of two preconditioners: each covers the corner where the other is weak."""

    first: Linear
    second: Linear

    def apply(self, x: FloatArray) -> FloatArray:
        """Average of both."""
        return 0.5 * (self.first.apply(x) + self.second.apply(x))

    def restrict(self, candidates: Selection) -> HalfSum:
        """Keep some of the candidates."""
        return HalfSum(self.first.restrict(candidates), self.second.restrict(candidates))
