"""Models of one node on weights to several powers, judged on observations left out.

Two estimates of the error on the target, from labelled reference observations with held-out losses:

*Matching* lets each target observation count its nearest reference observation. It needs no ratio,
so it can tell powers of the weights apart. In several dimensions it favours small powers.

*Importance weighting* lets each reference observation count by its weight. It favours no power
above 1, but tells best whether weights help at all, with a standard error for the single node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.transfer.weight_powers import sharpened


@dataclass(frozen=True, eq=False)
class WeightTrial:
    """A node with labels, some of which are left out in turn.

    `fit(x, y, sample_weight)` returns a model, `error(y, predicted)` one number per observation.
    `fold` and `piece` have one entry per reference observation: its fold, at least two of them,
    and the block of observations that depend on each other.
    """

    fit: Callable[[FloatArray, Any, FloatArray], Any]
    error: Callable[[Any, Any], FloatArray]
    reference: FloatArray
    labels: Any
    target: FloatArray
    weights: FloatArray
    fold: IntArray
    piece: IntArray
    _losses: dict[float, FloatArray] = field(default_factory=dict)

    def losses(self, power: float) -> FloatArray:
        """Held-out loss of every reference observation, shape (n_reference,)."""
        if power not in self._losses:
            found = np.empty(len(self.reference))
            for k in np.unique(self.fold):
                held, train = self.fold == k, self.fold != k
                weights = sharpened(self.weights[train], power)
                model = self.fit(self.reference[train], self.labels[train], weights)
                found[held] = self.error(self.labels[held], model.predict(self.reference[held]))
            self._losses[power] = found
        return self._losses[power]

    def target_error(self, power: float) -> float:
        """Mean loss at the nearest reference observations of the target."""
        counts = matching_weights(self.reference, self.target)
        return float(counts @ self.losses(power) / counts.sum())

    def loss(self, power: float) -> float:
        """Mean held-out loss, weighted to look like the target."""
        return float(self._shares @ self.losses(power))

    def excess(self, power: float) -> tuple[float, float]:
        """Loss above that of the unweighted model, and its standard error over blocks.

        The standard error is NaN with a single block.
        """
        gaps = self.losses(power) - self.losses(0.0)
        mean = float(self._shares @ gaps)
        sums = np.bincount(
            np.unique(self.piece, return_inverse=True)[1], self._shares * (gaps - mean)
        )
        if len(sums) < 2:
            return mean, float("nan")
        return mean, float(np.sqrt(len(sums) / (len(sums) - 1) * np.square(sums).sum()))

    @property
    def _shares(self) -> FloatArray:
        even = sharpened(self.weights, 1.0)
        return np.asarray(even / even.sum())


def matching_weights(reference: FloatArray, target: FloatArray) -> FloatArray:
    """How many target observations have each reference observation as their nearest."""
    nearest = cKDTree(reference).query(target)[1]
    return np.bincount(nearest, minlength=len(reference)).astype(np.float64)
