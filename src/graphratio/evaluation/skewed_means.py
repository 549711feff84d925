"""Quantiles of Student statistics of means whose terms are skewed."""

from __future__ import annotations

import numpy as np
from scipy import stats

from graphratio._utils.typing import FloatArray

# Share of the correction for skewness that is applied at the upper end. The skewness is estimated,
# so at nodes with heavy tails the whole correction gives too low a coverage, and none too high.
UPPER_SHARE = 0.5


def lower_quantile(freedom: FloatArray, skewness: FloatArray, tail: float) -> FloatArray:
    """Distance from the estimate down to the lower end, in standard errors.

    Never below the plain quantile: skewness to the other side is not used.
    """
    plain = np.asarray(stats.t.ppf(1 - tail, freedom))
    return np.asarray(np.maximum(plain, _hall_inverse(plain, skewness)))


def upper_quantile(freedom: FloatArray, skewness: FloatArray, tail: float) -> FloatArray:
    """Distance from the estimate up to the upper end, in standard errors.

    A sample with the few large terms has a low mean and a large spread, so the plain quantile
    reaches too far up. A share of the correction by the transform is applied.
    """
    plain = np.asarray(stats.t.ppf(1 - tail, freedom))
    less = np.minimum(plain, -_hall_inverse(-plain, skewness))
    return np.asarray(plain - UPPER_SHARE * (plain - less))


def _hall_inverse(quantile: FloatArray, skewness: FloatArray) -> FloatArray:
    """Quantile of a Student statistic of a mean with skewness, after Hall's transform.

    g(t) = t + a t^2 / 3 + a^2 t^3 / 27 + a / 6 is nearly symmetric for skewness a. Returns its
    inverse at a quantile of Student's law. This corrects for samples that happen to lack the few
    large terms, and then have both too large a mean and too small a spread.
    """
    # Towards a large negative skewness the transform loses its inverse.
    a = np.clip(skewness, -1.0, -1e-8)
    return np.asarray(3.0 / a * (np.cbrt(1.0 + a * (quantile - a / 6.0)) - 1.0))
