"""Which nodes changed at a peak of the scan, and when.

Symbols
-------
psi         features around the peak, shape (m, n_times, n_nodes)
delta       difference of the mean features after and before a date, shape (m, n_nodes), in the
            units of a difference of two windows
theta       the estimate from delta, shape (m, n_nodes)
y           psi projected on theta, the part of the estimated ratio that varies: low before a
            change and high after it
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import false_discovery_control

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.calibration import Calibration

# In 5 % of cases twice the log-likelihood of the best date of an abrupt change exceeds that of the
# true date by more than this: (1 - exp(-x / 2))^2 = 0.95.
INTERVAL_DROP = float(-2 * np.log(1 - np.sqrt(0.95)))

# Fewest steps on either side of a date.
MARGIN = 2

# Rounds of choosing the nodes given the date, and the date given the nodes.
ROUNDS = 2


@dataclass(frozen=True, eq=False)
class Dated:
    """Nodes and times of a change; times count from the first one of `psi`."""

    change: int
    interval: tuple[int, int]
    nodes: IntArray
    onsets: IntArray


def changed_nodes(delta: FloatArray, calibration: Calibration, level: float) -> IntArray:
    """Nodes that changed, by Benjamini and Hochberg; at least one, since an alarm was raised."""
    p_values = calibration.node_p_values(delta)
    found = np.flatnonzero(false_discovery_control(p_values) <= level)
    return found if found.size else np.array([int(np.argmin(p_values))])


def date(psi: FloatArray, peak: int, window: int, calibration: Calibration, level: float) -> Dated:
    """Find the nodes and the times of the change at a peak.

    The first date is the peak of the scan. The features of the nodes that differ before and after
    it give a better date; this is done twice.

    `psi` covers up to two windows before and after the peak, without earlier changes; `peak` is
    a position in it. `level` is the expected share of unchanged nodes among those chosen.
    """
    allowed = slice(max(MARGIN, peak - window), min(psi.shape[1] - MARGIN, peak + window) + 1)
    change = min(max(peak, MARGIN), psi.shape[1] - MARGIN)
    for _ in range(ROUNDS):
        delta = _difference(psi, change, window)
        nodes = changed_nodes(delta, calibration, level)
        scaled, smoother = delta / calibration.spread[:, np.newaxis], calibration.scan.smoother
        theta = [smoother.apply(j, part[np.newaxis])[0] for j, part in enumerate(scaled)]
        y = np.einsum("jv,jtv->tv", np.stack(theta)[:, nodes], psi[:, :, nodes])
        whole = _profile(y.sum(axis=1, keepdims=True), calibration.inflation, allowed)[:, 0]
        change = int(np.argmax(whole))
    plausible = np.flatnonzero(whole >= whole[change] - INTERVAL_DROP)
    onsets = np.argmax(_profile(y, calibration.inflation, allowed), axis=0)
    return Dated(change, (int(plausible[0]), int(plausible[-1])), nodes, onsets)


def _difference(psi: FloatArray, change: int, window: int) -> FloatArray:
    """Mean after minus mean before, scaled to vary as a difference of two windows does."""
    before, after = psi[:, :change], psi[:, change:]
    factor = math.sqrt(2 / window / (1 / before.shape[1] + 1 / after.shape[1]))
    return np.asarray(factor * (after.mean(axis=1) - before.mean(axis=1)))


def _profile(y: FloatArray, inflation: float, allowed: slice) -> FloatArray:
    """Twice the log-likelihood of a change of mean with first step s, (n_times, n_series)."""
    n = len(y)
    sums = np.concatenate([np.zeros((1, y.shape[1])), np.cumsum(y - y.mean(axis=0), axis=0)])
    before = np.arange(n)[:, np.newaxis]
    # For centred y the gain of a split is S^2 n / (before after).
    gain = sums[:-1] ** 2 * n / np.maximum(before * (n - before), 1)
    inside = gain[allowed].copy()
    gain[:] = -np.inf
    gain[allowed] = inside
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    left = np.maximum(total - gain.max(axis=0), 1e-12 * np.maximum(total, 1e-300))
    return np.asarray(gain / (left / n * inflation))
