"""The mixed second moments of all nodes, and their information on the leading directions.

Both forms, blocks and weighted features, have the same methods. The information of a node on a
direction accounts for the other directions, which are unknown too: it is a Schur complement of
A_v, not its diagonal entry.

Symbols
-------
A_v         second moment of node v, m x m, as in `node_moments`
c_j         leading eigenvectors of the covariance of the features, pooled over nodes
omega_j     their weights: eigenvalues, scaled to sum to one
B_v         second moments c_i' A_v c_j of node v among these directions
a_vj        1 / [(B_v + eps I)^{-1}]_jj - eps: the Schur complement, with a small ridge
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import linalg

from graphratio._utils.arrays import as_slice
from graphratio._utils.jobs import SMALL_TASK, in_parallel
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray

# Sums over many rows run block by block, so that intermediate results stay in the cache.
SUM_ROWS = 2048
# Large sums are split into this many, for threads, whatever their number.
SUMS_AT_ONCE = 4

# This many rows give the average block well enough for a preconditioner.
ROUGH_ROWS = 2**14

# Blocks converted to double precision at once and entries processed at once, to stay in the
# cache, and nodes per task of a thread or per chunk.
CHUNK_NODES = 32
CHUNK_ENTRIES = 2**17
TASK_NODES = 2048

# Products with rows read them twice. Up to this share of the features they are faster than blocks
# all the same, and so are inverses by Woodbury's identity.
FEW_ROWS = 1 / 4

# The factorisation ends when no remaining diagonal entry has this share of the trace, which is less
# than single precision resolves.
PRECISION = 3e-8

# Blocks of fewer features are not worth the factorisation.
FEWEST_FEATURES = 128

# Nodes whose rows are counted first, and groups of nodes with similar numbers of rows.
PROBED = 8
SIMILAR = 4

# Blocks that a thread factorises at once.
FACTORISED_AT_ONCE = 16

# Entries of blocks that are formed at once to be summed: every sum is read once for all of them.
FORMED_ENTRIES = 2**22

# Use as many directions as carry this share of the variance, but at most MOST_DIRECTIONS.
CARRIED = 0.9
MOST_DIRECTIONS = 8
# The ridge eps, relative to the variance of all features.
RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class DenseSecond:
    """Second moments as blocks of shape (n_nodes, m, m).

    With `compact` the blocks are in single precision, to halve their memory, and the products in
    double.
    """

    blocks: FloatArray
    compact: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """(n_nodes, m)."""
        return self.blocks.shape[0], self.blocks.shape[1]

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the products."""
        return np.dtype(np.float64) if self.compact else self.blocks.dtype

    def apply(self, theta: FloatArray) -> FloatArray:
        """Multiply every block with its rows, shape (n_nodes, n_candidates, m)."""
        if not self.compact:
            # Blocks are symmetric, so multiply rows by blocks: the operands are contiguous.
            return np.asarray(theta @ self.blocks)
        product = np.empty_like(theta, dtype=np.float64)

        def work(i: int) -> None:
            last = min((i + 1) * TASK_NODES, len(theta))
            for begin in range(i * TASK_NODES, last, CHUNK_NODES):
                nodes = slice(begin, min(begin + CHUNK_NODES, last))
                np.matmul(theta[nodes], self.blocks[nodes].astype(np.float64), out=product[nodes])

        in_parallel(work, -(-len(theta) // TASK_NODES))
        return product

    def quadratic(self, theta: FloatArray) -> FloatArray:
        """theta_v' A_v theta_v, shape (n_nodes, n_candidates)."""
        return np.asarray(np.einsum("vcm,vcm->vc", theta, self.apply(theta)))

    def dense(self, compact: bool = False) -> FloatArray:
        """The blocks; with `compact` in the stored precision."""
        return self.blocks if compact else self.blocks.astype(self.dtype, copy=False)

    def mean(self, rough: bool = False) -> FloatArray:
        """Average block."""
        return np.asarray(self.blocks.mean(axis=0, dtype=self.dtype))

    def combinations(self, factors: FloatArray) -> FloatArray:
        """Weighted sums of the blocks by one matrix product, shape (k, m, m)."""
        m = self.blocks.shape[1]
        return np.asarray(factors @ self.blocks.reshape(-1, m * m)).reshape(-1, m, m)

    def take(self, nodes: IntArray) -> DenseSecond:
        """Blocks of some of the nodes."""
        return DenseSecond(self.blocks[nodes], self.compact)


@dataclass(frozen=True, eq=False)
class FactoredSecond:
    """Second moments as weighted features: A_v = sum_i weight_i psi_i psi_i' over a node's rows.

    Smaller and faster than blocks if nodes have fewer rows than features. Each of the `parts` holds
    nodes of similar sizes: (nodes, psi, weights) of shapes (k,), (k, rows, m) and (k, rows).
    """

    n_nodes: int
    parts: Sequence[tuple[IntArray, FloatArray, FloatArray]]

    @property
    def shape(self) -> tuple[int, int]:
        """(n_nodes, m)."""
        return self.n_nodes, self.parts[0][1].shape[2]

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the weights and the products; features may have less."""
        return self.parts[0][2].dtype

    @property
    def low_rank(self) -> bool:
        """Whether every node has fewer rows than features."""
        return all(psi.shape[1] < psi.shape[2] for _, psi, _ in self.parts)

    @property
    def few_rows(self) -> bool:
        """Whether nodes have far fewer rows than features."""
        n_nodes, m = self.shape
        return sum(weights.size for _, _, weights in self.parts) <= FEW_ROWS * n_nodes * m

    def apply(self, theta: FloatArray) -> FloatArray:
        """Multiply with the features, weight, multiply back."""
        result = np.zeros_like(theta)
        for nodes, psi, weights in self.parts:
            # Features are read twice, the second time from the cache.
            step = max(1, CHUNK_ENTRIES // (psi.shape[1] * psi.shape[2]))
            for begin in range(0, len(nodes), step):
                some = slice(begin, begin + step)
                values = theta[nodes[some]] @ psi[some].transpose(0, 2, 1)
                values *= weights[some, np.newaxis, :]
                result[nodes[some]] = values @ psi[some]
        return result

    def quadratic(self, theta: FloatArray) -> FloatArray:
        """Weighted squares of the fitted values, shape (n_nodes, n_candidates)."""
        result = np.zeros(theta.shape[:2], dtype=theta.dtype)
        for nodes, psi, weights in self.parts:
            # BLAS may raise the flag for lanes of a vector that it discards.
            with np.errstate(invalid="ignore"):
                values = theta[nodes] @ psi.transpose(0, 2, 1)
            result[nodes] = np.einsum("vcr,vcr,vr->vc", values, values, weights)
        return result

    def dense(self, compact: bool = False) -> FloatArray:
        """Form the blocks, shape (n_nodes, m, m)."""
        dtype = np.float32 if compact else self.dtype
        blocks = np.zeros((*self.shape, self.shape[1]), dtype=dtype)
        for nodes, psi, weights in self.parts:
            blocks[nodes] = _blocks(psi, weights)
        return blocks

    def mean(self, rough: bool = False) -> FloatArray:
        """Average block, without forming the blocks; if `rough`, from about 16,384 rows."""
        n_rows = sum(weights.size for _, _, weights in self.parts)
        return self._rough_mean if rough and n_rows > ROUGH_ROWS else self._whole_mean

    @computed_once
    def _whole_mean(self) -> FloatArray:
        return self._mean(1.0)

    @computed_once
    def _rough_mean(self) -> FloatArray:
        return self._mean(ROUGH_ROWS / sum(weights.size for _, _, weights in self.parts))

    def _mean(self, share: float) -> FloatArray:
        """Average block from a share of random rows."""
        m = self.shape[1]
        total = np.zeros((m, m), dtype=self.dtype)
        for _, psi, weights in self.parts:
            flat = psi.reshape(-1, m)
            scale = np.sqrt(weights.reshape(-1, 1) / (share * self.n_nodes))
            if share < 1:
                kept = np.random.default_rng(0).random(len(flat)) < share
                flat, scale = flat[kept], scale[kept]
            total += _sum_of_squares(flat, scale)
        return total

    def combinations(self, factors: FloatArray) -> FloatArray:
        """Weighted sums of the blocks, shape (k, m, m); the blocks of a few nodes at a time."""
        m = self.shape[1]
        totals = np.zeros((len(factors), m * m), dtype=self.dtype)
        step = max(1, FORMED_ENTRIES // m**2)
        for nodes, psi, weights in self.parts:
            for begin in range(0, len(nodes), step):
                some = slice(begin, begin + step)
                blocks = _blocks(psi[some], weights[some]).reshape(-1, m * m)
                totals += factors[:, nodes[some]].astype(self.dtype, copy=False) @ blocks
        return totals.reshape(-1, m, m)

    def take(self, nodes: IntArray) -> FactoredSecond:
        """Rows of some of the nodes; a node may appear once."""
        position = np.full(self.n_nodes, -1)
        position[nodes] = np.arange(len(nodes))
        parts = []
        for own, psi, weights in self.parts:
            wanted = np.flatnonzero(position[own] >= 0)
            if wanted.size:
                kept = as_slice(wanted)
                parts.append((position[own[kept]], psi[kept], weights[kept]))
        # Nodes without rows are in no part; an empty part keeps the number of features.
        _, psi, weights = self.parts[0]
        nothing = (np.empty(0, dtype=np.intp), psi[:0], weights[:0])
        return FactoredSecond(len(nodes), parts or [nothing])


def _sum_of_squares(psi: FloatArray, scale: FloatArray) -> FloatArray:
    """Sum of psi_i psi_i' over rows (n_rows, m), each multiplied by its `scale`, (n_rows, 1)."""
    # The size alone decides, so that the number of threads changes no bit of the sum.
    n_sums = SUMS_AT_ONCE if psi.size >= SUMS_AT_ONCE * SMALL_TASK else 1
    ends = np.linspace(0, len(psi), n_sums + 1).astype(int)
    parts = np.zeros((n_sums, psi.shape[1], psi.shape[1]), dtype=scale.dtype)

    def work(i: int) -> None:
        for begin in range(ends[i], ends[i + 1], SUM_ROWS):
            rows = slice(begin, min(begin + SUM_ROWS, ends[i + 1]))
            scaled = psi[rows] * scale[rows]
            parts[i] += scaled.T @ scaled

    in_parallel(work, n_sums)
    return np.asarray(parts.sum(axis=0))


def _blocks(psi: FloatArray, weights: FloatArray) -> FloatArray:
    """Blocks of nodes from their features (k, rows, m) and weights (k, rows)."""
    # The product of a matrix with itself takes half the work and is exactly symmetric.
    scaled = psi * np.sqrt(weights)[:, :, np.newaxis]
    return np.asarray(scaled.transpose(0, 2, 1) @ scaled)


SecondMoment: TypeAlias = DenseSecond | FactoredSecond


def compressed(second: SecondMoment) -> SecondMoment:
    """Blocks in single precision as rows, if nodes need few of them.

    Nodes with locations and scales of their own see a small part of the features each. A pivoted
    Cholesky factorisation A_v = R_v' R_v then ends after few rows.
    """
    n_nodes, m = second.shape
    if not isinstance(second, DenseSecond) or second.dtype != np.float32 or m < FEWEST_FEATURES:
        return second
    probed = np.unique(np.linspace(0, n_nodes - 1, PROBED).astype(int))
    if np.mean([len(_rows(block)) for block in second.blocks[probed]]) > FEW_ROWS * m:
        return second
    found: list[FloatArray] = [np.empty((0, m), np.float32)] * n_nodes

    def work(i: int) -> None:
        for v in range(i * FACTORISED_AT_ONCE, min((i + 1) * FACTORISED_AT_ONCE, n_nodes)):
            found[v] = _rows(second.blocks[v])

    in_parallel(work, -(-n_nodes // FACTORISED_AT_ONCE))
    ranks = np.array([len(rows) for rows in found])
    if ranks.mean() > FEW_ROWS * m:
        return second
    groups = np.array_split(np.argsort(ranks, kind="stable"), min(SIMILAR, n_nodes))
    return FactoredSecond(n_nodes, [_part(np.sort(nodes), found) for nodes in groups])


def _rows(block: FloatArray) -> FloatArray:
    """Rows R of a positive semidefinite block R' R, shape (rank, m)."""
    tolerance = PRECISION * float(np.trace(block))
    if tolerance <= 0:
        return block[:0]
    factor, order, rank, _ = linalg.lapack.spstrf(block, tol=tolerance, lower=1)
    rows = np.empty((rank, len(block)), dtype=block.dtype)
    rows[:, order - 1] = np.tril(factor[:, :rank]).T
    return rows


def _part(nodes: IntArray, rows: list[FloatArray]) -> tuple[IntArray, FloatArray, FloatArray]:
    """Nodes with their rows, filled up with zeros, and weights of one."""
    most = max(1, *(len(rows[v]) for v in nodes))
    psi = np.zeros((len(nodes), most, rows[0].shape[1]), dtype=np.float32)
    for own, v in zip(psi, nodes, strict=True):
        own[: len(rows[v])] = rows[v]
    return nodes, psi, np.ones(psi.shape[:2], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Leading:
    """Leading directions: of `vectors`, shape (m, n_vectors), as many as there are `weights`."""

    vectors: FloatArray
    weights: FloatArray
    ridge: float

    @classmethod
    def of(cls, second: FloatArray, mean_features: FloatArray) -> Leading:
        """Find the directions from the mean second moment (m, m) over the complete nodes.

        `mean_features` is the mean over all observations, shape (m,).
        """
        size = second.shape[0]
        low = max(size - MOST_DIRECTIONS, 0)
        covariance = second - np.outer(mean_features, mean_features)
        values, vectors = linalg.eigh(covariance, subset_by_index=(low, size - 1))
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        # Without any spread, as for a single observation, the rest is rounding.
        rounding = np.finfo(float).eps * float(np.trace(second)) + np.finfo(float).tiny
        total = max(float(np.trace(covariance)), rounding)
        count = min(1 + int(np.searchsorted(np.cumsum(values) / total, CARRIED)), len(values))
        kept = values[:count]
        weights = kept / kept.sum() if kept.sum() > 0 else np.full(count, 1 / count)
        return cls(vectors, weights, RIDGE * total)

    def moments(self, second: SecondMoment) -> FloatArray:
        """Schur complements a_vj of all nodes, shape (n_nodes, n_directions)."""
        n_nodes = second.shape[0]
        own = np.empty((n_nodes, len(self.weights)))
        for begin in range(0, n_nodes, TASK_NODES):
            nodes = np.arange(begin, min(begin + TASK_NODES, n_nodes))
            stack = np.repeat(self.vectors.T[np.newaxis].astype(second.dtype), len(nodes), axis=0)
            blocks = (second.take(nodes).apply(stack) @ self.vectors).astype(np.float64)
            inverse = np.linalg.inv(blocks + self.ridge * np.eye(blocks.shape[1]))
            complements = 1.0 / np.einsum("vjj->vj", inverse)[:, : len(self.weights)] - self.ridge
            own[nodes] = np.maximum(complements, 0.0)
        return own
