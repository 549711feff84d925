"""Weights that use the neighbours and fit the node's own samples, raised to a power.

*Blending.* A ratio shared with the neighbours is closer to the true one. Weights fitted to the very
observations that they weight also balance chance differences, as estimated propensity scores do,
which beat the true ones. The geometric mean of the joint and the node's own weights does both.

*Sharpness.* The weights w become w^s, with one s for all reweighted nodes. s = 0 ignores the shift:
for a model that is correct everywhere uneven weights only add variance. s > 1 undoes shrinkage.
All estimates are shrunk somewhat, so the usual power is a little above 1.

The choice of s needs the error on the target, estimated without the ratio: judged by themselves,
weights would favour s = 1. The nearest reference observation, with its held-out error, represents
a target observation. This is noisy and in several dimensions favours small powers, so the usual
power stands unless another one is better by two standard errors over the reweighted nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.arrays import read_only
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.estimators import RULSIF
from graphratio.estimators.weights import ImportanceWeights

# Smallest weight, relative to the mean, before powers: no class or direction vanishes.
FLOOR = 1e-3

USUAL = 1.25
CANDIDATES = (0.0, 1.0, USUAL, 1.5, 2.0, 3.0)

# Standard errors by which another power must beat the usual one.
CLEAR = 2.0


def blended(
    weights: ImportanceWeights,
    samples: NodeSamples,
    chosen: BoolArray,
    alpha: Any,
    share: float,
    rng: np.random.Generator,
) -> ImportanceWeights:
    """Blend weights of chosen nodes with those of RULSIF, whose exponent is `share`."""
    nodes = [samples.nodes[i] for i in np.flatnonzero(chosen & samples.complete)]
    if share == 0 or not nodes:
        return weights
    theirs = samples.subset(nodes)
    alone = RULSIF(alpha=alpha, random_state=int(rng.integers(2**31)))
    own = alone.fit(theirs)._weights(theirs, relative=weights.relative)
    pieces = dict(weights)
    for node in nodes:
        joint = np.maximum(weights[node], FLOOR)
        both = joint ** (1 - share) * np.maximum(own[node], FLOOR) ** share
        pieces[node] = both / both.mean()
    return replace(weights, sample_weight=read_only(np.concatenate(list(pieces.values()))))


def sharpened(weights: FloatArray, sharpness: float) -> FloatArray:
    """Weights to a power, with mean one again."""
    if sharpness == 0 or not weights.size:
        return np.ones(len(weights))
    values = np.maximum(weights, FLOOR) ** sharpness
    return np.asarray(values / values.mean())


def best_exponent(errors: FloatArray, candidates: Sequence[float]) -> float:
    """The usual power, or a clearly better one, from errors (n_nodes, n_candidates)."""
    usual = int(np.argmin(np.abs(np.asarray(candidates) - USUAL)))
    if len(errors) > 1:
        gain = errors[:, [usual]] - errors
        spread = gain.std(axis=0, ddof=1) / np.sqrt(len(errors))
        clear = gain.mean(axis=0) > CLEAR * spread
        if clear.any():
            usual = int(np.argmin(np.where(clear, errors.mean(axis=0), np.inf)))
    return float(candidates[usual])


def matching_weights(reference: FloatArray, target: FloatArray) -> FloatArray:
    """How many target observations have each reference observation as their nearest."""
    nearest = cKDTree(reference).query(target)[1]
    return np.bincount(nearest, minlength=len(reference)).astype(np.float64)


def target_errors(
    fit: Callable[[FloatArray, Any, FloatArray], Any],
    error: Callable[[Any, Any], FloatArray],
    data: tuple[FloatArray, Any, FloatArray],
    weights: FloatArray,
    candidates: Sequence[float],
    fold: IntArray,
) -> FloatArray:
    """Cross-validated target error of one node for every candidate, shape (n_candidates,).

    `fit(x, y, sample_weight)` returns a model, `error(y, predicted)` one number per observation.
    `data` are reference observations, labels, and target observations; `fold` is of the reference.
    """
    x, y, target = data
    total = np.zeros(len(candidates))
    count = matching_weights(x, target)
    for k in range(int(fold.max()) + 1):
        # Only observations that represent a target observation contribute to the error.
        held = (fold == k) & (count > 0)
        if not held.any() or not (fold != k).any():
            continue
        train = fold != k
        for j, sharpness in enumerate(candidates):
            model = fit(x[train], y[train], sharpened(weights[train], sharpness))
            total[j] += count[held] @ error(y[held], model.predict(x[held]))
    return total / max(len(target), 1)
