"""How far the two samples of a node lie apart, in standard deviations, and who changed most.

A divergence has a ceiling, which samples reach as soon as they hardly overlap. The effect size has
none, so it orders nodes beyond that point.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples

# Quantiles that effect sizes compare.
N_QUANTILES = 20

# The standard deviation at a node counts as at least this share of that of all data.
_SMALLEST_SPREAD = 1e-3

# Divergences above this share of their ceiling are near it.
NEAR_CEILING = 0.9


def effect_sizes(samples: NodeSamples) -> FloatArray:
    """Mean distance between the quantiles of the two samples, (n_nodes,); NaN if one is missing.

    In standard deviations within the samples of the node; the largest over features. A target moved
    by some standard deviations has that number; a change of spread counts too.
    """
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    sizes = samples.sizes.ravel()
    # Rows of the quantiles of every sample; those of empty samples are not used.
    rows = samples.offsets[:-1, np.newaxis] + np.floor(levels * sizes[:, np.newaxis]).astype(int)
    rows = np.minimum(rows, samples.n_observations - 1)
    largest: FloatArray = np.zeros(samples.n_nodes)
    for column in samples.values.T:
        ordered = column[np.lexsort((column, samples.segments))]
        quantiles = ordered[rows].reshape(samples.n_nodes, 2, -1)
        distance = np.abs(quantiles[:, 1] - quantiles[:, 0]).mean(axis=1)
        spread = np.maximum(_spread(column, samples), _SMALLEST_SPREAD * column.std())
        np.maximum(largest, distance / np.where(spread > 0, spread, 1.0), out=largest)
    return np.where(samples.complete, largest, np.nan)


def _spread(column: FloatArray, samples: NodeSamples) -> FloatArray:
    """Root mean square of the standard deviations of both samples, shape (n_nodes,)."""
    segment, sizes = samples.segments, np.maximum(samples.sizes.ravel(), 1)
    mean = np.bincount(segment, column, minlength=sizes.size) / sizes
    squares = np.bincount(segment, np.square(column - mean[segment]), minlength=sizes.size)
    return np.asarray(np.sqrt((squares / sizes).reshape(-1, 2).mean(axis=1)))


def ceiling_of(alpha: float) -> float:
    """Largest possible Pearson divergence of a relative ratio; infinite at alpha = 0."""
    return (1 / alpha - 1) / 2 if alpha > 0 else np.inf


def near_ceiling(divergence: FloatArray, ceiling: float) -> BoolArray:
    """True where a divergence is too close to its ceiling to compare it with others."""
    return np.asarray(np.nan_to_num(divergence) > NEAR_CEILING * ceiling)


def ranked(divergence: FloatArray, effect_size: FloatArray, ceiling: float) -> IntArray:
    """Positions of nodes, most changed first: by divergence, near its ceiling by effect size."""
    top = near_ceiling(divergence, ceiling)
    second = np.where(top, effect_size, divergence)
    order = np.lexsort((-second, ~top))
    return np.asarray(order[~np.isnan(divergence[order])])
