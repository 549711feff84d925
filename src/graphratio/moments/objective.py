"""The quadratic problem that the estimates solve, and the effect sizes and ranking of nodes.

    Phi(Theta) = sum_v [ 1/2 theta_v' A_v theta_v - b_v' theta_v ]
                 + (lam/4) sum_uv W_uv (theta_u - theta_v)' K (theta_u - theta_v)
                 + (rho/2) sum_v theta_v' K theta_v

Symbols
-------
A, b        mixed second and first moment of the features per node (see `node_moments`)
lap         graph Laplacian, degrees minus adjacency
lam, rho    graph penalty and ridge; in the paper's letters N lambda and N lambda gamma
K           Gram matrix of the dictionary in the plain form, identity in the Nystrom form
Theta       coefficients, shape (n_nodes, n_candidates, m)
f           estimated ratio, f = r0 + g with the prior ratio r0 and the fitted part g

This is N times the paper's quadratic problem over all nodes, so that both penalties act on a
node in the same way whatever the size of the graph. Setting its gradient to zero gives the linear
system (blockdiag(A) + (lam lap + rho I) (x) K) Theta = b, without the factors one half of the
printed matrix. One objective holds several pairs (lam, rho), which share the data.

Every node has a divergence (see `losses`) and an effect size. A divergence has a ceiling, which
samples reach as soon as they hardly overlap. The effect size has none, so it orders nodes beyond
that point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.moments.node_moments import Moments

# Quantiles that effect sizes compare.
N_QUANTILES = 20

# Where a feature is constant but for rounding, the standard deviation counts as this share of that
# of all data.
_SMALLEST_SPREAD = 1e-3
_ROUNDING = 1e-9

# Divergences above this share of their ceiling are near it.
NEAR_CEILING = 0.9


@dataclass(frozen=True, eq=False)
class GraphObjective:
    """The problem for pairs of penalties lam, rho (n_candidates,); a `gram` of None is I."""

    moments: Moments
    laplacian: sparse.csr_array
    lam: FloatArray
    rho: FloatArray
    gram: FloatArray | None = None

    @classmethod
    def of(
        cls,
        moments: Moments,
        laplacian: sparse.csr_array,
        lam: float | FloatArray,
        rho: float | FloatArray,
        gram: FloatArray | None = None,
    ) -> GraphObjective:
        """Build from penalties given as numbers or as arrays of equal length."""
        lams, rhos = np.broadcast_arrays(np.atleast_1d(lam), np.atleast_1d(rho))
        return cls(moments, laplacian, np.asarray(lams, float), np.asarray(rhos, float), gram)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_nodes, n_candidates, m)."""
        n_nodes, m = self.moments.second.shape
        return n_nodes, len(self.lam), m

    def restrict(self, candidates: IntArray | BoolArray) -> GraphObjective:
        """Keep some of the candidates."""
        return replace(self, lam=self.lam[candidates], rho=self.rho[candidates])

    def operator(self, theta: FloatArray) -> FloatArray:
        """Hessian times theta, matrix-free, shape (n_nodes, n_candidates, m)."""
        return self.moments.second.apply(theta) + self.penalty_gradient(theta)

    def penalty_gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of both penalties, (lam lap + rho I) Theta K."""
        coupled = (self.laplacian @ theta.reshape(len(theta), -1)).reshape(theta.shape)
        coupled *= self.lam[:, np.newaxis]
        coupled += self.rho[:, np.newaxis] * theta
        return np.asarray(coupled if self.gram is None else coupled @ self.gram)

    @property
    def rhs(self) -> FloatArray:
        """Right-hand side b of the linear system, shape (n_nodes, m)."""
        return self.moments.first

    def value(self, theta: FloatArray) -> FloatArray:
        """Objective value of every candidate, shape (n_candidates,)."""
        stack = self._stack(theta)
        quadratic = 0.5 * np.einsum("vcm,vcm->c", stack, self.operator(stack))
        return np.asarray(quadratic - np.einsum("vcm,vm->c", stack, self.rhs))

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of every candidate, shape (n_nodes, n_candidates, m)."""
        return self.operator(self._stack(theta)) - self.rhs[:, np.newaxis]

    def residual(self, theta: FloatArray) -> FloatArray:
        """Relative residual ||Hessian Theta - b|| / ||b|| (||b|| = 1 if b = 0), (n_candidates,)."""
        norm = float(np.linalg.norm(self.rhs)) or 1.0
        gradient = self.gradient(theta)
        return np.asarray(np.sqrt(np.einsum("vcm,vcm->c", gradient, gradient)) / norm)

    def _stack(self, theta: FloatArray) -> FloatArray:
        """Accept (n_nodes, m) for a problem with a single candidate."""
        return theta if theta.ndim == 3 else theta[:, np.newaxis]


def moment_losses(moments: Moments, theta: FloatArray) -> FloatArray:
    """Loss of the ratio at every node from moments, shape (n_nodes, n_candidates), the paper's L_v.

    For f = r0 + g it is 1/2 theta' A theta - b' theta + r0^2 / 2 - r0; NaN at nodes that lack a
    sample.
    """
    losses = 0.5 * moments.second.quadratic(theta)
    losses -= (theta @ moments.first[:, :, np.newaxis])[:, :, 0]
    prior = moments.prior_ratio
    losses += 0.5 * prior**2 - prior
    losses[~moments.complete] = np.nan
    return losses


def effect_sizes(samples: NodeSamples) -> FloatArray:
    """Mean distance between the quantiles of the two samples, (n_nodes,); NaN if one is missing.

    In standard deviations within the samples of the node; the largest over features. A target
    shifted by d standard deviations has the effect size d; a change of spread counts too.
    """
    if not samples.n_observations:
        return np.full(samples.n_nodes, np.nan)
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
        spread, size = _spread(column, samples), np.abs(quantiles).max(axis=(1, 2))
        constant = spread <= _ROUNDING * size
        spread[constant] = _SMALLEST_SPREAD * column.std()
        np.maximum(largest, distance / np.where(spread > 0, spread, 1.0), out=largest)
    return np.where(samples.complete, largest, np.nan)


def _spread(column: FloatArray, samples: NodeSamples) -> FloatArray:
    """Root mean square of the standard deviations of both samples, shape (n_nodes,)."""
    segment, sizes = samples.segments, np.maximum(samples.sizes.ravel(), 1)
    mean = np.bincount(segment, column, minlength=sizes.size) / sizes
    squares = np.bincount(segment, np.square(column - mean[segment]), minlength=sizes.size)
    return np.asarray(np.sqrt((squares / sizes).reshape(-1, 2).mean(axis=1)))


def near_ceiling(divergence: FloatArray, ceiling: float) -> BoolArray:
    """True where a divergence is too close to its ceiling to compare it with others."""
    return np.asarray(np.nan_to_num(divergence) > NEAR_CEILING * ceiling)


def ranked(divergence: FloatArray, effect_size: FloatArray, ceiling: float) -> IntArray:
    """Positions of nodes, most changed first: by divergence, near its ceiling by effect size."""
    top = near_ceiling(divergence, ceiling)
    second = np.where(top, effect_size, divergence)
    order = np.lexsort((-second, ~top))
    return np.asarray(order[~np.isnan(divergence[order])])
