"""Averages over neighbourhoods of the graph, of several sizes.

A field over the nodes becomes (I + length Lap)^{-2} field, the solution of two graph-penalised
least-squares problems in a row: weights fall off smoothly with the distance in the graph. Small
graphs use a dense matrix, so that all times are one product; large graphs a sparse factorisation.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph

# Up to this many nodes the matrix is stored.
DENSE_NODES = 2_000


# Sizes of neighbourhoods, as strengths of smoothing in units of the inverse mean degree.
SMOOTHING = (1.5, 8.0)


def smoothing_of(graph: Graph, given: tuple[float, ...] | None) -> tuple[float, ...]:
    """Strengths of smoothing: those given, or the usual ones; none without edges."""
    if not graph.n_edges:
        return ()
    return tuple(one / graph.mean_degree for one in SMOOTHING) if given is None else given


class GraphSmoother:
    """Applies (I + length Lap)^{-2} along the last axis."""

    def __init__(self, graph: Graph, length: float) -> None:
        self._dense: FloatArray | None = None
        if graph.n_nodes <= DENSE_NODES:
            values, vectors = graph.spectrum
            self._dense = (vectors / (1 + length * values) ** 2) @ vectors.T
        else:
            identity = sparse.eye_array(graph.n_nodes, format="csc")
            system = identity + length * sparse.csc_array(graph.laplacian)
            self._factor = splu(sparse.csc_matrix(system))

    def apply(self, field: FloatArray) -> FloatArray:
        """Smooth fields of shape (..., n_nodes)."""
        if self._dense is not None:
            return np.asarray(field @ self._dense.astype(field.dtype))
        flat = np.ascontiguousarray(field.reshape(-1, field.shape[-1]).T, np.float64)
        smooth = self._factor.solve(self._factor.solve(flat)).T
        return np.asarray(smooth.reshape(field.shape), dtype=field.dtype)
