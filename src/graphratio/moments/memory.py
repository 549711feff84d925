"""Fits in limited memory: predict the need before a fit, and stream the features if it is large.

The prediction counts the parts that grow: second moments, kept features, the vectors of
conjugate gradients, the inverses of a preconditioner, the graph and the data.

The features of all observations would take the most. A streamed fit has those of a few nodes at a
time: once to sum the moments, and again at the end, in double precision, for the fitted values.
The second pass also gives the exact product of the second moments with the coefficients, so the
residual of a solution does not depend on moments in single precision.

Symbols
-------
N, m, n     nodes, features after whitening, observations of all nodes together
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.arrays import batches, node_ranges
from graphratio._utils.errors import InputError
from graphratio._utils.jobs import in_parallel
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.features.nystrom import NystromMap
from graphratio.moments.node_moments import (
    Moments,
    factored_moments,
    has_both,
    mixing_weights,
    node_moments,
    prefers_factored,
    rectangle_of,
)
from graphratio.moments.second_moments import DenseSecond, FactoredSecond, SecondMoment

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}

# Features and sums up to this size are kept in double precision: fastest for small problems.
KEEP_ALL = 2**30

# Larger second moments are kept in single precision; the answer is checked in double.
KEEP_DOUBLE = 2**30

# Python, its libraries, and blocks in use.
FIXED = 300 * 2**20

# Vectors of length N m at the same time: iterates, moments and those of a multigrid cycle.
DOUBLE_VECTORS = 14
SINGLE_VECTORS = 8

# Rows per thread whose features exist at the same time: few, to stay in the cache.
STREAM_ROWS = 2**13


@dataclass(frozen=True)
class FitPlan:
    """How a fit keeps its data, and the predicted peak of the whole process in bytes.

    If `streamed`, features are computed block by block. Second moments are kept as features instead
    of blocks if `factored`, and in single precision if `single`.
    """

    streamed: bool
    factored: bool
    single: bool
    n_bytes: int


def parse_memory(value: Any) -> int | None:
    """Bytes of a cap given as a number or as text; None for no cap."""
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kmg]i?|)b?\s*", value.lower())
        try:
            return int(float(found[1]) * UNITS[found[2]]) if found else _unreadable(value)
        except ValueError:
            return _unreadable(value)
    return check_integer(value, "max_memory", low=1)


def _unreadable(value: str) -> int:
    raise InputError(
        f"max_memory={value!r} is not an amount of memory",
        'Pass bytes as a whole number, or text such as "4GiB" or "500MB"',
    )


def plan_fit(
    sizes: IntArray, m: int, n_features: int, n_edges: int, cap: int | None = None
) -> FitPlan:
    """Choose the fastest way to keep the data below `cap` bytes; m may be an upper bound."""
    n_nodes, n_rows = len(sizes), int(sizes.sum())
    factored = prefers_factored(sizes, m)
    inverses = int(1.4 * n_nodes * m**2) * 4 + (n_nodes * m**2 * 4 if factored else 0)
    vectors = n_nodes * m * (8 * DOUBLE_VECTORS + 4 * SINGLE_VECTORS)
    graph = (2 * n_edges + n_nodes) * 100
    second = n_rows * (m + 1) if factored else n_nodes * m**2
    # The features of all observations, and the sums that blocks are computed from.
    kept = 8 * m * (n_rows + (0 if factored else 2 * n_nodes * m))
    entries = n_rows * m if factored else n_nodes * m**2
    n_bytes = 0
    for streamed, single, comfortable in (
        (False, False, kept <= KEEP_ALL),
        (True, False, 8 * entries <= KEEP_DOUBLE),
        (True, True, True),
    ):
        n_bytes = predict_input(sizes, n_features) + inverses + vectors + graph
        n_bytes += second * (4 if single else 8) + (0 if streamed else kept)
        if comfortable and (cap is None or n_bytes <= cap):
            return FitPlan(streamed, factored, single, n_bytes)
    raise InputError(
        f"the fit of {n_nodes} nodes, {n_rows} observations and up to {m} features "
        f"is predicted to take {n_bytes / 2**30:.2f} GiB, more than max_memory = "
        f"{(cap or 0) / 2**30:.2f} GiB",
        "Set max_atoms to a smaller number (memory grows with its square), raise max_memory, "
        "or fit parts of the graph",
    )


def predict_input(sizes: IntArray, n_features: int) -> int:
    """Bytes of the process, the values, their source, and the node and sample of every row."""
    return int(sizes.sum()) * (16 * n_features + 9) + FIXED


def check_cap(needed: int, cap: int | None, what: str) -> None:
    """Refuse work that is predicted to exceed the cap."""
    if cap is not None and needed > cap:
        raise InputError(
            f"{what} is predicted to take {needed / 2**30:.2f} GiB, more than max_memory = "
            f"{cap / 2**30:.2f} GiB",
            "Raise max_memory, or pass fewer nodes or observations",
        )


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
