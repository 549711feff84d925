"""Information of every node's data on the leading directions of the features.

The information on a direction accounts for the other directions, which are unknown too: a_v is
the Schur complement of A_v, not its diagonal entry.

Symbols
-------
c_j         leading eigenvectors of the covariance of the features, pooled over nodes
omega_j     their weights: eigenvalues, scaled to sum to one
B_v         second moments c_i' A_v c_j of node v among these directions
a_vj        1 / [(B_v + eps I)^{-1}]_jj - eps: the Schur complement, with a small ridge
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from graphratio._utils.typing import FloatArray
from graphratio.moments.node_moments import Moments
from graphratio.moments.second_moments import SecondMoment

# Use as many directions as carry this share of the variance, but at most MOST_DIRECTIONS.
CARRIED = 0.9
MOST_DIRECTIONS = 8
# The ridge eps, relative to the variance of all features.
RIDGE = 1e-3

# Nodes per chunk.
PROJECTED_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class Leading:
    """Leading directions of the features.

    Only the first n_directions of `vectors`, shape (m, n_vectors), are used; `weights` has shape
    (n_directions,).
    """

    vectors: FloatArray
    weights: FloatArray
    ridge: float

    @classmethod
    def of(cls, second: FloatArray, mean_features: FloatArray) -> Leading:
        """Find the directions from the mean second moment (m, m) over the complete nodes.

        `mean_features` is the mean over all observations, shape (m,).
        """
        size = second.shape[0]
        low = max(size - MOST_DIRECTIONS, 0)
        covariance = second - np.outer(mean_features, mean_features)
        values, vectors = linalg.eigh(covariance, subset_by_index=(low, size - 1))
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        # Without any spread, as for a single observation, the rest is rounding.
        rounding = np.finfo(float).eps * float(np.trace(second)) + np.finfo(float).tiny
        total = max(float(np.trace(covariance)), rounding)
        count = min(1 + int(np.searchsorted(np.cumsum(values) / total, CARRIED)), len(values))
        kept = values[:count]
        weights = kept / kept.sum() if kept.sum() > 0 else np.full(count, 1 / count)
        return cls(vectors, weights, RIDGE * total)

    def moments(self, second: SecondMoment) -> FloatArray:
        """Schur complements a_vj of all nodes, shape (n_nodes, n_directions)."""
        n_nodes = second.shape[0]
        own = np.empty((n_nodes, len(self.weights)))
        for begin in range(0, n_nodes, PROJECTED_AT_ONCE):
            nodes = np.arange(begin, min(begin + PROJECTED_AT_ONCE, n_nodes))
            stack = np.repeat(self.vectors.T[np.newaxis].astype(second.dtype), len(nodes), axis=0)
            blocks = (second.take(nodes).apply(stack) @ self.vectors).astype(np.float64)
            inverse = np.linalg.inv(blocks + self.ridge * np.eye(blocks.shape[1]))
            complements = 1.0 / np.einsum("vjj->vj", inverse)[:, : len(self.weights)] - self.ridge
            own[nodes] = np.maximum(complements, 0.0)
        return own


@dataclass(frozen=True, eq=False)
class Directions:
    """Weights (n_directions,) and Schur complements (n_nodes, n_directions) of a fit."""

    weights: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, moments: Moments, mean_features: FloatArray) -> Directions:
        """Find the leading directions and the Schur complements of all nodes."""
        share = len(moments.complete) / max(int(moments.complete.sum()), 1)
        leading = Leading.of(
            moments.second.mean(rough=True).astype(np.float64) * share, mean_features
        )
        return cls(leading.weights, leading.moments(moments.second))
