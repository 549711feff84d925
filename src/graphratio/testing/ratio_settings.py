"""How the ratios behind a test are estimated: kernel, dictionary, candidates of the penalties."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, bandwidth_grid, get_kernel, median_bandwidths
from graphratio.selection.grids import Candidates, candidates_of
from graphratio.testing.pooled import PooledSamples

# Relative to the median distance within nodes. Changes of shape show at a finer scale than the
# whole spread of the data.
BANDWIDTH_SHARE = 0.7

# Graph penalties times the mean degree, and ridges relative to them.
STRENGTHS = (0.1, 0.3, 1.0, 3.0)
RIDGE_SHARES = (1e-3, 1e-2)

# Few folds: the candidates are few and clearly different, and every group chooses once.
_FOLDS = 3


@dataclass(frozen=True, eq=False)
class RatioSettings:
    """Kernel, dictionary and candidates of a test.

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
        strengths = np.repeat(STRENGTHS if graph.n_edges else (1.0,), len(RIDGE_SHARES))
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
