"""When a change happened, from the direction in which the observations moved.

Symbols
-------
x           columns of a channel, shape (n_times, n_features, size)
delta       standardised difference of the means after and before, shape (n_features, size)
theta       the direction, delta without what may be noise
y           x projected on theta: low before the change and high after it

The direction is learned at some blocks of time and applied at the others, in turn. So the noise of
an observation is not in its own direction, and the profile of y has the law of a single series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.blocks_of_time import long_run_ratio
from graphratio.changepoints.intervals import MARGIN
from graphratio.changepoints.smoother import GraphSmoother
from graphratio.changepoints.stretch import Stretch

# A random walk in steps stays below the Brownian motion through it, as if the boundary were farther
# away by this many standard deviations of a step (Siegmund). This is right for jumps up to about
# 1.5; ranks make larger ones look larger than they are.
_OVERSHOOT = 0.5826
_LARGEST_JUMP = 1.5

# Groups of blocks, each of which is dated with the direction of the others.
DATING_FOLDS = 5

# Rounds of learning the direction given the date, and the date given the direction.
ROUNDS = 3


@dataclass(frozen=True)
class Dated:
    """The first step of the new state, and the first and last plausible one."""

    step: int
    interval: tuple[int, int]


def date(stretch: Stretch, step: int, block: int) -> Dated:
    """Date the change near a step.

    Directions compete: those of every group of features, at single nodes, in small neighbourhoods,
    or over all nodes, with and without what all nodes share. The one that explains most at blocks
    that it has not seen wins.
    """
    n = stretch.n_times
    start = int(np.clip(step - stretch.begin, MARGIN, n - MARGIN))
    profiles = []
    for place, name in enumerate(stretch.layout.names[:3]):
        x = stretch.columns(place)
        for smoother in [None, *(stretch.channels.smoothers[:1] if name != "all" else ())]:
            # A smoothed difference varies less; its spread is that of the smoothed columns.
            scale = None if smoother is None else stretch.channels.channels[3].scale
            for weights in stretch.layout.weights:
                used = np.flatnonzero(weights)
                own_scale = np.ones((1, 1)) if scale is None else scale[used]
                direction = _Direction(weights[used, np.newaxis], smoother, own_scale)
                profiles.append(_best_profile(x[:, used], start, direction, block))
    profile = max(profiles, key=lambda one: float(one.max()))
    change = int(np.argmax(profile))
    jump = float(np.sqrt(profile[change] * n / (change * (n - change))))
    plausible = np.flatnonzero(profile >= profile[change] - interval_drop(jump))
    first, last = int(plausible[0]), int(plausible[-1])
    return Dated(stretch.begin + change, (stretch.begin + first, stretch.begin + last))


def interval_drop(jump: float) -> float:
    """How far twice the log-likelihood may fall within a 95 % interval of the date.

    `jump` is the change in standard deviations of a step. The larger it is, the coarser are steps
    for the walk of the log-likelihood, and the less it can exceed its value at the true date.

    Examples
    --------
    >>> [round(interval_drop(jump), 2) for jump in (0.0, 1.0, 10.0)]
    [7.35, 6.19, 5.6]
    """
    return _largest_drop(0.05) - 2 * _OVERSHOOT * min(jump, _LARGEST_JUMP)


def _largest_drop(chance: float) -> float:
    """Quantile of twice the log-likelihood of the best date minus that of the true one.

    The difference exceeds it with this chance; in continuous time (1 - exp(-x / 2))^2 = 1 - chance.
    """
    return float(-2 * np.log(1 - np.sqrt(1 - chance)))


@dataclass(frozen=True, eq=False)
class _Direction:
    """How a direction is made of a difference: with weights of features, smoothed or not."""

    weights: FloatArray
    smoother: GraphSmoother | None
    scale: FloatArray

    def __call__(self, delta: FloatArray) -> FloatArray:
        """The difference without what may be noise, of norm one."""
        smooth = delta if self.smoother is None else self.smoother.apply(delta)
        e = (self.weights * (smooth * self.scale) ** 2).sum(axis=0)
        # One of many nodes is the largest by chance; neighbourhoods are fewer and overlap.
        noise = 3.0 if self.smoother is not None else 2 * np.log(len(e))
        share = np.maximum(1 - noise / np.maximum(e, 1e-12), 0.0)
        if not share.any():
            share[int(np.argmax(e))] = 1.0
        theta = self.weights * smooth * share
        norm = float(np.sqrt((theta**2).sum()))
        return np.asarray(theta / norm if norm > 0 else theta)


def _best_profile(x: FloatArray, change: int, direction: _Direction, block: int) -> FloatArray:
    """Profile of the likelihood of dates along a direction that is learned at other blocks."""
    n = len(x)
    fold = np.arange(n) // max(block, 1) % DATING_FOLDS
    for _ in range(ROUNDS):
        y = np.empty(n)
        for held in range(DATING_FOLDS):
            theta = direction(_difference(x, change, fold != held))
            y[fold == held] = np.einsum("tfv,fv->t", x[fold == held], theta)
        allowed = slice(MARGIN, n - MARGIN + 1)
        profile = _profile(y[:, np.newaxis], _inflation(y, change, block), allowed)[:, 0]
        previous, change = change, int(np.argmax(profile))
        if change == previous:
            break
    return profile


def node_onsets(
    stretch: Stretch, step: int, interval: tuple[int, int], nodes: IntArray, block: int
) -> IntArray:
    """When each of the nodes changed, by its own features and not far from the date.

    It is the date of the event, unless the features of the node clearly show another one. If all
    nodes changed at once, the probability that any seems to differ is 5 %.
    """
    x = stretch.columns(0)[:, :, nodes]
    change = step - stretch.begin
    delta = _difference(x, change, np.ones(len(x), dtype=bool))
    weights = stretch.layout.weights.sum(axis=0)[:, np.newaxis]
    y = np.einsum("tfv,fv->tv", x, weights * delta)
    reach = max(2 * stretch.lens.shortest, interval[1] - interval[0])
    allowed = slice(max(MARGIN, change - reach), min(len(x) - MARGIN, change + reach) + 1)
    profile = _profile(y, _inflation(y, change, block), allowed)
    same = profile[change] >= profile.max(axis=0) - _largest_drop(0.05 / max(len(nodes), 1))
    return np.asarray(stretch.begin + np.where(same, change, np.argmax(profile, axis=0)))


def _difference(x: FloatArray, change: int, used: FloatArray) -> FloatArray:
    """Standardised mean after minus mean before, over the used steps."""
    before, after = x[:change][used[:change]], x[change:][used[change:]]
    if not (len(before) and len(after)):
        return np.zeros(x.shape[1:])
    factor = np.sqrt(len(before) * len(after) / (len(before) + len(after)))
    means = after.mean(axis=0, dtype=np.float64) - before.mean(axis=0, dtype=np.float64)
    return np.asarray(factor * means)


def _inflation(y: FloatArray, change: int, block: int) -> FloatArray:
    """Long-run variance over variance, from block sums of the residuals of a change, (n_series,).

    One number for a single series of shape (n_times,).
    """
    rest = np.concatenate([side - side.mean(axis=0) for side in (y[:change], y[change:])])
    return np.maximum(long_run_ratio(rest, rest.var(axis=0), block), 1.0)


def _profile(y: FloatArray, inflation: FloatArray | float, allowed: slice) -> FloatArray:
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
