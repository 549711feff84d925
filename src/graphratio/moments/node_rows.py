"""Observations of every node as rows, and the losses of log-ratios at them.

With g_i the log-ratio at row i of node v, up to its intercept, the losses are

    "kl"               L_v = log sum_i a_i e^{g_i} - sum_i t_i g_i
    "jensen-shannon"   L_v = sum_i u_i log(1 + e^{s_i g_i})

The first is that of `losses` with its intercept -log sum_i a_i e^{g_i} profiled out, which makes
the mean ratio over the mixture one. The second has a constant among its features.

Symbols
-------
psi         features of the observations, see `features.nystrom`
a           weights of the mixture: (1 - alpha) / n over the reference, alpha / n' over the target
t           weights of the target: 1 / n' over the target
u, s        1 / (2 n) and 1 over the reference, 1 / (2 n') and -1 over the target
w           curvature: the Hessian of L_v by g is diag(w) - w w' for "kl", and diag(w) else
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphratio._utils.arrays import batches
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.node_moments import has_both, mixing_weights, rectangle_of


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
        """Loss of `losses` at log-ratios of other rows, with the intercept, (k, n_candidates)."""


class ProfiledKL(LogRatioLoss):
    """Minus the likelihood of the target; the intercept makes the mean ratio one."""

    constant = False
    exponential = True

    def local(self, part: Part, g: FloatArray) -> Local:
        """As in the module's formula; the largest exponent is taken out against overflow."""
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
    """The Jensen-Shannon loss: the logistic loss of telling the samples apart."""

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
