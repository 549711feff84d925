"""Choice of rank, penalties, rounds and bandwidth of the profiles on held-out data.

Every training fold learns its own profiles, edge weights and coordinates. The held-out
observations enter only the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_integer
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.selection.cross_validation import Coupling, crossed_divergences, score_table
from graphratio.selection.full_rank import FullRank, best_full_rank
from graphratio.selection.grids import candidates_of
from graphratio.selection.held_out_data import MOST_PROFILES, FoldProblems, HeldOutData
from graphratio.selection.kinds import MOST_KINDS, group, number_of_kinds
from graphratio.selection.search import (
    Axis,
    Point,
    Trial,
    advantage,
    decades,
    listed,
    moderate,
    search,
)
from graphratio.solvers.alternating import Profiles, rounds
from graphratio.solvers.rotation import principal

# Largest number of rounds tried, and the larger one tried if the last was the best.
MOST_ROUNDS = 3
MORE_ROUNDS = 6

# Usual number of points of a search, for the progress bar.
USUAL_POINTS = 50


@dataclass(frozen=True)
class ProfileSettings:
    """One candidate; `n_profiles` is 0 if every node has its own ratio.

    `strength` and `ridge` are the lam and rho of `solvers.alternating`.
    """

    n_profiles: int
    strength: float
    ridge: float
    bandwidth: float
    n_rounds: int


# A candidate and its scores in the folds.
Row = tuple[ProfileSettings, FloatArray]


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen settings, and a table of the scores of all candidates.

    `full_rank` is not None if separate ratios were better than any number of profiles. `held_out`
    has the held-out divergence of every node.
    """

    settings: ProfileSettings
    full_rank: FullRank | None
    results: dict[str, FloatArray]
    held_out: FloatArray


def profile_axes(
    widths: FloatArray,
    graph: Graph,
    n_atoms: int,
    *,
    n_profiles: Any,
    graph_penalty: Any,
    ridge: Any,
    adaptive: bool,
) -> list[Axis]:
    """Axes of the search: number of profiles, strength of the graph, ridge, bandwidth.

    Parameters are those of the estimator: None searches a wide range, numbers are themselves.
    """
    most = max(1, min(MOST_PROFILES, graph.n_nodes, n_atoms))
    if n_profiles is None:
        # One more profile must gain a standard error, since readers must interpret it too.
        ranks = Axis(np.arange(1.0, most + 1), min(1, most - 1), reluctance=(0.0, 1.0))
    else:
        asked = np.atleast_1d(np.asarray(n_profiles, dtype=object))
        if not asked.size:
            raise InputError(
                f"n_profiles={n_profiles!r} has no candidates",
                "Pass None to select it, a number to fix it, or a sequence of candidates",
            )
        if 0 in asked.tolist():
            raise InputError(
                f"n_profiles={n_profiles!r} has 0, no shared profiles, among other candidates",
                "Pass 0 alone, or None to choose between both",
            )
        counts = {min(check_integer(k, "n_profiles", low=1), most) for k in asked}
        ranks = listed(np.array(sorted(counts), dtype=np.float64))
    given = graph.mean_degree * candidates_of(graph_penalty, "graph_penalty", np.zeros(1))
    strength = listed(given)
    if not graph.n_edges:
        strength = listed(np.zeros(1))
    elif graph_penalty is None:
        # An adaptive penalty has two regimes: strong with many edges cut, and weak.
        scanned = (1.0, 100.0, 1000.0) if adaptive else ()
        # Held-out losses hardly separate strengths with quite different errors, and too weak is
        # worse: an error that the sample of one kind causes is the same in every fold.
        strength = decades(-3, 4, start=10.0, zero=True, scanned=scanned, reluctance=(1.0, 0.0))
    else:
        moderate(given[given > 0], "graph_penalty * mean degree")
    if ridge is None:
        ridges = decades(-8, 2, start=1e-4)
    else:
        ridges = listed(moderate(candidates_of(ridge, "ridge", np.zeros(0)), "ridge"))
    # Held-out losses are flat in the bandwidth, so another one must be clearly better.
    return [ranks, strength, ridges, listed(widths, reluctance=(1.0, 1.0))]


class ProfileSelection:
    """Search for the settings with the smallest held-out loss.

    The `axes` are number of profiles, strength of the graph, ridge and bandwidth. If `n_rounds` is
    None, it is chosen from 0 to `MOST_ROUNDS`, or up to `MORE_ROUNDS` if the last is the best.
    `bar` advances with every point.
    """

    def __init__(
        self,
        data: HeldOutData,
        axes: Sequence[Axis],
        n_rounds: int | None,
        *,
        adaptive: bool,
        bar: ProgressBar,
    ) -> None:
        self.data, self.axes, self.n_rounds, self.adaptive = data, axes, n_rounds, adaptive
        self.bar = bar
        self.most_rounds = MOST_ROUNDS if n_rounds is None else n_rounds

    def choose(self, coupling: Coupling, *, or_full_rank: bool, without_graph: bool) -> Choice:
        """Search; with `or_full_rank` also try ratios that share no profiles.

        With `without_graph` the graph is used only if it is better than none by a standard error.
        """
        best, tried = search(self.axes, self._trial)
        if self.n_rounds is None and tried[best].best_round == MOST_ROUNDS:
            self.most_rounds = MORE_ROUNDS
            # A stronger penalty may need more rounds to improve the loss.
            best, more = search(self._from(best, free=(1,)), self._trial)
            tried |= more
        if without_graph:
            best, tried = self._or_without_graph(best, tried)
        n_rounds = tried[best].best_round if self.n_rounds is None else self.n_rounds
        settings = self._settings(best, n_rounds)
        rows, trials = self._rows(tried), list(tried.values())
        chosen, full = settings, None
        if or_full_rank:
            found = self._full_rank(settings.bandwidth, coupling)
            rows += _full_rank_rows(found, settings.bandwidth)
            trials += found.tried.values()
            if found.trial.loss < tried[best].loss:
                full = found
                chosen = _unshared(found, settings.bandwidth)
        return Choice(settings, full, self._table(rows, chosen), _crossed(trials))

    def choose_full_rank(self, coupling: Coupling) -> Choice:
        """Fit a separate ratio at every node, at the best of all bandwidths."""
        rows: list[Row] = []
        found: dict[float, FullRank] = {}
        for bandwidth in map(float, self.axes[3].values):
            found[bandwidth] = self._full_rank(bandwidth, coupling)
            rows += _full_rank_rows(found[bandwidth], bandwidth)
        best = min(found, key=lambda bandwidth: found[bandwidth].trial.loss)
        chosen = _unshared(found[best], best)
        trials = [trial for one in found.values() for trial in one.tried.values()]
        return Choice(chosen, found[best], self._table(rows, chosen), _crossed(trials))

    def _full_rank(self, bandwidth: float, coupling: Coupling) -> FullRank:
        _, strength, ridge, _ = self.axes
        return best_full_rank(self.data.at(bandwidth), coupling, strength, ridge)

    def _or_without_graph(
        self, best: Point, tried: dict[Point, Trial]
    ) -> tuple[Point, dict[Point, Trial]]:
        strength = self.axes[1]
        if not strength.values[best[1]] > 0 or strength.values[0] > 0:
            return best, tried
        none = (best[0], 0, *best[2:])
        found, more = search(self._from(none, free=(0, 2, 3)), self._trial)
        gain, error = advantage(tried[best].node_losses, more[found].node_losses)
        return (best if gain > error else found), tried | more

    def _from(self, point: Point, free: tuple[int, ...]) -> list[Axis]:
        """Axes that start at a point; the search may move along the free ones only."""
        return [
            replace(axis, start=at, stride=1, scanned=(), held=k not in free)
            for k, (axis, at) in enumerate(zip(self.axes, point, strict=True))
        ]

    def only(self) -> ProfileSettings:
        """The settings if each has a single candidate."""
        return self._settings(tuple(axis.start for axis in self.axes), self.n_rounds or 0)

    def kinds(
        self, choice: ProfileSettings, full_rank: FullRank | None, coupling: Coupling
    ) -> tuple[int, FloatArray]:
        """Number of kinds of change that held-out data support, and the gains of every node.

        The gain is the held-out loss of the ratio 1 minus that of the node's ratio, in every
        fold, shape (n_folds, n_nodes).
        """
        own = []
        losses: list[list[FloatArray]] = [[] for _ in range(MOST_KINDS + 1)]
        for fold in self.data.at(choice.bandwidth):
            if full_rank is None:
                fit = self._path(fold, choice)[-1]
                profiles, coordinates = fit.profiles, fit.coordinates
            else:
                theta = full_rank.solve(fold.train, coupling)
                profiles, coordinates = principal(theta, fold.problem.metric)
            theta = np.stack(
                [coordinates @ profiles.T, np.zeros((len(coordinates), len(profiles)))]
            )
            own.append(fold.losses(theta.transpose(1, 0, 2).astype(np.float32)).T)
            for k in range(MOST_KINDS + 1):
                kinds, centres = group(coordinates, k)
                theta = (centres[kinds] @ profiles.T)[:, np.newaxis]
                losses[k].append(fold.losses(theta.astype(np.float32))[:, 0])
        gains = np.stack([unchanged - fitted for fitted, unchanged in own])
        return number_of_kinds([np.stack(found) for found in losses]), gains

    def _settings(self, point: Point, n_rounds: int) -> ProfileSettings:
        values = [float(axis.values[i]) for axis, i in zip(self.axes, point, strict=True)]
        return ProfileSettings(round(values[0]), values[1], values[2], values[3], n_rounds)

    def _path(self, fold: FoldProblems, choice: ProfileSettings) -> list[Profiles]:
        return rounds(
            fold.problem,
            fold.start(choice.n_profiles, smooth=choice.strength > 0),
            choice.strength,
            choice.ridge,
            choice.n_rounds,
            adaptive=self.adaptive,
        )

    def _trial(self, point: Point) -> Trial:
        settings = self._settings(point, self.most_rounds)
        losses = []
        for fold in self.data.at(settings.bandwidth):
            path = self._path(fold, settings)
            if self.n_rounds is not None:
                path = path[-1:]
            theta = np.stack([fit.theta for fit in path], axis=1)
            losses.append(fold.losses(theta).T)
        # A search may take longer than usual; keep the last step for its end.
        self.bar.advance(int(self.bar.done < self.bar.total - 1))
        return Trial(np.stack(losses, axis=1))

    def _rows(self, tried: dict[Point, Trial]) -> list[Row]:
        """Every tried candidate, with its scores in the folds."""
        return [
            (self._settings(point, number if self.n_rounds is None else self.n_rounds), scores)
            for point, trial in tried.items()
            for number, scores in enumerate(-trial.by_fold)
        ]

    def _table(self, rows: list[Row], chosen: ProfileSettings) -> dict[str, FloatArray]:
        names = ("bandwidth", "strength", "ridge", "n_profiles", "n_rounds")
        columns = {name: np.array([getattr(row, name) for row, _ in rows]) for name in names}
        penalties = columns.pop("strength") / self.data.edges.unit
        columns = {"bandwidth": columns.pop("bandwidth"), "graph_penalty": penalties, **columns}
        scores = np.array([found for _, found in rows])
        return score_table(columns, scores, [row for row, _ in rows].index(chosen))


def _crossed(trials: Sequence[Trial]) -> FloatArray:
    return crossed_divergences(np.concatenate([trial.losses for trial in trials]))


def _unshared(full: FullRank, bandwidth: float) -> ProfileSettings:
    return ProfileSettings(0, full.strength, full.ridge, bandwidth, 0)


def _full_rank_rows(full: FullRank, bandwidth: float) -> list[Row]:
    """Every tried candidate without shared profiles, with its scores in the folds."""
    return [
        (ProfileSettings(0, strength, ridge, bandwidth, 0), -trial.by_fold[0])
        for (strength, ridge), trial in full.tried.items()
    ]
