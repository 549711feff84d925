"""Mean losses of nodes and mean differences over nodes, with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.losses import PEARSON, Loss
from graphratio.moments.node_moments import segment_indicator

# Factor of the standard error over nodes. Nodes are not independent: a graph that happens to suit
# one node suits its neighbours, and all share the hyperparameters. For two graphs of equal quality
# the difference divided by the plain error has a standard deviation of 1.2 to 1.6 instead of 1.
DISPERSION = 1.8

Judgement = Literal["better", "worse", "unclear"]


@dataclass(frozen=True, eq=False)
class NodeMeans:
    """Sum of the means over both samples of every node, and its standard error, shape (n_nodes,).

    Both are NaN with fewer than two observations in a sample. `third` is the third central moment
    of the mean. `freedom`, of the standard error, is that of Welch and Satterthwaite, but less
    where a few large terms make the variance itself uncertain (positive excess kurtosis).
    """

    mean: FloatArray
    error: FloatArray
    third: FloatArray
    freedom: FloatArray

    @classmethod
    def of(cls, terms: FloatArray, sizes: IntArray) -> NodeMeans:
        """Average one term per observation, by node, reference before target.

        `terms` has shape (n_observations,), `sizes` (n_nodes, 2).
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


def loss_terms(
    ratios: FloatArray, is_target: BoolArray, alpha: float, loss: Loss = PEARSON
) -> FloatArray:
    """Terms of the loss, one per observation, averaged over repeats.

    A loss is the sum of two means, over the reference and over the target. `ratios` has shape
    (n_repeats, n_observations).
    """
    return np.asarray(loss.terms(ratios, is_target, alpha).mean(axis=0))


@dataclass(frozen=True)
class Difference:
    """Mean over nodes of the loss of one fit minus that of another, with its two-sided p-value.

    The standard error allows for the dependence of nodes; its degrees of freedom are at least 1.
    """

    mean: float
    error: float
    p_value: float
    freedom: int

    @classmethod
    def of(
        cls, first: FloatArray, second: FloatArray, over_blocks: tuple[float, int] = (0.0, 1)
    ) -> Difference:
        """Compare losses of all nodes, shape (n_nodes,) each; NaN counts as missing.

        `over_blocks` has the standard error over blocks of time and its degrees of freedom. It
        counts if it is larger: what nodes share in a block does not show in their spread.
        """
        each = (first - second)[np.isfinite(first - second)]
        if len(each) < 2:
            return cls(float(each.mean()) if len(each) else np.nan, np.inf, 1.0, 1)
        freedom = len(each) - 1
        error = float(DISPERSION * each.std(ddof=1) / np.sqrt(len(each)))
        if over_blocks[0] > error:
            error, freedom = over_blocks
        mean = float(each.mean())
        if error == 0:
            return cls(mean, 0.0, 1.0 if mean == 0 else 0.0, freedom)
        return cls(mean, error, float(2 * stats.t.sf(abs(mean) / error, freedom)), freedom)

    def judged(self, level: float) -> Judgement:
        """Whether the first fit is better or worse than the second, at this level."""
        if self.p_value > level:
            return "unclear"
        return "better" if self.mean < 0 else "worse"

    def half_width(self, level: float) -> float:
        """Half the width of the two-sided interval for the mean."""
        return float(stats.t.ppf(1 - level / 2, self.freedom) * self.error)
