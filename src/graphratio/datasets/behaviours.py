"""The laws of every group of nodes in each scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.datasets.laws import (
    GaussianMixture,
    Law,
    UniformInterval,
    jensen_shannon_divergence,
    kl_divergence,
    pearson_divergence,
    relative_ratio,
)
from graphratio.datasets.random_graphs import COMPLEMENT, EGO


@dataclass(frozen=True)
class Behaviour:
    """The two laws at the nodes of one group; the same object where nothing changes.

    They differ in the coordinates `touched`; the others are independent and cancel from the ratio.
    """

    reference: Law
    target: Law
    touched: tuple[int, ...] = ()

    @property
    def changes(self) -> bool:
        """True where the two laws differ."""
        return self.target is not self.reference

    def divergence(self, name: str, alpha: float) -> float:
        """Divergence of the given name: "pearson", "kl" or "jensen-shannon"."""
        return _divergence(self, name, alpha) if self.changes else 0.0

    def ratio(self, x: FloatArray, alpha: float) -> FloatArray:
        """Relative ratio = target / mixture at points x, shape (n_points,)."""
        return relative_ratio(self.reference.logpdf(x), self.target.logpdf(x), alpha)

    def sample_mixture(self, size: int, alpha: float, rng: np.random.Generator) -> FloatArray:
        """Draw from (1 - alpha) reference + alpha target, shape (size, n_features)."""
        from_target = rng.random(size) < alpha
        n_target = int(from_target.sum())
        points = np.empty((size, self.reference.n_features))
        points[from_target] = self.target.sample(n_target, rng)
        points[~from_target] = self.reference.sample(size - n_target, rng)
        return points


# Integrals over two dimensions take a while, and there are only a few constant behaviours.
@cache
def _divergence(behaviour: Behaviour, name: str, alpha: float) -> float:
    p, q = (law.marginal(behaviour.touched) for law in (behaviour.reference, behaviour.target))
    if name == "jensen-shannon":
        return jensen_shannon_divergence(p, q)
    return kl_divergence(p, q, alpha) if name == "kl" else pearson_divergence(p, q, alpha)


def _gaussian(mean: list[float], correlation: float = 0.0, variance: float = 1.0) -> Law:
    """Gaussian whose first two coordinates, if there are two, are correlated."""
    covariance = variance * np.eye(len(mean))
    if correlation:
        covariance[0, 1] = covariance[1, 0] = variance * correlation
    return GaussianMixture(np.array([mean]), covariance)


def _unchanged(law: Law) -> Behaviour:
    return Behaviour(law, law)


_LINE = _gaussian([0.0])
_AGAINST = _unchanged(_gaussian([0.0, 0.0], correlation=-0.8))
_SPACE = _gaussian([0.0, 0.0, 0.0], correlation=0.8)
_WIDE = _gaussian([0.0, 0.0], variance=10.0)
_CROSS = GaussianMixture(
    means=np.array([[0.0, 0.0], [0.0, 5.0], [0.0, -5.0], [5.0, 0.0], [-5.0, 0.0]]),
    covariance=5.0 * np.eye(2),
)

BEHAVIOURS: Mapping[str, Mapping[str, Behaviour]] = {
    "Ia": {
        "C1": Behaviour(_LINE, UniformInterval(-math.sqrt(3.0), math.sqrt(3.0)), touched=(0,)),
        "C2": _unchanged(_LINE),
        "C3": _unchanged(_LINE),
        "C4": Behaviour(_LINE, _gaussian([1.0]), touched=(0,)),
    },
    "Ib": {
        "C1": _AGAINST,
        "C2": _AGAINST,
        "C3": Behaviour(
            _gaussian([0.0, 0.0], correlation=0.8), _gaussian([0.0, 0.0]), touched=(0, 1)
        ),
        "C4": Behaviour(_gaussian([0.0, 0.0]), _gaussian([1.0, 1.0]), touched=(0, 1)),
    },
    "IIa": {
        EGO: Behaviour(_SPACE, _gaussian([0.0, 0.0, 0.0]), touched=(0, 1)),
        COMPLEMENT: _unchanged(_SPACE),
    },
    "IIb": {EGO: Behaviour(_WIDE, _CROSS, touched=(0, 1)), COMPLEMENT: _unchanged(_WIDE)},
}
