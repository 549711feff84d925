"""Differences of held-out losses, paired over observations and over nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.evaluation.node_means import NodeMeans

# The standard error over nodes takes them as independent, but a graph that happens to suit one
# node suits its neighbours, and all share the hyperparameters. With two graphs of equal quality
# the ratio of a difference to this error has a standard deviation of 1.2 to 1.6 instead of 1.
DISPERSION = 1.8


Judgement = Literal["better", "worse", "unclear"]


@dataclass(frozen=True)
class Difference:
    """Mean over nodes of the loss of one fit minus that of another.

    Attributes
    ----------
    mean, error : float
        And its standard error, with the dependence of nodes allowed for.
    p_value : float
        Two-sided.
    freedom : int
        Degrees of freedom of the error, at least 1.
    """

    mean: float
    error: float
    p_value: float
    freedom: int

    @classmethod
    def of(cls, first: FloatArray, second: FloatArray) -> Difference:
        """From losses of all nodes, shape (n_nodes,) each; NaN counts as missing.

        Examples
        --------
        >>> Difference.of(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])).p_value
        1.0
        """
        each = (first - second)[np.isfinite(first - second)]
        if len(each) < 2:
            return cls(float(each.mean()) if len(each) else np.nan, np.inf, 1.0, 1)
        freedom = len(each) - 1
        error = float(DISPERSION * each.std(ddof=1) / np.sqrt(len(each)))
        mean = float(each.mean())
        if error == 0:
            return cls(mean, 0.0, 1.0 if mean == 0 else 0.0, freedom)
        return cls(mean, error, float(2 * stats.t.sf(abs(mean) / error, freedom)), freedom)

    def judged(self, level: float) -> Judgement:
        """Whether the first fit is better or worse than the second, at a chance of error."""
        if self.p_value > level:
            return "unclear"
        return "better" if self.mean < 0 else "worse"

    def half_width(self, confidence: float) -> float:
        """Half the width of the two-sided interval for the mean."""
        return float(stats.t.ppf(0.5 + confidence / 2, self.freedom) * self.error)


def node_gains(first: FloatArray, second: FloatArray, sizes: IntArray) -> tuple[FloatArray, ...]:
    """How much lower the second loss of every node is, with its error and freedom.

    Parameters
    ----------
    first, second : ndarray of shape (n_observations,)
        Terms of the loss, see `loss_terms`: the same observations under two fits.
    sizes : ndarray of shape (n_nodes, 2)

    Returns
    -------
    gain, error, freedom : ndarray of shape (n_nodes,)
    """
    means = NodeMeans.of(first - second, sizes)
    return means.mean, means.error, means.freedom
