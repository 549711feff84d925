"""Plain fits: every node has its own ratio, as in GRULSIF.

If nodes do not share a few kinds of change, profiles would blur their differences. So the fits of
GRULSIF are candidates too, and with them those of every node by itself. The search begins with
the best candidate of the paper's grids, whose bandwidths are thinned. Others take its place only
if they lower the held-out loss by a paired standard error: weaker and stronger penalties, no graph,
and bandwidths beyond the grid. The strength of the graph is its penalty times the mean degree, as
in `solvers.alternating`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from graphratio._utils.jobs import in_stages
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.selection.cross_validation import Coupling
from graphratio.selection.grids import Candidates, penalty_pairs
from graphratio.selection.held_out_data import FoldList, FoldSource
from graphratio.selection.search import Trial, advantage, hopeless, lead

# Bandwidth, strength and ridge of a candidate.
Plain = tuple[float, float, float]

# Beyond their grids, and between ridges, neighbouring candidates differ by these factors.
STEPS = (1.5, 10.0, 10.0)

# A grid is extended at most this often while the best candidate is at its end.
EXTENSIONS = 4

# An extension must lower the loss by this share.
SETTLED = 1e-3


def graph_penalties(graph: Graph, strength: FloatArray) -> FloatArray:
    """Graph penalties of given strengths; 0 without edges."""
    return strength / graph.mean_degree if graph.n_edges else np.zeros_like(strength)


@dataclass(eq=False, kw_only=True)
class PlainSearch:
    """Search for the best fit without shared profiles; `tried` holds all candidates.

    `candidates` are those of GRULSIF, `ridge` its parameter, and `unit` the mean degree of the
    whole graph, of which the data may be a part. `free` says for bandwidth, graph penalty and ridge
    whether the search may leave the candidates. With `without_graph` it may switch the graph off,
    with `between` it also looks halfway between penalties.
    """

    data: FoldSource
    coupling: Coupling
    candidates: Candidates
    unit: float
    ridge: Any
    free: tuple[bool, bool, bool]
    without_graph: bool
    between: bool = False
    tried: dict[Plain, Trial] = field(default_factory=dict)

    def best(self) -> Plain:
        """The best candidate of the grids, or a clearly better one beyond them."""
        graph = self.coupling.graph
        lam, rho = self.candidates.pairs
        strengths = lam * self.unit
        pairs = list(zip(strengths.tolist(), rho.tolist(), strict=True))
        anchor = self._cautious(self._try(self.candidates.bandwidth, pairs))
        if self.data.split.few_blocks:
            return anchor
        best = anchor
        for k, grid in enumerate(map(np.unique, (self.candidates.bandwidth, strengths))):
            if not self.free[k] or len(grid) == 1 or best[k] not in (grid[0], grid[-1]):
                continue
            low = best[k] == grid[0]
            inside = _moved(best, k, grid[1] if low else grid[-2])
            # A new bandwidth takes new moments, so the last step must have been worth it.
            if k or self._gains(best, inside):
                best = self._outwards(best, k, 1 / STEPS[k] if low else STEPS[k])
        if self.free[2]:
            # The ridges of the grid are far apart, so look between them too.
            weaker = self._outwards(best, 2, 1 / STEPS[2])
            best = weaker if weaker != best else self._outwards(best, 2, STEPS[2])
        if self.between:
            best = self._halfway(best)
        if graph.n_edges and self.free[1] and self.without_graph:
            best = min(best, self._alone(best), key=self._loss)
        return best if self._gains(best, anchor) else anchor

    def _cautious(self, best: Plain) -> Plain:
        """With few blocks of time, the most regularised candidate within a standard error.

        A few blocks cannot tell a lasting pattern from their own weather. So the largest ridge,
        and then the strongest coupling, wins among the candidates that are at most one standard
        error of the paired differences over folds worse than the best.
        """
        if not self.data.split.few_blocks:
            return best
        folds = self.tried[best].by_fold[0]
        paired = {one: advantage(folds, trial.by_fold[0]) for one, trial in self.tried.items()}
        close = [one for one, (behind, error) in paired.items() if behind <= error]
        return max(close, key=lambda one: (one[2], one[1], one[0]))

    def _gains(self, one: Plain, other: Plain) -> bool:
        """Whether the first is better than the other by more than a standard error."""
        gain, error = lead(self.tried[one], self.tried[other])
        return gain > error

    def _outwards(self, best: Plain, k: int, factor: float) -> Plain:
        """Multiply one of the settings by the factor as long as the loss falls."""
        for _ in range(EXTENSIONS):
            moved = _moved(best, k, best[k] * factor)
            found = self._try(np.array(moved[:1]), [(moved[1], moved[2])])
            # Towards infinity the loss settles, so do not follow it.
            if not self._loss(found) < self._loss(best) * (1 - SETTLED * np.sign(self._loss(best))):
                break
            best = found
        return best

    def _halfway(self, best: Plain) -> Plain:
        """The best among the neighbours at half a step in the penalties that are free."""
        for k in (1, 2):
            if self.free[k] and best[k]:
                half = STEPS[k] ** 0.5
                moved = [_moved(best, k, best[k] * factor) for factor in (1 / half, half)]
                found = self._try(np.array(best[:1]), [one[1:] for one in moved])
                best = min(best, found, key=self._loss)
        return best

    def _alone(self, best: Plain) -> Plain:
        """The best fit of every node by itself, unless the first fold rules it out."""
        scale = self.data.split.loss.curvature
        nodes = self.coupling.graph.nodes
        ridges = penalty_pairs(Graph.empty(nodes), ridge=self.ridge, scale=scale)[1]
        alone = [(0.0, float(ridge)) for ridge in ridges]
        [[first]] = self._losses({best[0]: alone}, n_folds=1)
        known = self.tried[best].losses[0, 0]
        hopeful = [pair for pair, own in zip(alone, first, strict=True) if not hopeless(own, known)]
        return self._try(np.array(best[:1]), hopeful) if hopeful else best

    def _loss(self, candidate: Plain) -> float:
        return self.tried[candidate].loss

    def _try(self, widths: FloatArray, pairs: list[tuple[float, float]]) -> Plain:
        """Evaluate those candidates that are new, and return the best of all."""
        new = {
            width: [pair for pair in pairs if (width, *pair) not in self.tried]
            for width in map(float, widths)
        }
        new = {width: some for width, some in new.items() if some}
        blocked = self.data.split.n_blocks is not None
        evaluated: list[Plain] = []

        def finished(width: float, losses: list[FloatArray]) -> None:
            found = (Trial(one[np.newaxis], blocked) for one in np.stack(losses, axis=1))
            self.tried |= zip(((width, *pair) for pair in new[width]), found, strict=True)
            evaluated.extend((width, *pair) for pair in new[width])
            # The search goes on with the best bandwidth, so the folds of the others can go.
            best = min(evaluated, key=self._loss)[0]
            for worse in {one[0] for one in evaluated} - {best}:
                self.data.forget(worse)

        self._losses(new, finished=finished)
        asked = product(map(float, widths), pairs)
        return min(((width, *pair) for width, pair in asked), key=self._loss)

    def _losses(
        self,
        new: dict[float, list[tuple[float, float]]],
        n_folds: int | None = None,
        finished: Callable[[float, list[FloatArray]], None] | None = None,
    ) -> list[list[FloatArray]]:
        """Held-out losses of pairs, (n_pairs, n_nodes) for every bandwidth and fold."""
        widths = list(new)
        if not widths:
            return []
        numbers = range(len(self.data.at(widths[0])))[:n_folds]

        def make(width: float) -> tuple[FoldList, FloatArray]:
            return self.data.at(width), np.array(new[width])

        def losses(made: tuple[FoldList, FloatArray], number: int) -> FloatArray:
            folds, pairs = made
            return folds[number].plain_losses(self.coupling, pairs[:, 0] / self.unit, pairs[:, 1]).T

        return in_stages(make, widths, losses, numbers, finished=finished)


def _moved(candidate: Plain, k: int, value: float) -> Plain:
    values = list(candidate)
    values[k] = float(value)
    bandwidth, strength, ridge = values
    return bandwidth, strength, ridge
