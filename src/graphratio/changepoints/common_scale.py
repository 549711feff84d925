"""From many statistics to one: scores on a common scale, a threshold and p-values.

The largest value of a statistic over a panel has nearly a Gumbel law when nothing changes. Location
and scale come from the median and the upper decile over the panel and its surrogates, so one large
value moves neither. The score of a statistic is minus the logarithm of its p-value under this law,
plus the logarithm of its share of the level. The largest score of the panel is ranked among those
of the surrogates: this count is exact even where the law is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import FloatArray

# Quantiles of the standard Gumbel law.
_MEDIAN = -math.log(math.log(2))
_DECILE = -math.log(-math.log(0.9))


@dataclass(frozen=True, eq=False)
class Evidence:
    """The scale of scores, and the scores of the surrogates.

    `location`, `scale` and `log_shares` have one entry per statistic; `largest` are the sorted
    largest scores of the surrogates, and a score above `threshold` raises an alarm.
    """

    location: FloatArray
    scale: FloatArray
    log_shares: FloatArray
    largest: FloatArray
    threshold: float

    @classmethod
    def of(
        cls, real: FloatArray | None, surrogates: FloatArray, log_shares: FloatArray, level: float
    ) -> Evidence:
        """From the statistics of a panel, (n_statistics,), and of surrogates, (n, n_statistics)."""
        everything = surrogates if real is None else np.vstack([real, surrogates])
        middle, high = np.quantile(everything.astype(np.float64), [0.5, 0.9], axis=0)
        scale = np.maximum((high - middle) / (_DECILE - _MEDIAN), 1e-3)
        location = middle - _MEDIAN * scale
        scores = ((surrogates - location) / scale + log_shares).max(axis=1)
        largest = np.sort(scores)
        # The panel counts too. Rounded, since 0.58 * 100 is not 58 in floating point.
        rank = min(math.ceil(round((1 - level) * (len(largest) + 1), 6)), len(largest))
        return cls(location, scale, log_shares, largest, float(largest[rank - 1]))

    def scores(self, statistics: FloatArray) -> FloatArray:
        """Scores of statistics, shape (n_statistics, ...)."""
        shape = (-1, *([1] * (statistics.ndim - 1)))
        location, scale, shares = (
            part.reshape(shape) for part in (self.location, self.scale, self.log_shares)
        )
        return np.asarray((statistics - location) / scale + shares)

    def p_value(self, score: float) -> float:
        """Probability that a panel without change has a score as large anywhere."""
        above = self.largest.size - np.searchsorted(self.largest, score, side="left")
        return float((1 + above) / (1 + self.largest.size))

    def relative(self, scores: FloatArray | float) -> FloatArray:
        """Scores in units of the threshold; 0 for negative scores."""
        return np.maximum(np.asarray(scores) / max(self.threshold, 1e-3), 0.0)
