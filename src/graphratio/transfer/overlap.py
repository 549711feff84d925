"""Does the reference of a node overlap its target?

If both have the same law, half of the nearest neighbours of a target observation, among equally
many observations of both, are reference observations. Where the reference has none, they are not.
This needs no ratio: an estimated ratio is shrunk, and says little about places where the reference
has no observations.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.typing import FloatArray, IntArray

# How many nearest neighbours of a target observation are looked at.
NEIGHBOURS = 3
# A node has no overlap below this value; nine times as many target as reference observations
# around a target observation give it.
LEAST_OVERLAP = 0.2


def overlap_of(
    reference: FloatArray, target: FloatArray, fold: IntArray, rng: np.random.Generator
) -> float:
    """Overlap of a node: about 1 with equal laws, 0 if the samples lie apart.

    Twice the share of the reference among the nearest neighbours of target observations, at most
    1. Neighbours are sought among equally many observations of both samples, drawn at random.
    `fold` is that of every target observation. Neighbours in its own fold do not count: they may
    depend on it and be alike. NaN if a sample is empty or the target is in a single fold.
    """
    found = total = 0
    for k in np.unique(fold):
        rest = target[fold != k]
        size = min(len(reference), len(rest))
        if not size:
            return float("nan")
        both = np.concatenate([rng.permutation(reference)[:size], rng.permutation(rest)[:size]])
        # In random order, so that ties favour neither sample.
        order = rng.permutation(2 * size)
        ranks = range(1, min(NEIGHBOURS, size) + 1)
        nearest = order[cKDTree(both[order]).query(target[fold == k], k=ranks)[1]]
        found, total = found + int((nearest < size).sum()), total + nearest.size
    return min(2 * found / total, 1.0) if total else float("nan")


def matching_weights(reference: FloatArray, target: FloatArray) -> FloatArray:
    """How many target observations have each reference observation as their nearest."""
    nearest = cKDTree(reference).query(target)[1]
    return np.bincount(nearest, minlength=len(reference)).astype(np.float64)
