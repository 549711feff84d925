"""Solves the mean-field problem: every direction is one shifted Laplacian.

theta_j = (w_j + rho + lam Lap)^{-1} delta_j. Small graphs use dense inverses, so that all times
are one matrix product; large graphs use sparse factorisations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph

# Up to this many nodes the inverses are stored: 12 directions then take 100 MB.
DENSE_NODES = 1_000

_CHUNK = 256


class Smoother:
    """Applies the inverse of the system along the nodes, one direction at a time.

    `diagonal` is w_j + rho, and `coupling` the factor of the Laplacian. `own`, shape (m, n_nodes),
    are the diagonals of the inverses. `modes`, shape (n_nodes, n_modes), are eigenvectors of the
    Laplacian and `shifted`, shape (m, n_modes), the system in them; None for large graphs or no
    coupling.
    """

    def __init__(self, graph: Graph, diagonal: FloatArray, coupling: FloatArray | float) -> None:
        self.n_nodes = graph.n_nodes
        self.diagonal = diagonal
        strength = np.broadcast_to(coupling, diagonal.shape)
        self.coupled = graph.n_edges > 0 and bool(strength.any())
        self.modes: FloatArray | None = None
        self.shifted: FloatArray | None = None
        self._dense: dict[np.dtype[np.floating], FloatArray] = {}
        self._factors = []
        if not self.coupled:
            self.own = np.repeat(1 / diagonal[:, np.newaxis], self.n_nodes, axis=1)
        elif self.n_nodes <= DENSE_NODES:
            values, vectors = graph.spectrum
            self.modes = vectors
            self.shifted = diagonal[:, np.newaxis] + strength[:, np.newaxis] * values
            inverse = (vectors / self.shifted[:, np.newaxis, :]) @ vectors.T
            self._dense[np.dtype(np.float64)] = inverse
            self.own = np.ascontiguousarray(np.einsum("jvv->jv", inverse))
        else:
            identity = sparse.eye_array(self.n_nodes, format="csc")
            lap = sparse.csc_array(graph.laplacian)
            self._factors = [
                splu(sparse.csc_matrix(s * lap + d * identity))
                for s, d in zip(strength, diagonal, strict=True)
            ]
            self.own = np.array(
                [_inverse_diagonal(factor, self.n_nodes) for factor in self._factors]
            )

    def apply(self, direction: int, delta: FloatArray) -> FloatArray:
        """Estimates of one direction, from and to shape (n_times, n_nodes)."""
        if not self.coupled:
            return delta / delta.dtype.type(self.diagonal[direction])
        if self._factors:
            solved = self._factors[direction].solve(np.ascontiguousarray(delta.T, np.float64))
            return np.asarray(solved.T, dtype=delta.dtype)
        if delta.dtype not in self._dense:
            self._dense[delta.dtype] = self._dense[np.dtype(np.float64)].astype(delta.dtype)
        return np.asarray(delta @ self._dense[delta.dtype][direction])


def _inverse_diagonal(factor: Any, n_nodes: int) -> FloatArray:
    """Diagonal of the inverse of a factorised matrix, some columns at a time."""
    parts = []
    for begin in range(0, n_nodes, _CHUNK):
        unit = np.eye(n_nodes, min(_CHUNK, n_nodes - begin), -begin)
        parts.append(factor.solve(unit)[begin:].diagonal())
    return np.concatenate(parts)
