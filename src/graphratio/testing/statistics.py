"""The statistics of a node, their common scale, and how they are combined.

Every statistic is a linear or a quadratic function of means of columns over the target sample.
A permutation of labels changes nothing else. Quadratic forms of such means have skewed laws, each
with its own number of degrees of freedom. Their first three moments under permutations are known,
and the cube-root transformation of Wilson and Hilferty turns them into scores that are nearly
standard normal. The largest score, each less a handicap that its share of the level sets, is the
evidence at the node. It is ranked among the same quantity of permuted data sets, so the p-value
is exact however good the scores are.

Symbols
-------
S           covariance of the means under permutations (K x K)
t           their expectation plus an offset (K,)
z_v         strength that the neighbours' prediction would have if it were right
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import FloatArray

# The mean of the neighbours' predicted ratio at the node; the norm of the ratio fitted with their
# help; the energy distance; the whitened kernel distance; the spread around the centre.
NAMES = ("predicted", "coupled", "energy", "shape", "spread")

# How what the neighbours know and what the node itself shows share the level among statistics.
NEIGHBOUR_SHARES = np.array([0.7, 0.3, 0.0, 0.0, 0.0])
OWN_SHARES = np.array([0.0, 0.0, 0.45, 0.35, 0.2])

# The share of the neighbours grows with the strength of their prediction, between two limits.
LEAST_TRUST, MOST_TRUST = 0.05, 0.9
WEAK_PREDICTION, STRONG_PREDICTION = 0.4, 0.9

# Scores below this all mean "not extreme". The formula for the tail turns round below -0.58.
_LOWEST = -0.5

# The normal tail is about phi(z) * 2 / (z + sqrt(z^2 + 8 / pi)).
_TAIL = np.float32(8 / np.pi)
_HALF_ROOT = np.float32(np.sqrt(np.pi / 2))

# Laws with less skewness than this count as normal.
_SYMMETRIC = 0.02


def shares_of(strength: FloatArray) -> FloatArray:
    """Share of the level of every statistic, shape (n_nodes, 5).

    `strength`, shape (n_nodes,), is that of the neighbours' prediction, zero where there is none.
    It depends on the pooled sample of a node and on other nodes, never on the node's labels.

    Examples
    --------
    >>> shares_of(np.array([0.0, 0.5, 2.0])).round(3)
    array([[0.   , 0.   , 0.45 , 0.35 , 0.2  ],
           [0.154, 0.066, 0.351, 0.273, 0.156],
           [0.63 , 0.27 , 0.045, 0.035, 0.02 ]])
    """
    between = (strength - WEAK_PREDICTION) / (STRONG_PREDICTION - WEAK_PREDICTION)
    trust = LEAST_TRUST + (MOST_TRUST - LEAST_TRUST) * np.clip(between, 0.0, 1.0)
    trust = np.where(strength > 0, trust, 0.0)[:, np.newaxis]
    return np.asarray(trust * NEIGHBOUR_SHARES + (1 - trust) * OWN_SHARES)


@dataclass(frozen=True, eq=False)
class PermutationLaw:
    """Mean, standard deviation and skewness of statistics under permutations, any shape."""

    mean: FloatArray
    spread: FloatArray
    skewness: FloatArray

    @classmethod
    def of_squares(cls, cov: FloatArray, offset: FloatArray) -> PermutationLaw:
        """The law of ||y + t||^2 for normal y with covariance S, (..., K, K), and t, (..., K)."""
        square = cov @ cov
        mean = np.einsum("...ii->...", cov) + np.einsum("...i,...i->...", offset, offset)
        through = np.einsum("...i,...ij,...j->...", offset, cov, offset)
        twice = np.einsum("...i,...ij,...j->...", offset, square, offset)
        variance = 2 * np.einsum("...ii->...", square) + 4 * through
        third = 8 * np.einsum("...ij,...ij->...", square, cov) + 24 * twice
        return cls.of_moments(mean, variance, third)

    @classmethod
    def of_mean(cls, variance: FloatArray, offset: FloatArray) -> PermutationLaw:
        """The law of a single mean."""
        return cls.of_moments(offset, variance, np.zeros_like(variance))

    @classmethod
    def of_moments(
        cls, mean: FloatArray, variance: FloatArray, third: FloatArray
    ) -> PermutationLaw:
        """From the mean and the second and third central moments."""
        # A statistic that no permutation changes must not be scaled up to its rounding error.
        varies = variance > (1e-7 * np.abs(mean)) ** 2
        spread = np.sqrt(np.where(varies, variance, np.inf))
        return cls(mean, spread, np.where(varies, third, 0.0) / np.where(varies, spread, 1.0) ** 3)

    def scores(self, values: FloatArray) -> FloatArray:
        """Nearly standard normal scores of statistics whose law has the same shape."""
        standard = (values - self.mean) / self.spread
        skewed = self.skewness > _SYMMETRIC
        root = np.where(skewed, 2 / np.where(skewed, self.skewness, 1.0), 1.0).astype(values.dtype)
        cubic = 3 * root * (np.cbrt(np.maximum(1 + standard / root, 0)) - 1) + 1 / (3 * root)
        return np.where(skewed, cubic, standard)

    def quantile(self, score: FloatArray | float) -> FloatArray:
        """The value of the statistic that has a given score: the inverse of `scores`."""
        skewed = self.skewness > _SYMMETRIC
        root = np.where(skewed, 2 / np.where(skewed, self.skewness, 1.0), 1.0)
        cubic = root * (((score - 1 / (3 * root)) / (3 * root) + 1) ** 3 - 1)
        return np.asarray(self.mean + self.spread * np.where(skewed, cubic, score))


def combined_evidence(scores: FloatArray, log_shares: FloatArray) -> FloatArray:
    """Combine the scores along the last axis: minus the log of the smallest p-value / share.

    Examples
    --------
    >>> both = combined_evidence(np.array([[0.0, 2.0], [3.0, 0.0]]), np.log([0.5, 0.5]))
    >>> both.round(2)
    array([3.05, 5.89])
    """
    scores = np.maximum(scores, _LOWEST)
    # Minus the log of the upper tail of a standard normal, within a few per cent from 0 on.
    beyond = scores + np.sqrt(np.square(scores) + _TAIL)
    tail = 0.5 * np.square(scores) + np.log(_HALF_ROOT * beyond)
    return np.asarray((log_shares + tail).max(axis=-1))
