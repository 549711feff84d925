"""Nodes of similar sample sizes in rectangles: each node's rows against its own centres.

Symbols
-------
k, R, T, C  nodes, reference rows, target rows and centres of a rectangle
phi         kernel of a row and a centre of the same node, zero where either is padding

The classical estimators give every node its own basis functions, so nodes share only the shape
of the computation. Distances are computed once for all bandwidths. Padding has infinite
distance, so its kernel is exactly zero and no mask is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphratio._utils.arrays import Batch, batches
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import DIRECT_FEATURES, Kernel

# Distances of a rectangle have at most about this many entries: larger ones leave the cache.
LARGEST_RECTANGLE = 400_000


def batched_distances(x: FloatArray, y: FloatArray, kernel: Kernel) -> FloatArray:
    """Distances for several pairs of sets, squared for the Gaussian kernel, (k, n_rows, n_centres).

    `x` has shape (k, n_rows, n_features), or (1, ...) for all pairs, `y` (k, n_centres,
    n_features).
    """
    absolute = kernel.metric == "cityblock"
    if x.shape[2] > DIRECT_FEATURES and not absolute:
        centre = y.mean(axis=1, keepdims=True)
        left, right = x - centre, y - centre
        values = -2.0 * (left @ right.transpose(0, 2, 1))
        values += np.einsum("krd,krd->kr", left, left)[:, :, np.newaxis]
        values += np.einsum("kcd,kcd->kc", right, right)[:, np.newaxis, :]
        return np.asarray(np.maximum(values, 0.0, out=values))
    total = np.zeros((y.shape[0], x.shape[1], y.shape[1]))
    for feature in range(x.shape[2]):
        difference = x[:, :, np.newaxis, feature] - y[:, np.newaxis, :, feature]
        # An overflow gives the distance infinity and the kernel zero, which is correct.
        with np.errstate(over="ignore"):
            total += np.abs(difference) if absolute else np.square(difference)
    return total


def kernel_values(distances: FloatArray, bandwidth: FloatArray, kernel: Kernel) -> FloatArray:
    """Kernel from distances, shape (k, n_rows, n_centres); bandwidth has shape (k,)."""
    # The inverse of a smaller bandwidth would be infinite, and NaN at distance zero.
    width = np.maximum(bandwidth, np.finfo(np.float64).tiny)[:, np.newaxis, np.newaxis]
    # An overflow gives the kernel zero, which is correct.
    with np.errstate(over="ignore"):
        if kernel.metric == "cityblock":
            values = distances / -width
        else:
            # Two factors, since the square of a very small bandwidth would underflow.
            values = distances * (-0.5 / width)
            values /= width
    return np.asarray(np.exp(values, out=values))


class SampleRows(NamedTuple):
    """Rows of one sample of several nodes in `NodeSamples.values`, shape (k, n_rows).

    In padding `valid` is False, and rows are arbitrary.
    """

    rows: IntArray
    valid: BoolArray

    @classmethod
    def of(cls, batch: Batch, which: IntArray | slice) -> SampleRows:
        """Rows of some segments of a batch."""
        rows = batch.rows[which]
        valid = np.ones(rows.shape, dtype=bool) if batch.valid is None else batch.valid[which]
        return cls(rows, valid)

    def distances(
        self, values: FloatArray, centres: FloatArray, present: BoolArray, kernel: Kernel
    ) -> FloatArray:
        """Distances to the centres, infinite in padding."""
        found = batched_distances(values[self.rows], centres, kernel)
        found[~self.valid] = np.inf
        if not present.all():
            np.copyto(found, np.inf, where=~present[:, np.newaxis, :])
        return found


@dataclass(frozen=True, eq=False)
class NodeBlock:
    """Some nodes (k,), and distances (k, R, C) and (k, T, C) of their rows to their own centres.

    `sizes` has shape (k, 2). Distances are infinite where the row or the centre is padding.
    `present`, shape (k, C), is False where the centre is padding.
    """

    nodes: IntArray
    sizes: IntArray
    reference_distances: FloatArray
    target_distances: FloatArray
    reference: SampleRows
    target: SampleRows
    present: BoolArray
    kernel: Kernel

    def features(self, bandwidth: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Features phi of reference and target rows, (k, R, C) and (k, T, C); bandwidth (k,)."""
        return (
            kernel_values(self.reference_distances, bandwidth, self.kernel),
            kernel_values(self.target_distances, bandwidth, self.kernel),
        )


def node_blocks(
    samples: NodeSamples, centres: FloatArray, n_centres: IntArray, kernel: Kernel
) -> Iterator[NodeBlock]:
    """Rectangles of all nodes, which need both samples; centres beyond `n_centres` are padding."""
    starts = samples.offsets[:-1]
    sizes = samples.sizes
    for target in batches(starts[1::2], sizes[:, 1]):
        members = target.segments
        for reference in batches(starts[0::2][members], sizes[members, 0]):
            group = reference.segments
            n_rows = reference.rows.shape[1] + target.rows.shape[1]
            most = int(n_centres[members[group]].max())
            count = max(1, LARGEST_RECTANGLE // (n_rows * most))
            for begin in range(0, group.size, count):
                part = slice(begin, begin + count)
                nodes = members[group[part]]
                present = np.arange(most) < n_centres[nodes, np.newaxis]
                first, second = (
                    SampleRows.of(reference, part),
                    SampleRows.of(target, group[part]),
                )
                points = (samples.values, centres[nodes, :most], present, kernel)
                yield NodeBlock(
                    nodes,
                    sizes[nodes],
                    first.distances(*points),
                    second.distances(*points),
                    first,
                    second,
                    present,
                    kernel,
                )
