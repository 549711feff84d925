"""Moments and fitted values of many nodes, without storing all features.

The features of all observations would take more memory than anything else. Here they exist for
a few nodes at a time: once to sum the moments, and again at the end, in double precision, for
the fitted values. The second pass also gives the exact product of the second moments with the
coefficients, so the residual of a solution does not depend on moments in single precision.

Symbols as in `node_moments`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.arrays import batches, node_ranges
from graphratio._utils.threads import in_parallel
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.features.nystrom import NystromMap
from graphratio.moments.memory import FitPlan
from graphratio.moments.node_moments import (
    Moments,
    factored_moments,
    has_both,
    mixing_weights,
    node_moments,
    rectangle_of,
)
from graphratio.moments.second_moments import DenseSecond, FactoredSecond, SecondMoment

# Rows per thread whose features exist at the same time: few, to stay in the cache.
STREAM_ROWS = 2**13


@dataclass(frozen=True, eq=False)
class StreamedData:
    """Samples and a feature map, evaluated block by block."""

    features: NystromMap
    samples: NodeSamples
    sizes: IntArray
    alpha: float
    prior_ratio: float

    def moments(self, plan: FitPlan) -> Moments:
        """Moments in the form of the plan; b always in double precision."""
        n_nodes, m = len(self.sizes), self.features.n_components
        dtype = np.float32 if plan.single else np.float64
        first = np.empty((n_nodes, m))
        ranges = node_ranges(self.sizes, STREAM_ROWS)
        pieces: list[SecondMoment | None] = [None] * len(ranges)
        blocks = np.empty((0 if plan.factored else n_nodes, m, m), dtype=dtype)
        form = factored_moments if plan.factored else node_moments

        def work(i: int) -> None:
            nodes = ranges[i]
            psi = self.features(self.samples.values[self._rows(nodes)])
            part = form(psi, self.sizes[nodes], self.alpha, self.prior_ratio)
            first[nodes] = part.first
            if plan.factored:
                pieces[i] = part.second
            else:
                blocks[nodes] = part.second.dense()

        in_parallel(work, len(ranges))
        second: SecondMoment = DenseSecond(blocks, compact=plan.single)
        if plan.factored:
            second = _joined(n_nodes, ranges, pieces, dtype)
        return Moments(second, first, has_both(self.sizes), self.prior_ratio)

    def apply(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A_v theta_v from the observations, (n_nodes, m), and fitted values (n_observations,)."""
        product = np.empty_like(theta)
        fitted = np.empty(self.samples.n_observations)
        ranges = node_ranges(self.sizes, STREAM_ROWS)
        weights = np.repeat(mixing_weights(self.sizes, self.alpha).ravel(), self.sizes.ravel())
        features = self.features
        # Whiten the coefficients: one product per node instead of one per observation.
        whitened = theta @ features.transform.T
        per_node = self.sizes.sum(axis=1)

        def work(i: int) -> None:
            nodes, rows = ranges[i], self._rows(ranges[i])
            values = features.kernel(self.samples.values[rows], features.pivots, features.bandwidth)
            of_row, own = weights[rows], fitted[rows]
            total = np.zeros((nodes.stop - nodes.start, len(features.pivots)))
            starts = np.cumsum(per_node[nodes]) - per_node[nodes]
            for batch in batches(starts, per_node[nodes]):
                part = rectangle_of(values, batch.rows, batch.valid)
                ratios = (part @ whitened[nodes][batch.segments, :, np.newaxis])[:, :, 0]
                present = slice(None) if batch.valid is None else batch.valid
                own[batch.rows[present]] = ratios[present]
                ratios *= of_row[batch.rows]
                total[batch.segments] = (ratios[:, np.newaxis] @ part)[:, 0]
            product[nodes] = total @ features.transform

        in_parallel(work, len(ranges))
        return product, fitted

    def _rows(self, nodes: slice) -> slice:
        offsets = self.samples.offsets
        return slice(int(offsets[2 * nodes.start]), int(offsets[2 * nodes.stop]))


def _joined(
    n_nodes: int, ranges: list[slice], pieces: list[SecondMoment | None], dtype: type[np.floating]
) -> FactoredSecond:
    """Join the factored forms of ranges of nodes."""
    parts = []
    for nodes, piece in zip(ranges, pieces, strict=True):
        if isinstance(piece, FactoredSecond):
            parts += [
                # Weights stay in double precision, and so do the products.
                (nodes.start + own, psi.astype(dtype, copy=False), weights)
                for own, psi, weights in piece.parts
            ]
    return FactoredSecond(n_nodes, parts)
