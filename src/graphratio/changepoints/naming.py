"""Which nodes changed at a date, each by its own observations.

Neighbours help to find a change, but not to name a node: an unchanged node beside changed ones
would be taken along. A node has one p-value per group of features. The group that shows most nodes
gets most of the level, since it is the likeliest one, and the others share the rest.

Benjamini and Hochberg bound the share of unchanged nodes among those named. Where the changed nodes
are clear they spend this share on nodes that are far from being as clear. So a node must also be
likelier to have changed than not, given the strengths of all nodes of the event (local false
discovery rate below one half).

Symbols
-------
z           strengths, |z| of a standard normal law at nodes without change
"""

from __future__ import annotations

import numpy as np
from scipy.stats import f, false_discovery_control, norm

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.stretch import Stretch

# Share of the level of a node for the group that shows most nodes.
MAIN_SHARE = 0.8

# The long-run variance of a node counts as much as this many blocks of all nodes together.
_POOLED_BLOCKS = 20

# Rounds of fitting the law of strengths.
_LAW_ROUNDS = 50


def changed_nodes(stretch: Stretch, first: int, last: int, block: int, level: float) -> IntArray:
    """Nodes that changed; at least one, since an alarm was raised."""
    p_values = node_p_values(stretch, first, last, block, level)
    found = np.flatnonzero(false_discovery_control(p_values) <= level)
    found = found[chance_of_change(p_values, found)[found] > 0.5]
    return found if found.size else np.array([int(np.argmin(p_values))])


def chance_of_change(p_values: FloatArray, named: IntArray) -> FloatArray:
    """Probability that a node changed, given the strengths of all nodes, shape (n_nodes,).

    Strengths of changed nodes are half normal around a usual strength and half around zero, with
    variances that are fitted: half of them alike, half of any size. The fit begins with the nodes
    that are `named`.

    Examples
    --------
    >>> p_values = np.array([1e-20] * 5 + [0.014] + [0.5] * 14)
    >>> chance_of_change(p_values, np.arange(6)).round(2)[4:7]
    array([1.  , 0.34, 0.03])
    """
    z = norm.isf(np.maximum(p_values, 1e-300) / 2)
    chance = np.zeros(len(z))
    chance[named] = 1.0
    for _ in range(_LAW_ROUNDS if len(named) else 0):
        total = max(float(chance.sum()), 1e-12)
        usual = chance @ z / total
        spread = np.sqrt(max(chance @ (z - usual) ** 2 / total, 1.0))
        wide = np.sqrt(max(chance @ z**2 / total, 1.0))
        changed = norm.pdf(z, usual, spread) / 2 + norm.pdf(z, 0, wide)
        changed *= total / len(z)
        chance = changed / (changed + (1 - total / len(z)) * 2 * norm.pdf(z))
    return chance


def node_p_values(stretch: Stretch, first: int, last: int, block: int, level: float) -> FloatArray:
    """P-values of "this node did not change", shape (n_nodes,).

    Steps before `first` are compared with those from `last` on.
    """
    used = np.r_[0 : first - stretch.begin, last - stretch.begin : stretch.n_times]
    x = stretch.columns(0)[used] if last > first else stretch.columns(0)
    there = stretch.observed[used] if last > first else stretch.observed
    change = first - stretch.begin
    mask = there[:, np.newaxis]
    centred = np.empty(x.shape, dtype=np.float32)
    counts, means = [], []
    for side in (slice(None, change), slice(change, None)):
        count = np.maximum(there[side].sum(axis=0), 1)
        mean = (x[side] * mask[side]).sum(axis=0, dtype=np.float64) / count
        centred[side] = (x[side] - mean) * mask[side]
        counts.append(count)
        means.append(mean)
    total = counts[0] + counts[1]
    variance = (centred**2).sum(axis=0) / np.maximum(total - 2, 1)
    moved = (means[1] - means[0]) ** 2 * (counts[0] * counts[1] / total)
    inflation = _inflations(centred, variance, block)
    usual = variance > 1e-9
    e = np.where(usual, moved / np.where(usual, variance * inflation, 1.0), 0.0)
    # Dependence leaves fewer independent observations.
    freedom = np.maximum(total / np.maximum(inflation.mean(axis=0), 1) - 2, 2)
    by_group = np.ones((len(stretch.layout.groups), x.shape[2]))
    for row, weights in zip(by_group, stretch.layout.weights, strict=True):
        size = weights.sum() ** 2 / (weights**2).sum()
        row[:] = np.where(usual.any(axis=0), f.sf(weights @ e / weights.sum(), size, freedom), 1.0)
    clear = [np.count_nonzero(false_discovery_control(row) <= level) for row in by_group]
    share = np.full(len(clear), (1 - MAIN_SHARE) / (len(clear) - 1))
    share[int(np.argmax(clear))] = MAIN_SHARE
    return np.asarray(np.minimum((by_group / share[:, np.newaxis]).min(axis=0), 1.0))


def _inflations(centred: FloatArray, variance: FloatArray, block: int) -> FloatArray:
    """Long-run variance over variance, shape (n_features, n_nodes), drawn to that of all nodes."""
    n_blocks = len(centred) // max(block, 1)
    if block <= 1 or n_blocks < 2:
        return np.ones(variance.shape)
    sums = centred[: n_blocks * block].reshape(n_blocks, block, *variance.shape).sum(axis=1)
    own = (sums**2).mean(axis=0) / (block * np.maximum(variance, 1e-9))
    pooled = own.mean(axis=1, keepdims=True)
    weight = n_blocks / (n_blocks + _POOLED_BLOCKS)
    return np.asarray(np.maximum(weight * own + (1 - weight) * pooled, 1.0))
