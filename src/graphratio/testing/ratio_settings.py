"""How the ratios behind a test are estimated: kernel, dictionary, candidates of the penalties."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.estimators import GRULSIF
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, bandwidth_grid, get_kernel, median_bandwidths
from graphratio.selection.grids import (
    NODE_PENALTIES,
    Candidates,
    default_graph_penalties,
    positive_candidates,
)
from graphratio.testing.pooled import PooledSamples

# Relative to the median distance within nodes. Changes of shape show at a finer scale than the
# whole spread of the data.
BANDWIDTH_SHARE = 0.7

# In the units in which they act at a node: graph penalty * N * mean degree, and node penalty
# relative to the mean degree.
GRAPH_PENALTIES = (0.1, 0.3, 1.0, 3.0)
NODE_PENALTIES_TEST = (1e-3, 1e-2)

# Few folds: the candidates are few and clearly different, and every group chooses once.
_FOLDS = 3


@dataclass(frozen=True, eq=False)
class RatioSettings:
    """Kernel, dictionary and candidates of a test.

    Attributes
    ----------
    kernel : Kernel
    candidates : Candidates
    n_folds : int
    dictionary : DictionaryRecipe
    sigma : ndarray of shape (n_nodes,)
        Median distances within the pooled samples.
    """

    kernel: Kernel
    candidates: Candidates
    n_folds: int
    sigma: FloatArray
    dictionary: DictionaryRecipe = field(default_factory=DictionaryRecipe)

    @property
    def middle(self) -> tuple[float, float, float]:
        """The middle of each list of candidates: a choice that does not depend on the data."""
        found = self.candidates
        bandwidth, graph_penalty, node_penalty = (
            float(values[values.size // 2])
            for values in (found.bandwidth, found.graph_penalty, found.node_penalty)
        )
        return bandwidth, graph_penalty, node_penalty

    def atoms(self, pooled: PooledSamples, rng: np.random.Generator) -> FloatArray:
        """Build the dictionary from the pooled samples."""
        return self.dictionary.build(pooled.samples, self.kernel, self.sigma, rng)


def read_settings(estimator: Any, pooled: PooledSamples, graph: Graph) -> RatioSettings:
    """Take the configuration from an estimator, or the defaults of the test."""
    if estimator is None:
        kernel = get_kernel("gaussian")
        sigma = median_bandwidths(pooled.samples, kernel)
        degree = graph.mean_degree if graph.n_edges else 1.0
        graph_penalties = np.array(GRAPH_PENALTIES if graph.n_edges else (1.0,))
        candidates = Candidates(
            np.array([BANDWIDTH_SHARE * float(np.median(sigma))]),
            graph_penalties / (graph.n_nodes * degree),
            np.array(NODE_PENALTIES_TEST) * degree,
        )
        return RatioSettings(kernel, candidates, _FOLDS, sigma)
    if not isinstance(estimator, GRULSIF):
        raise InputError(
            f"estimator={estimator!r} cannot configure the test",
            "Pass a GRULSIF with the settings wanted, or None",
        )
    estimator._check_parameters()
    kernel = get_kernel(estimator.kernel)
    sigma = median_bandwidths(pooled.samples, kernel)
    candidates = Candidates(
        positive_candidates(estimator.bandwidth, "bandwidth", bandwidth_grid(sigma)),
        positive_candidates(
            estimator.graph_penalty, "graph_penalty", default_graph_penalties(graph)
        ),
        positive_candidates(estimator.node_penalty, "node_penalty", np.array(NODE_PENALTIES)),
    )
    n_folds = check_integer(estimator.cv, "cv", low=2)
    return RatioSettings(kernel, candidates, n_folds, sigma, DictionaryRecipe.of(estimator))
