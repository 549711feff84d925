"""The convex problems of log-ratios: Kullback-Leibler and Jensen-Shannon losses over a graph.

    Phi(Theta) = sum_v L_v(g_v) + (lam/4) sum_uv W_uv |theta_u - theta_v|^2
                 + (rho/2) sum_v |theta_v|^2,          g_vi = psi_i' theta_v

at the observations i of node v. A log-ratio of zero is a ratio of one, so estimates shrink towards
"no change", and every ratio is positive. The node losses are

    "kl"               L_v = log sum_i a_i e^{g_i} - sum_i t_i g_i
    "jensen-shannon"   L_v = sum_i u_i log(1 + e^{s_i g_i})

The first is that of `losses` with its intercept -log sum_i a_i e^{g_i} profiled out, so that the
mean ratio over the mixture is exactly one. The second has a constant among its features.

Symbols
-------
psi         features of the observations, see `features.nystrom`
a           weights of the mixture: (1 - alpha) / n over the reference, alpha / n' over the target
t           weights of the target: 1 / n' over the target
u, s        1 / (2 n) and 1 over the reference, 1 / (2 n') and -1 over the target
w           curvature: the Hessian of L_v is Psi' (diag(w) - k w w') Psi with k = 1 for "kl", 0 else
theta       coefficients, shape (n_nodes, n_candidates, m)
lap, lam, rho   as in `objective`

The weights w depend on the candidate, so second moments cannot be shared: products run through the
features of the observations. At theta = 0 all candidates have the same w, and blocks serve them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from graphratio._utils.arrays import batches
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.node_moments import has_both, mixing_weights, rectangle_of
from graphratio.moments.second_moments import DenseSecond

# Held-out ratios of the Kullback-Leibler loss count as at most 1 / alpha, with at least this alpha.
SMALLEST_ALPHA = 0.05

# This many rows give the average block well enough for a preconditioner.
ROUGH_ROWS = 2**12


@dataclass(frozen=True, eq=False)
class Part:
    """Nodes with similar numbers of rows, as a rectangle; padding has weight zero.

    Shapes: `nodes` (k,), `psi` (k, rows, m), `mixture` and `target` (k, 1, rows), the weights a
    and t; `halves` (k, 1, rows), the signed weights s u.
    """

    nodes: IntArray
    psi: FloatArray
    mixture: FloatArray
    target: FloatArray
    halves: FloatArray


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Features of the rows of all nodes; nodes that are not `complete` are in no part."""

    n_nodes: int
    parts: Sequence[Part]
    complete: BoolArray
    m: int
    loss: LogRatioLoss
    alpha: float

    @classmethod
    def of(
        cls,
        psi: FloatArray,
        sizes: IntArray,
        alpha: float,
        loss: LogRatioLoss,
        *,
        constant: bool | None = None,
    ) -> NodeRows:
        """Arrange rows psi (n_rows, m), sorted by node, reference before target.

        With `constant`, by default as the loss needs it, a last feature is one everywhere.
        """
        if loss.constant if constant is None else constant:
            psi = np.concatenate([psi, np.ones((len(psi), 1), dtype=psi.dtype)], axis=1)
        complete = has_both(sizes)
        flat = sizes.ravel()
        per_sample = np.where(complete[:, np.newaxis], 1.0 / np.maximum(sizes, 1), 0.0)
        each = np.stack(
            [
                mixing_weights(sizes, alpha),
                per_sample * np.array([0.0, 1.0]),
                per_sample * np.array([0.5, -0.5]),
            ]
        ).reshape(3, -1)
        weights = np.repeat(each, flat, axis=1).astype(psi.dtype)
        per_node = sizes.sum(axis=1)
        used = np.where(complete, per_node, 0)
        parts = []
        for batch in batches(np.cumsum(per_node) - per_node, used):
            of_row = weights[:, batch.rows]
            if batch.valid is not None:
                of_row = np.where(batch.valid, of_row, psi.dtype.type(0))
            rows = rectangle_of(psi, batch.rows, batch.valid)
            parts.append(Part(batch.segments, rows, *of_row[:, :, np.newaxis]))
        return cls(len(sizes), parts, complete, psi.shape[1], loss, alpha)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the features."""
        return self.parts[0].psi.dtype if self.parts else np.dtype(np.float64)

    def values(self, theta: FloatArray) -> list[FloatArray]:
        """Psi theta of every part, shape (k, n_candidates, rows)."""
        return [theta[part.nodes] @ part.psi.transpose(0, 2, 1) for part in self.parts]

    def sums(self, of_rows: Sequence[FloatArray], n_candidates: int) -> FloatArray:
        """Psi' times weights (k, n_candidates, rows) of every part: (n_nodes, n_candidates, m)."""
        total = np.zeros((self.n_nodes, n_candidates, self.m), dtype=self.dtype)
        for part, weights in zip(self.parts, of_rows, strict=True):
            total[part.nodes] = weights @ part.psi
        return total


@dataclass(frozen=True, eq=False)
class Local:
    """Loss of the nodes of a part at some log-ratios, and its derivatives by them.

    `value` is (k, n_candidates), `slope` and `weight` (k, n_candidates, rows). The Hessian is
    diag(w), minus w w' if `centred`.
    """

    value: FloatArray
    slope: FloatArray
    weight: FloatArray
    centred: bool

    def bend(self, values: FloatArray) -> FloatArray:
        """Hessian by the log-ratios, times values of shape (k, n_candidates, rows)."""
        bent = self.weight * values
        if self.centred:
            bent -= self.weight * bent.sum(axis=2, keepdims=True)
        return bent

    def restrict(self, candidates: IntArray | BoolArray) -> Local:
        """Keep some of the candidates."""
        if self.weight.shape[1] == 1:
            return self
        slope, weight = (np.ascontiguousarray(x[:, candidates]) for x in (self.slope, self.weight))
        return Local(self.value[:, candidates], slope, weight, self.centred)

    @property
    def mean_weight(self) -> FloatArray:
        """Weights of the rows, averaged over candidates, shape (k, rows)."""
        return np.asarray(self.weight.mean(axis=1))


class LogRatioLoss(ABC):
    """A convex loss of the log-ratios at the observations of a node."""

    constant: bool
    exponential: bool

    @abstractmethod
    def local(self, part: Part, g: FloatArray) -> Local:
        """Value and derivatives at log-ratios g, shape (k, n_candidates, rows)."""

    def log_mean(self, part: Part, g: FloatArray) -> FloatArray:
        """Minus the intercept that is profiled out, (k, n_candidates); zero without one."""
        return np.zeros(g.shape[:2], dtype=g.dtype)

    @abstractmethod
    def held_out(self, part: Part, g: FloatArray) -> FloatArray:
        """Loss at complete log-ratios of other rows, (k, n_candidates): that of `losses`."""


class ProfiledKL(LogRatioLoss):
    """Minus the likelihood of the target; the intercept makes the mean ratio one."""

    constant = False
    exponential = True

    def local(self, part: Part, g: FloatArray) -> Local:
        """As in the module's formula; the largest exponent is taken out."""
        share, log_mean = self._shares(part, g)
        value = log_mean - (g * part.target).sum(axis=2)
        return Local(value, share - part.target, share, centred=True)

    def log_mean(self, part: Part, g: FloatArray) -> FloatArray:
        """Log sum_i a_i e^{g_i}, shape (k, n_candidates): minus the intercept."""
        return self._shares(part, g)[1]

    @staticmethod
    def _shares(part: Part, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        if (part.mixture > 0).all():
            top = g.max(axis=2, keepdims=True)
        else:
            top = np.where(part.mixture > 0, g, -np.inf).max(axis=2, keepdims=True)
        # Rows without weight may be far above the others.
        share = np.minimum(g - top, 0)
        np.exp(share, out=share)
        share *= part.mixture
        total = share.sum(axis=2, keepdims=True)
        share /= total
        return share, (np.log(total) + top)[:, :, 0]

    def held_out(self, part: Part, g: FloatArray) -> FloatArray:
        """sum_i a_i e^{g_i} - 1 - sum_i t_i g_i."""
        mean = (np.exp(g) * part.mixture).sum(axis=2)
        return np.asarray(mean - 1 - (g * part.target).sum(axis=2))


class Logistic(LogRatioLoss):
    """The Jensen-Shannon loss: that of telling the samples apart."""

    constant = True
    exponential = False

    def local(self, part: Part, g: FloatArray) -> Local:
        """With z = s g: u log(1 + e^z), u s sigma(z), u sigma(z) sigma(-z)."""
        small, soft = self._soft(part, g)
        larger = 1 / (1 + small)
        both = small * larger
        up = (g >= 0) == (part.halves >= 0)
        slope = np.where(up, larger, both) * part.halves
        weight = both * larger * np.abs(part.halves)
        return Local(soft, slope, weight, centred=False)

    @staticmethod
    def _soft(part: Part, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """e^{-|g|}, and the sum of u log(1 + e^z) over rows."""
        small = np.exp(-np.abs(g))
        terms = np.log1p(small)
        terms *= np.abs(part.halves)
        # u max(z, 0), without a copy of the signs.
        rising = np.maximum(g * part.halves, 0)
        return small, terms.sum(axis=2) + rising.sum(axis=2)

    def held_out(self, part: Part, g: FloatArray) -> FloatArray:
        """The same loss."""
        return self._soft(part, g)[1]


LOG_RATIO_LOSSES = {"kl": ProfiledKL(), "jensen-shannon": Logistic()}


@dataclass(frozen=True, eq=False)
class LogRatioObjective:
    """The problem for pairs of penalties lam, rho (n_candidates,), which share the rows."""

    rows: NodeRows
    laplacian: sparse.csr_array
    lam: FloatArray
    rho: FloatArray

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_nodes, n_candidates, m)."""
        return self.rows.n_nodes, len(self.lam), self.rows.m

    def restrict(self, candidates: IntArray | BoolArray) -> LogRatioObjective:
        """Keep some of the candidates."""
        return replace(self, lam=self.lam[candidates], rho=self.rho[candidates])

    def local(self, values: Sequence[FloatArray]) -> list[Local]:
        """Losses and derivatives of every part at log-ratios of the rows."""
        loss = self.rows.loss
        return [loss.local(*each) for each in zip(self.rows.parts, values, strict=True)]

    def penalty_gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of both penalties, (lam lap + rho I) Theta."""
        coupled = (self.laplacian @ theta.reshape(len(theta), -1)).reshape(theta.shape)
        return np.asarray(
            coupled * self.lam[:, np.newaxis] + self.rho[:, np.newaxis] * theta, theta.dtype
        )

    def value(self, theta: FloatArray) -> FloatArray:
        """Objective value of every candidate, shape (n_candidates,)."""
        penalty = 0.5 * np.einsum("vcm,vcm->c", theta, self.penalty_gradient(theta))
        data = data_value(self.local(self.rows.values(theta)), len(self.lam))
        return np.asarray(penalty + data)

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of every candidate, shape (n_nodes, n_candidates, m)."""
        local = self.local(self.rows.values(theta))
        data = self.rows.sums([each.slope for each in local], len(self.lam))
        return data + self.penalty_gradient(theta)

    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Hessian at theta times a direction, shape (n_nodes, n_candidates, m)."""
        local = self.local(self.rows.values(theta))
        bent = [
            each.bend(along) for each, along in zip(local, self.rows.values(direction), strict=True)
        ]
        return self.rows.sums(bent, len(self.lam)) + self.penalty_gradient(direction)

    @property
    def first_gradient_norm(self) -> float:
        """Norm of the gradient at zero, 1 if it vanishes; the same for all candidates."""
        zero = np.zeros((self.rows.n_nodes, 1, self.rows.m), dtype=self.rows.dtype)
        local = self.local(self.rows.values(zero))
        return float(np.linalg.norm(self.rows.sums([e.slope for e in local], 1))) or 1.0

    def residual(self, theta: FloatArray) -> FloatArray:
        """Norm of the gradient relative to that at zero, shape (n_candidates,)."""
        gradient = self.gradient(theta)
        norms = np.sqrt(np.einsum("vcm,vcm->c", gradient, gradient))
        return np.asarray(norms / self.first_gradient_norm)


def data_value(local: Sequence[Local], n_candidates: int) -> FloatArray:
    """Sum of the losses over nodes, shape (n_candidates,), in double precision."""
    total = np.zeros(n_candidates)
    for each in local:
        total += each.value.sum(axis=0, dtype=np.float64)
    return total


@dataclass(frozen=True, eq=False)
class Curvature:
    """Hessians of the node losses as second moments, with weights averaged over candidates.

    They have the methods of `second_moments` that preconditioners use. With a single candidate, or
    at zero, they are exact.
    """

    rows: NodeRows
    local: Sequence[Local]

    @property
    def shape(self) -> tuple[int, int]:
        """(n_nodes, m)."""
        return self.rows.n_nodes, self.rows.m

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the features."""
        return self.rows.dtype

    def dense(self, compact: bool = False) -> FloatArray:
        """Blocks of all nodes, shape (n_nodes, m, m)."""
        dtype = np.float32 if compact else self.dtype
        blocks = np.zeros((*self.shape, self.rows.m), dtype=dtype)
        for part, each in zip(self.rows.parts, self.local, strict=True):
            scaled = part.psi * each.mean_weight[:, :, np.newaxis]
            blocks[part.nodes] = scaled.transpose(0, 2, 1) @ part.psi
            if each.centred:
                means = scaled.sum(axis=1)
                blocks[part.nodes] -= means[:, :, np.newaxis] * means[:, np.newaxis]
        return blocks

    def mean(self, rough: bool = False) -> FloatArray:
        """Average block, without forming the blocks; if `rough`, from about `ROUGH_ROWS` rows."""
        m = self.rows.m
        total = np.zeros((m, m), dtype=self.dtype)
        n_rows = sum(part.mixture.size for part in self.rows.parts)
        step = max(1, n_rows // ROUGH_ROWS) if rough else 1
        for part, each in zip(self.rows.parts, self.local, strict=True):
            some = slice(None, None, step)
            psi = part.psi[some]
            scaled = psi * each.mean_weight[some, :, np.newaxis]
            own = scaled.reshape(-1, m).T @ psi.reshape(-1, m)
            if each.centred:
                means = scaled.sum(axis=1)
                own -= means.T @ means
            total += own * (len(part.nodes) / len(psi))
        return np.asarray(total / self.rows.n_nodes)

    def take(self, nodes: IntArray) -> DenseSecond:
        """Blocks of some of the nodes."""
        return DenseSecond(self.dense()[nodes])


def row_losses(held_out: NodeRows, theta: FloatArray) -> FloatArray:
    """Loss of every node on other rows, (n_nodes, n_candidates); NaN at nodes that lack a sample.

    Coefficients and rows include the intercept and its constant, last. Any function gives a lower
    bound of the divergence, so also one with a ceiling. Without it a single observation of the
    reference could decide a selection.
    """
    losses = np.full(theta.shape[:2], np.nan, dtype=theta.dtype)
    limit = -math.log(max(held_out.alpha, SMALLEST_ALPHA))
    for part, g in zip(held_out.parts, held_out.values(theta), strict=True):
        bounded = np.minimum(g, limit) if held_out.loss.exponential else g
        losses[part.nodes] = held_out.loss.held_out(part, bounded)
    return losses


def with_intercepts(
    rows: NodeRows, theta: FloatArray, laplacian: sparse.csr_array, lam: FloatArray
) -> FloatArray:
    """Append the intercept of every node to coefficients (n_nodes, n_candidates, m).

    A profiled intercept needs both samples. Elsewhere it is the mean of the neighbours', as the
    graph penalty would have it.
    """
    if rows.loss.constant:
        return theta
    intercept = np.zeros((*theta.shape[:2], 1), dtype=theta.dtype)
    for part, g in zip(rows.parts, rows.values(theta), strict=True):
        intercept[part.nodes, :, 0] = -rows.loss.log_mean(part, g)
    lacking = np.flatnonzero(~rows.complete)
    if lacking.size and lam.any():
        known = np.flatnonzero(rows.complete)
        # A weak pull towards zero settles parts of the graph without any data.
        own = laplacian[lacking][:, lacking] + 1e-9 * sparse.identity(lacking.size)
        right = -(laplacian[lacking][:, known] @ intercept[known, :, 0].astype(np.float64))
        solved = sparse_linalg.splu(own.tocsc()).solve(np.asarray(right))
        intercept[lacking, :, 0] = solved * (lam > 0)
    return np.concatenate([theta, intercept], axis=2)
