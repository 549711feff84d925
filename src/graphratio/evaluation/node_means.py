"""Means over the observations of a node, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.moments.node_moments import segment_indicator


@dataclass(frozen=True, eq=False)
class NodeMeans:
    """Sum of the means over both samples of every node, and how sure it is.

    Attributes
    ----------
    mean, error : ndarray of shape (n_nodes,)
        And its standard error. NaN with fewer than two observations in a sample.
    third : ndarray of shape (n_nodes,)
        Third central moment of the mean.
    freedom : ndarray of shape (n_nodes,)
        Degrees of freedom of the standard error: those of Welch and Satterthwaite, fewer where
        a few large terms make the variance itself uncertain (positive excess kurtosis).
    """

    mean: FloatArray
    error: FloatArray
    third: FloatArray
    freedom: FloatArray

    @classmethod
    def of(cls, terms: FloatArray, sizes: IntArray) -> NodeMeans:
        """From one term for each observation.

        Parameters
        ----------
        terms : ndarray of shape (n_observations,)
            By node, reference before target.
        sizes : ndarray of shape (n_nodes, 2)

        Examples
        --------
        >>> means = NodeMeans.of(np.array([1.0, 3.0, 2.0, 6.0]), np.array([[2, 2]]))
        >>> float(means.mean[0]), float(means.error[0])
        (6.0, 2.236...)
        """
        indicator = segment_indicator(sizes.ravel(), terms.dtype)
        count = np.maximum(sizes.ravel(), 1)
        left = np.maximum(count - 1, 1)
        means = (indicator @ terms) / count
        deviations = terms - np.repeat(means, sizes.ravel())
        spread = (indicator @ deviations**2) / left / count
        third = (indicator @ deviations**3) / count**3
        known = (sizes > 1).all(axis=1)
        parts = spread.reshape(sizes.shape)
        variance = parts.sum(axis=1)
        tiny = np.finfo(np.float64).tiny
        mean_square = np.maximum((indicator @ deviations**2) / count, np.sqrt(tiny))
        excess = np.maximum((indicator @ deviations**4) / count / mean_square**2 - 3.0, 0.0)
        # Half the relative variance of each sample's variance.
        doubt = (1 / left + excess / (2 * count)).reshape(sizes.shape)
        by_freedom = (parts**2 * doubt).sum(axis=1)
        freedom = np.where(by_freedom > tiny, variance**2 / np.maximum(by_freedom, tiny), 1e6)
        return cls(
            np.where(known, means.reshape(sizes.shape).sum(axis=1), np.nan),
            np.where(known, np.sqrt(variance), np.nan),
            third.reshape(sizes.shape).sum(axis=1),
            freedom,
        )


def loss_terms(ratios: FloatArray, is_target: Any, alpha: float) -> FloatArray:
    """What every observation adds to the loss of its node, averaged over repeats.

    The loss 1/2 E_{p^alpha} f^2 - E_q f is the sum of two means: of (1 - alpha)/2 f^2 over the
    reference and of alpha/2 f^2 - f over the target.

    Parameters
    ----------
    ratios : ndarray of shape (n_repeats, n_observations)
    is_target : ndarray of shape (n_observations,)
    alpha : float
    """
    squares = 0.5 * ratios**2
    terms = np.where(is_target, alpha * squares - ratios, (1 - alpha) * squares)
    return np.asarray(terms.mean(axis=0))
