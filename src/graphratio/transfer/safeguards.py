"""How far the weights of each node may go, so that they do no harm.

A node keeps equal weights where its reference does not overlap its target: a few observations at
the edge would decide everything, and nothing tells whether they are right. If both have the same
law, half of the nearest neighbours of a target observation, among equally many observations of
both, are reference observations. This needs no ratio: an estimated ratio is shrunk, and says little
about places where the reference has no observations. Elsewhere held-out losses with weights are
compared with those without, both weighted to look like the target.

1. Over all these nodes: the power of the weights is lowered until the mean loss is lower than
   without weights by half a standard error over nodes. If no power reaches this, weights are not
   used.
2. At each node: it keeps equal weights if its loss is larger by more than one standard error. A
   single node says little, so its difference is first shrunk towards the mean over nodes, the
   more the less nodes differ beyond noise (empirical Bayes).
3. At each node: the power is lowered until enough observations are effective.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.jobs import each
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.estimators.weights import UNCOVERED_SHARE, effective_size, least_effective
from graphratio.transfer.trials import WeightTrial
from graphratio.transfer.weight_powers import best_exponent, sharpened

# Why a node has its power.
Reason = Literal[
    "no shift",  # no evidence that the target differs
    "no reference",  # there is nothing to weight
    "no overlap",  # the samples lie apart
    "all nodes",  # the held-out loss over nodes is not clearly lower with weights
    "few effective",  # too few observations would decide
    "held-out loss",  # the held-out loss of the node is larger with weights
    "given",  # the power was set by the caller
    "shift",  # the weights are used as they are
]

# How many nearest neighbours of a target observation are looked at.
NEIGHBOURS = 3
# A node with a smaller value has no overlap. At this value there are nine target observations for
# one reference observation around a target observation.
LEAST_OVERLAP = 0.2
# Weaker powers to try, between the candidates and no weights.
FLATTENED = (1.0, 0.75, 0.5, 0.25)

# Standard errors by which the mean held-out loss over nodes must be lower with weights.
CLEARLY_LOWER = 0.5
# Standard errors by which that of a node may be larger.
TOLERATED = 1.0


def overlap_of(
    reference: FloatArray, target: FloatArray, fold: IntArray, rng: np.random.Generator
) -> float:
    """Overlap of a node: about 1 with equal laws, 0 if the samples lie apart.

    Twice the share of the reference among the nearest neighbours of target observations, at most
    1. Neighbours are sought among equally many observations of both samples, drawn at random.
    `fold` is that of every target observation. Neighbours in its own fold do not count: they may
    depend on it and be alike. NaN if a sample is empty or the target is in a single fold.
    """
    found = total = 0
    for k in np.unique(fold):
        rest = target[fold != k]
        size = min(len(reference), len(rest))
        if not size:
            return float("nan")
        both = np.concatenate([rng.permutation(reference)[:size], rng.permutation(rest)[:size]])
        # In random order, so that ties favour neither sample.
        order = rng.permutation(2 * size)
        ranks = range(1, min(NEIGHBOURS, size) + 1)
        nearest = order[cKDTree(both[order]).query(target[fold == k], k=ranks)[1]]
        found, total = found + int((nearest < size).sum()), total + nearest.size
    return min(2 * found / total, 1.0) if total else float("nan")


def lacks_overlap(overlap: FloatArray, uncovered: FloatArray) -> BoolArray:
    """Nodes without overlap, by nearest neighbours or because the ratio leaves most uncovered."""
    with np.errstate(invalid="ignore"):
        return np.asarray((overlap < LEAST_OVERLAP) | (uncovered > UNCOVERED_SHARE))


def full_power(trials: Sequence[WeightTrial], candidates: Sequence[float]) -> float:
    """One power for all nodes, by the matched error on the target."""
    if len(candidates) == 1:
        return float(candidates[0])
    judged = [one for one in trials if len(one.target)]
    errors = each(lambda one: [one.target_error(s) for s in candidates], judged)
    return best_exponent(np.array(errors).reshape(-1, len(candidates)), candidates)


def _excesses(trials: Sequence[WeightTrial], power: float) -> FloatArray:
    """Excess and its standard error of every trial, shape (2, n_trials)."""
    return np.transpose(each(lambda one: one.excess(power), trials))


def steps_down(power: float, candidates: Sequence[float]) -> list[float]:
    """The power and the weaker ones, without 0, from the strongest."""
    weaker = {s for s in (*candidates, *FLATTENED) if 0 < s < power}
    return [power, *sorted(weaker, reverse=True)]


def power_over_nodes(trials: Sequence[WeightTrial], steps: Sequence[float]) -> float:
    """Strongest power whose mean held-out loss over nodes is clearly below that of none, or 0."""
    if not trials:
        return steps[0]
    for power in steps:
        excess, error = _excesses(trials, power)
        spread = excess.std(ddof=1) / np.sqrt(len(excess)) if len(excess) > 1 else error[0]
        if excess.mean() < -CLEARLY_LOWER * spread:
            return power
    return 0.0


def shrunken(excess: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimates of all nodes, shrunk towards their mean, and their standard errors.

    A node without a standard error (NaN) gets the mean.
    """
    if len(excess) < 2:
        return excess, error
    known = ~np.isnan(error)
    noise = np.where(known, error, 0.0) ** 2
    spread = float(excess.var(ddof=1))
    between = max(spread - float(noise[known].mean()), 0.0) if known.any() else 0.0
    total = between + noise
    own = known * np.divide(between, total, out=np.ones_like(total), where=total > 0)
    variance = own * noise + (1 - own) ** 2 * spread / len(excess)
    return own * excess + (1 - own) * excess.mean(), np.sqrt(variance)


def enough_effective(weights: FloatArray, steps: Sequence[float]) -> float:
    """Strongest power that leaves enough effective observations; 0 if none does."""
    least = least_effective(len(weights))
    return next((s for s in steps if effective_size(sharpened(weights, s)) >= least), 0.0)


@dataclass(frozen=True, eq=False)
class NodePowers:
    """Power and reason of every node, with `full`, the power before any safeguard.

    `common` is the power after the safeguard over all nodes.
    """

    power: FloatArray
    reason: tuple[Reason, ...]
    full: float
    common: float

    @classmethod
    def given(cls, chosen: BoolArray, power: float) -> NodePowers:
        """A power that was set by the caller, without safeguards."""
        reason: tuple[Reason, ...] = tuple("given" if on else "no shift" for on in chosen)
        return cls(np.where(chosen, power, 0.0), reason, power, power)

    @classmethod
    def safe(
        cls,
        chosen: BoolArray,
        missing: BoolArray,
        weights: Sequence[FloatArray],
        trials: Mapping[int, WeightTrial],
        candidates: Sequence[float],
    ) -> NodePowers:
        """Powers that do no harm.

        `chosen` and `missing` mark nodes with a shift and without overlap; `trials` has those of
        the chosen nodes with enough labels.
        """
        judged = [one for v, one in trials.items() if not missing[v]]
        full = full_power(judged, candidates)
        common = power_over_nodes(judged, steps_down(full, candidates)) if full else 0.0
        steps = steps_down(common, candidates) if common else []
        harmed = _harmed({v: one for v, one in trials.items() if not missing[v]}, common)
        power = np.zeros(len(chosen))
        reasons: list[Reason] = ["no shift"] * len(chosen)
        for v in np.flatnonzero(chosen).tolist():
            if missing[v]:
                reasons[v] = "no overlap"
            elif v in harmed:
                reasons[v] = "held-out loss"
            else:
                power[v] = enough_effective(weights[v], steps)
                few = power[v] < common
                reasons[v] = "few effective" if few else "all nodes" if common < full else "shift"
        return cls(power, tuple(reasons), full, common)


def _harmed(trials: Mapping[int, WeightTrial], power: float) -> set[int]:
    """Nodes whose held-out loss is clearly larger with weights."""
    if not power or not trials:
        return set()
    excess, error = shrunken(*_excesses(list(trials.values()), power))
    return {v for v, bad in zip(trials, excess > TOLERATED * error, strict=True) if bad}
