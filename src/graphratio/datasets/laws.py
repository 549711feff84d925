"""Probability laws of the synthetic scenarios, with exact ratios and divergences of pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray

# Standard deviations around the outermost mean that contain a Gaussian law: the mass outside is
# of the order of 1e-32, negligible even when divided by a tiny alpha.
LAW_DEVIATIONS = 12.0

# Gauss-Legendre points per panel; a panel is as long as the deviation in the narrowest direction.
POINTS_PER_PANEL = 12


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Equal mixture of Gaussians with one covariance; means of shape (n_parts, n_features)."""

    means: FloatArray
    covariance: FloatArray

    @property
    def n_features(self) -> int:
        """Dimension of a point."""
        return int(self.means.shape[1])

    @property
    def width(self) -> float:
        """Deviation in the narrowest direction: the scale on which the density varies."""
        return math.sqrt(np.linalg.eigvalsh(self.covariance)[0])

    @property
    def box(self) -> FloatArray:
        """Corners of a box that contains the law, shape (2, n_features)."""
        reach = LAW_DEVIATIONS * np.sqrt(np.diag(self.covariance))
        return np.stack([self.means.min(axis=0) - reach, self.means.max(axis=0) + reach])

    @computed_once
    def _root(self) -> FloatArray:
        return np.linalg.cholesky(self.covariance)

    def logpdf(self, x: FloatArray) -> FloatArray:
        """Log density at points x of shape (n_points, n_features), shape (n_points,)."""
        whitened = linalg.solve_triangular(self._root, x.T, lower=True)
        centres = linalg.solve_triangular(self._root, self.means.T, lower=True)
        squares = ((whitened[:, np.newaxis, :] - centres[:, :, np.newaxis]) ** 2).sum(axis=0)
        log_scale = np.log(np.diag(self._root)).sum() + 0.5 * self.n_features * math.log(math.tau)
        return np.asarray(logsumexp(-0.5 * squares, axis=0) - log_scale - math.log(len(self.means)))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw independent points, shape (size, n_features)."""
        part = rng.integers(len(self.means), size=size)
        noise = rng.standard_normal((size, self.n_features))
        return self.means[part] + noise @ self._root.T

    def marginal(self, coordinates: Sequence[int]) -> GaussianMixture:
        """Law of some of the coordinates."""
        chosen = list(coordinates)
        return GaussianMixture(self.means[:, chosen], self.covariance[np.ix_(chosen, chosen)])


@dataclass(frozen=True)
class UniformInterval:
    """Uniform law on an interval of the line."""

    low: float
    high: float
    n_features: ClassVar[int] = 1

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low

    @property
    def box(self) -> FloatArray:
        """Ends of the interval, shape (2, 1)."""
        return np.array([[self.low], [self.high]])

    def logpdf(self, x: FloatArray) -> FloatArray:
        """Log density at points x of shape (n_points, 1), shape (n_points,)."""
        inside = (self.low <= x[:, 0]) & (x[:, 0] <= self.high)
        return np.where(inside, -math.log(self.width), -np.inf)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw independent points, shape (size, 1)."""
        return rng.uniform(self.low, self.high, size=(size, 1))

    def marginal(self, coordinates: Sequence[int]) -> UniformInterval:
        """Return the law itself: there is only one coordinate."""
        return self


Law = GaussianMixture | UniformInterval


def relative_ratio(log_p: FloatArray, log_q: FloatArray, alpha: float) -> FloatArray:
    """Return q / ((1 - alpha) p + alpha q) from log densities, safely in the tails.

    It is 0 where q = 0, whatever p; and 1 / alpha, or infinity at alpha = 0, where p = 0 < q.
    """
    # Use the difference: in the tails both densities underflow, but their ratio does not.
    gap = np.full(np.broadcast(log_p, log_q).shape, np.inf)
    np.subtract(log_p, log_q, out=gap, where=log_q > -np.inf)
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(1.0 / ((1.0 - alpha) * np.exp(gap) + alpha))


def pearson_divergence(reference: Law, target: Law, alpha: float) -> float:
    """Pearson divergence (E_q[r] - 1) / 2 for the relative ratio r, in few dimensions.

    It is infinite if alpha = 0 and the tails of q are too heavy for p.
    """
    if alpha == 0.0 and not _square_integrable(reference, target):
        return math.inf
    points, weights = _rule_over(reference, target)
    log_q = target.logpdf(points)
    ratio = relative_ratio(reference.logpdf(points), log_q, alpha)
    return 0.5 * (float((weights * np.exp(log_q)) @ ratio) - 1.0)


def kl_divergence(reference: Law, target: Law, alpha: float = 0.0) -> float:
    """Kullback-Leibler divergence E_q[log r] for the relative ratio r, in few dimensions.

    At alpha = 0, where r = q / p, p must be positive on the box of q.
    """
    points, weights = _rule_over(reference, target)
    log_q = target.logpdf(points)
    gap = reference.logpdf(points) - log_q
    if alpha == 0.0:
        return float((weights * np.exp(log_q)) @ -gap)
    log_mixture = np.logaddexp(math.log1p(-alpha) + gap, math.log(alpha))
    return float((weights * np.exp(log_q)) @ -log_mixture)


def jensen_shannon_divergence(reference: Law, target: Law) -> float:
    """Half the divergences of both laws from their even mixture; at most log 2."""
    forward = kl_divergence(reference, target, 0.5)
    return 0.5 * (forward + kl_divergence(target, reference, 0.5))


def _rule_over(reference: Law, target: Law) -> tuple[FloatArray, FloatArray]:
    """Points (n_points, n_features) and weights (n_points,) of a rule over the box of q."""
    panel = min(reference.width, target.width)
    # The density of a uniform law jumps, which a panel must not span.
    jumps = reference.box if isinstance(reference, UniformInterval) else np.zeros((0, 1))
    rules = [_composite_rule(low, high, panel, jumps) for low, high in target.box.T]
    points = np.stack(np.meshgrid(*[nodes for nodes, _ in rules], indexing="ij"), axis=-1)
    weights = np.ones(1)
    for _, factor in rules:
        weights = np.multiply.outer(weights, factor).ravel()
    return points.reshape(-1, target.n_features), weights


def _square_integrable(reference: Law, target: Law) -> bool:
    # The tails of q^2 / p have precision 2 / var(q) - 1 / var(p), which must be positive.
    p, q = (np.atleast_2d(getattr(law, "covariance", 0.0)) for law in (reference, target))
    return bool(np.linalg.eigvalsh(2.0 * p - q)[0] > 0.0)


def _composite_rule(
    low: float, high: float, panel: float, jumps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre rules on panels of at most the given length."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS_PER_PANEL)
    edges = np.linspace(low, high, max(1, math.ceil((high - low) / panel)) + 1)
    edges = np.union1d(edges, jumps[(jumps > low) & (jumps < high)])
    half = 0.5 * np.diff(edges)[:, np.newaxis]
    middle = 0.5 * (edges[:-1] + edges[1:])[:, np.newaxis]
    return (middle + half * nodes).ravel(), (half * weights).ravel()
