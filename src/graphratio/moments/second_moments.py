"""The mixed second moments of all nodes, as blocks or as weighted features.

Symbols as in `node_moments`: A_v is the second moment of node v, m x m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from graphratio._utils.arrays import as_slice
from graphratio._utils.threads import in_parallel
from graphratio._utils.typing import FloatArray, IntArray

# Sums over many rows run block by block, so that intermediate results stay in the cache.
SUM_ROWS = 2048

# This many rows give the average block well enough for a preconditioner.
ROUGH_ROWS = 2**14

# Blocks converted to double precision at once and entries processed at once, to stay in the
# cache, and blocks per task of a thread.
CHUNK_NODES = 32
CHUNK_ENTRIES = 2**17
TASK_NODES = 2048


class SecondMoment(Protocol):
    """The mixed second moments A_v of all nodes, independent of their form."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n_nodes, m)."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the products."""

    def apply(self, theta: FloatArray) -> FloatArray:
        """A_v theta_v for a stack of candidates, shape (n_nodes, n_candidates, m)."""

    def quadratic(self, theta: FloatArray) -> FloatArray:
        """theta_v' A_v theta_v, shape (n_nodes, n_candidates)."""

    def dense(self, compact: bool = False) -> FloatArray:
        """All blocks, shape (n_nodes, m, m); `compact` allows single precision."""

    def mean(self, rough: bool = False) -> FloatArray:
        """Average over nodes, shape (m, m); `rough` allows a sample of the rows."""

    def combinations(self, factors: FloatArray) -> FloatArray:
        """Sums over nodes of factor times A_v, shape (k, m, m) for factors (k, n_nodes)."""

    def take(self, nodes: IntArray) -> SecondMoment:
        """Second moments of some of the nodes, in the given order."""


@dataclass(frozen=True, eq=False)
class DenseSecond:
    """Second moments as blocks of shape (n_nodes, m, m).

    With `compact` the blocks are in single precision and the products in double. This halves the
    memory and the memory traffic of an iteration. A residual computed from the observations shows
    the loss of precision (see `streaming`).
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

    This form needs less memory and fewer operations than blocks if a node has fewer rows than
    features. Each of the `parts` is a rectangle of nodes with similar sizes: (nodes, psi, weights)
    of shapes (k,), (k, rows, m) and (k, rows).
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
            blocks[nodes] = (psi * weights[:, :, np.newaxis]).transpose(0, 2, 1) @ psi
        return blocks

    def mean(self, rough: bool = False) -> FloatArray:
        """Average block, without forming the blocks; if `rough`, from about 16,384 rows."""
        n_rows = sum(weights.size for _, _, weights in self.parts)
        return self._rough_mean if rough and n_rows > ROUGH_ROWS else self._mean(1.0)

    @cached_property
    def _rough_mean(self) -> FloatArray:
        return self._mean(ROUGH_ROWS / sum(weights.size for _, _, weights in self.parts))

    def _mean(self, share: float) -> FloatArray:
        even = np.full((1, self.n_nodes), 1 / self.n_nodes, dtype=self.dtype)
        return np.asarray(self.combinations(even, share)[0])

    def combinations(self, factors: FloatArray, share: float = 1.0) -> FloatArray:
        """Weighted sums without forming the blocks, (k, m, m), from a share of random rows."""
        m = self.shape[1]
        totals = np.zeros((len(factors), m, m), dtype=self.dtype)
        for nodes, psi, weights in self.parts:
            flat = psi.reshape(-1, m)
            kept = np.random.default_rng(0).random(len(flat)) < share if share < 1 else slice(None)
            flat = flat[kept]
            for total, factor in zip(totals, factors, strict=True):
                scale = (weights * (factor[nodes, np.newaxis] / share)).reshape(-1, 1)[kept]
                for begin in range(0, len(flat), SUM_ROWS):
                    rows = slice(begin, begin + SUM_ROWS)
                    total += flat[rows].T @ (flat[rows] * scale[rows])
        return totals

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
