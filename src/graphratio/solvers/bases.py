"""Coordinates over the graph in which conjugate gradients run, and the mean field in them.

In the eigenbasis of the Laplacian the graph penalty and the mean field are diagonal, but the basis
is a dense matrix over all nodes. Larger graphs stay at the nodes (`node_basis`).

The mean field replaces the second moment of every node by their average. Across an edge the
penalty decides, so this does no harm. No edge constrains the mean over a connected component,
and edges hardly constrain the mean over a cluster: only the data of that part settle them. If
these data differ from the average, each direction of the features in which they do costs
conjugate gradients an iteration or more. So these means are solved for exactly, with their own
data, and the mean field solves for the differences from them.

Symbols as in `moments.objective`, and
mu, V       eigenvalues and eigenvectors of the Laplacian
X           a stack of shape (n_nodes, n_candidates, m)
Abar, U, w  mean of the A_v over nodes, its eigenvectors and eigenvalues
P           orthonormal functions on the nodes, shape (n_nodes, k): normalised indicators of
            components, or lowest modes of the Laplacian
C           P' (blockdiag(A) + lam lap + rho I) P, of size k m: for components a block of size m
            for each, which is the mean of its A_v plus rho I
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import FactoredSecond, SecondMoment
from graphratio.solvers.clusters import CLUSTER_SHARE
from graphratio.solvers.conjugate_gradients import Chosen, Linear, pick, times
from graphratio.solvers.node_basis import NodeBasis
from graphratio.solvers.positive_definite import inverses
from graphratio.solvers.preconditioners.aggregation import Hierarchy, build_hierarchy
from graphratio.solvers.preconditioners.block_jacobi import FEW_CANDIDATES, NodeInverses

# Up to this many nodes the eigendecomposition costs less than it saves.
LARGEST_SPECTRUM = 400

# Abar counts as diagonal when its correlations are this small: two rotations per iteration would
# then cost more than they save.
DIAGONAL_TOLERANCE = 0.3

# The average over all nodes describes a component with more than this share of the nodes.
LARGE_SHARE = 0.5

# Number of blocks that are summed at once.
SUMMED_AT_ONCE = 2048

# Largest size of C, for many candidates and for a few.
LARGEST_MANY = 512
LARGEST_FEW = 1500


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

    @computed_once
    def hierarchy(self) -> Hierarchy:
        """Ever smaller graphs, for multigrid."""
        return build_hierarchy(self.laplacian)

    @computed_once
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
        coupled = (lam * self.modes[:, np.newaxis] + rho)[:, :, np.newaxis]
        return Diagonal((1.0 / (coupled + w)).astype(self.modes.dtype))


Basis: TypeAlias = SpectralBasis | NodeBasis


def basis_of(graph: Graph, dtype: Any = np.float64) -> Basis:
    """Choose the coordinates for a graph."""
    if graph.n_nodes <= LARGEST_SPECTRUM:
        modes, vectors = graph.spectrum
        return SpectralBasis(
            modes.astype(dtype, copy=False), vectors.astype(dtype, copy=False), graph.laplacian
        )
    return NodeBasis.of(graph, dtype)


class MeanFieldBasis(Protocol):
    """Coordinates in which the mean field can be solved."""

    def mean_field(self, w: FloatArray, lam: FloatArray, rho: FloatArray) -> Linear:
        """Approximate inverse of w + lam lap + rho I; w has shape (m,)."""


def mean_field(objective: GraphObjective, basis: MeanFieldBasis) -> Linear:
    """Replace every A_v by their mean: (I (x) Abar + (lam lap + rho I) (x) I)^{-1}."""
    dtype = objective.moments.second.dtype
    mean = objective.moments.second.mean(rough=True).astype(np.float64)
    w = np.maximum(np.diagonal(mean), 0.0)
    rotation = None
    # The penalty, not the data, decides in directions far below the leading one.
    size = np.sqrt(w + 1e-6 * w.max(initial=0) + np.finfo(float).tiny)
    correlations = np.abs(mean - np.diag(np.diagonal(mean))) / np.outer(size, size)
    if correlations.max() > DIAGONAL_TOLERANCE:
        eigenvalues, vectors = np.linalg.eigh(mean)
        w, rotation = np.maximum(eigenvalues, 0.0), vectors.astype(dtype)
    inverse = basis.mean_field(w, objective.lam, objective.rho)
    return inverse if rotation is None else Rotated(inverse, rotation)


@dataclass(frozen=True, eq=False)
class Rotated:
    """An operator in rotated features: U inner U'."""

    inner: Linear
    rotation: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Rotate, apply, rotate back."""
        return _on_features(self.inner.apply(_on_features(x, self.rotation)), self.rotation.T)

    def restrict(self, candidates: Chosen) -> Rotated:
        """Keep some of the candidates."""
        return replace(self, inner=self.inner.restrict(candidates))


@dataclass(frozen=True, eq=False)
class Corrected:
    """(I - P P') inner (I - P P') + P C^{-1} P'; `functions` is P at `rows`, zero elsewhere."""

    inner: Linear
    rows: IntArray | slice
    functions: Any
    inverse: Linear

    def apply(self, x: FloatArray) -> FloatArray:
        """Both parts."""
        own = x[self.rows]
        means = times(self.functions.T, own)
        rest = x.copy()
        rest[self.rows] -= times(self.functions, means)
        result = self.inner.apply(rest)
        solved = self.inverse.apply(means.astype(np.float32, copy=False)).astype(x.dtype)
        solved -= times(self.functions.T, result[self.rows])
        result[self.rows] += times(self.functions, solved)
        return result

    def restrict(self, candidates: Chosen) -> Corrected:
        """Keep some of the candidates."""
        return replace(
            self, inner=self.inner.restrict(candidates), inverse=self.inverse.restrict(candidates)
        )


@dataclass(frozen=True, eq=False)
class DenseInverse:
    """C^{-1} of every candidate, shape (n_candidates, k m, k m)."""

    matrix: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Multiply, shape (k, n_candidates, m)."""
        k, n_candidates, m = x.shape
        flat = x.transpose(1, 0, 2).reshape(n_candidates, k * m, 1)
        solved = (self.matrix @ flat).reshape(n_candidates, k, m)
        return np.ascontiguousarray(solved.transpose(1, 0, 2))

    def restrict(self, candidates: Chosen) -> DenseInverse:
        """Keep some of the candidates."""
        return DenseInverse(self.matrix[candidates])


def corrected_mean_field(objective: GraphObjective, basis: Basis) -> Linear:
    """The mean field, corrected on the lowest modes of crowded graphs, else on components."""
    inner = mean_field(objective, basis)
    if isinstance(basis, NodeBasis) and basis.crowded and basis.components.max() == 0:
        return with_clusters(inner, objective, basis)
    return with_components(inner, objective, basis)


def with_clusters(inner: Linear, objective: GraphObjective, basis: NodeBasis) -> Linear:
    """Solve for the lowest modes of the graph with their own second moments."""
    n_nodes, n_candidates, m = objective.shape
    second = objective.moments.second
    if isinstance(second, FactoredSecond):
        # Forming the blocks would cost more than the iterations that this saves.
        return inner
    modes, vectors = basis.lowest
    low = int(np.count_nonzero(modes < CLUSTER_SHARE * basis.graph.mean_degree))
    k = min(low, (LARGEST_FEW if n_candidates <= FEW_CANDIDATES else LARGEST_MANY) // m)
    if k == 0:
        return inner
    P = vectors[:, :k].astype(second.dtype)
    of_pair = np.ascontiguousarray((P[:, :, np.newaxis] * P[:, np.newaxis]).reshape(n_nodes, -1).T)
    sums = second.combinations(of_pair).reshape(k, k, m, m)
    data = sums.transpose(0, 2, 1, 3).reshape(k * m, k * m).astype(np.float32)
    penalty = objective.lam[:, np.newaxis] * modes[:k] + objective.rho[:, np.newaxis]
    C = np.repeat(data[np.newaxis], n_candidates, axis=0)
    diagonal = np.arange(k * m)
    C[:, diagonal, diagonal] += np.repeat(penalty, m, axis=1)
    return Corrected(inner, slice(None), P, DenseInverse(inverses(C)))


def with_components(inner: Linear, objective: GraphObjective, basis: Basis) -> Linear:
    """Solve for the means over all components, except one with most of the nodes."""
    member = basis.components
    sizes = np.bincount(member)
    small = np.flatnonzero(sizes <= LARGE_SHARE * len(member))
    if not small.size:
        return inner
    rank = np.full(len(sizes), -1)
    rank[small] = np.arange(small.size)
    nodes = np.flatnonzero(rank[member] >= 0)
    # Sorted by component, so that a chunk of nodes touches few of them.
    nodes = nodes[np.argsort(rank[member[nodes]], kind="stable")]
    part = rank[member[nodes]]
    blocks = _means(objective.moments.second, nodes, part, sizes[small])
    ridge = np.tile(objective.rho, (small.size, 1))
    size = (1 / np.sqrt(sizes[small][part])).astype(objective.moments.second.dtype)
    shape = (len(member), small.size)
    rows, functions = basis.in_null_space(sparse.csr_array((size, (nodes, part)), shape=shape))
    return Corrected(inner, rows, functions, NodeInverses.of(blocks, ridge))


def _means(second: SecondMoment, nodes: IntArray, part: IntArray, sizes: IntArray) -> FloatArray:
    """Mean of A_v over every component, shape (n_components, m, m), in single precision."""
    m = second.shape[1]
    means = np.zeros((len(sizes), m * m), dtype=np.float32)
    for begin in range(0, len(nodes), SUMMED_AT_ONCE):
        some = slice(begin, begin + SUMMED_AT_ONCE)
        blocks = second.take(nodes[some]).dense(compact=True).reshape(-1, m * m)
        first = part[some][0]
        within = sparse.csr_array(
            (1 / sizes[part[some]], (part[some] - first, np.arange(len(blocks))))
        )
        means[first : first + within.shape[0]] += within @ blocks
    return means.reshape(-1, m, m)


def _on_features(x: FloatArray, matrix: FloatArray) -> FloatArray:
    """X times a matrix over the features, as one product instead of one per node."""
    return np.asarray(x.reshape(-1, x.shape[-1]) @ matrix).reshape(x.shape)
