"""Per-node moments of the features: all that the estimates use of the data.

Symbols
-------
psi         features of the observations, shape (n_observations, m)
H, H'       mean of psi psi' over the reference and the target sample of a node (m x m)
h, h'       mean of psi over the same
A           mixed second moment (1 - alpha) H + alpha H'
b           first moment of the problem: h' for ratios shrunk towards 0, and
            h' - rho ((1 - alpha) h + alpha h') for ratios shrunk towards rho

Folds and windows re-enter here: `MomentSums` are added, `moments_without` removes a fold, and in
the factored form only the weights of the rows change. Every mean divides by the size of its own
sample. A node that lacks a sample contributes nothing: its A and b are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.arrays import as_slice, batches
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.second_moments import (
    CHUNK_ENTRIES,
    DenseSecond,
    FactoredSecond,
    SecondMoment,
    compressed,
)


@dataclass(frozen=True, eq=False)
class Moments:
    """A_v and b_v (n_nodes, m) of all nodes; ratios shrink towards the constant `prior_ratio`, rho.

    Nodes that are not `complete`, shape (n_nodes,), lack a sample and contribute nothing.
    """

    second: SecondMoment
    first: FloatArray
    complete: BoolArray
    prior_ratio: float = 0.0


@dataclass(frozen=True, eq=False)
class MomentSums:
    """Sums of psi psi' and psi over the two samples of every node, reference first, and sizes.

    Shapes are (n_nodes, 2, m, m), (n_nodes, 2, m) and (n_nodes, 2).
    """

    second: FloatArray
    first: FloatArray
    sizes: IntArray

    @classmethod
    def of(cls, psi: FloatArray, sizes: IntArray) -> MomentSums:
        """Sum over rows psi (n_rows, m), sorted by node, reference before target."""
        flat = sizes.ravel()
        starts = np.cumsum(flat) - flat
        m = psi.shape[1]
        second = np.zeros((flat.size, m, m), dtype=psi.dtype)
        for batch in batches(starts, flat):
            rows = rectangle_of(psi, batch.rows, batch.valid)
            if batch.segments.size == flat.size:
                np.matmul(rows.transpose(0, 2, 1), rows, out=second)
            else:
                second[batch.segments] = rows.transpose(0, 2, 1) @ rows
        shape = (len(sizes), 2)
        first = segment_indicator(flat, psi.dtype) @ psi
        return cls(second.reshape(*shape, m, m), first.reshape(*shape, m), sizes)

    def __add__(self, other: MomentSums) -> MomentSums:
        return MomentSums(
            self.second + other.second, self.first + other.first, self.sizes + other.sizes
        )

    def mixed(self, alpha: float | FloatArray, prior_ratio: float = 0.0) -> Moments:
        """Divide by the sizes and mix: A = (1 - alpha) H + alpha H', and b."""
        scale = mixing_weights(self.sizes, alpha).astype(self.second.dtype)
        n_nodes, _, m, _ = self.second.shape
        # A row of two weights times two rows of m * m sums, for every node.
        blocks = (scale[:, np.newaxis] @ self.second.reshape(n_nodes, 2, m * m)).reshape(-1, m, m)
        first = problem_first(self.first, self.sizes, alpha, prior_ratio)
        return Moments(DenseSecond(blocks), first, has_both(self.sizes), prior_ratio)


def has_both(sizes: IntArray) -> BoolArray:
    """True at nodes with observations in both samples, shape (n_nodes,)."""
    return np.asarray((sizes > 0).all(axis=1))


def mixing_weights(sizes: IntArray, alpha: float | FloatArray) -> FloatArray:
    """(1 - alpha) / n and alpha / n' of every node, (n_nodes, 2); zero if a sample is missing."""
    complete = has_both(sizes)[:, np.newaxis]
    shares = np.stack([1 - np.asarray(alpha), np.asarray(alpha)], axis=-1)
    return np.where(complete, shares / np.maximum(sizes, 1), 0.0)


def problem_first(
    first: FloatArray, sizes: IntArray, alpha: float | FloatArray, prior_ratio: float
) -> FloatArray:
    """First moment b of the problem from the sums of psi, shape (n_nodes, m)."""
    per_target = (has_both(sizes) / np.maximum(sizes[:, 1], 1)).astype(first.dtype)
    target_mean = first[:, 1] * per_target[:, np.newaxis]
    if prior_ratio == 0:
        return np.asarray(target_mean)
    scale = mixing_weights(sizes, alpha).astype(first.dtype)
    return np.asarray(target_mean - prior_ratio * np.einsum("vk,vkm->vm", scale, first))


def segment_indicator(sizes: IntArray, dtype: np.dtype[np.floating]) -> sparse.csr_array:
    """Sparse matrix that sums consecutive rows, shape (n_segments, n_rows)."""
    total = int(sizes.sum())
    pointer = np.concatenate([[0], np.cumsum(sizes)])
    entries = (np.ones(total, dtype=dtype), np.arange(total), pointer)
    return sparse.csr_array(entries, shape=(len(sizes), total))


def factored_moments(
    psi: FloatArray,
    sizes: IntArray,
    alpha: float | FloatArray,
    prior_ratio: float = 0.0,
    keep: BoolArray | None = None,
) -> Moments:
    """Moments that keep the features psi (n_rows, m); rows not in `keep` get weight zero."""
    segment = np.repeat(np.arange(sizes.size), sizes.ravel())
    used = sizes
    if keep is not None:
        used = np.bincount(segment[keep], minlength=sizes.size).reshape(sizes.shape)
    weights = mixing_weights(used, alpha).ravel()[segment].astype(psi.dtype)
    indicator = segment_indicator(sizes.ravel(), psi.dtype)
    if keep is not None:
        weights = np.where(keep, weights, 0).astype(psi.dtype)
        indicator = indicator @ sparse.diags_array(keep.astype(psi.dtype))
    first = (indicator @ psi).reshape(*sizes.shape, -1)
    per_node = sizes.sum(axis=1)
    parts = []
    for batch in batches(np.cumsum(per_node) - per_node, per_node):
        weight = weights[batch.rows]
        if batch.valid is not None:
            weight = np.where(batch.valid, weight, 0).astype(psi.dtype)
        parts.append((batch.segments, rectangle_of(psi, batch.rows, batch.valid), weight))
    b = problem_first(first, used, alpha, prior_ratio)
    return Moments(FactoredSecond(len(sizes), parts), b, has_both(used), prior_ratio)


def moments_without(
    total: MomentSums,
    psi: FloatArray,
    sizes: IntArray,
    alpha: float | FloatArray,
    prior_ratio: float = 0.0,
) -> Moments:
    """Moments of the rows in `total` without the rows psi (n_rows, m), which `sizes` counts.

    Their sums are never formed: a few nodes at a time stay in the cache.
    """
    left = total.sizes - sizes
    scale = mixing_weights(left, alpha).astype(psi.dtype)
    of_row = np.repeat(scale.ravel(), sizes.ravel())
    n_nodes, _, m, _ = total.second.shape
    blocks = np.empty((n_nodes, m, m), dtype=psi.dtype)
    for nodes, rows, valid in _chunks(sizes, m):
        taken = rectangle_of(psi, rows, valid)
        block = total.second[nodes, 0] * scale[nodes, 0, np.newaxis, np.newaxis]
        block += total.second[nodes, 1] * scale[nodes, 1, np.newaxis, np.newaxis]
        block -= (taken * of_row[rows][:, :, np.newaxis]).transpose(0, 2, 1) @ taken
        blocks[nodes] = block
    none = np.flatnonzero(sizes.sum(axis=1) == 0)
    blocks[none] = np.einsum("vk,vkij->vij", scale[none], total.second[none])
    first = total.first - (segment_indicator(sizes.ravel(), psi.dtype) @ psi).reshape(-1, 2, m)
    b = problem_first(first, left, alpha, prior_ratio)
    return Moments(compressed(DenseSecond(blocks)), b, has_both(left), prior_ratio)


def _chunks(
    sizes: IntArray, m: int
) -> Iterator[tuple[IntArray | slice, IntArray, BoolArray | None]]:
    """Nodes with similar numbers of rows, few enough for the cache, their rows, and validity."""
    step = max(1, CHUNK_ENTRIES // m**2)
    per_node = sizes.sum(axis=1)
    for batch in batches(np.cumsum(per_node) - per_node, per_node):
        for begin in range(0, len(batch.segments), step):
            some = slice(begin, begin + step)
            valid = None if batch.valid is None else batch.valid[some]
            yield as_slice(batch.segments[some]), batch.rows[some], valid


def prefers_factored(sizes: IntArray, m: int) -> bool:
    """Whether features take less memory than blocks; never without any observation."""
    return bool(0 < sizes.sum() < len(sizes) * m)


def node_moments(
    psi: FloatArray, sizes: IntArray, alpha: float | FloatArray, prior_ratio: float = 0.0
) -> Moments:
    """Moments in whichever form is smaller."""
    if prefers_factored(sizes, psi.shape[1]):
        return factored_moments(psi, sizes, alpha, prior_ratio)
    return dense_moments(psi, sizes, alpha, prior_ratio)


def dense_moments(
    psi: FloatArray, sizes: IntArray, alpha: float | FloatArray, prior_ratio: float = 0.0
) -> Moments:
    """Moments with blocks, by one product per node that covers both samples."""
    m = psi.shape[1]
    root = np.sqrt(mixing_weights(sizes, alpha)).astype(psi.dtype)
    blocks = np.zeros((len(sizes), m, m), dtype=psi.dtype)
    of_row = np.repeat(root.ravel(), sizes.ravel())[:, np.newaxis]
    for nodes, rows, valid in _chunks(sizes, m):
        # The product of a matrix with itself takes half the work and is exactly symmetric.
        scaled = rectangle_of(psi, rows, valid) * rectangle_of(of_row, rows, valid)
        blocks[nodes] = scaled.transpose(0, 2, 1) @ scaled
    first = (segment_indicator(sizes.ravel(), psi.dtype) @ psi).reshape(*sizes.shape, m)
    b = problem_first(first, sizes, alpha, prior_ratio)
    return Moments(DenseSecond(blocks), b, has_both(sizes), prior_ratio)


def rectangle_of(psi: FloatArray, rows: IntArray, valid: BoolArray | None) -> FloatArray:
    """Rows of psi as a rectangle, if possible a view; padding is zero."""
    if valid is None:
        count, width = rows.shape
        contiguous = rows[0, 0] + count * width - 1 == rows[-1, -1]
        if contiguous:
            first = rows[0, 0]
            return psi[first : first + count * width].reshape(count, width, -1)
        return psi[rows]
    return np.where(valid[:, :, np.newaxis], psi[rows], psi.dtype.type(0))
