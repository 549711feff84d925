"""Everything that may be learned from the data without looking at the labels.

A permutation test stays valid as long as what surrounds the permuted labels does not depend on
them. Both samples of a node are therefore pooled and put into an order that does not reveal the
labels: sorted by value, then shuffled. Bandwidths, dictionary, features and their reduction
depend on the pooled samples alone.

Symbols
-------
psi         features of the pooled observations, shape (n_observations, m)
A           mean of psi psi' over the pooled sample of a node (m x m)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

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

# Few folds: the candidates are few and clearly different, and every group chooses once.
_FOLDS = 3


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
    def of(cls, samples: NodeSamples, rng: np.random.Generator) -> PooledSamples:
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
    estimator._check_parameters()
    kernel = get_kernel(estimator.kernel)
    sigma = median_bandwidths(pooled.samples, kernel)
    candidates = Candidates(
        candidates_of(estimator.bandwidth, "bandwidth", bandwidth_grid(sigma)),
        *estimator._pairs_for(graph),
    )
    n_folds = check_integer(estimator.cv, "cv", low=2)
    return RatioSettings(kernel, candidates, n_folds, sigma, DictionaryRecipe.of(estimator))


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
        sizes = pooled.sizes
        scale = 1.0 / np.maximum(sizes, 1)
        features = NystromMap.build(kernel, dictionary, bandwidth, _RANK_TOLERANCE)
        _, psi = features.principal(
            pooled.samples.values, scale[pooled.samples.node_index] / len(sizes), POOLED_FLOOR
        )
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
