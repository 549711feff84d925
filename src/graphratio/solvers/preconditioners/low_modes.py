"""The mean field on crowded graphs: exact on the lowest modes, by the degrees elsewhere.

Where nodes have very many neighbours, products with the Laplacian are expensive. The degrees
alone approximate it well on all modes but the lowest, which separate clusters.

Symbols as in `bases`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.solvers.conjugate_gradients import Chosen, pick, times


@dataclass(frozen=True, eq=False)
class LowModes:
    """Sum of an exact part on the lowest modes and a diagonal part at the nodes.

    `vectors` has shape (n_nodes, n_low), `low` (n_low, n_candidates, m) and `local` (n_nodes,
    n_candidates, m).
    """

    vectors: FloatArray
    low: FloatArray
    local: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Both parts."""
        result = self.local * x
        result += times(self.vectors, self.low * times(self.vectors.T, x))
        return result

    def restrict(self, candidates: Chosen) -> LowModes:
        """Keep some of the candidates."""
        return replace(self, low=pick(self.low, candidates), local=pick(self.local, candidates))


def component_indicators(graph: Graph, n_largest: int) -> FloatArray:
    """Normalised indicators of the largest components, shape (n_nodes, at most n_largest)."""
    sizes = np.bincount(graph.components)
    largest = np.argsort(-sizes, kind="stable")[:n_largest]
    return np.asarray((graph.components[:, np.newaxis] == largest) / np.sqrt(sizes[largest]))


def low_modes(graph: Graph, n_modes: int, constants: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Approximate lowest modes of the Laplacian, shapes (k,) and (n_nodes, k).

    They are combinations of the smoothest functions relative to the degrees, which Lanczos finds
    quickly, and of the constants that the Laplacian annihilates exactly.
    """
    scale = 1.0 / np.sqrt(np.maximum(graph.degrees, np.finfo(np.float64).tiny))
    scale[graph.isolated_mask] = 0.0
    root = sparse.diags_array(scale)
    start = np.random.default_rng(0).normal(size=graph.n_nodes)
    _, found = eigsh(root @ graph.adjacency @ root, k=n_modes, which="LA", tol=1e-4, v0=start)
    space, _ = np.linalg.qr(np.column_stack([constants, scale[:, np.newaxis] * found]))
    # Rayleigh-Ritz: orthonormal modes, and the best values within this space.
    modes, rotation = np.linalg.eigh(space.T @ (graph.laplacian @ space))
    return np.maximum(modes, 0.0), space @ rotation
