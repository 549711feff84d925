"""Held-out ratios of any estimator: it is fitted again without each fold."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator

_SELECTED = ("bandwidth", "graph_penalty", "node_penalty")


def refitted_ratios(
    model: NodeRatioEstimator, samples: NodeSamples, graph: Graph, folds: IntArray
) -> FloatArray:
    """Unclipped ratio at every observation of a fit that has not seen its fold.

    Parameters
    ----------
    model : fitted ratio estimator
        Hyperparameters that it chose for all nodes are kept, others are chosen in each fold.
    samples : NodeSamples
        Aligned to the graph.
    graph : Graph
    folds : ndarray of shape (n_observations,)
        Observations of fold -1 are never held out, and their ratio is 0.
    """
    ratios = np.zeros(samples.n_observations)
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        part = _at_same_hyperparameters(model).fit(samples.subset(observations=~held), graph)
        ratios[held] = part._ratios_at_nodes(samples.values[held], samples.node_index[held])
    return ratios


def _at_same_hyperparameters(model: NodeRatioEstimator) -> NodeRatioEstimator:
    fresh: NodeRatioEstimator = clone(model)
    known = fresh.get_params()
    fixed = {
        name: getattr(model, f"{name}_")
        for name in _SELECTED
        if name in known and np.ndim(getattr(model, f"{name}_")) == 0
    }
    return fresh.set_params(**fixed)  # type: ignore[no-any-return]
