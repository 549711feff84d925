"""The scan statistics: how strongly two windows differ, at every node and over the graph.

Symbols
-------
delta       difference of the mean features, shape (m, n_scans, n_nodes)
theta       the mean-field estimate, see `smoother`
variance    of delta when nothing changes, from sums over blocks of time, shape (m, n_nodes)
spread      standard deviation of delta relative to `variance`, per direction, shape (m,)

Three curves are scanned, since each finds other changes:

- the largest over nodes of delta_v' theta_v with the node by itself: one node changed;
- the same with the graph: a neighbourhood changed;
- the sum over nodes of the latter, twice the gain in GRULSIF's objective: many nodes changed a
  little. If the modes of the graph are known, each is divided by its own variance, so that
  fluctuations that all nodes share, such as weather, do not hide a change of one region.

Each curve is divided by its mean when nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.changepoints.smoother import Smoother

N_CURVES = 3


@dataclass(frozen=True, eq=False)
class GraphScan:
    """The statistics at fixed features, penalties and variances of shape (m, n_nodes).

    Means of delta_v' theta_v without and with the graph have shape (n_nodes,); `mode_weights`,
    shape (m, n_modes), weigh the squares of delta in the modes of the graph, with mean sum one.
    """

    smoother: Smoother
    variance: FloatArray
    own_mean: FloatArray
    graph_mean: FloatArray
    mode_weights: FloatArray | None = None

    @classmethod
    def of(cls, smoother: Smoother, sums: FloatArray, length: int, window: int) -> GraphScan:
        """Variances from sums of centred features over blocks, shape (m, n_blocks, n_nodes)."""
        factor = 2 / (window * length * sums.shape[1])
        variance = factor * np.einsum("jbv,jbv->jv", sums, sums)
        own_mean = (variance / smoother.diagonal[:, np.newaxis]).sum(axis=0)
        graph_mean = factor * sum(
            np.einsum("bv,bv->v", part, smoother.apply(j, part)) for j, part in enumerate(sums)
        )
        # A node that never varies does not count.
        tiny = 1e-12 * max(float(own_mean.max()), np.finfo(np.float64).tiny)
        usual = float(np.median(graph_mean[own_mean > tiny])) if (own_mean > tiny).any() else 1.0
        graph_mean = np.where(own_mean > tiny, np.maximum(graph_mean, 1e-6 * usual), np.inf)
        own_mean = np.where(own_mean > tiny, own_mean, np.inf)
        weights = _mode_weights(smoother, sums, factor)
        return cls(smoother, variance, own_mean, graph_mean, weights)

    def energy(self, delta: FloatArray) -> FloatArray:
        """Sum over nodes of delta^2, per direction and scan time, shape (m, n_scans)."""
        return np.asarray(np.einsum("jtv,jtv->jt", delta, delta), dtype=np.float64)

    def strongest(self, energy: FloatArray) -> int:
        """Position of the scan time at which the windows differ most, without the graph."""
        return int(np.argmax((1 / self.smoother.diagonal) @ energy))

    def spread(self, energy: FloatArray, quiet: BoolArray) -> FloatArray:
        """Root of the mean of delta^2 relative to `variance` over quiet scan times, shape (m,)."""
        expected = self.variance.sum(axis=1)
        mean = (energy[:, quiet] if quiet.any() else energy).mean(axis=1)
        return np.asarray(np.sqrt(mean / np.where(expected > 0, expected, 1.0)))

    def local(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Node by node, without and with the graph, each of shape (n_scans, n_nodes)."""
        own = np.zeros(delta.shape[1:], dtype=delta.dtype)
        graph = np.zeros_like(own)
        for j, part in enumerate(delta):
            graph += part * self.smoother.apply(j, part)
            own += part * part * part.dtype.type(1 / self.smoother.diagonal[j])
        return own / self.own_mean.astype(own.dtype), graph / self.graph_mean.astype(own.dtype)

    def curves(self, delta: FloatArray, own: FloatArray, graph: FloatArray) -> FloatArray:
        """The three curves from differences and local statistics, shape (3, n_scans)."""
        if self.mode_weights is None or self.smoother.modes is None:
            finite = np.isfinite(self.graph_mean)
            weights = (self.graph_mean[finite] / self.graph_mean[finite].sum()).astype(graph.dtype)
            whole = graph[:, finite] @ weights
        else:
            modes = self.smoother.modes.astype(delta.dtype)
            whole = np.zeros(len(graph), dtype=delta.dtype)
            for part, weights in zip(delta, self.mode_weights.astype(delta.dtype), strict=True):
                in_modes = part @ modes
                in_modes *= in_modes
                whole += in_modes @ weights
        return np.stack([own.max(axis=1), graph.max(axis=1), whole])

    def witness(self, delta: FloatArray) -> FloatArray:
        """How far each node moved in the direction that the others predict, (n_scans, n_nodes).

        The direction leaves out the node itself, so it does not depend on the node's noise. If the
        node did not change, the difference along it has mean zero and variance one.
        """
        along = np.zeros(delta.shape[1:])
        square = np.zeros(delta.shape[1:])
        for j, part in enumerate(delta.astype(np.float64)):
            direction = self.smoother.apply(j, part) - part * self.smoother.own[j]
            along += direction * part
            square += direction**2 * self.variance[j]
        return np.divide(along, np.sqrt(square), out=np.zeros_like(along), where=square > 0)


def _mode_weights(smoother: Smoother, sums: FloatArray, factor: float) -> FloatArray | None:
    """Mean-field weights of the modes, times average variance over own variance."""
    if smoother.modes is None or smoother.shifted is None:
        return None
    variance = np.stack([factor * ((part @ smoother.modes) ** 2).sum(axis=0) for part in sums])
    average = variance.mean(axis=1, keepdims=True)
    share = average / smoother.shifted
    low = 1e-6 * float(average.max())
    weights = np.where(variance > low, share / np.maximum(variance, low), 0.0)
    return np.asarray(weights / share[variance > low].sum())
