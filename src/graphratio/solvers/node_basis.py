"""The nodes themselves as coordinates, for graphs too large for all eigenvectors.

The Laplacian is sparse, and a cycle of multigrid solves the mean field. Where nodes have very many
neighbours, products with the Laplacian are expensive. The degrees alone approximate it well on all
modes but the lowest, which separate clusters. The mean field then solves for the lowest modes
exactly and uses the degrees elsewhere.

Symbols as in `bases`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.solvers.clusters import clusters_of, dense_or_clustered
from graphratio.solvers.conjugate_gradients import Chosen, Linear, by_columns, pick, times
from graphratio.solvers.preconditioners.aggregation import Hierarchy, build_hierarchy
from graphratio.solvers.preconditioners.multigrid import Multigrid

# Above this share of non-zeros a dense product with the Laplacian is faster.
DENSE_SHARE = 0.05

# Entries of a group of columns in a dense product, which is faster with many columns.
DENSE_GROUP = 2**22

# Number of components with separate means, and of lowest modes of crowded graphs.
LOW_MODES = 8

# Damped Jacobi steps that smooth interpolated modes.
MODE_SMOOTHING = 4
MODE_DAMPING = 2 / 3

# Above this many neighbours per node the mean field avoids products with the Laplacian.
CROWDED = 40


@dataclass(frozen=True, eq=False)
class NodeBasis:
    """The nodes; `constants`, (n_nodes, n_constants), indicate the largest components."""

    constants: FloatArray
    graph: Graph

    @computed_once
    def laplacian(self) -> Any:
        """The Laplacian, sparse, dense or in blocks, whichever multiplies many columns faster."""
        sparse_form = self.graph.laplacian.astype(self.constants.dtype)
        if sparse_form.nnz <= DENSE_SHARE * self.graph.n_nodes**2:
            return sparse_form
        if not self.crowded:
            return sparse_form.toarray()
        return dense_or_clustered(sparse_form, clusters_of(*self.lowest, self.graph.mean_degree))

    @computed_once
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""
        return build_hierarchy(self.graph.laplacian)

    @property
    def crowded(self) -> bool:
        """Whether nodes have very many neighbours on average."""
        return 2 * self.graph.n_edges > CROWDED * self.graph.n_nodes

    @computed_once
    def lowest(self) -> tuple[FloatArray, FloatArray]:
        """Lowest modes of the Laplacian, for crowded graphs."""
        return low_modes(self.graph, LOW_MODES, self.constants.astype(np.float64))

    @classmethod
    def of(cls, graph: Graph, dtype: Any = np.float64) -> NodeBasis:
        """Set up for a graph, in the given precision."""
        return cls(component_indicators(graph, LOW_MODES).astype(dtype), graph)

    @property
    def components(self) -> IntArray:
        """Connected component of every node."""
        return self.graph.components

    def in_null_space(self, x: sparse.csr_array) -> tuple[IntArray, Any]:
        """The nodes at which a function is not zero."""
        nodes = np.flatnonzero(np.diff(x.indptr))
        return nodes, x[nodes]

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """Nothing to do."""
        return x

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """Nothing to do."""
        return x

    def penalty(self, lam: FloatArray, rho: FloatArray) -> LaplacianPenalty:
        """Lam lap + rho I."""
        dtype = self.constants.dtype
        return LaplacianPenalty(self, lam.astype(dtype), rho.astype(dtype))

    def mean_field(self, w: FloatArray, lam: FloatArray, rho: FloatArray) -> Linear:
        """One cycle of multigrid; on crowded graphs the lowest modes and the degrees."""
        if not self.crowded:
            return Multigrid.of(self.hierarchy, w, lam, rho)
        dtype = self.constants.dtype
        modes, vectors = self.lowest
        low = _reciprocal(w, lam, rho, modes).astype(dtype)
        local = _reciprocal(w, lam, rho, self.graph.degrees).astype(dtype)
        return LowModes(vectors.astype(dtype), low, local)


@dataclass(frozen=True, eq=False)
class LaplacianPenalty:
    """lam lap + rho I at the nodes."""

    basis: NodeBasis
    lam: FloatArray
    rho: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Multiply."""
        flat, m = self.basis.constants, x.shape[2]
        lam, rho = np.repeat(self.lam, m), np.repeat(self.rho, m)
        connected = self.basis.components.max() == 0

        def work(columns: FloatArray, which: slice) -> FloatArray:
            # The Laplacian annihilates means over components, and a strong penalty would amplify
            # the rounding error of that cancellation.
            means = flat.T @ columns
            # A connected graph has one mean per column.
            centred = columns - (flat[0] * means if connected else flat @ means)
            product = np.asarray(self.basis.laplacian @ centred)
            product *= lam[which]
            product += np.multiply(columns, rho[which], out=centred)
            return product

        is_sparse = sparse.issparse(self.basis.laplacian)
        return by_columns(work, x, None if is_sparse else DENSE_GROUP)

    def restrict(self, candidates: Chosen) -> LaplacianPenalty:
        """Keep some of the candidates."""
        return replace(self, lam=self.lam[candidates], rho=self.rho[candidates])


@dataclass(frozen=True, eq=False)
class LowModes:
    """Exact on the lowest modes, diagonal at the nodes.

    Shapes: `vectors` (n_nodes, n_low), `low` (n_low, C, m), `local` (n_nodes, C, m).
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
    """Approximate lowest modes of the Laplacian, shapes (k,) and (n_nodes, k)."""
    # The smoothest functions relative to the degrees, which Lanczos finds quickly, and the
    # constants that the Laplacian annihilates exactly.
    scale = 1.0 / np.sqrt(np.maximum(graph.degrees, np.finfo(np.float64).tiny))
    scale[graph.isolated_mask] = 0.0
    root = sparse.diags_array(scale)
    start = np.random.default_rng(0).normal(size=graph.n_nodes)
    _, found = eigsh(root @ graph.adjacency @ root, k=n_modes, which="LA", tol=1e-4, v0=start)
    return _best_within(graph, np.column_stack([constants, scale[:, np.newaxis] * found]))


def interpolated_modes(
    graph: Graph, n_modes: int, constants: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rougher lowest modes than those of `low_modes`, with work linear in the number of nodes.

    Lanczos needs more steps on larger graphs. Here the lowest modes of a small graph of the
    multigrid hierarchy are interpolated to the nodes, and smoothed over the edges.
    """
    hierarchy = build_hierarchy(graph.laplacian, np.float64)
    small = hierarchy.dense_level
    found = small.vectors[:, :n_modes]
    for level in reversed(hierarchy.levels[: small.depth]):
        found = level.interpolation @ found
    per_degree = np.divide(
        MODE_DAMPING, graph.degrees, out=np.zeros(graph.n_nodes), where=graph.degrees > 0
    )[:, np.newaxis]
    for _ in range(MODE_SMOOTHING):
        found = found - per_degree * (graph.laplacian @ found)
    return _best_within(graph, np.column_stack([constants, found]))


def _best_within(graph: Graph, space: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rayleigh-Ritz: orthonormal modes, and the best values within a space (n_nodes, k)."""
    basis, _ = np.linalg.qr(space)
    modes, rotation = np.linalg.eigh(basis.T @ (graph.laplacian @ basis))
    return np.maximum(modes, 0.0), basis @ rotation


def _reciprocal(w: FloatArray, lam: FloatArray, rho: FloatArray, graph: FloatArray) -> FloatArray:
    """Values 1 / (w + lam graph + rho), shape (len(graph), n_candidates, m)."""
    coupled = (lam * graph[:, np.newaxis] + rho)[:, :, np.newaxis]
    return (1.0 / (coupled + w)).astype(graph.dtype)
