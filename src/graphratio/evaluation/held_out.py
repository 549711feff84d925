"""Ratios at observations that the fits have not seen: the engine of comparisons and bounds.

Every sample of every node is split into folds. For fold k the model is fitted on the others and
its ratios are evaluated at the observations of fold k. Hyperparameters are chosen without fold
k too: by the losses of fits that leave out fold k and a second fold j, evaluated at fold j. The
fit without j and k serves both, so the nested selection takes K (K - 1) / 2 fits of the whole
grid instead of the K (K - 1) that a plain nesting takes; on many nodes two j for each k do, and
K fits. Only the unlabelled points of the dictionary are shared by all folds.

Several ways of coupling the nodes are fitted side by side, on the same folds and features.

Symbols
-------
K           number of folds
C           pairs of penalties
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.evaluation.couplings import Coupling, Fit
from graphratio.evaluation.folded import Folded, Setting
from graphratio.evaluation.refit_noise import RefitNoise
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import assign_folds
from graphratio.selection.cross_validation import Candidates

Choice = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Ratios of one coupling at observations its fits have not seen.

    Attributes
    ----------
    ratios : ndarray of shape (n_repeats, n_observations)
        Clipped to [0, 1 / alpha].
    folds : ndarray of shape (n_repeats, n_observations)
    chosen : list of (bandwidth, graph penalty, node penalty), one for each repeat and fold
    functions : list of (NystromMap, ndarray of shape (n_nodes, m)), one for each repeat and fold
        The fits themselves: a ratio is the prior ratio plus features times coefficients.
    noise : RefitNoise or None
        Variance from refitting, if asked for.
    """

    ratios: FloatArray
    folds: IntArray
    chosen: list[Choice]
    functions: list[tuple[NystromMap, FloatArray]]
    noise: RefitNoise | None = None


def held_out_ratios(
    samples: NodeSamples,
    fits: Mapping[str, Fit],
    setting: Setting,
    *,
    n_repeats: int,
    random_state: np.random.Generator,
    by_node: bool = False,
    with_noise: bool = False,
    progress: bool = False,
) -> dict[str, HeldOut]:
    """Fit in every way on all folds but one, for each fold, with nested selection.

    Parameters
    ----------
    samples : NodeSamples
        In the order of the graphs.
    fits : mapping of name to Fit
    setting : Setting
    n_repeats : int
        How often the data are split anew.
    random_state : numpy Generator
    by_node : bool, default False
        Leave out whole nodes, whose ratios are then what their neighbours say.
    with_noise : bool, default False
        Also compute the variance from refitting, for fits that are a Coupling.
    progress : bool
    """
    widths = np.unique(np.concatenate([fit.candidates.bandwidth for fit in fits.values()]))
    splits = np.stack(
        [_folds_of(samples, setting.n_folds, random_state, by_node) for _ in range(n_repeats)]
    )
    with ProgressBar(n_repeats * len(widths), "held-out fits", enabled=progress) as bar:
        rounds = [_Round(samples, folds, fits, setting) for folds in splits]
        for one in rounds:
            one.run(widths, with_noise, bar)
    limit = 1 / setting.alpha if setting.alpha > 0 else None
    return {
        name: HeldOut(
            np.clip(np.stack([one.ratios[name] for one in rounds]), 0.0, limit),
            splits,
            [choice for one in rounds for choice in one.chosen[name]],
            [one.functions[name, fold] for one in rounds for fold in range(setting.n_folds)],
            _mean_noise([one.noise[name] for one in rounds]) if with_noise else None,
        )
        for name in fits
    }


def _folds_of(
    samples: NodeSamples, n_folds: int, random_state: np.random.Generator, by_node: bool
) -> IntArray:
    if not by_node:
        return assign_folds(samples, n_folds, random_state)
    position = random_state.permutation(samples.n_nodes)
    return np.asarray((position % n_folds)[samples.node_index])


class _Round:
    """All fits on one split into folds."""

    def __init__(
        self, samples: NodeSamples, folds: IntArray, fits: Mapping[str, Fit], setting: Setting
    ) -> None:
        self.samples, self.folds, self.fits, self.setting = samples, folds, fits, setting
        self.ratios = {name: np.empty(samples.n_observations) for name in fits}
        self.noise: dict[str, list[RefitNoise]] = {name: [] for name in fits}
        self.chosen: dict[str, list[Choice]] = {}
        self.functions: dict[tuple[str, int], tuple[NystromMap, FloatArray]] = {}

    def run(self, widths: FloatArray, with_noise: bool, bar: ProgressBar) -> None:
        """Select, then fit and evaluate at what was selected."""
        losses: dict[str, dict[float, FloatArray]] = {name: {} for name in self.fits}
        data = None
        for width in widths:
            data = Folded(self.samples, self.folds, width, self.setting)
            for name, fit in self.fits.items():
                if len(fit.candidates) > 1 and width in fit.candidates.bandwidth:
                    losses[name][float(width)] = data.nested_losses(fit)
            bar.advance()
        for name, fit in self.fits.items():
            self.chosen[name] = _best_of(fit.candidates, losses[name], self.setting.n_folds)
        used = {choice[0] for picks in self.chosen.values() for choice in picks}
        for width in sorted(used):
            if len(widths) > 1 or data is None:
                data = Folded(self.samples, self.folds, width, self.setting)
            for fold in range(self.setting.n_folds):
                self._evaluate(data, width, fold, with_noise)

    def _evaluate(self, data: Folded, width: float, fold: int, with_noise: bool) -> None:
        wanted = [name for name in self.fits if self.chosen[name][fold][0] == width]
        if not wanted:
            return
        train = data.without(fold)
        rows = np.flatnonzero(self.folds == fold)
        for name in wanted:
            fit, (_, lam, gam) = self.fits[name], self.chosen[name][fold]
            theta = fit.solve(train, np.array([lam]), np.array([gam]))[:, 0]
            self.ratios[name][rows] = data.ratios(rows, theta)
            self.functions[name, fold] = (data.features, theta)
            if with_noise and isinstance(fit, Coupling):
                self.noise[name].append(data.refit_noise(fold, fit, train, theta, lam, gam))


def _mean_noise(rounds: list[list[RefitNoise]]) -> RefitNoise | None:
    """Noise of one split, from that of all folds of all splits."""
    parts = [part for one in rounds for part in one]
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.averaged(len(rounds))


def _best_of(
    candidates: Candidates, losses: Mapping[float, FloatArray], n_folds: int
) -> list[Choice]:
    """Best candidate for every left-out fold; losses have shape (K, C) for each bandwidth."""
    lam, gam = candidates.pairs
    if len(candidates) == 1:
        return [(float(candidates.bandwidth[0]), float(lam[0]), float(gam[0]))] * n_folds
    widths = sorted(losses)
    table = np.stack([losses[width] for width in widths], axis=1).reshape(n_folds, -1)
    picks = []
    for place in np.argmin(table, axis=1):
        width, pair = divmod(int(place), lam.size)
        picks.append((widths[width], float(lam[pair]), float(gam[pair])))
    return picks
