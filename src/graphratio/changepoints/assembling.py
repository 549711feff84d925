"""From dated changes to events: nodes, onsets, and changes that belong together.

Nodes may change one after the other. Changes closer than the shortest interval are one event,
unless nodes that changed move back: that is a second change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.change_search import Change
from graphratio.changepoints.dating import node_onsets
from graphratio.changepoints.events import Found
from graphratio.changepoints.naming import changed_nodes
from graphratio.changepoints.stretch import Stretch

Stretches = Callable[[int, int], Stretch]


def assembled(
    changes: list[Change], stretches: Stretches, block: int, level: float, alarm: int
) -> list[Found]:
    """Events of all changes of a search, in the order of time."""
    return [_event(run, stretches, block, level, alarm) for run in _runs(changes, stretches)]


def _runs(changes: list[Change], stretches: Stretches) -> list[list[Change]]:
    """Changes that belong together."""
    runs: list[list[Change]] = []
    for change in changes:
        if runs and _belongs(runs[-1], change, stretches):
            runs[-1].append(change)
        else:
            runs.append([change])
    return runs


def _belongs(run: list[Change], change: Change, stretches: Stretches) -> bool:
    lens = stretches(*change.neighbours).lens
    if change.dated.step - run[-1].dated.step >= lens.shortest:
        return False
    one, other = (_moves(stretches(*c.neighbours), c.dated.step) for c in (run[-1], change))
    both = (np.abs(one) > 3) & (np.abs(other) > 3)
    return not bool(((one * other < 0) & both).any())


def _moves(stretch: Stretch, step: int) -> FloatArray:
    """Standardised differences of the means of all nodes, shape (n_measured, n_nodes)."""
    x = stretch.columns(0)[:, : stretch.lens.features.n_measured]
    before, after = x[: step - stretch.begin], x[step - stretch.begin :]
    factor = np.sqrt(len(before) * len(after) / len(x))
    return np.asarray(factor * (after.mean(axis=0) - before.mean(axis=0)))


def _event(run: list[Change], stretches: Stretches, block: int, level: float, alarm: int) -> Found:
    begin, end = run[0].neighbours[0], run[-1].neighbours[1]
    first, last = run[0].dated.step, run[-1].dated.step
    stretch = stretches(begin, end)
    nodes = changed_nodes(stretch, first, last, block, level)
    interval = run[0].dated.interval
    onsets = node_onsets(stretch, first, (interval[0], max(interval[1], last)), nodes, block)
    strongest = max(run, key=lambda one: one.score)
    return Found(
        step=first,
        last=last,
        interval=interval,
        nodes=tuple(nodes.tolist()),
        onsets=tuple(onsets.tolist()),
        divergences=tuple(_divergences(stretch, first, last, nodes).tolist()),
        neighbours=(begin, end),
        statistic=strongest.relative,
        p_value=strongest.p_value,
        alarm=alarm,
    )


def _divergences(stretch: Stretch, first: int, last: int, nodes: IntArray) -> FloatArray:
    """Pearson divergences of the estimated ratio, shape (n,).

    With h half the difference of the mean features, w their variances and rho the ridge, the ratio
    is 1 + sum_j h_j psi_j / (w_j + rho). Its divergence is
    sum_j h_j^2 (w_j + 2 rho) / (w_j + rho)^2.
    """
    x = stretch.columns(0)
    damping = stretch.lens.features.damping
    shape = slice(x.shape[1] - len(damping), None)
    before, after = x[: first - stretch.begin, shape], x[last - stretch.begin :, shape]
    half = (after[:, :, nodes].mean(axis=0) - before[:, :, nodes].mean(axis=0)) / 2
    return np.asarray((damping * (2 - damping)) @ half.astype(np.float64) ** 2)
