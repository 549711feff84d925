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
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np

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

    For each repeat and fold `chosen` has bandwidth, graph penalty and ridge, and `functions` the
    fit itself, with coefficients of shape (n_nodes, m).
    """

    ratios: FloatArray
    folds: IntArray
    chosen: list[Candidate]
    functions: list[tuple[NystromMap, FloatArray]]


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
    look: Callable[[FoldFit], None] | None = None,
    progress: bool = False,
) -> dict[str, HeldOut]:
    """Fit every contender on all folds but one, for each fold, with nested selection.

    Each of `splits` is one repeat on the same data. `look` is called with every fit.
    """
    grids = [contender.candidates.bandwidth for contender in contenders.values()]
    widths = np.unique(np.concatenate(grids))
    rounds = [_Round(split, contenders, look) for split in splits]
    with ProgressBar(len(splits) * len(widths), "held-out fits", enabled=progress) as bar:
        for one in rounds:
            one.run(widths, bar)
    alpha = splits[0].alpha
    limit = 1 / alpha if np.ndim(alpha) == 0 and alpha > 0 else None
    return {
        name: HeldOut(
            np.clip(np.stack([one.ratios[name] for one in rounds]), 0.0, limit),
            np.stack([split.folds for split in splits]),
            [choice for one in rounds for choice in one.chosen[name]],
            [one.functions[name, fold] for one in rounds for fold in range(one.split.n_folds)],
        )
        for name in contenders
    }


def nested_losses(data: FoldedMoments, contender: Contender[Fit], n_folds: int) -> FloatArray:
    """Mean loss of every pair of penalties without the held-out fold, shape (K, C)."""
    lam, rho = contender.candidates.pairs
    losses = np.full((n_folds, lam.size, n_folds), np.nan)
    held_out = [data.only(fold) for fold in range(n_folds)]
    pairs = list(combinations(range(n_folds), 2))
    if len(data.sizes) > MANY_NODES and n_folds > 3:
        pairs = [(fold, (fold + 1) % n_folds) for fold in range(n_folds)]
    for j, k in pairs:
        theta = np.ascontiguousarray(contender.fit.solve(data.without(j, k), lam, rho))
        losses[k, :, j] = mean_losses(moment_losses(held_out[j], theta))
        losses[j, :, k] = mean_losses(moment_losses(held_out[k], theta))
    return defined_means(losses, axis=2)


@dataclass(eq=False)
class _Round:
    """All fits on one split into folds."""

    split: Split
    contenders: Mapping[str, Contender[Fit]]
    look: Callable[[FoldFit], None] | None
    ratios: dict[str, FloatArray] = field(default_factory=dict)
    chosen: dict[str, list[Candidate]] = field(default_factory=dict)
    functions: dict[tuple[str, int], tuple[NystromMap, FloatArray]] = field(default_factory=dict)

    def run(self, widths: FloatArray, bar: ProgressBar) -> None:
        """Select, then fit and evaluate the selected candidates."""
        n_folds = self.split.n_folds
        self.ratios = {
            name: np.empty(self.split.samples.n_observations) for name in self.contenders
        }
        losses: dict[str, dict[float, FloatArray]] = {name: {} for name in self.contenders}
        made = None
        for width in widths:
            made = self.split.at(width)
            for name, one in self.contenders.items():
                if len(one.candidates) > 1 and width in one.candidates.bandwidth:
                    losses[name][float(width)] = nested_losses(made[1], one, n_folds)
            bar.advance()
        for name, one in self.contenders.items():
            self.chosen[name] = _best_of(one.candidates, losses[name], n_folds)
        for width in sorted({choice[0] for picks in self.chosen.values() for choice in picks}):
            if len(widths) > 1 or made is None:
                made = self.split.at(width)
            for fold in range(n_folds):
                self._evaluate(*made, width, fold)

    def _evaluate(self, features: NystromMap, data: FoldedMoments, width: float, fold: int) -> None:
        wanted = [name for name in self.contenders if self.chosen[name][fold][0] == width]
        if not wanted:
            return
        train = data.without(fold)
        rows = np.flatnonzero(self.split.folds == fold)
        for name in wanted:
            _, lam, rho = self.chosen[name][fold]
            theta = self.contenders[name].fit.solve(train, np.array([lam]), np.array([rho]))[:, 0]
            self.ratios[name][rows] = data.ratios(rows, theta)
            self.functions[name, fold] = (features, theta)
            if self.look is not None:
                self.look(FoldFit(name, fold, data, train, theta, lam, rho))


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
