"""Coordinates over the graph in which conjugate gradients run.

There are two. In the eigenbasis of the Laplacian the graph penalty and the mean field are
diagonal, but the basis is a dense matrix over all nodes. On larger graphs the problem stays at
the nodes, the Laplacian is sparse, and a cycle of multigrid solves the mean field.

Symbols
-------
mu, V       eigenvalues and eigenvectors of the Laplacian
w           eigenvalues of the mean second moment
X           a stack of shape (n_nodes, n_candidates, m)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.solvers.conjugate_gradients import Chosen, Linear, by_columns, pick, times
from graphratio.solvers.preconditioners.aggregation import Hierarchy, build_hierarchy
from graphratio.solvers.preconditioners.low_modes import LowModes, component_indicators, low_modes
from graphratio.solvers.preconditioners.multigrid import Multigrid

# Up to this many nodes the eigendecomposition costs less than it saves.
LARGEST_SPECTRUM = 400

# Above this share of non-zeros a dense product with the Laplacian is faster.
DENSE_SHARE = 0.05

# Entries of a group of columns in a dense product, which is faster with many columns.
DENSE_GROUP = 2**22

# Number of components with separate means, and of lowest modes of crowded graphs.
LOW_MODES = 8

# Modes of the Laplacian below this share of the mean degree separate clusters.
CLUSTER_SHARE = 0.5

# Above this many neighbours per node the mean field avoids products with the Laplacian.
CROWDED = 40


class Basis(Protocol):
    """Coordinates over the nodes."""

    @property
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""

    @property
    def components(self) -> IntArray:
        """Connected component of every node."""

    def in_null_space(self, x: sparse.csr_array) -> tuple[IntArray, Any]:
        """Transform functions that are constant on components from nodes to these coordinates.

        Returns the coordinates in which they are not zero, and their values there.
        """

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """From these coordinates to nodes."""

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """From nodes to these coordinates."""

    def penalty(self, lam: FloatArray, rho: FloatArray) -> Linear:
        """The operator lam lap + rho I in these coordinates."""

    def mean_field(self, w: FloatArray, lam: FloatArray, rho: FloatArray) -> Linear:
        """Approximate inverse of w + lam lap + rho I; w has shape (m,)."""


def basis_of(graph: Graph, dtype: Any = np.float64) -> Basis:
    """Choose the coordinates for a graph."""
    if graph.n_nodes <= LARGEST_SPECTRUM:
        modes, vectors = graph.spectrum
        return SpectralBasis(
            modes.astype(dtype, copy=False), vectors.astype(dtype, copy=False), graph.laplacian
        )
    return NodeBasis.of(graph, dtype)


@dataclass(frozen=True, eq=False)
class Diagonal:
    """Multiplication by numbers that broadcast against a stack."""

    values: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Elementwise product."""
        return self.values * x

    def restrict(self, candidates: Chosen) -> Diagonal:
        """Keep some of the candidates."""
        # A single column serves all of them.
        return self if self.values.shape[1] == 1 else Diagonal(pick(self.values, candidates))


@dataclass(frozen=True, eq=False)
class SpectralBasis:
    """All modes of the Laplacian, shape (n_nodes,), and their vectors, (n_nodes, n_nodes)."""

    modes: FloatArray
    vectors: FloatArray
    laplacian: sparse.csr_array

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""
        return build_hierarchy(self.laplacian)

    @cached_property
    def components(self) -> IntArray:
        """Connected component of every node."""
        return np.asarray(csgraph.connected_components(self.laplacian, directed=False)[1])

    def in_null_space(self, x: sparse.csr_array) -> tuple[IntArray, Any]:
        """The lowest modes, as many as there are components."""
        lowest = np.arange(self.components.max() + 1)
        return lowest, self.vectors[:, lowest].T @ x

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """V X."""
        return times(self.vectors, x)

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """V' X."""
        return times(self.vectors.T, x)

    def penalty(self, lam: FloatArray, rho: FloatArray) -> Diagonal:
        """Lam mu + rho, a number for every mode and candidate."""
        values = lam * self.modes[:, np.newaxis] + rho
        return Diagonal(values.astype(self.modes.dtype)[:, :, np.newaxis])

    def mean_field(self, w: FloatArray, lam: FloatArray, rho: FloatArray) -> Diagonal:
        """1 / (w + lam mu + rho): exact."""
        return Diagonal(_reciprocal(w, lam, rho, self.modes))


@dataclass(frozen=True, eq=False)
class NodeBasis:
    """The nodes themselves.

    `constants`, shape (n_nodes, n_constants), are normalised indicators of the largest components.
    """

    constants: FloatArray
    graph: Graph

    @cached_property
    def laplacian(self) -> Any:
        """The Laplacian, sparse or dense, whichever multiplies many columns faster."""
        sparse_form = self.graph.laplacian.astype(self.constants.dtype)
        crowded = sparse_form.nnz > DENSE_SHARE * self.graph.n_nodes**2
        return sparse_form.toarray() if crowded else sparse_form

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""
        return build_hierarchy(self.graph.laplacian)

    @property
    def crowded(self) -> bool:
        """Whether nodes have very many neighbours on average."""
        return 2 * self.graph.n_edges > CROWDED * self.graph.n_nodes

    @cached_property
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
        """Multiply.

        The Laplacian annihilates means over components. They are subtracted first, since a strong
        penalty would otherwise amplify the rounding error of that cancellation.
        """
        flat, m = self.basis.constants, x.shape[2]
        lam, rho = np.repeat(self.lam, m), np.repeat(self.rho, m)
        connected = self.basis.components.max() == 0

        def work(columns: FloatArray, which: slice) -> FloatArray:
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


def _reciprocal(w: FloatArray, lam: FloatArray, rho: FloatArray, graph: FloatArray) -> FloatArray:
    """Values 1 / (w + lam graph + rho), shape (len(graph), n_candidates, m)."""
    coupled = (lam * graph[:, np.newaxis] + rho)[:, :, np.newaxis]
    return (1.0 / (coupled + w)).astype(graph.dtype)
