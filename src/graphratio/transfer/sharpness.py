"""How strongly to reweight: one exponent for all reweighted nodes, chosen on the task itself.

Weights w^s: s = 0 ignores the shift (right for a model that is correct everywhere, since uneven
weights only add variance), s = 1 takes the estimated ratio as it is, s > 1 undoes the shrinkage
of an estimate that was regularised for all nodes, most of which may not have changed. All
estimates are shrunk somewhat, so the usual power is a little above 1.

The error on the target is estimated without the ratio: every target observation counts its
nearest reference observation, and the held-out error of that one stands for its own. Judging
weights by themselves would favour s = 1 whatever the truth. The estimate is noisy, and in several
dimensions too kind to small powers: the reference observation nearest to a remote target
observation is less remote. So the usual power stands unless another one is clearly better, by
two standard errors over the reweighted nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.typing import FloatArray
from graphratio.transfer.own_weights import FLOOR

USUAL = 1.25
CANDIDATES = (0.0, 1.0, USUAL, 1.5, 2.0, 3.0)

# Standard errors by which another power must beat the usual one.
CLEAR = 2.0


def sharpened(weights: FloatArray, sharpness: float) -> FloatArray:
    """Weights to a power, with mean one again.

    Examples
    --------
    >>> sharpened(np.array([0.5, 1.5]), 2.0)
    array([0.2, 1.8])
    """
    if sharpness == 0 or not weights.size:
        return np.ones(len(weights))
    values = np.maximum(weights, FLOOR) ** sharpness
    return np.asarray(values / values.mean())


def best_exponent(errors: FloatArray, candidates: Sequence[float]) -> float:
    """The power nearest to the usual, or the best of those that are clearly better over the nodes.

    Parameters
    ----------
    errors : ndarray of shape (n_nodes, n_candidates)
    candidates : sequence of float

    Examples
    --------
    >>> better = np.array([[3.0, 2.0, 1.0], [3.0, 2.1, 1.0], [3.1, 2.0, 1.1]])
    >>> best_exponent(better, [0.0, 1.0, 2.0])
    2.0
    >>> best_exponent(better[:1], [0.0, 1.0, 2.0])
    1.0
    """
    usual = int(np.argmin(np.abs(np.asarray(candidates) - USUAL)))
    if len(errors) > 1:
        gain = errors[:, [usual]] - errors
        spread = gain.std(axis=0, ddof=1) / np.sqrt(len(errors))
        clear = gain.mean(axis=0) > CLEAR * spread
        if clear.any():
            usual = int(np.argmin(np.where(clear, errors.mean(axis=0), np.inf)))
    return float(candidates[usual])


def matching_weights(reference: FloatArray, target: FloatArray) -> FloatArray:
    """How many target observations have each reference observation as their nearest.

    Examples
    --------
    >>> matching_weights(np.array([[0.0], [1.0], [5.0]]), np.array([[0.9], [1.2], [-3.0]]))
    array([1., 2., 0.])
    """
    nearest = cKDTree(reference).query(target)[1]
    return np.bincount(nearest, minlength=len(reference)).astype(np.float64)


def target_errors(
    fit: Callable[[FloatArray, Any, FloatArray], Any],
    error: Callable[[Any, Any], FloatArray],
    data: tuple[FloatArray, Any, FloatArray],
    weights: FloatArray,
    candidates: Sequence[float],
    n_folds: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Cross-validated target error of one node for every candidate, shape (n_candidates,).

    Parameters
    ----------
    fit : callable
        Called as fit(x, y, sample_weight); returns a fitted model.
    error : callable
        Called as error(y, predicted); returns one number per observation.
    data : tuple
        Reference observations, their labels, target observations.
    weights : ndarray of shape (n_reference,)
    candidates : sequence of float
    n_folds : int
    rng : numpy Generator
    """
    x, y, target = data
    total = np.zeros(len(candidates))
    count = matching_weights(x, target)
    fold = rng.permutation(np.arange(len(x)) % n_folds)
    for k in range(n_folds):
        # Observations that no target observation counts cannot be left out to any use.
        held = (fold == k) & (count > 0)
        if not held.any() or not (fold != k).any():
            continue
        train = fold != k
        for j, sharpness in enumerate(candidates):
            model = fit(x[train], y[train], sharpened(weights[train], sharpness))
            total[j] += count[held] @ error(y[held], model.predict(x[held]))
    return total / max(len(target), 1)
