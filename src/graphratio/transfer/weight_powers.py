"""Weights that use the neighbours and fit the node's own samples, raised to a power.

*Blending.* A ratio shared with the neighbours is closer to the true one. Weights fitted to the very
observations that they weight also balance chance differences, as estimated propensity scores do,
which beat the true ones. The geometric mean of the joint and the node's own weights does both.

*Sharpness.* The weights w become w^s, with one s for all nodes before any safeguard. s > 1 undoes
shrinkage. All estimates are shrunk somewhat, so the usual power is a little above 1. The matched
error on the target (`trials`) is noisy, so the usual power stands unless another one is better by
two standard errors over the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_real
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.data.samples import NodeSamples
from graphratio.estimators import RULSIF
from graphratio.estimators.weights import ImportanceWeights

# Smallest weight, relative to the mean, before powers: no class or direction vanishes.
FLOOR = 1e-3

USUAL = 1.25
CANDIDATES = (USUAL, 2.0, 3.0)

# Standard errors by which another power must beat the usual one.
CLEAR = 2.0


def read_powers(sharpness: Any) -> list[float]:
    """Candidates of the power; a single one is used as it is."""
    given = CANDIDATES if sharpness is None else np.atleast_1d(sharpness)
    if not len(given):
        raise InputError(
            "sharpness is an empty sequence", "Pass a number, a sequence of them, or None"
        )
    return [check_real(power, "sharpness", low=0, include_low=True) for power in given]


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
