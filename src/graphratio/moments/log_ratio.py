"""The convex problems of log-ratios: Kullback-Leibler and Jensen-Shannon losses over a graph.

    Phi(Theta) = sum_v L_v(g_v) + (lam/4) sum_uv W_uv |theta_u - theta_v|^2
                 + (rho/2) sum_v |theta_v|^2,          g_vi = psi_i' theta_v

at the observations i of node v, with the losses L_v of `node_rows`. A log-ratio of zero is a ratio
of one, so estimates shrink towards "no change", and every ratio is positive.

Symbols
-------
psi, g, w   features, log-ratios up to an intercept, and curvature: see `node_rows`
theta       coefficients, shape (n_nodes, n_candidates, m)
lap, lam, rho   as in `objective`

The Hessian of L_v by theta is a second moment of the features with weights w. They depend on the
candidate, so second moments cannot be shared: products run through the features of the
observations. At theta = 0 all candidates have the same w, and share blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.moments.node_rows import Local, NodeRows
from graphratio.moments.second_moments import DenseSecond

# Held-out ratios of the Kullback-Leibler loss count as at most 1 / alpha, with at least this alpha.
SMALLEST_ALPHA = 0.05

# Up to this many nodes all modes of the graph are known.
ALL_MODES = 400
# Up to this many nodes a factorisation of the Laplacian fits into memory, however it fills in.
LARGEST_FACTOR = 2000

# This many rows give the average block well enough for a preconditioner.
MEAN_ROWS = 2**12


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
        """Norm of the gradient at zero; the same for all candidates.

        It is 1 if the gradient vanishes up to rounding, as with equal samples: then zero solves
        the problem, and no iteration could reduce the norm.
        """
        zero = np.zeros((self.rows.n_nodes, 1, self.rows.m), dtype=self.rows.dtype)
        slopes = [each.slope for each in self.local(self.rows.values(zero))]
        norm, without_signs = (
            float(np.linalg.norm(self.rows.sums(weights, 1)))
            for weights in (slopes, [np.abs(each) for each in slopes])
        )
        rounding = 100 * float(np.finfo(self.rows.dtype).eps) * without_signs
        return norm if norm > rounding else 1.0

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
        """Average block, without forming the blocks; if `rough`, from about `MEAN_ROWS` rows."""
        m = self.rows.m
        total = np.zeros((m, m), dtype=self.dtype)
        n_rows = sum(part.mixture.size for part in self.rows.parts)
        step = max(1, n_rows // MEAN_ROWS) if rough else 1
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

    Coefficients and rows include the intercept and its constant, last. Ratios of "kl" are clipped
    from above, since a single observation of the reference could otherwise decide a selection. Any
    function gives a lower bound of the divergence, a clipped one too.
    """
    losses = np.full(theta.shape[:2], np.nan, dtype=theta.dtype)
    limit = -math.log(max(held_out.alpha, SMALLEST_ALPHA))
    for part, g in zip(held_out.parts, held_out.values(theta), strict=True):
        bounded = np.minimum(g, limit) if held_out.loss.exponential else g
        losses[part.nodes] = held_out.loss.held_out(part, bounded)
    return losses


def with_intercepts(rows: NodeRows, theta: FloatArray, graph: Graph, lam: FloatArray) -> FloatArray:
    """Append the intercept of every node to coefficients (n_nodes, n_candidates, m).

    A profiled intercept b^ depends on the few observations of a node with the largest ratios. It is
    part of the log-ratio, so neighbours share it too: b minimises, to second order, the loss of the
    intercept plus its graph penalty, sum_v (b_v - b^_v)^2 / 2 + lam / 4 sum_uv W_uv (b_u - b_v)^2.
    """
    if rows.loss.constant:
        return theta
    own = np.zeros(theta.shape[:2])
    for part, g in zip(rows.parts, rows.values(theta), strict=True):
        own[part.nodes] = -rows.loss.log_mean(part, g)
    shared = own.copy()
    for strength in np.unique(lam[lam > 0]):
        chosen = lam == strength
        shared[:, chosen] = _shared(own[:, chosen], rows.complete, graph, float(strength))
    return np.concatenate([theta, shared[:, :, np.newaxis].astype(theta.dtype)], axis=2)


def _shared(own: FloatArray, complete: BoolArray, graph: Graph, lam: float) -> FloatArray:
    """(C + lam lap)^{-1} C b^, with C = I at nodes with both samples."""
    if complete.all() and graph.n_nodes <= ALL_MODES:
        modes, vectors = graph.spectrum
        return np.asarray((vectors / (1 + lam * modes)) @ (vectors.T @ own))
    # A weak pull towards zero decides where parts of the graph have no data.
    system = sparse.diags_array(np.where(complete, 1.0, 1e-9)) + lam * graph.laplacian
    if graph.n_nodes <= LARGEST_FACTOR:
        return np.asarray(sparse_linalg.splu(sparse.csc_array(system)).solve(own))
    diagonal = sparse.diags_array(1 / system.diagonal())
    columns = [
        sparse_linalg.cg(system, column, x0=column, rtol=1e-8, maxiter=2000, M=diagonal)[0]
        for column in own.T
    ]
    return np.column_stack(columns)
