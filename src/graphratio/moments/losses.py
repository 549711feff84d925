"""Losses and divergences of estimated ratios.

Symbols
-------
f           estimated ratio, f = rho + g with the prior ratio rho and the fitted part g
A, b        moments of the evaluation data, b centred with the same rho
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.moments.node_moments import Moments, has_both, mixing_weights, segment_indicator

# Smaller ratios count as this one in logarithms, so that no single point makes a mean infinite.
SMALLEST_RATIO = 1e-12


def moment_losses(moments: Moments, theta: FloatArray) -> FloatArray:
    """Loss of the ratio at every node from moments, the paper's L_v: 1/2 E_{p^alpha} f^2 - E_q f.

    For f = rho + g this is 1/2 theta' A theta - b' theta + rho^2 / 2 - rho. It is NaN at nodes
    that lack a sample. `theta` has shape (n_nodes, n_candidates, m), the result (n_nodes,
    n_candidates).
    """
    losses = 0.5 * moments.second.quadratic(theta)
    losses -= (theta @ moments.first[:, :, np.newaxis])[:, :, 0]
    rho = moments.prior_ratio
    losses += 0.5 * rho**2 - rho
    losses[~moments.complete] = np.nan
    return losses


def ratio_losses(ratios: FloatArray, sizes: IntArray, alpha: float) -> FloatArray:
    """Loss of the ratio at every node from its values at the node's own observations.

    This is 1/2 E_{p^alpha} f^2 - E_q f over the node's samples, shape (n_nodes,); NaN at nodes that
    lack one. `ratios`, shape (n_observations,), are sorted by node, reference before target;
    `sizes` has shape (n_nodes, 2).

    Examples
    --------
    >>> ratio_losses(np.array([1.0, 1.0, 1.0]), np.array([[2, 1]]), alpha=0.1)
    array([-0.5])
    """
    indicator = segment_indicator(sizes.ravel(), ratios.dtype)
    squares = (indicator @ ratios**2).reshape(sizes.shape)
    target = (indicator @ ratios).reshape(sizes.shape)[:, 1] / np.maximum(sizes[:, 1], 1)
    losses = 0.5 * np.einsum("vk,vk->v", mixing_weights(sizes, alpha), squares) - target
    return np.where(has_both(sizes), losses, np.nan)


def pearson_divergences(ratios: FloatArray, sizes: IntArray, alpha: float) -> FloatArray:
    """Pearson divergence PE(p^alpha || q) at every node: minus the loss minus one half.

    The estimate can be negative.
    """
    return np.asarray(-ratio_losses(ratios, sizes, alpha) - 0.5)


def kl_divergences(ratios: FloatArray, sizes: IntArray) -> FloatArray:
    """Kullback-Leibler divergence KL(q || p) at every node: the mean of log f over its target.

    Ratios below 1e-12 count as 1e-12. The estimate can be negative. It is NaN at nodes that lack
    a sample. Arguments are those of `ratio_losses`.

    Examples
    --------
    >>> kl_divergences(np.array([0.5, np.e, 1.0]), np.array([[1, 2]]))
    array([0.5])
    """
    logarithms = np.log(np.maximum(ratios, SMALLEST_RATIO))
    indicator = segment_indicator(sizes.ravel(), logarithms.dtype)
    sums = (indicator @ logarithms).reshape(sizes.shape)
    return np.where(has_both(sizes), sums[:, 1] / np.maximum(sizes[:, 1], 1), np.nan)
