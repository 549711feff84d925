"""What a node shows by itself, as columns over its pooled observations.

Three statistics need no neighbours. The energy distance sees shifts best. The kernel distance,
whitened so that fine structure counts as much as coarse, sees changes of shape. The ranks of the
distances from the centre see changes of spread, in heavy tails too. The first two are squared
norms of means of features: principal components of the centred matrices

    -|x - y| / 2     and     exp(-|x - y|^2 / (2 sigma^2))

over the node's own observations. They depend on no other node, so they work whatever the location
and scale of the others, and no label enters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from graphratio._utils.typing import FloatArray

# Components are computed from at most this many observations, and so many are kept.
LANDMARKS = 96
COMPONENTS = 24

# Components with a smaller share of the variance are left out.
_FLOOR = 1e-3

# Bandwidth relative to the median distance: changes of shape show at a finer scale than that.
OWN_BANDWIDTH = 0.7

# Ridge of the whitening; the kernel has norm one.
WHITENING_RIDGE = 0.1


@dataclass(frozen=True, eq=False)
class OwnColumns:
    """Columns of several nodes with equally many observations, shapes (n_nodes, n, K).

    The mean of a column over the node is zero.
    """

    energy: FloatArray
    shape: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, x: FloatArray) -> OwnColumns:
        """Compute them from pooled observations in random order, shape (n_nodes, n, n_features)."""
        marks = x[:, :LANDMARKS]
        distance = _distances(x, marks)
        inner = distance[:, : marks.shape[1]]
        energy, _ = _components(-0.5 * distance)
        sigma = OWN_BANDWIDTH * _medians(inner)[:, np.newaxis, np.newaxis]
        kernel, w = _components(np.exp(-0.5 * (distance / sigma) ** 2))
        # The weight of the squared mean of a component in the divergence of a ridge regression.
        weight = 1 / (w + WHITENING_RIDGE) - 0.5 * w / (w + WHITENING_RIDGE) ** 2
        return cls(energy, kernel * np.sqrt(weight)[:, np.newaxis], _spread_scores(x))


def _distances(x: FloatArray, y: FloatArray) -> FloatArray:
    """Euclidean distances within each node, shape (n_nodes, n, n_marks)."""
    total = np.zeros((len(x), x.shape[1], y.shape[1]))
    for column, other in zip(np.moveaxis(x, 2, 0), np.moveaxis(y, 2, 0), strict=True):
        total += (column[:, :, np.newaxis] - other[:, np.newaxis]) ** 2
    return np.asarray(np.sqrt(total, out=total))


def _medians(distance: FloatArray) -> FloatArray:
    """Median of the positive distances of every node; 1 where there are none."""
    positive = np.where(distance > 0, distance, np.nan).reshape(len(distance), -1)
    known = ~np.isnan(positive).all(axis=1)
    found = np.ones(len(distance))
    if known.any():
        found[known] = np.nanmedian(positive[known], axis=1)
    return found


def _components(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Principal components of a kernel matrix, shape (n_nodes, n, r), and their variances.

    `gram` has shape (n_nodes, n, n_marks); its first rows are the landmarks. With all
    observations as landmarks this is kernel principal component analysis, else its Nystrom
    approximation.
    """
    n_marks = gram.shape[2]
    inner = gram[:, :n_marks]
    column = inner.mean(axis=1, keepdims=True)
    centred = gram - gram.mean(axis=2, keepdims=True) - column
    centred += column.mean(axis=2, keepdims=True)
    w, vectors = np.linalg.eigh(centred[:, :n_marks])
    w, vectors = np.maximum(w[:, ::-1], 0.0), vectors[:, :, ::-1]
    total = np.maximum(w.sum(axis=1), np.finfo(float).tiny)
    used = (w >= _FLOOR * total[:, np.newaxis]) & (w > 0)
    count = max(1, min(COMPONENTS, int(used.sum(axis=1).max())))
    w, used, vectors = w[:, :count], used[:, :count], vectors[:, :, :count]
    scale = np.where(used, 1 / np.sqrt(np.where(used, w, 1.0)), 0.0)
    features = centred @ (vectors * scale[:, np.newaxis])
    features -= features.mean(axis=1, keepdims=True)
    return features, w / n_marks


def _spread_scores(x: FloatArray) -> FloatArray:
    """Squared normal scores of the ranks of the distances from the centre, shape (n_nodes, n, 1).

    With ranks instead of distances no single observation decides.
    """
    # Imported here: scipy.stats would triple the time of importing this package.
    from scipy.stats import rankdata

    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=1)
    scale = np.where(high > low, high - low, x.std(axis=1))
    scale = np.where(scale > 0, scale, 1.0)
    away = (((x - middle[:, np.newaxis]) / scale[:, np.newaxis]) ** 2).sum(axis=2)
    ranks = rankdata(np.round(away, 12), axis=1) / (x.shape[1] + 1)
    scores = ndtri(0.5 + 0.5 * ranks) ** 2
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))[:, :, np.newaxis]
