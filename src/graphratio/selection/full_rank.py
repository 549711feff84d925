"""The limit of as many profiles as features: every node has its own ratio, as in GRULSIF.

If nodes do not share a few kinds of change, profiles would blur their differences. Penalties are
in the units of a node's data, as in `solvers.alternating`, and vary independently:

    strength = lam N (mean degree)
    ridge    = lam gam N
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments
from graphratio.selection.fold_fits import Coupling
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

    def penalties(self, graph: Graph) -> tuple[float, float]:
        """Graph and node penalty of GRULSIF."""
        lam, gam = as_penalties(graph, np.array([self.strength]), np.array([self.ridge]))
        return float(lam[0]), float(gam[0])

    def solve(self, train: Moments, coupling: Coupling) -> FloatArray:
        """Coefficients on the training data of a fold, shape (n_nodes, m)."""
        lam, gam = self.penalties(coupling.graph)
        return np.asarray(coupling.solve(train, np.array([lam]), np.array([gam]))[:, 0])


def as_penalties(
    graph: Graph, strength: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Graph and node penalty of GRULSIF for strengths and ridges of the same shape.

    Examples
    --------
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    >>> as_penalties(graph, np.array([6.0]), np.array([0.6]))
    (array([1.]), array([0.2]))
    """
    n_nodes = graph.n_nodes
    if not graph.n_edges:
        return np.ones_like(ridge), ridge / n_nodes
    lam = strength / (n_nodes * graph.mean_degree)
    return lam, ridge / (n_nodes * lam)


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
    lam, gam = as_penalties(coupling.graph, pairs[:, 0], pairs[:, 1])
    losses = [fold.losses(coupling.solve(fold.train, lam, gam)).T for fold in folds]
    return np.stack(losses, axis=1)
