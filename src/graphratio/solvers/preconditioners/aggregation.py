"""A hierarchy of ever smaller graphs, built once per graph, for all multigrid cycles on it.

Smoothed aggregation: nodes form groups around roots that are at least three steps apart, and
every group is a node of the next graph. The interpolation from groups to nodes is smoothed once
over the edges, so that it has no jumps. Each level has two matrices, one for the Laplacian and
one for the identity, since every problem on the graph is a sum of both:

    tau M + L        with its own number tau in every column (see `multigrid`)

All steps are passes over the edges; there is no loop over nodes.

Symbols
-------
L, M        Laplacian and mass of a level; on the finest M is the identity
P           interpolation from the next level, shape (n, n_next), rows sum to one
D           diagonal of a matrix
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray

# Most nodes of the last level, which is solved exactly for all features together.
COARSEST = 8

# Up to this many nodes the eigenvectors of a level cost less than further levels.
DENSE_LEVEL = 400

# Groups ignore edges much lighter than the heaviest edge of a node. Of very many neighbours only
# a few count, since dense graphs would otherwise become a single group.
MANY_NEIGHBOURS = 12
FEW_NEIGHBOURS = 3
WEAKEST_SHARE = 0.1

# Damping of the Jacobi step that smooths the interpolation, for eigenvalues of up to 2.
INTERPOLATION_DAMPING = 2 / 3

POWER_STEPS = 12


@dataclass(frozen=True, eq=False)
class Level:
    """One graph of the hierarchy: L and M (n, n), P (n, n_next) and its transpose.

    `mass` is None for the identity on the finest level. `radius` bounds the eigenvalues of
    D^{-1} (tau M + L) for any tau.
    """

    laplacian: sparse.csr_array
    mass: sparse.csr_array | None
    interpolation: sparse.csr_array
    restriction: sparse.csr_array
    radius: float

    @computed_once
    def neighbours(self) -> sparse.csr_array:
        """Off-diagonal part of the Laplacian with its sign changed."""
        return sparse.csr_array(sparse.diags_array(self.laplacian.diagonal()) - self.laplacian)

    @property
    def mass_diagonal(self) -> FloatArray:
        """Diagonal of the mass, shape (n,)."""
        if self.mass is None:
            return np.ones(self.laplacian.shape[0], dtype=self.laplacian.dtype)
        return np.asarray(self.mass.diagonal())


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """All levels from fine to coarse; `laplacian` and `mass`, (n_last, n_last), are of the last.

    The last level may have no nodes, since nodes without edges stay on the levels before it.
    """

    levels: list[Level]
    laplacian: FloatArray
    mass: FloatArray

    @computed_once
    def dense_level(self) -> DenseLevel:
        """The first level that is small enough for its eigenvectors; it may have no nodes."""
        depth, laplacian, mass = len(self.levels), self.laplacian, self.mass
        for above, level in enumerate(self.levels):
            n = level.laplacian.shape[0]
            if 0 < n <= DENSE_LEVEL:
                depth, laplacian = above, level.laplacian.toarray()
                mass = np.eye(n) if level.mass is None else level.mass.toarray()
                break
        if not len(laplacian):
            return DenseLevel(depth, np.empty(0), np.empty((0, 0)))
        modes, vectors = linalg.eigh(laplacian.astype(np.float64), mass.astype(np.float64))
        return DenseLevel(depth, np.maximum(modes, 0.0), vectors)


@dataclass(frozen=True, eq=False)
class DenseLevel:
    """Eigenvectors (n, n) of the level at a depth, with V' M V = I and V' L V = diag(modes)."""

    depth: int
    modes: FloatArray
    vectors: FloatArray


def build_hierarchy(laplacian: sparse.csr_array, dtype: Any = np.float32) -> Hierarchy:
    """Coarsen a graph until it is small."""
    rng = np.random.default_rng(0)
    levels: list[Level] = []
    lap = sparse.csr_array(laplacian, dtype=np.float64)
    mass: sparse.csr_array | None = None
    while lap.shape[0] > COARSEST:
        P = interpolation(lap, rng)
        R = sparse.csr_array(P.T)
        # The identity has radius one, and the Laplacian of a graph with edges more.
        radius = max(_radius(lap, rng), 1.0 if mass is None else _radius(mass, rng))
        small = None if mass is None else mass.astype(dtype)
        levels.append(Level(lap.astype(dtype), small, P.astype(dtype), R.astype(dtype), radius))
        lap = _symmetric(R @ lap @ P)
        mass = _symmetric(R @ P if mass is None else R @ mass @ P)
    gram = np.eye(lap.shape[0]) if mass is None else mass.toarray()
    return Hierarchy(levels, lap.toarray(), gram)


def interpolation(lap: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """P of a graph: group indicators, smoothed once over heavy edges; zero without edges."""
    n = lap.shape[0]
    heavy = heavy_edges(lap, rng)
    group = groups(heavy, rng)
    member = np.flatnonzero(group >= 0)
    shape = (n, int(group.max(initial=-1)) + 1)
    indicator = sparse.csr_array((np.ones(member.size), (member, group[member])), shape=shape)
    degrees = np.asarray(heavy.sum(axis=1)).ravel()
    per_degree = np.divide(INTERPOLATION_DAMPING, degrees, out=np.zeros(n), where=degrees > 0)
    keep = sparse.diags_array(1.0 - per_degree * degrees)
    smoothed = keep @ indicator + sparse.diags_array(per_degree) @ (heavy @ indicator)
    return sparse.csr_array(smoothed)


def heavy_edges(lap: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """Weights of the edges that form groups, symmetric; one end is enough to keep an edge.

    Nodes with many edges keep the heaviest few, with ties broken at random.
    """
    entries = lap.tocoo()
    beside = (entries.row != entries.col) & (entries.data < 0)
    row, col, weight = entries.row[beside], entries.col[beside], -entries.data[beside]
    order = np.lexsort((rng.random(row.size), -weight, row))
    row, col, weight = row[order], col[order], weight[order]
    start = np.searchsorted(row, np.arange(lap.shape[0] + 1))
    rank = np.arange(row.size) - start[row]
    heaviest = weight[np.minimum(start[row], max(row.size - 1, 0))]
    many = np.diff(start)[row] > MANY_NEIGHBOURS
    kept = (weight >= WEAKEST_SHARE * heaviest) & (~many | (rank < FEW_NEIGHBOURS))
    chosen = sparse.csr_array((weight[kept], (row[kept], col[kept])), shape=lap.shape)
    return sparse.csr_array(chosen.maximum(chosen.T))


def groups(heavy: sparse.csr_array, rng: np.random.Generator) -> IntArray:
    """Group of every node, shape (n,); -1 for nodes without edges.

    Roots are a maximal set of nodes at least three steps apart: a node becomes one if its random
    number is the largest within two steps. Neighbours join their root, all others join a neighbour.
    """
    n = heavy.shape[0]
    near = sparse.csr_array(heavy + sparse.eye_array(n))
    priority = rng.permutation(n)
    value = np.where(np.diff(heavy.indptr) > 0, priority, -1)
    while (value >= 0).any() and (undecided := (value >= 0) & (value < n)).any():
        largest = _largest_near(near, _largest_near(near, value))
        value = np.where(undecided & (largest == priority), n, value)
        value = np.where(undecided & (largest == n), -1, value)
    roots = np.flatnonzero(value == n)
    group = np.full(n, -1)
    group[roots] = np.arange(roots.size)
    for _ in range(2):
        group = np.where(group < 0, _largest_near(near, group), group)
    return group


def _largest_near(near: sparse.csr_array, value: IntArray) -> IntArray:
    """Largest value of a node and its neighbours; `near` has no empty row."""
    return np.asarray(np.maximum.reduceat(value[near.indices], near.indptr[:-1]))


def _symmetric(matrix: Any) -> sparse.csr_array:
    return sparse.csr_array((matrix + matrix.T) / 2)


def _radius(matrix: sparse.csr_array, rng: np.random.Generator) -> float:
    """Upper bound on the largest eigenvalue of D^{-1} matrix: power steps and a margin."""
    diagonal = matrix.diagonal()
    scale = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    x = rng.random(matrix.shape[0]) - 0.5
    size = 1.0
    for _ in range(POWER_STEPS):
        x = scale * (matrix @ x)
        size = float(np.linalg.norm(x)) or 1.0
        x /= size
    return 1.1 * size
