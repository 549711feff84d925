"""Moments and fitted values of many nodes, with features that are computed and dropped.

The features of all observations would take more memory than anything else. Here they exist for
a few nodes at a time: once to sum the moments, and once more in the end, in double precision,
for the fitted values. The second pass also gives the exact product of the second moments with
the coefficients, so that the residual of a solution can be judged without trusting moments that
were kept in single precision.

Symbols as in `moments`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._memory import FitPlan, node_ranges
from graphratio._threads import in_parallel
from graphratio.features import NystromMap
from graphratio.moments import (
    CompactSecond,
    DenseSecond,
    FactoredSecond,
    Moments,
    SecondMoment,
    factored_moments,
    has_both,
    mixing_weights,
    node_moments,
    segment_indicator,
)
from graphratio.samples import NodeSamples
from graphratio.typing import FloatArray, IntArray

# Rows whose features exist at the same time, per thread: few, to stay in the cache.
BLOCK_ROWS = 2**13


@dataclass(frozen=True, eq=False)
class StreamedData:
    """Samples and a feature map, worked on block by block.

    Attributes
    ----------
    features : NystromMap
    samples : NodeSamples
    sizes : ndarray of shape (n_nodes, 2)
    alpha, prior_ratio : float
    """

    features: NystromMap
    samples: NodeSamples
    sizes: IntArray
    alpha: float
    prior_ratio: float

    def moments(self, plan: FitPlan) -> Moments:
        """Moments in the form that the plan says; b always in double precision."""
        n_nodes, m = len(self.sizes), self.features.n_components
        dtype = np.float32 if plan.single else np.float64
        first = np.empty((n_nodes, m))
        ranges = node_ranges(self.sizes, BLOCK_ROWS)
        second: SecondMoment
        if plan.factored:
            pieces: list[Moments | None] = [None] * len(ranges)

            def keep(i: int) -> None:
                nodes = ranges[i]
                psi = self._features(nodes)
                part = factored_moments(psi, self.sizes[nodes], self.alpha, self.prior_ratio)
                first[nodes] = part.first
                pieces[i] = part

            in_parallel(keep, len(ranges))
            second = _joined(n_nodes, ranges, pieces, dtype)
        else:
            blocks = np.empty((n_nodes, m, m), dtype=dtype)

            def add(i: int) -> None:
                nodes = ranges[i]
                psi = self._features(nodes)
                part = node_moments(psi, self.sizes[nodes], self.alpha, self.prior_ratio)
                first[nodes] = part.first
                blocks[nodes] = part.second.dense()

            in_parallel(add, len(ranges))
            second = CompactSecond(blocks) if plan.single else DenseSecond(blocks)
        return Moments(second, first, has_both(self.sizes), self.prior_ratio)

    def apply(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A_v theta_v from the observations themselves, and the fitted values psi' theta.

        Parameters
        ----------
        theta : ndarray of shape (n_nodes, m)

        Returns
        -------
        product : ndarray of shape (n_nodes, m)
        fitted : ndarray of shape (n_observations,)
        """
        product = np.empty_like(theta)
        fitted = np.empty(self.samples.n_observations)
        ranges = node_ranges(self.sizes, BLOCK_ROWS)
        weights = mixing_weights(self.sizes, self.alpha)
        kernel, pivots, transform = (
            self.features.kernel,
            self.features.pivots,
            self.features.transform,
        )
        # The whitening goes into the coefficients: a product per node, not per observation.
        whitened = theta @ transform.T

        def work(i: int) -> None:
            nodes = ranges[i]
            rows = self._rows(nodes)
            values = kernel(self.samples.values[rows], pivots, self.features.bandwidth)
            of_node = whitened[self.samples.node_index[rows]]
            fitted[rows] = np.einsum("ip,ip->i", values, of_node)
            scale = np.repeat(weights[nodes].ravel(), self.sizes[nodes].ravel())
            values *= (scale * fitted[rows])[:, np.newaxis]
            total = segment_indicator(self.sizes[nodes].sum(axis=1), values.dtype) @ values
            product[nodes] = total @ transform

        in_parallel(work, len(ranges))
        return product, fitted

    def _rows(self, nodes: slice) -> slice:
        offsets = self.samples.offsets
        return slice(int(offsets[2 * nodes.start]), int(offsets[2 * nodes.stop]))

    def _features(self, nodes: slice) -> FloatArray:
        return self.features(self.samples.values[self._rows(nodes)])


def _joined(
    n_nodes: int, ranges: list[slice], pieces: list[Moments | None], dtype: type[np.floating]
) -> FactoredSecond:
    """One factored form out of those of ranges of nodes."""
    parts = []
    for nodes, piece in zip(ranges, pieces, strict=True):
        if piece is not None and isinstance(piece.second, FactoredSecond):
            parts += [
                # Weights stay in double precision, and so do the products.
                (nodes.start + own, psi.astype(dtype, copy=False), weights)
                for own, psi, weights in piece.second.parts
            ]
    return FactoredSecond(n_nodes, parts)
