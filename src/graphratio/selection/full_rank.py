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
from typing import Any, TypeAlias

import numpy as np

from graphratio._utils.jobs import in_stages
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.selection.cross_validation import Coupling, defined_means
from graphratio.selection.grids import Candidates, penalty_pairs
from graphratio.selection.held_out_data import FoldList, FoldSource
from graphratio.selection.search import ENOUGH_NODES, Trial, advantage, hopeless, lead

# Bandwidth, strength and ridge of a candidate.
Plain = tuple[float, float, float]

# Pairs of strength and ridge, by bandwidth.
Pairs: TypeAlias = dict[float, list[tuple[float, float]]]

# In the first fold a candidate must be behind by one standard error more than elsewhere, since the
# best of many candidates there was lucky.
RESERVE = -1.0

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
        if other not in self.tried:
            return True  # the first fold ruled it out
        gain, error = lead(self.tried[one], self.tried[other])
        return gain > error

    def _outwards(self, best: Plain, k: int, factor: float) -> Plain:
        """Multiply one of the settings by the factor as long as the loss falls."""
        for _ in range(EXTENSIONS):
            moved = _moved(best, k, best[k] * factor)
            found = self._try(np.array(moved[:1]), [(moved[1], moved[2])], best)
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
                found = self._try(np.array(best[:1]), [one[1:] for one in moved], best)
                best = min(best, found, key=self._loss)
        return best

    def _alone(self, best: Plain) -> Plain:
        """The best fit of every node by itself."""
        scale = self.data.split.loss.curvature
        nodes = self.coupling.graph.nodes
        ridges = penalty_pairs(Graph.empty(nodes), ridge=self.ridge, scale=scale)[1]
        return self._try(np.array(best[:1]), [(0.0, float(ridge)) for ridge in ridges], best)

    def _loss(self, candidate: Plain) -> float:
        return self.tried[candidate].loss

    def _try(
        self, widths: FloatArray, pairs: list[tuple[float, float]], best: Plain | None = None
    ) -> Plain:
        """Evaluate those candidates that are new and not hopeless in the first fold.

        Returns the best of the given ones, or `best` if the first fold rules all of them out.
        """
        asked = [(width, *pair) for width, pair in product(map(float, widths), pairs)]
        new: Pairs = {}
        for width, *pair in asked:
            if (width, *pair) not in self.tried:
                new.setdefault(width, []).append((pair[0], pair[1]))
        first: dict[Plain, FloatArray] = {}
        if self._screens:
            first = self._first_losses(new)
            new = self._hopeful(new, first)
        blocked = self.data.split.n_blocks is not None
        evaluated: list[Plain] = []

        def finished(width: float, losses: list[FloatArray]) -> None:
            for k, pair in enumerate(new[width]):
                one = (width, *pair)
                folds = [first[one]] if first else []
                folds += [fold[k] for fold in losses]
                self.tried[one] = Trial(np.stack(folds)[np.newaxis], blocked)
                evaluated.append(one)
            # The search goes on with the best bandwidth, so the folds of the others can go.
            kept = min(evaluated, key=self._loss)[0]
            for worse in {one[0] for one in evaluated} - {kept}:
                self.data.forget(worse)

        self._losses(new, slice(1 if first else 0, None), finished)
        left = [one for one in asked if one in self.tried]
        return min(left, key=self._loss, default=best or self._best)

    @property
    def _best(self) -> Plain:
        """The best candidate so far."""
        return min(self.tried, key=self._loss)

    @property
    def _screens(self) -> bool:
        """Whether the first fold may rule candidates out: its observations are independent."""
        return self.data.split.n_blocks is None and self.coupling.graph.n_nodes >= ENOUGH_NODES

    def _first_losses(self, new: Pairs) -> dict[Plain, FloatArray]:
        """Losses (n_nodes,) of new candidates in the first fold."""
        losses = self._losses(new, slice(1))
        return {
            (width, *pair): own
            for (width, pairs), [found] in zip(new.items(), losses, strict=True)
            for pair, own in zip(pairs, found, strict=True)
        }

    def _hopeful(self, new: Pairs, first: dict[Plain, FloatArray]) -> Pairs:
        """The new candidates that the first fold does not rule out."""
        rivals = list(first.values())
        if self.tried:
            rivals.append(self.tried[self._best].losses[0, 0])
        means = defined_means(np.stack(rivals), 1)
        rival = rivals[int(np.argmin(means))]
        if np.isfinite(rival).sum() < ENOUGH_NODES:
            return new
        hopeful = {
            width: [pair for pair in pairs if not hopeless(first[width, *pair], rival, RESERVE)]
            for width, pairs in new.items()
        }
        for width in new:
            if not hopeful[width] and not any(one[0] == width for one in self.tried):
                self.data.forget(width)
        return {width: pairs for width, pairs in hopeful.items() if pairs}

    def _losses(
        self,
        new: Pairs,
        chosen: slice = slice(None),
        finished: Callable[[float, list[FloatArray]], None] | None = None,
    ) -> list[list[FloatArray]]:
        """Held-out losses of pairs, (n_pairs, n_nodes) for every bandwidth and chosen fold."""
        widths = list(new)
        if not widths:
            return []
        numbers = range(len(self.data.at(widths[0])))[chosen]

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
