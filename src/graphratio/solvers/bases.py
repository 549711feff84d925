"""Coordinates over the graph in which conjugate gradients run.

Two of them. In the eigenbasis of the Laplacian the graph penalty is diagonal, and so is the
mean field; it takes a dense matrix of all nodes. On larger graphs the problem stays at the
nodes, the Laplacian is sparse, and only its lowest modes are treated exactly: they carry what
neighbours alone cannot even out.

Symbols
-------
mu, V       eigenvalues and eigenvectors of the Laplacian, all or the lowest
d           degrees
w           eigenvalues of the mean second moment
X           a stack of shape (n_nodes, n_candidates, m)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from graphratio.graph import Graph
from graphratio.typing import BoolArray, FloatArray, IntArray

# Up to this many nodes the full eigendecomposition costs less than it saves.
LARGEST_SPECTRUM = 800

# Lowest modes that are treated exactly beyond that.
LOW_MODES = 8

# Above this share of non-zeros a dense product with the Laplacian is faster.
DENSE_SHARE = 0.05

Selection = IntArray | BoolArray


class Linear(Protocol):
    """A linear operator on stacks, candidate by candidate."""

    def apply(self, x: FloatArray) -> FloatArray:
        """Apply it, shape (n_nodes, n_candidates, m)."""

    def restrict(self, candidates: Selection) -> Linear:
        """The same for some of the candidates only."""


class Basis(Protocol):
    """Coordinates over the nodes."""

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
        return SpectralBasis(modes.astype(dtype, copy=False), vectors.astype(dtype, copy=False))
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
    """

    modes: FloatArray
    vectors: FloatArray

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """V X."""
        return _times(self.vectors, x)

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """V' X."""
        return _times(self.vectors.T, x)

    def penalty(self, lam: FloatArray, gam: FloatArray) -> Diagonal:
        """Lam (mu + gam), a number for every mode and candidate."""
        values = lam * (self.modes[:, np.newaxis] + gam)
        return Diagonal(values.astype(self.modes.dtype)[:, :, np.newaxis])

    def mean_field(self, w: FloatArray, lam: FloatArray, gam: FloatArray) -> Diagonal:
        """1 / (w + lam (mu + gam)): exact."""
        return Diagonal(_reciprocal(w, lam, gam, self.modes))


@dataclass(frozen=True, eq=False)
class NodeBasis:
    """The nodes themselves, with the lowest modes known.

    Attributes
    ----------
    laplacian : sparse or dense matrix of shape (n_nodes, n_nodes)
    degrees : ndarray of shape (n_nodes,)
    constants : ndarray of shape (n_nodes, n_constants)
        Normalised indicators of the largest components.
    modes : ndarray of shape (n_low,)
    vectors : ndarray of shape (n_nodes, n_low)
        Orthonormal.
    """

    laplacian: Any
    degrees: FloatArray
    constants: FloatArray
    modes: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, graph: Graph, dtype: Any = np.float64) -> NodeBasis:
        """Find the lowest modes of a graph and choose the form of its Laplacian."""
        constants = component_indicators(graph, LOW_MODES)
        modes, vectors = low_modes(graph, LOW_MODES, constants)
        laplacian = graph.laplacian.astype(dtype)
        if laplacian.nnz > DENSE_SHARE * graph.n_nodes**2:
            laplacian = laplacian.toarray()
        degrees = graph.degrees.astype(dtype)
        return cls(laplacian, degrees, constants.astype(dtype), modes, vectors.astype(dtype))

    def to_nodes(self, x: FloatArray) -> FloatArray:
        """Nothing to do."""
        return x

    def from_nodes(self, x: FloatArray) -> FloatArray:
        """Nothing to do."""
        return x

    def penalty(self, lam: FloatArray, gam: FloatArray) -> LaplacianPenalty:
        """Lam (lap + gam I)."""
        dtype = self.vectors.dtype
        return LaplacianPenalty(self, lam.astype(dtype), gam.astype(dtype))

    def mean_field(self, w: FloatArray, lam: FloatArray, gam: FloatArray) -> LowModes:
        """Exact on the lowest modes, by the degrees on what is left."""
        dtype = self.vectors.dtype
        low = _reciprocal(w, lam, gam, self.modes).astype(dtype)
        return LowModes(self.vectors, low, _reciprocal(w, lam, gam, self.degrees).astype(dtype))


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
        product = _times(self.basis.laplacian, x - _times(flat, _times(flat.T, x)))
        product += self.gam[:, np.newaxis] * x
        product *= self.lam[:, np.newaxis]
        return product

    def restrict(self, candidates: Selection) -> LaplacianPenalty:
        """Keep some of the candidates."""
        return replace(self, lam=self.lam[candidates], gam=self.gam[candidates])


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
        result += _times(self.vectors, self.low * _times(self.vectors.T, x))
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
    >>> modes[:3].round(4)
    array([0.    , 0.0437, 0.0437])
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


def pick(x: FloatArray, candidates: Selection) -> FloatArray:
    """Some of the candidates of a stack, in the usual memory order, which indexing alone loses."""
    return np.ascontiguousarray(x[:, candidates])


def _times(matrix: Any, x: FloatArray) -> FloatArray:
    return np.asarray(matrix @ x.reshape(len(x), -1)).reshape(-1, *x.shape[1:])


def _reciprocal(w: FloatArray, lam: FloatArray, gam: FloatArray, graph: FloatArray) -> FloatArray:
    """1 / (w + lam (graph + gam)), shape (len(graph), n_candidates, m)."""
    coupled = (lam * (graph[:, np.newaxis] + gam))[:, :, np.newaxis]
    return (1.0 / (coupled + w)).astype(graph.dtype)
