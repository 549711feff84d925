"""Which nodes changed at a date, each by its own observations.

Neighbours help to find a change, but not to name a node: an unchanged node next to changed ones
would be named too. A node has one p-value per group of features. The group that shows most nodes
gets most of the level, since it is the likeliest one, and the others share the rest.

Benjamini and Hochberg bound the share of unchanged nodes among those named. If the changed nodes
are clear, their procedure spends this share on nodes that are much less clear. So a node must also
be likelier to have changed than not, given the strengths of all nodes of the event (local false
discovery rate below one half).

Symbols
-------
z           strengths, |z| of a standard normal law at nodes without change
"""

from __future__ import annotations

import numpy as np
from scipy.stats import f, false_discovery_control, norm

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.blocks_of_time import long_run_ratio
from graphratio.changepoints.stretch import Stretch
from graphratio.data.dependence import LOST

# Share of the level of a node for the group that shows most nodes.
MAIN_SHARE = 0.8

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

    Strengths of changed nodes are normal around a usual strength, or around zero with a large
    variance: alike, or of any size. Shares, centre and variances are fitted, beginning with the
    nodes that are `named`.

    Examples
    --------
    >>> p_values = np.array([1e-20] * 5 + [0.01] + [0.5] * 14)
    >>> chance_of_change(p_values, np.arange(6)).round(2)[4:7]
    array([1.  , 0.21, 0.01])
    """
    z = norm.isf(np.maximum(p_values, 1e-300) / 2)
    alike, any_size = np.zeros(len(z)), np.zeros(len(z))
    alike[named] = any_size[named] = 0.5
    for _ in range(_LAW_ROUNDS if len(named) else 0):
        chance = alike + any_size
        total = max(float(chance.sum()), 1e-12)
        # One more node of any size: few nodes do not show that there are none.
        share = (any_size.sum() + 1) / (total + 1)
        usual = alike @ z / max(float(alike.sum()), 1e-12)
        spread = np.sqrt(max(alike @ (z - usual) ** 2 / max(float(alike.sum()), 1e-12), 1.0))
        wide = np.sqrt(max(chance @ z**2 / total, 1.0))
        alike = total * (1 - share) * norm.pdf(z, usual, spread)
        any_size = total * share * 2 * norm.pdf(z, 0, wide)
        whole = alike + any_size + (len(z) - total) * 2 * norm.pdf(z)
        alike, any_size = alike / whole, any_size / whole
    return np.asarray(alike + any_size)


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
    inflation, unsure = _inflations(centred, variance, block)
    usual = variance > 1e-9
    e = np.where(usual, moved / np.where(usual, variance * inflation, 1.0), 0.0)
    # Dependence leaves fewer independent observations, and few blocks an uncertain variance.
    freedom = np.maximum(1 / (inflation.mean(axis=0) / total + unsure) - 2, 2)
    by_group = np.ones((len(stretch.layout.groups), x.shape[2]))
    for row, weights in zip(by_group, stretch.layout.weights, strict=True):
        size = weights.sum() ** 2 / (weights**2).sum()
        row[:] = np.where(usual.any(axis=0), f.sf(weights @ e / weights.sum(), size, freedom), 1.0)
    clear = [np.count_nonzero(false_discovery_control(row) <= level) for row in by_group]
    share = np.full(len(clear), (1 - MAIN_SHARE) / (len(clear) - 1))
    share[int(np.argmax(clear))] = MAIN_SHARE
    return np.asarray(np.minimum((by_group / share[:, np.newaxis]).min(axis=0), 1.0))


def _inflations(centred: FloatArray, variance: FloatArray, block: int) -> tuple[FloatArray, float]:
    """Long-run variance over variance, shape (n_features, n_nodes), and its uncertainty.

    Estimates of nodes are drawn towards that of all nodes, as far as chance explains their
    differences. The uncertainty is one over the number of blocks that they are worth.
    """
    n_blocks = len(centred) // max(block, 1)
    if block <= 1 or n_blocks < 4:
        return np.ones(variance.shape), 0.0
    # Both sides were centred, which takes off two blocks.
    own = long_run_ratio(centred, np.maximum(variance, 1e-9), block) * (n_blocks / (n_blocks - 2))
    pooled = own.mean(axis=1, keepdims=True)
    chance = 2 * pooled**2 / n_blocks
    between = np.maximum(own.var(axis=1, keepdims=True) - chance, 0.0)
    weight = between / (between + chance)
    # Successive blocks still depend on each other where they meet.
    drawn = (weight * own + (1 - weight) * pooled) / (1 - LOST)
    return np.maximum(drawn, 1.0), float((weight**2).mean()) / n_blocks
