"""Kernels of unit norm, and the median heuristic for their bandwidth.

    gaussian     K(x, y) = exp(-||x - y||_2^2 / (2 sigma^2))
    laplacian    K(x, y) = exp(-||x - y||_1 / sigma)

Both have K(x, x) = 1; the coherence of a dictionary relies on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist, pdist

from graphratio._utils.jobs import in_parallel
from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples

# Above this many features a matrix product measures all pairs at once.
DIRECT_FEATURES = 16

# A matrix product is faster than summing differences. Its rounding is relative to the distances
# from a centre, so points farther away than this are measured by differences.
LARGEST_EXPONENT = 1e3

# In single precision smaller values are zero beside one. Left as they are, products of tiny numbers
# are too small for normal numbers, and such numbers take a hundred times as long.
NEGLIGIBLE = 1e-12
_LEAST_EXPONENT = math.log(NEGLIGIBLE)

# Sets of at least this many points are measured one by one.
MANY_POINTS = 50

# The median heuristic uses all pairs of at most this many observations of a node.
MEDIAN_OBSERVATIONS = 256

# Pairs per task.
MEDIAN_PAIRS = 1_000_000


@dataclass(frozen=True)
class Kernel:
    """A kernel exp(-profile(distance / bandwidth)) of unit norm; `metric` is SciPy's name."""

    name: str
    metric: str

    def __call__(
        self, x: FloatArray, y: FloatArray, bandwidth: float, dtype: type[np.floating] = np.float64
    ) -> FloatArray:
        """Kernel matrix, shape (len(x), len(y)), from distances in double precision."""
        # The inverse of a smaller bandwidth would be infinite, and NaN at distance zero.
        bandwidth = max(bandwidth, float(np.finfo(np.float64).tiny))
        # An overflow gives the kernel zero, which is correct.
        with np.errstate(over="ignore"):
            if self.metric == "cityblock":
                values = cdist(x, y, "cityblock")
                values *= -1.0 / bandwidth
            else:
                values = _gaussian_exponents(x, y, bandwidth)
            values = values.astype(dtype, copy=False)
            if dtype == np.float32 and values.min(initial=0.0) < _LEAST_EXPONENT:
                values[values < _LEAST_EXPONENT] = -np.inf
        return np.asarray(np.exp(values, out=values))

    def rowwise(self, x: FloatArray, y: FloatArray, bandwidth: FloatArray) -> FloatArray:
        """Kernel of matching rows, shape (len(x),); bandwidth has shape (len(x),)."""
        scaled = (x - y) / bandwidth[:, np.newaxis]
        if self.metric == "cityblock":
            return np.asarray(np.exp(-np.abs(scaled).sum(axis=1)))
        return np.asarray(np.exp(-0.5 * np.einsum("ij,ij->i", scaled, scaled)))

    def pair_distances(self, x: FloatArray) -> FloatArray:
        """Distances of all pairs in each set of x (n_sets, n_points, d), (n_sets, n_pairs)."""
        if x.shape[1] >= MANY_POINTS and x.shape[2] <= DIRECT_FEATURES:
            # So many pairs that a call for each set costs nothing.
            return np.array([pdist(points, self.metric) for points in x])
        first, second = np.triu_indices(x.shape[1], k=1)
        if self.metric == "cityblock":
            return _sum_over_features(x, first, second, np.abs)
        if x.shape[2] <= DIRECT_FEATURES:
            return np.asarray(np.sqrt(_sum_over_features(x, first, second, np.square)))
        centred = x - x.mean(axis=1, keepdims=True)
        gram = centred @ centred.transpose(0, 2, 1)
        norms = np.einsum("bii->bi", gram)
        squares = norms[:, first] + norms[:, second] - 2 * gram[:, first, second]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _sum_over_features(
    x: FloatArray, first: IntArray, second: IntArray, term: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    total = np.zeros((x.shape[0], first.size))
    for column in np.moveaxis(x, 2, 0):
        total += term(column[:, first] - column[:, second])
    return total


def _gaussian_exponents(x: FloatArray, y: FloatArray, bandwidth: float) -> FloatArray:
    """-||x - y||^2 / (2 bandwidth^2), shape (len(x), len(y)), never positive.

    How a row is computed depends on its point and on `y`, not on the other points of `x`.
    """
    if not len(x) or not len(y):
        return np.zeros((len(x), len(y)))
    scale = -0.5 / bandwidth / bandwidth
    if not np.isfinite(scale):
        # The square of a very small bandwidth underflows: divide twice instead.
        return np.asarray(cdist(x, y, "sqeuclidean") / (-2 * bandwidth) / bandwidth)
    centre = y.mean(axis=0)
    left, right = x - centre, y - centre
    own, other = (-scale * np.einsum("ij,ij->i", part, part) for part in (left, right))
    near = own + other.max() <= LARGEST_EXPONENT
    if near.all():
        return _from_product(left, right, own, other, scale)
    values = np.empty((len(x), len(y)))
    values[near] = _from_product(left[near], right, own[near], other, scale)
    values[~near] = scale * cdist(x[~near], y, "sqeuclidean")
    return values


def _from_product(
    left: FloatArray, right: FloatArray, own: FloatArray, other: FloatArray, scale: float
) -> FloatArray:
    """-own - other - 2 scale left'right as one product."""
    ones = np.ones_like
    values: FloatArray = np.column_stack([-2 * scale * left, -own, ones(own)]) @ np.vstack(
        [right.T, ones(other), -other]
    )
    # For equal points cancellation leaves rounding, not a distance.
    rounding = 4 * (left.shape[1] + 2) * np.finfo(np.float64).eps * (own + other.max())
    flat = values.reshape(-1)
    close = np.flatnonzero(flat > -rounding.max(initial=0.0))
    flat[close[flat[close] > -rounding[close // len(right)]]] = 0.0
    return values


KERNELS = {
    "gaussian": Kernel("gaussian", "euclidean"),
    "laplacian": Kernel("laplacian", "cityblock"),
}


def get_kernel(name: object) -> Kernel:
    """Look up a kernel by name."""
    return KERNELS[check_choice(name, "kernel", tuple(KERNELS))]


def median_bandwidths(samples: NodeSamples, kernel: Kernel) -> FloatArray:
    """Median distance between the observations of every node, shape (n_nodes,).

    It is measured within the reference, or within the target if the reference has fewer than two
    distinct observations. If the median is zero, zero distances do not count. Nodes without a value
    get the median over nodes.
    """
    return fill_unknown(node_medians(samples, kernel))


def node_medians(samples: NodeSamples, kernel: Kernel) -> FloatArray:
    """Median distances as in `median_bandwidths`; NaN at nodes without a value of their own."""
    starts, sizes = samples.offsets[:-1], np.diff(samples.offsets)
    sigma = _medians(samples.values, starts[0::2], sizes[0::2], kernel)
    lacking = np.flatnonzero(np.isnan(sigma))
    if lacking.size:
        sigma[lacking] = _medians(
            samples.values, starts[1::2][lacking], sizes[1::2][lacking], kernel
        )
    return sigma


def fill_unknown(sigma: FloatArray) -> FloatArray:
    """Replace NaN by the median of the known bandwidths, or by 1 if none is known."""
    known = sigma[~np.isnan(sigma)]
    return np.where(np.isnan(sigma), np.median(known) if known.size else 1.0, sigma)


def _medians(values: FloatArray, starts: IntArray, sizes: IntArray, kernel: Kernel) -> FloatArray:
    """Median of the pairwise distances of every segment; NaN without a positive distance."""
    medians = np.full(len(starts), np.nan)
    used = np.minimum(sizes, MEDIAN_OBSERVATIONS)
    # Segments of one width at a time, so that no pair is padding.
    for width in np.unique(used[used >= 2]):
        members = np.flatnonzero(used == width)
        parts = np.array_split(members, -(-members.size * int(width) ** 2 // MEDIAN_PAIRS))

        def work(i: int, width: int = int(width), parts: Sequence[IntArray] = parts) -> None:
            step = _scattered(width, sizes[parts[i]])
            distances = kernel.pair_distances(values[starts[parts[i], np.newaxis] + step])
            middle = np.median(distances, axis=1)
            for row in np.flatnonzero(middle == 0):
                positive = distances[row][distances[row] > 0]
                middle[row] = np.median(positive) if positive.size else np.nan
            medians[parts[i]] = middle

        in_parallel(work, len(parts))
    return medians


def _scattered(width: int, sizes: IntArray) -> IntArray:
    """Positions of `width` out of `sizes` rows, one at random in each of `width` equal parts."""
    # Regular steps would miss one half of alternating rows.
    shift = np.random.default_rng(0).random(width) if (sizes > width).any() else np.zeros(width)
    return ((np.arange(width) + shift) * sizes[:, np.newaxis] / width).astype(np.intp)


def bandwidth_grid(sigma: FloatArray) -> FloatArray:
    """Candidates of the paper's appendix: minimum, median, maximum and the midpoints."""
    low, middle, high = float(sigma.min()), float(np.median(sigma)), float(sigma.max())
    grid = (low, (low + middle) / 2, middle, (middle + high) / 2, high)
    return np.array(sorted({value for value in grid if math.isfinite(value)}))
