"""The mean field on crowded graphs: exact on the lowest modes, by the degrees elsewhere.

Where nodes have very many neighbours, products with the Laplacian are what costs, and the
degrees alone are right for nearly all modes but the lowest, which tell clusters apart.

Symbols as in `bases`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.solvers.stacks import Selection, pick, times


@dataclass(frozen=True, eq=False)
class LowModes:
    """Sum of an exact part on the lowest modes and a diagonal part at the nodes.

    Attributes
    ----------
    vectors : ndarray of shape (n_nodes, n_low)
    low : ndarray of shape (n_low, n_candidates, m)
    local : ndarray of shape (n_nodes, n_candidates, m)
    """

    vectors: FloatArray
    low: FloatArray
    local: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Both parts."""
        result = self.local * x
        result += times(self.vectors, self.low * times(self.vectors.T, x))
        return result

    def restrict(self, candidates: Selection) -> LowModes:
        """Keep some of the candidates."""
        return replace(self, low=pick(self.low, candidates), local=pick(self.local, candidates))


def component_indicators(graph: Graph, n_largest: int) -> FloatArray:
    """Indicators of the largest components, of norm one, shape (n_nodes, at most n_largest)."""
    sizes = np.bincount(graph.components)
    largest = np.argsort(-sizes, kind="stable")[:n_largest]
    return np.asarray((graph.components[:, np.newaxis] == largest) / np.sqrt(sizes[largest]))


def low_modes(graph: Graph, n_modes: int, constants: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lowest modes of the Laplacian, shapes (k,) and (n_nodes, k), approximately.

    They are sought as the smoothest functions relative to the degrees, which Lanczos finds
    quickly, together with the constants that the Laplacian annihilates exactly.

    Examples
    --------
    >>> ring = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    >>> modes, _ = low_modes(ring, 3, component_indicators(ring, 1))
    >>> modes[:2].round(4)
    array([0.    , 0.0437])
    """
    scale = 1.0 / np.sqrt(np.maximum(graph.degrees, np.finfo(np.float64).tiny))
    scale[graph.isolated_mask] = 0.0
    root = sparse.diags_array(scale)
    start = np.random.default_rng(0).normal(size=graph.n_nodes)
    _, found = eigsh(root @ graph.adjacency @ root, k=n_modes, which="LA", tol=1e-4, v0=start)
    space, _ = np.linalg.qr(np.column_stack([constants, scale[:, np.newaxis] * found]))
    # Rayleigh-Ritz, so that the modes are orthonormal and their values as good as can be.
    modes, rotation = np.linalg.eigh(space.T @ (graph.laplacian @ space))
    return np.maximum(modes, 0.0), space @ rotation


def reciprocal(w: FloatArray, lam: FloatArray, gam: FloatArray, graph: FloatArray) -> FloatArray:
    """Values 1 / (w + lam (graph + gam)), shape (len(graph), n_candidates, m)."""
    coupled = (lam * (graph[:, np.newaxis] + gam))[:, :, np.newaxis]
    return (1.0 / (coupled + w)).astype(graph.dtype)
