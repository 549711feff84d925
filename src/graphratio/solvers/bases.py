"""Coordinates over the graph in which conjugate gradients run.

Two of them. In the eigenbasis of the Laplacian the graph penalty is diagonal, and so is the
mean field; it takes a dense matrix of all nodes. On larger graphs the problem stays at the
nodes, the Laplacian is sparse, and the mean field is solved by a cycle of multigrid.

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

from graphratio.graph import Graph
from graphratio.solvers.aggregation import Hierarchy, build_hierarchy
from graphratio.solvers.multigrid import Multigrid
from graphratio.solvers.stacks import Linear, Selection, pick, times
from graphratio.typing import FloatArray

# Up to this many nodes the full eigendecomposition costs less than it saves.
LARGEST_SPECTRUM = 800

# Above this share of non-zeros a dense product with the Laplacian is faster.
DENSE_SHARE = 0.05

# Components whose means are kept apart from the rest.
MOST_CONSTANTS = 8


class Basis(Protocol):
    """Coordinates over the nodes."""

    @property
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """From these coordinates to nodes."""

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """From nodes to these coordinates."""

    def penalty(self, lam: FloatArray, gam: FloatArray) -> Linear:
        """The operator lam (lap + gam I) in these coordinates."""

    def mean_field(self, w: FloatArray, lam: FloatArray, gam: FloatArray) -> Linear:
        """Approximate inverse of w + lam (lap + gam I), where w has shape (m,)."""


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

    def restrict(self, candidates: Selection) -> Diagonal:
        """Keep some of the candidates."""
        return Diagonal(pick(self.values, candidates))


@dataclass(frozen=True, eq=False)
class SpectralBasis:
    """All modes of the Laplacian.

    Attributes
    ----------
    modes : ndarray of shape (n_nodes,)
    vectors : ndarray of shape (n_nodes, n_nodes)
    laplacian : scipy.sparse.csr_array of shape (n_nodes, n_nodes)
    """

    modes: FloatArray
    vectors: FloatArray
    laplacian: sparse.csr_array

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""
        return build_hierarchy(self.laplacian)

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """V X."""
        return times(self.vectors, x)

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """V' X."""
        return times(self.vectors.T, x)

    def penalty(self, lam: FloatArray, gam: FloatArray) -> Diagonal:
        """Lam (mu + gam), a number for every mode and candidate."""
        values = lam * (self.modes[:, np.newaxis] + gam)
        return Diagonal(values.astype(self.modes.dtype)[:, :, np.newaxis])

    def mean_field(self, w: FloatArray, lam: FloatArray, gam: FloatArray) -> Diagonal:
        """1 / (w + lam (mu + gam)): exact."""
        return Diagonal(_reciprocal(w, lam, gam, self.modes))


@dataclass(frozen=True, eq=False)
class NodeBasis:
    """The nodes themselves.

    Attributes
    ----------
    laplacian : sparse or dense matrix of shape (n_nodes, n_nodes)
    constants : ndarray of shape (n_nodes, n_constants)
        Normalised indicators of the largest components.
    hierarchy : Hierarchy
    """

    laplacian: Any
    constants: FloatArray
    hierarchy: Hierarchy

    @classmethod
    def of(cls, graph: Graph, dtype: Any = np.float64) -> NodeBasis:
        """Build the hierarchy of a graph and choose the form of its Laplacian."""
        laplacian = graph.laplacian.astype(dtype)
        if laplacian.nnz > DENSE_SHARE * graph.n_nodes**2:
            laplacian = laplacian.toarray()
        constants = component_indicators(graph, MOST_CONSTANTS).astype(dtype)
        return cls(laplacian, constants, build_hierarchy(graph.laplacian))

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """Nothing to do."""
        return x

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """Nothing to do."""
        return x

    def penalty(self, lam: FloatArray, gam: FloatArray) -> LaplacianPenalty:
        """Lam (lap + gam I)."""
        dtype = self.constants.dtype
        return LaplacianPenalty(self, lam.astype(dtype), gam.astype(dtype))

    def mean_field(self, w: FloatArray, lam: FloatArray, gam: FloatArray) -> Multigrid:
        """One cycle of multigrid."""
        return Multigrid.of(self.hierarchy, w, lam, gam)


@dataclass(frozen=True, eq=False)
class LaplacianPenalty:
    """lam (lap + gam I) at the nodes."""

    basis: NodeBasis
    lam: FloatArray
    gam: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Multiply.

        Means over components, which the Laplacian annihilates, are taken out first: a strong
        penalty would otherwise blow up the rounding of that cancellation.
        """
        flat = self.basis.constants
        product = times(self.basis.laplacian, x - times(flat, times(flat.T, x)))
        product += self.gam[:, np.newaxis] * x
        product *= self.lam[:, np.newaxis]
        return product

    def restrict(self, candidates: Selection) -> LaplacianPenalty:
        """Keep some of the candidates."""
        return replace(self, lam=self.lam[candidates], gam=self.gam[candidates])


def component_indicators(graph: Graph, n_largest: int) -> FloatArray:
    """Indicators of the largest components, of norm one, shape (n_nodes, at most n_largest)."""
    sizes = np.bincount(graph.components)
    largest = np.argsort(-sizes, kind="stable")[:n_largest]
    return np.asarray((graph.components[:, np.newaxis] == largest) / np.sqrt(sizes[largest]))


def _reciprocal(w: FloatArray, lam: FloatArray, gam: FloatArray, graph: FloatArray) -> FloatArray:
    """1 / (w + lam (graph + gam)), shape (len(graph), n_candidates, m)."""
    coupled = (lam * (graph[:, np.newaxis] + gam))[:, :, np.newaxis]
    return (1.0 / (coupled + w)).astype(graph.dtype)
