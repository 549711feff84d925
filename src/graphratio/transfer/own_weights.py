"""Weights that listen to the neighbours and fit the node's own samples.

A ratio shared with the neighbours is closer to the true one, but the true ratio is not the best
weight. One that was fitted to the very observations it weights also evens out by how much they
happen to differ from the target sample, as estimated propensity scores beat the true ones. The
geometric mean of the joint weights and of those of the node by itself has something of both.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.exceptions import OverlapWarning
from graphratio._utils.typing import BoolArray
from graphratio.data.samples import NodeSamples
from graphratio.estimators import RULSIF
from graphratio.estimators.weights import ImportanceWeights

# Smallest weight, relative to the mean, before powers: no class or direction vanishes.
FLOOR = 1e-3


def blended(
    weights: ImportanceWeights,
    samples: NodeSamples,
    chosen: BoolArray,
    alpha: Any,
    share: float,
    rng: np.random.Generator,
) -> ImportanceWeights:
    """Blend the weights of some nodes with those of RULSIF, where they have both samples.

    Parameters
    ----------
    weights : ImportanceWeights
    samples : NodeSamples
        Aligned with the weights.
    chosen : ndarray of bool, shape (n_nodes,)
    alpha : float
        Of the relative ratio.
    share : float in [0, 1]
        Exponent of the node's own weights; the joint ones get the rest.
    rng : numpy Generator
    """
    nodes = [samples.nodes[i] for i in np.flatnonzero(chosen & samples.complete)]
    if share == 0 or not nodes:
        return weights
    theirs = NodeSamples.from_arrays(
        {node: samples.reference(node) for node in nodes},
        {node: samples.target(node) for node in nodes},
    )
    alone = RULSIF(alpha=alpha, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # Said once, about the weights that are used in the end.
        warnings.simplefilter("ignore", OverlapWarning)
        own = alone.fit(theirs).importance_weights(theirs, relative=weights.relative)
    pieces = dict(weights)
    for node in nodes:
        joint = np.maximum(weights[node], FLOOR)
        both = joint ** (1 - share) * np.maximum(own[node], FLOOR) ** share
        pieces[node] = both / both.mean()
    return replace(weights, sample_weight=read_only(np.concatenate(list(pieces.values()))))
