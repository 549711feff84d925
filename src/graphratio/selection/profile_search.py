"""Choice of rank, penalties, rounds and bandwidth of the profiles on held-out data.

Every training fold learns its own profiles, edge weights and coordinates. The held-out
observations enter only the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.jobs import each
from graphratio._utils.parameters import check_integer
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.selection.adaptive_search import choose_adaptive
from graphratio.selection.cross_validation import crossed_divergences, score_table
from graphratio.selection.full_rank import Plain, PlainSearch
from graphratio.selection.grids import candidates_of
from graphratio.selection.held_out_data import MOST_PROFILES, Folds, FoldSource
from graphratio.selection.search import (
    Axis,
    Point,
    Trial,
    decades,
    hopeless,
    lead,
    listed,
    moderate,
    outclassed,
    search,
)
from graphratio.solvers.alternating import rounds

# Largest number of rounds tried, and the larger one tried if the last was the best.
MOST_ROUNDS = 3
MORE_ROUNDS = 6

# With so many entries of second moments in a fold, a search tries the first fold alone before.
LARGE_MOMENTS = 2**24

# Usual number of points of a search, for the progress bar.
USUAL_POINTS = 50


@dataclass(frozen=True)
class ProfileSettings:
    """One candidate; 0 profiles if every node has its own ratio. Penalties as in `alternating`."""

    n_profiles: int
    strength: float
    ridge: float
    bandwidth: float
    n_rounds: int


# A candidate and its scores in the folds.
Row = tuple[ProfileSettings, FloatArray]


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen settings, the scores of all candidates, and held-out divergences of nodes."""

    settings: ProfileSettings
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
    """Axes of number of profiles, strength of the graph, ridge, bandwidth, from parameters."""
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
                f"n_profiles={n_profiles!r} mixes 0 (no shared profiles) with other candidates",
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
        # Held-out losses hardly separate strengths with quite different errors. Too weak a graph
        # does more harm: an error caused by the sample of one kind is the same in every fold.
        strength = decades(-3, 4, start=10.0, zero=True, scanned=scanned, reluctance=(1.0, 0.0))
    else:
        moderate(given[given > 0], "graph_penalty * mean degree")
    if ridge is None:
        ridges = decades(-8, 2, start=1e-4)
    else:
        ridges = listed(moderate(candidates_of(ridge, "ridge", np.zeros(0)), "ridge"))
    return [ranks, strength, ridges, listed(widths)]


@dataclass(eq=False, kw_only=True)
class ProfileSelection:
    """Search for the settings with the smallest held-out loss.

    If `n_rounds` is None, it is chosen up to `MOST_ROUNDS`, or `MORE_ROUNDS` if the last is best.
    `unit` is the mean degree of the whole graph, of which the data may be a part. Plain fits learn
    edge weights if `learned_over` is the graph of the data.
    """

    data: FoldSource
    axes: Sequence[Axis]
    n_rounds: int | None
    adaptive: bool
    unit: float
    bar: ProgressBar
    learned_over: Graph | None = None
    _losses: dict[ProfileSettings, list[FloatArray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.most_rounds = MOST_ROUNDS if self.n_rounds is None else self.n_rounds

    def choose(
        self, plain: PlainSearch, *, shared: bool, or_plain: bool, without_graph: bool
    ) -> Choice:
        """Search for profiles; with `or_plain` a plain fit may win, without `shared` it must.

        Plain fits choose the bandwidth, since held-out losses of profiles hardly depend on it.
        Profiles must beat the best plain fit by a standard error; fine steps end where that is out
        of reach. With `without_graph`, a fit with the graph must also beat one without it by a
        standard error.
        """
        rival = plain.best()
        if not shared or (or_plain and self.data.split.few_blocks):
            return self._choice(*self._with_learned_edges(rival, plain), plain)
        self.axes = [*self.axes[:3], listed(np.array([rival[0]]))]
        known = plain.tried[rival] if or_plain else None
        best, tried = self._preview(known) or search(self.axes, self._trial, known)
        if outclassed(tried[best], known):
            return self._choice(_unshared(rival), self._rows(tried), list(tried.values()), plain)
        if self.n_rounds is None and tried[best].best_round == MOST_ROUNDS:
            self.most_rounds = MORE_ROUNDS
            # A stronger penalty may need more rounds to improve the loss.
            best, more = search(self._from(best, free=(1,)), self._trial)
            tried |= more
        if without_graph:
            best, tried = self._or_without_graph(best, tried)
        n_rounds = tried[best].best_round if self.n_rounds is None else self.n_rounds
        chosen = self._settings(best, n_rounds)
        if or_plain:
            gain, error = lead(tried[best], plain.tried[rival])
            if not gain > error:
                chosen = _unshared(rival)
        return self._choice(chosen, self._rows(tried), list(tried.values()), plain)

    def _preview(self, rival: Trial | None) -> tuple[Point, dict[Point, Trial]] | None:
        """With large moments, the best point in the first fold, if a rival outclasses it.

        A search in all folds takes long there, and otherwise uses the losses of the first again.
        """
        if rival is None or rival.blocked:
            return None
        n_nodes, m = self.data.at(float(self.axes[3].values[0]))[0].problem.first.shape
        if n_nodes * m**2 < LARGE_MOMENTS:
            return None
        first = Trial(rival.losses[:, :1])
        best, tried = search(self.axes, lambda point, _: self._trial(point, 1), first)
        if not outclassed(tried[best], first):
            return None
        whole = self._trial(best)
        return (best, {best: whole}) if outclassed(whole, rival) else None

    def _with_learned_edges(
        self, rival: Plain, plain: PlainSearch
    ) -> tuple[ProfileSettings, list[Row], list[Trial]]:
        """The best plain fit, with learned edge weights if these are clearly better."""
        bandwidth, strength, ridge = rival
        graph = self.learned_over if self.adaptive else None
        few = self.data.split.few_blocks
        if graph is None or not graph.n_edges or not strength or self.n_rounds == 0 or few:
            return _unshared(rival), [], []
        found = choose_adaptive(
            cast(Folds, self.data.at(bandwidth)),
            graph,
            strength / self.unit,
            ridge,
            fixed=not plain.free[1],
            n_rounds=self.n_rounds,
        )
        rows = [
            (ProfileSettings(0, lam * self.unit, ridge, bandwidth, self.n_rounds or k), scores)
            for lam, trial in found.tried.items()
            for k, scores in enumerate(-trial.by_fold)
            if k or self.n_rounds
        ]
        gain, error = lead(found.tried[found.graph_penalty], plain.tried[rival])
        chosen = _unshared(rival)
        if found.n_rounds and (self.n_rounds is not None or gain > error):
            best = found.graph_penalty * self.unit
            chosen = ProfileSettings(0, best, ridge, bandwidth, found.n_rounds)
        losses = [
            trial if self.n_rounds else Trial(trial.losses[1:]) for trial in found.tried.values()
        ]
        return chosen, rows, losses

    def _choice(
        self, chosen: ProfileSettings, rows: list[Row], trials: list[Trial], plain: PlainSearch
    ) -> Choice:
        """Settings, and the scores of all candidates, with profiles and plain."""
        rows = rows + [(_unshared(one), -trial.by_fold[0]) for one, trial in plain.tried.items()]
        losses = [trial.losses for trial in (*trials, *plain.tried.values())]
        split = self.data.split
        held_out = crossed_divergences(np.concatenate(losses), split.run, split.loss.shift)
        return Choice(chosen, self._table(rows, chosen), held_out)

    def _or_without_graph(
        self, best: Point, tried: dict[Point, Trial]
    ) -> tuple[Point, dict[Point, Trial]]:
        strength = self.axes[1]
        if not strength.values[best[1]] > 0 or strength.values[0] > 0:
            return best, tried
        none = (best[0], 0, *best[2:])
        if hopeless(self._trial(none).node_losses, tried[best].node_losses):
            return best, tried | {none: self._trial(none)}
        found, more = search(self._from(none, free=(0, 2)), self._trial)
        gain, error = lead(tried[best], more[found])
        return (best if gain > error else found), tried | more

    def _from(self, point: Point, free: tuple[int, ...]) -> list[Axis]:
        """Axes that start at a point; the search may move along the free ones only."""
        return [
            replace(axis, start=at, stride=1, scanned=(), held=k not in free)
            for k, (axis, at) in enumerate(zip(self.axes, point, strict=True))
        ]

    def only(self, *, shared: bool) -> ProfileSettings | None:
        """The settings if each has a single candidate; without `shared` those of a plain fit."""
        if self.n_rounds is None or any(len(axis.values) > 1 for axis in self.axes[not shared :]):
            return None
        found = self._settings(tuple(axis.start for axis in self.axes), self.n_rounds)
        return found if shared else replace(found, n_profiles=0, n_rounds=0)

    def _settings(self, point: Point, n_rounds: int) -> ProfileSettings:
        values = [float(axis.values[i]) for axis, i in zip(self.axes, point, strict=True)]
        return ProfileSettings(round(values[0]), values[1], values[2], values[3], n_rounds)

    def _trial(self, point: Point, n_folds: int | None = None) -> Trial:
        """Held-out losses of a point in the first folds, or in all; each is computed once."""
        settings = self._settings(point, self.most_rounds)
        losses = self._losses.setdefault(settings, [])
        folds = self.data.at(settings.bandwidth)

        def held_out(number: int) -> FloatArray:
            fold = folds[number]
            path = rounds(
                fold.problem,
                fold.start(settings.n_profiles, smooth=settings.strength > 0),
                settings.strength,
                settings.ridge,
                settings.n_rounds,
                adaptive=self.adaptive,
            )
            used = path if self.n_rounds is None else path[-1:]
            return fold.profile_losses(used).T

        losses += each(held_out, range(len(folds))[len(losses) : n_folds])
        # A search may take longer than usual; keep the last step for its end.
        self.bar.advance(int(n_folds is None and self.bar.done < self.bar.total - 1))
        return Trial(np.stack(losses, axis=1), self.data.split.n_blocks is not None)

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
        penalties = columns.pop("strength") / self.unit
        columns = {"bandwidth": columns.pop("bandwidth"), "graph_penalty": penalties, **columns}
        scores = np.array([found for _, found in rows])
        return score_table(columns, scores, [row for row, _ in rows].index(chosen))


def _unshared(plain: Plain) -> ProfileSettings:
    bandwidth, strength, ridge = plain
    return ProfileSettings(0, strength, ridge, bandwidth, 0)
