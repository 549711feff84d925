"""The limit of as many profiles as features: every node has its own ratio, as in GRULSIF.

If nodes do not share a few kinds of change, profiles would blur their differences. The strength
of the graph is its penalty times the mean degree, as in `solvers.alternating`; strength and ridge
vary independently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments
from graphratio.selection.cross_validation import Coupling
from graphratio.selection.held_out_data import Folds
from graphratio.selection.search import Axis, Trial

STRENGTHS = 10.0 ** np.arange(-2, 3)
RIDGES = 10.0 ** np.arange(-6, 0)

# A grid is extended at most this often while the best candidate is at its end.
EXTENSIONS = 4

# An extension must lower the loss by this share.
SETTLED = 1e-3


@dataclass(frozen=True)
class FullRank:
    """The best candidate and its trial, and all tried candidates (strength, ridge)."""

    strength: float
    ridge: float
    trial: Trial
    tried: dict[tuple[float, float], Trial]

    def solve(self, train: Moments, coupling: Coupling) -> FloatArray:
        """Coefficients on the training data of a fold, shape (n_nodes, m)."""
        lam = graph_penalties(coupling.graph, np.array([self.strength]))
        return np.asarray(coupling.solve(train, lam, np.array([self.ridge]))[:, 0])


def graph_penalties(graph: Graph, strength: FloatArray) -> FloatArray:
    """Graph penalties of given strengths; 0 without edges.

    Examples
    --------
    >>> graph_penalties(Graph.from_edges([(0, 1), (1, 2), (2, 0)]), np.array([6.0]))
    array([3.])
    """
    return strength / graph.mean_degree if graph.n_edges else np.zeros_like(strength)


def best_full_rank(folds: Folds, coupling: Coupling, strength: Axis, ridge: Axis) -> FullRank:
    """Search the two penalties on grids that grow while the best is at their ends.

    Given candidates are not extended.
    """
    strengths = strength.values if strength.given else STRENGTHS
    ridges = ridge.values if ridge.given else RIDGES
    tried: dict[tuple[float, float], Trial] = {}
    best, loss = (0.0, 0.0), float(np.finfo(np.float64).max)
    for _ in range(1 + EXTENSIONS):
        pairs = [(float(s), float(r)) for s in strengths for r in ridges]
        new = [pair for pair in pairs if pair not in tried]
        losses = _losses(folds, coupling, np.array(new))
        tried |= {pair: Trial(found[np.newaxis]) for pair, found in zip(new, losses, strict=True)}
        candidate = min(tried, key=lambda pair: tried[pair].loss)
        # Towards infinity the loss settles, so do not follow it.
        if not tried[candidate].loss < loss - SETTLED * abs(loss):
            break
        best, loss = candidate, tried[candidate].loss
        wider = (
            strengths if strength.given else _extended(strengths, best[0]),
            ridges if ridge.given else _extended(ridges, best[1]),
        )
        if wider[0].size == strengths.size and wider[1].size == ridges.size:
            break
        strengths, ridges = wider
    return FullRank(*best, tried[best], tried)


def _extended(grid: FloatArray, best: float) -> FloatArray:
    """Add two candidates beyond an end of the grid if the best is there."""
    step = grid[1] / grid[0]
    if best == grid[0]:
        return np.concatenate([grid[0] / step ** np.array([2.0, 1.0]), grid])
    if best == grid[-1]:
        return np.concatenate([grid, grid[-1] * step ** np.array([1.0, 2.0])])
    return grid


def _losses(folds: Folds, coupling: Coupling, pairs: FloatArray) -> FloatArray:
    """Held-out losses of every pair, shape (n_pairs, n_folds, n_nodes)."""
    lam = graph_penalties(coupling.graph, pairs[:, 0])
    losses = [fold.losses(coupling.solve(fold.train, lam, pairs[:, 1])).T for fold in folds]
    return np.stack(losses, axis=1)
