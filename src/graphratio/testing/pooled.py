"""Everything that may be learned from the data without looking at the labels.

A permutation test stays valid as long as what surrounds the permuted labels does not depend on
them. Both samples of a node are therefore pooled and put into an order that does not reveal the
labels: sorted by value, then shuffled. Bandwidths, dictionary, features and their reduction
depend on the pooled samples alone. So do the columns of a node's own evidence (`OwnColumns`).

Symbols
-------
psi         features of the pooled observations, shape (n_observations, m)
A           mean of psi psi' over the pooled sample of a node (m x m)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from graphratio._utils.jobs import each
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, bandwidth_grid, get_kernel, median_bandwidths
from graphratio.features.nystrom import NystromMap
from graphratio.moments.node_moments import MomentSums, segment_indicator
from graphratio.selection.grids import Candidates, candidates_of

# Directions with a smaller share of the pooled second moment are left out: with few observations
# per node they hold noise, and all costs grow with their number.
POOLED_FLOOR = 1e-3

_RANK_TOLERANCE = 1e-6

# Relative to the median distance within nodes. Changes of shape show at a finer scale than the
# whole spread of the data.
BANDWIDTH_SHARE = 0.7

# Graph penalties times the mean degree, and ridges relative to them.
TEST_STRENGTHS = (0.1, 0.3, 1.0, 3.0)
RIDGE_SHARES = (1e-3, 1e-2)

# Components are computed from at most LANDMARKS observations, and at most COMPONENTS are kept.
LANDMARKS = 96
COMPONENTS = 24

# Components with a smaller share of the variance are left out.
_FLOOR = 1e-3

# Nodes whose columns are computed at once, so that distances stay in the cache.
_NODES_AT_ONCE = 8

# Bandwidth relative to the median distance: changes of shape show at a finer scale than that.
OWN_BANDWIDTH = 0.7

# Ridge of the whitening; the kernel has norm one.
WHITENING_RIDGE = 0.1

# Few folds: the candidates are few and clearly different, and every group chooses once.
_FOLDS = 3


class Draws(Protocol):
    """A generator, or a part of the random numbers that it would draw."""

    def random(self, size: int, /) -> FloatArray:
        """Random numbers between 0 and 1, shape (size,)."""


@dataclass(frozen=True, eq=False)
class PooledSamples:
    """Both samples of every node together, in an order that ignores the labels.

    In `samples` all observations of a node are its reference sample, and the target sample is
    empty. `rows`, shape (n_observations,), is the position of each row in the samples as they were
    given. `complete`, shape (n_nodes,), marks nodes with both samples: only these can be tested.
    """

    samples: NodeSamples
    rows: IntArray
    is_target: BoolArray
    complete: BoolArray

    @classmethod
    def of(cls, samples: NodeSamples, rng: Draws) -> PooledSamples:
        """Pool samples that are aligned to the graph."""
        node = samples.node_index
        by_value = np.lexsort((*samples.values.T, node))
        # Shuffled, since the dictionary prefers the first rows.
        rows = by_value[np.lexsort((rng.random(len(by_value)), node[by_value]))]
        sizes = samples.n_reference + samples.n_target
        together = NodeSamples(
            samples.nodes,
            samples.values[rows],
            sizes,
            np.zeros_like(sizes),
            samples.feature_names,
            scaling=samples.scaling,
            encoding=samples.encoding,
        )
        return cls(together, rows, samples.is_target[rows], samples.complete)

    @property
    def sizes(self) -> IntArray:
        """Observations of each node in both samples, shape (n_nodes,)."""
        return self.samples.n_reference


@dataclass(frozen=True, eq=False)
class RatioSettings:
    """How the ratios behind a test are estimated: kernel, dictionary and candidates.

    `sigma`, shape (n_nodes,), holds the median distances within the pooled samples.
    """

    kernel: Kernel
    candidates: Candidates
    n_folds: int
    sigma: FloatArray
    dictionary: DictionaryRecipe = field(default_factory=DictionaryRecipe)

    @property
    def middle(self) -> tuple[float, float, float]:
        """The middle of each list of candidates: a choice that does not depend on the data."""
        return self.candidates.middle

    def atoms(self, pooled: PooledSamples, rng: np.random.Generator) -> FloatArray:
        """Build the dictionary from the pooled samples."""
        return self.dictionary.build(pooled.samples, self.kernel, self.sigma, rng)


def read_settings(estimator: Any, pooled: PooledSamples, graph: Graph) -> RatioSettings:
    """Take the configuration from a quadratic estimator, or the defaults of the test."""
    if estimator is None:
        kernel = get_kernel("gaussian")
        sigma = median_bandwidths(pooled.samples, kernel)
        strengths = np.repeat(TEST_STRENGTHS if graph.n_edges else (1.0,), len(RIDGE_SHARES))
        ridges = strengths * np.resize(RIDGE_SHARES, strengths.size)
        candidates = Candidates(
            np.array([BANDWIDTH_SHARE * float(np.median(sigma))]),
            strengths / graph.mean_degree if graph.n_edges else np.zeros(strengths.size),
            ridges,
        )
        return RatioSettings(kernel, candidates, _FOLDS, sigma)
    kernel = get_kernel(estimator.kernel)
    return ratio_settings(estimator, kernel, median_bandwidths(pooled.samples, kernel), graph)


def ratio_settings(
    estimator: Any, kernel: Kernel, sigma: FloatArray, graph: Graph
) -> RatioSettings:
    """Take the configuration from a quadratic estimator; `sigma` as in `RatioSettings`."""
    estimator._check_parameters()
    candidates = Candidates(
        candidates_of(estimator.bandwidth, "bandwidth", bandwidth_grid(sigma)),
        *estimator._pairs_for(graph),
    )
    n_folds = check_integer(estimator.cv, "cv", low=2)
    return RatioSettings(kernel, candidates, n_folds, sigma, DictionaryRecipe.of(estimator))


def pooled_features(
    samples: NodeSamples,
    rows: IntArray | slice,
    kernel: Kernel,
    dictionary: FloatArray,
    bandwidth: float,
    dtype: type[np.floating] = np.float64,
) -> tuple[NystromMap, FloatArray]:
    """Features of both samples of all nodes in the order of `rows`, reduced to what matters.

    Returns the map and the features, shape (n_observations, m).
    """
    weights = pooled_weights(samples.node_index[rows], samples.n_nodes)
    features = whitened(kernel, dictionary, bandwidth)
    return features.principal(samples.values[rows], weights, POOLED_FLOOR, dtype)


def pooled_weights(node: IntArray, n_nodes: int) -> FloatArray:
    """Weights with which every one of `n_nodes` counts the same, for rows of these nodes."""
    return np.asarray(1.0 / (n_nodes * np.bincount(node, minlength=1)[node]))


def whitened(kernel: Kernel, dictionary: FloatArray, bandwidth: float) -> NystromMap:
    """Features of a dictionary, before they are reduced."""
    return NystromMap.build(kernel, dictionary, bandwidth, _RANK_TOLERANCE)


@dataclass(frozen=True, eq=False)
class PooledFeatures:
    """Features of one bandwidth, and the moments that no permutation changes.

    `psi`, shape (n_observations, m), is in the order of the pooled samples, minus the mean of the
    node. `second`, shape (n_nodes, m, m), is A of the features before the mean was taken out.
    """

    psi: FloatArray
    second: FloatArray

    @classmethod
    def of(
        cls, pooled: PooledSamples, kernel: Kernel, dictionary: FloatArray, bandwidth: float
    ) -> PooledFeatures:
        """Evaluate the features, reduced to the directions that matter."""
        _, psi = pooled_features(pooled.samples, slice(None), kernel, dictionary, bandwidth)
        return cls.from_rows(pooled, psi)

    @classmethod
    def from_rows(cls, pooled: PooledSamples, psi: FloatArray) -> PooledFeatures:
        """From features of the pooled observations, shape (n_observations, m)."""
        sizes = pooled.sizes
        scale = 1.0 / np.maximum(sizes, 1)
        sums = MomentSums.of(psi, np.column_stack([sizes, np.zeros_like(sizes)]))
        second = sums.second[:, 0] * scale[:, np.newaxis, np.newaxis]
        mean = sums.first[:, 0] * scale[:, np.newaxis]
        return cls(psi - mean[pooled.samples.node_index], second)

    def first(self, pooled: PooledSamples) -> FloatArray:
        """Observed first moments b, shape (n_nodes, m); zero at nodes that lack a sample."""
        indicator = segment_indicator(pooled.sizes, self.psi.dtype)
        counts = indicator @ pooled.is_target.astype(float)
        sums = indicator @ (self.psi * pooled.is_target[:, np.newaxis])
        return np.asarray(sums * (pooled.complete / np.maximum(counts, 1))[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class OwnColumns:
    """A node's own evidence, as columns over its pooled observations.

    Three statistics need no neighbours. The energy distance sees shifts best. The kernel distance,
    whitened so that fine structure counts as much as coarse, sees changes of shape. The ranks of
    the distances from the centre see changes of spread, in heavy tails too. The first two are
    squared norms of means of features: principal components of the centred matrices

        -|x - y| / 2     and     exp(-|x - y|^2 / (2 sigma^2))

    over the node's own observations. They depend on no other node, so they work whatever the
    location and scale of the others.

    Columns of several nodes with equally many observations have shapes (n_nodes, n, K). The mean
    of a column over the node is zero.
    """

    energy: FloatArray
    shape: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, x: FloatArray) -> OwnColumns:
        """Compute them from pooled observations in random order, shape (n_nodes, n, n_features)."""
        parts = [x[i : i + _NODES_AT_ONCE] for i in range(0, len(x), _NODES_AT_ONCE)]
        found = each(cls._of_few, parts)
        return cls(
            _one_below_the_other([part.energy for part in found]),
            _one_below_the_other([part.shape for part in found]),
            np.concatenate([part.spread for part in found]),
        )

    @classmethod
    def _of_few(cls, x: FloatArray) -> OwnColumns:
        marks = x[:, :LANDMARKS]
        distance = _distances(x, marks)
        inner = distance[:, : marks.shape[1]]
        energy, _ = _components(-0.5 * distance)
        sigma = OWN_BANDWIDTH * _medians(inner)[:, np.newaxis, np.newaxis]
        kernel, w = _components(np.exp(-0.5 * (distance / sigma) ** 2))
        # The weight of the squared mean of a component in the divergence of a ridge regression.
        weight = 1 / (w + WHITENING_RIDGE) - 0.5 * w / (w + WHITENING_RIDGE) ** 2
        return cls(energy, kernel * np.sqrt(weight)[:, np.newaxis], _spread_scores(x))


def _distances(x: FloatArray, y: FloatArray) -> FloatArray:
    """Euclidean distances within each node, shape (n_nodes, n, n_marks)."""
    total = np.zeros((len(x), x.shape[1], y.shape[1]))
    for column, other in zip(np.moveaxis(x, 2, 0), np.moveaxis(y, 2, 0), strict=True):
        total += (column[:, :, np.newaxis] - other[:, np.newaxis]) ** 2
    return np.asarray(np.sqrt(total, out=total))


def _medians(distance: FloatArray) -> FloatArray:
    """Median of the positive distances of every node; 1 where there are none."""
    positive = np.where(distance > 0, distance, np.nan).reshape(len(distance), -1)
    known = ~np.isnan(positive).all(axis=1)
    found = np.ones(len(distance))
    if known.any():
        found[known] = np.nanmedian(positive[known], axis=1)
    return found


def _components(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Principal components of a kernel matrix, shape (n_nodes, n, r), and their variances.

    `gram` has shape (n_nodes, n, n_marks); its first rows are the landmarks. With all
    observations as landmarks this is kernel principal component analysis, else its Nystrom
    approximation.
    """
    n_marks = gram.shape[2]
    inner = gram[:, :n_marks]
    column = inner.mean(axis=1, keepdims=True)
    centred = gram - gram.mean(axis=2, keepdims=True) - column
    centred += column.mean(axis=2, keepdims=True)
    w, vectors = np.linalg.eigh(centred[:, :n_marks])
    w, vectors = np.maximum(w[:, ::-1], 0.0), vectors[:, :, ::-1]
    total = np.maximum(w.sum(axis=1), np.finfo(float).tiny)
    used = (w >= _FLOOR * total[:, np.newaxis]) & (w > 0)
    count = max(1, min(COMPONENTS, int(used.sum(axis=1).max())))
    w, used, vectors = w[:, :count], used[:, :count], vectors[:, :, :count]
    scale = np.where(used, 1 / np.sqrt(np.where(used, w, 1.0)), 0.0)
    features = centred @ (vectors * scale[:, np.newaxis])
    features -= features.mean(axis=1, keepdims=True)
    return features, w / n_marks


def _one_below_the_other(parts: list[FloatArray]) -> FloatArray:
    """Columns of all nodes, filled up with zeros where nodes have fewer."""
    width = max(part.shape[2] for part in parts)
    filled = [np.pad(part, ((0, 0), (0, 0), (0, width - part.shape[2]))) for part in parts]
    return np.concatenate(filled)


def _spread_scores(x: FloatArray) -> FloatArray:
    """Squared normal scores of the ranks of the distances from the centre, shape (n_nodes, n, 1).

    With ranks instead of distances no single observation decides.
    """
    # Imported here: scipy.stats would triple the time of importing this package.
    from scipy.stats import rankdata

    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=1)
    scale = np.where(high > low, high - low, x.std(axis=1))
    scale = np.where(scale > 0, scale, 1.0)
    away = (((x - middle[:, np.newaxis]) / scale[:, np.newaxis]) ** 2).sum(axis=2)
    ranks = rankdata(np.round(away, 12), axis=1) / (x.shape[1] + 1)
    scores = ndtri(0.5 + 0.5 * ranks) ** 2
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))[:, :, np.newaxis]
