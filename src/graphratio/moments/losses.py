"""The losses of an estimate and the divergences that they bound.

A divergence is the largest value of a mean over both samples, and the ratio attains it: this is
its variational formula. Minus that mean is the loss of an estimated ratio f = r^alpha. So minus
the loss, plus a constant, is a lower bound of the divergence for every f. It also estimates the
divergence, except for "kl", where the ratio is normalised in the fit and E_q log f has less noise.

=================  =============================================  ============================
loss               of the ratio f, at every node                  divergence, range
=================  =============================================  ============================
"pearson"          1/2 E_m f^2 - E_q f                            PE(m || q), at most
                                                                  (1/alpha - 1) / 2
"kl"               E_m f - 1 - E_q log f                          KL(q || m), at most
                                                                  log(1/alpha)
"jensen-shannon"   -1/2 E_q log d - 1/2 E_p log(1 - d)            JS(p, q), at most log 2
=================  =============================================  ============================

Symbols
-------
p, q        laws of reference and target
m           the mixture (1 - alpha) p + alpha q, of which f = q / m is the ratio
d           q / (p + q) = (1 - alpha) f / (1 + (1 - 2 alpha) f), whatever alpha is
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.node_moments import has_both, segment_indicator

# Smaller ratios and probabilities count as this one in logarithms, so that no single point makes
# a mean infinite.
SMALLEST_RATIO = 1e-12


@dataclass(frozen=True)
class Loss(ABC):
    """A loss of ratios at observations, and the divergence that is `shift` minus the loss.

    `curvature` is its second derivative at ratio 1, relative to that of the Pearson loss.
    """

    name: str
    divergence_name: str
    shift: float
    curvature: float

    @abstractmethod
    def ceiling(self, alpha: float) -> float:
        """Largest possible divergence."""

    @abstractmethod
    def terms(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """One term per observation; the loss is the sum of their means over both samples."""

    @abstractmethod
    def slopes(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """Derivative of every term by the ratio."""

    def of_nodes(self, ratios: FloatArray, sizes: IntArray, alpha: float) -> FloatArray:
        """Loss of every node, (n_nodes,); NaN at nodes that lack a sample.

        `ratios` are those at each node's own observations, sorted by node, reference before
        target.
        """
        flat = sizes.ravel()
        is_target = np.repeat(np.arange(flat.size) % 2 == 1, flat)
        sums = segment_indicator(flat, ratios.dtype) @ self.terms(ratios, is_target, alpha)
        means = (sums / np.maximum(flat, 1)).reshape(sizes.shape)
        return np.where(has_both(sizes), means.sum(axis=1), np.nan)

    def divergences(self, ratios: FloatArray, sizes: IntArray, alpha: float) -> FloatArray:
        """Divergence of every node, (n_nodes,), from the same arguments; can be negative."""
        return np.asarray(self.shift - self.of_nodes(ratios, sizes, alpha))


class Pearson(Loss):
    """The paper's loss, quadratic in the ratio."""

    def ceiling(self, alpha: float) -> float:
        """(1 / alpha - 1) / 2."""
        return 0.5 * (1 / alpha - 1) if alpha > 0 else math.inf

    def terms(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """(1 - alpha)/2 f^2 over the reference, alpha/2 f^2 - f over the target."""
        squares = 0.5 * ratios**2
        return np.where(is_target, alpha * squares - ratios, (1 - alpha) * squares)

    def slopes(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """(1 - alpha) f and alpha f - 1."""
        return np.where(is_target, alpha * ratios - 1, (1 - alpha) * ratios)


class KullbackLeibler(Loss):
    """Minus the likelihood of the target, with a mean ratio of one over the mixture."""

    def ceiling(self, alpha: float) -> float:
        """log(1 / alpha)."""
        return -math.log(alpha) if alpha > 0 else math.inf

    def divergences(self, ratios: FloatArray, sizes: IntArray, alpha: float) -> FloatArray:
        """The mean of log f over the target, since the fit normalised the ratio.

        No true ratio is above 1 / alpha, so larger estimates count as 1 / alpha. Neighbours that
        share an intercept can have such estimates.
        """
        logarithms = np.log(np.maximum(ratios, SMALLEST_RATIO))
        logarithms = np.minimum(logarithms, self.ceiling(alpha))
        sums = (segment_indicator(sizes.ravel(), ratios.dtype) @ logarithms).reshape(sizes.shape)
        return np.where(has_both(sizes), sums[:, 1] / np.maximum(sizes[:, 1], 1), np.nan)

    def terms(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """(1 - alpha) (f - 1) over the reference, alpha (f - 1) - log f over the target."""
        f = np.maximum(ratios, SMALLEST_RATIO)
        return np.where(is_target, alpha * (f - 1) - np.log(f), (1 - alpha) * (f - 1))

    def slopes(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """1 - alpha and alpha - 1 / f."""
        f = np.maximum(ratios, SMALLEST_RATIO)
        return np.where(is_target, alpha - 1 / f, 1 - alpha)


class JensenShannon(Loss):
    """Logistic loss of telling the samples apart, each with weight one half."""

    def ceiling(self, alpha: float) -> float:
        """The logarithm of 2, whatever alpha is."""
        return math.log(2)

    def terms(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """-1/2 log(1 - d) over the reference, -1/2 log d over the target."""
        top, rest = self._odds(ratios, alpha)
        return np.asarray(0.5 * np.log((top + rest) / np.where(is_target, top, rest)))

    def slopes(self, ratios: FloatArray, is_target: BoolArray, alpha: float) -> FloatArray:
        """Of 1/2 log(1 + (1 - 2 alpha) f) minus 1/2 log of (1 - alpha) f or of 1 - alpha f."""
        top, rest = self._odds(ratios, alpha)
        own = np.where(is_target, (1 - alpha) / top, -alpha / rest)
        return np.asarray(0.5 * ((1 - 2 * alpha) / (top + rest) - own))

    @staticmethod
    def _odds(ratios: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """(1 - alpha) f and 1 - alpha f: d is the first by their sum."""
        top = np.maximum((1 - alpha) * ratios, SMALLEST_RATIO)
        return top, np.maximum(1 - alpha * ratios, SMALLEST_RATIO)


PEARSON = Pearson("pearson", "Pearson", -0.5, 1.0)
KL = KullbackLeibler("kl", "KL", 0.0, 1.0)
JENSEN_SHANNON = JensenShannon("jensen-shannon", "Jensen-Shannon", math.log(2), 0.25)

LOSSES: Mapping[str, Loss] = {loss.name: loss for loss in (PEARSON, KL, JENSEN_SHANNON)}


def get_loss(name: Any) -> Loss:
    """Look up a loss by name."""
    return LOSSES[check_choice(name, "loss", tuple(LOSSES))]


def loss_of_divergence(divergence_name: str) -> Loss:
    """The loss whose divergence has this name."""
    for loss in LOSSES.values():
        if loss.divergence_name == divergence_name:
            return loss
    raise InputError(f"there is no divergence {divergence_name!r}", "Fit the model again")
