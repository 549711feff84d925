"""Does the reference of a node reach its target?

A target observation is within reach if its nearest reference observation is no farther than those
of most reference observations are from each other. This needs no ratio: an estimated ratio is
shrunk, and says little about places where the reference has no observations.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.typing import FloatArray, IntArray

# Share of reference observations whose nearest other one is within reach.
WITHIN_REACH = 0.95
# With a smaller share of the target within reach, a node has no overlap.
LEAST_OVERLAP = 0.5


def overlap_share(reference: FloatArray, target: FloatArray, fold: IntArray) -> float:
    """Share of target observations within reach of the reference.

    The nearest other reference observation is one of another fold: observations of one fold may
    depend on each other and be alike. NaN without a target or with a single fold.
    """
    others = [(reference[fold == k], reference[fold != k]) for k in np.unique(fold)]
    apart = [cKDTree(rest).query(own)[0] for own, rest in others if len(rest)]
    if not apart or not len(target):
        return float("nan")
    reach = np.quantile(np.concatenate(apart), WITHIN_REACH)
    return float(np.mean(cKDTree(reference).query(target)[0] <= reach))


def matching_weights(reference: FloatArray, target: FloatArray) -> FloatArray:
    """How many target observations have each reference observation as their nearest."""
    nearest = cKDTree(reference).query(target)[1]
    return np.bincount(nearest, minlength=len(reference)).astype(np.float64)
