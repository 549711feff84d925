"""Held-out ratios with nested selection.

Every sample of every node is split into folds. For fold k the model is fitted on the others and
its ratios are evaluated at the observations of fold k. The hyperparameters do not depend on fold
k either: fits that leave out fold k and a second fold j are evaluated at fold j. The fit without
j and k serves both, so the nested selection takes K (K - 1) / 2 fits of the whole grid instead
of the K (K - 1) of plain nesting. With many nodes two j for each k are enough, which takes K
fits. The folds share only the unlabelled points of the dictionary.

Several ways of fitting use the same folds and features.

Symbols
-------
K           number of folds
C           pairs of penalties
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Generic, TypeVar

import numpy as np

from graphratio._utils.jobs import in_stages
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import FoldedMoments, divide
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import moment_losses
from graphratio.selection.cross_validation import Fit, Split, defined_means, mean_losses
from graphratio.selection.grids import Candidates

# Beyond this many nodes two inner folds are enough for a selection.
MANY_NODES = 1_000

Candidate = tuple[float, float, float]
# Losses (C,) of every contender on the two folds that were left out.
PairLosses = dict[str, tuple[FloatArray, FloatArray]]
F = TypeVar("F", bound=Fit, covariant=True)


@dataclass(frozen=True, eq=False)
class Contender(Generic[F]):
    """A way of fitting, and the candidates of its hyperparameters."""

    fit: F
    candidates: Candidates


@dataclass(frozen=True, eq=False)
class FoldFit:
    """A fit of a contender on all folds but `fold`: its moments `train`, and theta (n_nodes, m)."""

    name: str
    fold: int
    data: FoldedMoments
    train: Moments
    theta: FloatArray
    graph_penalty: float
    ridge: float


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out ratios (n_repeats, n_observations) of one contender, clipped to [0, 1 / alpha].

    For each repeat and fold `chosen` has bandwidth, graph penalty and ridge, `functions` the fit
    itself, with coefficients of shape (n_nodes, m), and `looks` the result of `look` on it.
    """

    ratios: FloatArray
    folds: IntArray
    chosen: list[Candidate]
    functions: list[tuple[NystromMap, FloatArray]]
    looks: list[Any]


def draw_folds(
    samples: NodeSamples, n_folds: int, random_state: np.random.Generator, *, by_node: bool
) -> IntArray:
    """Fold of every observation, three at least; with `by_node` nodes are not split."""
    if not by_node:
        return divide(samples, n_folds, random_state, least=3).folds
    position = random_state.permutation(samples.n_nodes)
    return np.asarray((position % n_folds)[samples.node_index])


def held_out_ratios(
    splits: list[Split],
    contenders: Mapping[str, Contender[Fit]],
    *,
    look: Callable[[FoldFit], Any] | None = None,
    progress: bool = False,
) -> dict[str, HeldOut]:
    """Fit every contender on all folds but one, for each fold, with nested selection.

    Each of `splits` is one repeat on the same data. `look` is called with every fit, and
    `HeldOut.looks` collects its results.
    """
    rounds = [_Round(split, contenders, look) for split in splits]
    with ProgressBar(sum(map(len, rounds)), "held-out fits", enabled=progress) as bar:
        for one in rounds:
            one.run(bar)
    alpha = splits[0].alpha
    limit = 1 / alpha if np.ndim(alpha) == 0 and alpha > 0 else None
    return {
        name: HeldOut(
            np.clip(np.stack([one.ratios[name] for one in rounds]), 0.0, limit),
            np.stack([split.folds for split in splits]),
            [choice for one in rounds for choice in one.chosen[name]],
            [one.functions[name, fold] for one in rounds for fold in range(one.split.n_folds)],
            [one.looks[name, fold] for one in rounds for fold in range(one.split.n_folds)],
        )
        for name in contenders
    }


def widths_to_choose(contenders: Mapping[str, Contender[Fit]]) -> list[float]:
    """Bandwidths of contenders that have something to choose."""
    grids = [one.candidates for one in contenders.values() if len(one.candidates) > 1]
    return sorted({float(width) for grid in grids for width in grid.bandwidth})


def _inner_pairs(split: Split) -> list[tuple[int, int]]:
    """Pairs of folds that are left out together."""
    if split.samples.n_nodes > MANY_NODES and split.n_folds > 3:
        return [(fold, (fold + 1) % split.n_folds) for fold in range(split.n_folds)]
    return list(combinations(range(split.n_folds), 2))


def nested_losses(
    split: Split,
    contenders: Mapping[str, Contender[Fit]],
    at: Callable[[float], tuple[NystromMap, FoldedMoments]],
    bar: ProgressBar | None = None,
) -> dict[str, dict[float, FloatArray]]:
    """Mean loss of every pair of penalties without the held-out fold, (K, C) by bandwidth.

    `at` gives the features and moments of a bandwidth.
    """
    widths, pairs, n_folds = widths_to_choose(contenders), _inner_pairs(split), split.n_folds

    def make(width: float) -> tuple[float, FoldedMoments]:
        return width, at(width)[1].summed(by_fold=True)

    def fit(made: tuple[float, FoldedMoments], pair: tuple[int, int]) -> PairLosses:
        width, data = made
        own = {
            name: one
            for name, one in contenders.items()
            if len(one.candidates) > 1 and width in one.candidates.bandwidth
        }
        train, held_out = data.without(*pair), [data.only(fold) for fold in pair]
        return {name: _losses_of_pair(one, train, held_out) for name, one in own.items()}

    found = in_stages(make, widths, fit, pairs, bar)
    losses: dict[str, dict[float, FloatArray]] = {name: {} for name in contenders}
    for width, row in zip(widths, found, strict=True):
        for name in row[0]:
            table = np.full((n_folds, len(row[0][name][0]), n_folds), np.nan)
            for (j, k), part in zip(pairs, row, strict=True):
                table[k, :, j], table[j, :, k] = part[name]
            losses[name][width] = defined_means(table, axis=2)
    return losses


@dataclass(eq=False)
class _Round:
    """All fits on one split into folds."""

    split: Split
    contenders: Mapping[str, Contender[Fit]]
    look: Callable[[FoldFit], Any] | None
    ratios: dict[str, FloatArray] = field(default_factory=dict)
    chosen: dict[str, list[Candidate]] = field(default_factory=dict)
    functions: dict[tuple[str, int], tuple[NystromMap, FloatArray]] = field(default_factory=dict)
    looks: dict[tuple[str, int], Any] = field(default_factory=dict)
    _only: dict[float, tuple[NystromMap, FoldedMoments]] = field(default_factory=dict)

    def __len__(self) -> int:
        inner = len(widths_to_choose(self.contenders)) * len(_inner_pairs(self.split))
        return inner + self.split.n_folds

    def run(self, bar: ProgressBar) -> None:
        """Select, then fit and evaluate the selected candidates."""
        n_folds, names = self.split.n_folds, list(self.contenders)
        losses = nested_losses(self.split, self.contenders, self._at, bar)
        for name, one in self.contenders.items():
            self.chosen[name] = _best_of(one.candidates, losses[name], n_folds)
            self.ratios[name] = np.empty(self.split.samples.n_observations)
        widths = sorted({choice[0] for picks in self.chosen.values() for choice in picks})
        found = in_stages(self._at, widths, self._evaluated, range(n_folds))
        for name, fold in product(names, range(n_folds)):
            row = found[widths.index(self.chosen[name][fold][0])][fold]
            rows = np.flatnonzero(self.split.folds == fold)
            self.ratios[name][rows], self.functions[name, fold], self.looks[name, fold] = row[name]
        bar.advance(n_folds)

    def _at(self, width: float) -> tuple[NystromMap, FoldedMoments]:
        """Features and moments of a bandwidth; kept if there is no other one."""
        made = self._only.get(width) or self.split.at(width)
        if len(widths_to_choose(self.contenders)) == 1:
            self._only[width] = made
        return made

    def _evaluated(
        self, made: tuple[NystromMap, FoldedMoments], fold: int
    ) -> dict[str, tuple[FloatArray, tuple[NystromMap, FloatArray], Any]]:
        """Held-out ratios, fit and look of the contenders that chose this bandwidth."""
        features, data = made
        picks = {name: self.chosen[name][fold] for name in self.contenders}
        wanted = {name: own for name, own in picks.items() if own[0] == features.bandwidth}
        if not wanted:
            return {}
        train, found = data.without(fold), {}
        rows = np.flatnonzero(self.split.folds == fold)
        for name, (_, lam, rho) in wanted.items():
            theta = self.contenders[name].fit.solve(train, np.array([lam]), np.array([rho]))[:, 0]
            fit = FoldFit(name, fold, data, train, theta, lam, rho)
            seen = None if self.look is None else self.look(fit)
            found[name] = (data.ratios(rows, theta), (features, theta), seen)
        return found


def _losses_of_pair(
    contender: Contender[Fit], train: Moments, held_out: list[Moments]
) -> tuple[FloatArray, FloatArray]:
    """Mean losses (C,) on the two folds that were left out."""
    theta = np.ascontiguousarray(contender.fit.solve(train, *contender.candidates.pairs))
    first, second = (mean_losses(moment_losses(part, theta)) for part in held_out)
    return first, second


def _best_of(
    candidates: Candidates, losses: Mapping[float, FloatArray], n_folds: int
) -> list[Candidate]:
    """Best candidate for every held-out fold, from losses (K, C) of each bandwidth."""
    lam, rho = candidates.pairs
    if len(candidates) == 1:
        return [(float(candidates.bandwidth[0]), float(lam[0]), float(rho[0]))] * n_folds
    widths = sorted(losses)
    table = np.stack([losses[width] for width in widths], axis=1).reshape(n_folds, -1)
    picks = []
    for place in np.argmin(table, axis=1):
        width, pair = divmod(int(place), lam.size)
        picks.append((widths[width], float(lam[pair]), float(rho[pair])))
    return picks
