"""What changed at the nodes of an event: means, spreads and correlations, in the user's units.

Differences are compared with their standard errors, which account for dependence in time. Spreads
are compared by mean absolute deviations from the median (Brown and Forsythe), and correlations by
Fisher's transformation of rank correlations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from graphratio._utils.typing import FloatArray, Label
from graphratio.changepoints.blocks_of_time import long_run_ratio
from graphratio.changepoints.events import (
    ChangeEvent,
    CorrelationChange,
    FeatureChange,
    Found,
    NodeChange,
)
from graphratio.changepoints.panel_features import measured_pairs


def described(
    found: Found,
    values: FloatArray,
    names: Sequence[str],
    nodes: Sequence[Label],
    label: Callable[[int], Label],
    block: int,
    level: float,
) -> ChangeEvent:
    """The event with labels, and what changed at its nodes; `values` is the whole panel."""
    begin, end = found.neighbours
    chosen = list(found.nodes)
    before, after = values[begin : found.step, chosen], values[found.last : end, chosen]
    looks = level / max(1, 2 * len(names) + len(measured_pairs(len(names))))
    means = _means(before, after, block) <= looks
    deviations = _deviations(before), _deviations(after)
    spreads = _means(*deviations, block) <= looks
    changes: dict[Label, NodeChange] = {}
    for i in sorted(range(len(chosen)), key=lambda i: found.onsets[i]):
        features = []
        for j, name in enumerate(names):
            moments = _moments(before[:, i, j], after[:, i, j])
            clear = spreads[i, j] and _agree(moments[2:], [side[:, i, j] for side in deviations])
            features.append(FeatureChange(str(name), *moments, bool(means[i, j]), bool(clear)))
        correlations = tuple(
            _correlations(before[:, i], after[:, i], (first, second), names, block, looks)
            for first, second in measured_pairs(len(names))
        )
        changes[nodes[chosen[i]]] = NodeChange(
            label(found.onsets[i]),
            tuple(features),
            correlations,
            found.divergences[i],
        )
    kinds = Counter(one.kind for one in changes.values())
    return ChangeEvent(
        time=label(found.step),
        interval=(label(found.interval[0]), label(found.interval[1])),
        nodes=tuple(nodes[i] for i in chosen),
        onsets={node: one.onset for node, one in changes.items()},
        changes=changes,
        kinds=dict(kinds.most_common()),
        step=found.step,
        statistic=found.statistic,
        p_value=found.p_value,
        alarm=label(found.alarm),
    )


def _moments(before: FloatArray, after: FloatArray) -> tuple[float, float, float, float]:
    """Means before and after, then standard deviations; NaN where nothing was observed."""
    sides = [side[np.isfinite(side)] for side in (before, after)]
    mean = [float(side.mean()) if side.size else float("nan") for side in sides]
    spread = [float(side.std()) if side.size else float("nan") for side in sides]
    return (mean[0], mean[1], spread[0], spread[1])


def _deviations(x: FloatArray) -> FloatArray:
    """Absolute deviations from the median of every column."""
    there = np.isfinite(x).any(axis=0)
    middle = np.zeros(x.shape[1:])
    middle[there] = np.nanmedian(x[:, there], axis=0)
    return np.asarray(np.abs(x - middle))


def _agree(spreads: Sequence[float], deviations: Sequence[FloatArray]) -> bool:
    """Whether standard deviations moved as deviations from the median did, half as far or more.

    They need not if the shape changes: two peaks instead of one may have the same spread.
    """
    before, after = (float(np.nanmean(side)) for side in deviations)
    if not min(before, after, *spreads) > 0:
        return True
    return bool(np.log(spreads[1] / spreads[0]) / np.log(after / before) >= 0.5)


def _means(before: FloatArray, after: FloatArray, block: int) -> FloatArray:
    """P-values of equal means, shape (n_nodes, n_measured)."""
    moments = []
    for side in (before, after):
        there = np.isfinite(side)
        count = np.maximum(there.sum(axis=0), 1)
        mean = np.where(there, side, 0.0).sum(axis=0) / count
        rest = np.where(there, side - mean, 0.0)
        variance = (rest**2).sum(axis=0) / np.maximum(count - 1, 1)
        inflation = max(1.0, float(long_run_ratio(rest, variance, block, fewest=2).mean()))
        moments.append((count, mean, variance / count * inflation))
    (n_before, mean_before, error_before), (n_after, mean_after, error_after) = moments
    error = np.sqrt(error_before + error_after)
    usual = error > 0
    t = np.where(usual, (mean_after - mean_before) / np.where(usual, error, 1.0), 0.0)
    t = np.where(~usual & (mean_after != mean_before), np.inf, t)
    return np.asarray(2 * stats.t.sf(np.abs(t), np.maximum(np.minimum(n_before, n_after) - 1, 1)))


def _correlations(
    before: FloatArray,
    after: FloatArray,
    pair: tuple[int, int],
    names: Sequence[str],
    block: int,
    level: float,
) -> CorrelationChange:
    values, error = [], 0.0
    for side in (before, after):
        both = side[:, list(pair)]
        both = both[np.isfinite(both).all(axis=1)]
        varied = len(both) > 3 and (np.ptp(both, axis=0) > 0).all()
        values.append(float(stats.spearmanr(both).statistic) if varied else float("nan"))
        error += 1.06 * max(block, 1) ** 0.5 / max(len(both) - 3, 1)
    z = np.diff(np.arctanh(np.clip(values, -0.9999, 0.9999)))[0] / np.sqrt(error)
    changed = bool(2 * stats.norm.sf(abs(z)) <= level)
    return CorrelationChange(names[pair[0]], names[pair[1]], values[0], values[1], changed)
