"""A search for the settings with the smallest held-out loss.

Settings are positions on axes. From a starting point the search moves along one axis after the
other, first in large steps and then in small ones. It stops on an axis if both neighbours are
worse, so a choice is at the end of the candidates only if the axis ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray
from graphratio.selection.cross_validation import defined_means, mean_over_folds

Point = tuple[int, ...]

# Passes over all axes after the coarse one.
FINE_PASSES = 1

# A candidate that misses its goal in one fold by this many standard errors is not tried in others.
HOPELESS = 2.0

# A search ends if it is this many standard errors behind its rival during the fine steps.
OUTCLASSED = 3.0

# With fewer nodes a standard error is too rough to end a search or to rule out many candidates.
ENOUGH_NODES = 30


@dataclass(frozen=True, eq=False)
class Trial:
    """Held-out losses (n_rounds + 1, n_folds, n_nodes) of a point.

    `blocked` tells whether the folds are blocks of time.
    """

    losses: FloatArray
    blocked: bool = False

    @computed_once
    def by_round(self) -> FloatArray:
        """Mean over nodes and then over folds, shape (n_rounds + 1,)."""
        return mean_over_folds(self.by_fold)

    @computed_once
    def by_fold(self) -> FloatArray:
        """Mean over nodes, shape (n_rounds + 1, n_folds); NaN in folds without losses."""
        return defined_means(self.losses, 2, np.float64)

    @property
    def best_round(self) -> int:
        """Round with the smallest mean loss."""
        return int(np.argmin(self.by_round))

    @property
    def loss(self) -> float:
        """Smallest mean loss over rounds."""
        return float(self.by_round.min())

    @property
    def node_losses(self) -> FloatArray:
        """Mean loss of every node in the best round, shape (n_nodes,)."""
        return defined_means(self.losses[self.best_round], 0)


def advantage(better: FloatArray, worse: FloatArray) -> tuple[float, float]:
    """Mean of the paired differences worse - better over nodes, and its standard error."""
    gain = worse - better
    gain = gain[np.isfinite(gain)]
    if len(gain) < 2:
        return float(gain.sum()), 0.0
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))


def lead(better: Trial, worse: Trial) -> tuple[float, float]:
    """Mean advantage of one trial over another over nodes, and its standard error."""
    gain, error = advantage(better.node_losses, worse.node_losses)
    if better.blocked:
        # Events in a block of time may affect all nodes, so the error over folds counts too.
        folds = (trial.by_fold[trial.best_round] for trial in (better, worse))
        error = max(error, advantage(*folds)[1])
    return gain, error


def hopeless(losses: FloatArray, rival: FloatArray, needed: float = 0.0) -> bool:
    """Whether losses of nodes miss their goal by more than `HOPELESS` standard errors.

    The goal lies `needed` standard errors below the losses of a rival. A single node has no
    standard error.
    """
    behind, error = advantage(rival, losses)
    return behind > (HOPELESS - needed) * error > 0


def outclassed(trial: Trial, rival: Trial | None) -> bool:
    """Whether a rival is better by `OUTCLASSED` standard errors of `ENOUGH_NODES` or more nodes.

    Never in blocks of time, which nodes share.
    """
    if rival is None or rival.blocked or np.isfinite(rival.node_losses).sum() < ENOUGH_NODES:
        return False
    ahead, error = advantage(rival.node_losses, trial.node_losses)
    return ahead > OUTCLASSED * error > 0


def search(
    axes: Sequence[Axis],
    evaluate: Callable[[Point, int | None], Trial],
    rival: Trial | None = None,
) -> tuple[Point, dict[Point, Trial]]:
    """Find the point with the smallest held-out loss; also return all tried points.

    `evaluate` takes a point and tries it in the first few folds, or in all if their number is None.
    With a rival, fine steps end where they have no hope to beat it.
    """
    tried: dict[Point, Trial] = {}

    def trial(point: Point) -> Trial:
        if point not in tried:
            tried[point] = evaluate(point, None)
        return tried[point]

    def improves(new: Point, old: Point, axis: Axis) -> bool:
        needed = axis.reluctance[0] if new < old else axis.reluctance[1]
        if new not in tried:
            known = trial(old).losses[trial(old).best_round, 0]
            # A fold may lack a sample of every node. One block of time is not enough evidence.
            if np.isfinite(known).any() and not trial(old).blocked:
                first = evaluate(new, 1)
                if hopeless(first.losses[first.best_round, 0], known, needed):
                    return False
        if trial(new).loss >= trial(old).loss:
            return False
        gain, error = lead(trial(new), trial(old))
        return gain > error * needed

    here = tuple(axis.start for axis in axes)
    trial(here)
    for number in range(1 + FINE_PASSES):
        before = here
        for k, axis in enumerate(axes):
            step = axis.stride if number == 0 else 1
            if number == 0 and axis.scanned:
                points = {here, *(_moved(here, k, p - here[k]) for p in axis.scanned)}
                here = max(points)
                for point in sorted(points - {here}, reverse=True):
                    here = point if improves(point, here, axis) else here
            for direction in (step, -step):
                moved = False
                while (there := _moved(here, k, direction))[k] in axis and improves(
                    there, here, axis
                ):
                    here, moved = there, True
                if moved:
                    break
            # Coarse steps along one axis may change what is best along another.
            if number and outclassed(trial(here), rival):
                return here, tried
        if number and here == before:
            break
    return here, tried


def _moved(point: Point, axis: int, step: int) -> Point:
    return (*point[:axis], point[axis] + step, *point[axis + 1 :])


# Range of sensible penalties.
_SMALLEST, _LARGEST = 1e-12, 1e12

# Candidates per factor of ten.
PER_DECADE = 2


@dataclass(frozen=True)
class Axis:
    """Candidates of one setting, by position, with `values` in increasing order.

    The search starts at `start`. Its first, coarse pass takes steps of `stride` and always tries
    the positions in `scanned`, because losses may have several minima. To replace the best one, a
    smaller and a larger candidate must be better by the two `reluctance` numbers, in standard
    errors. If `held`, the search stays at its start.
    """

    values: FloatArray
    start: int
    stride: int = 1
    scanned: tuple[int, ...] = ()
    reluctance: tuple[float, float] = (0.0, 0.0)
    held: bool = False

    def __contains__(self, position: int) -> bool:
        return not self.held and 0 <= position < len(self.values)


def decades(
    low: int,
    high: int,
    start: float,
    *,
    zero: bool = False,
    scanned: Sequence[float] = (),
    reluctance: tuple[float, float] = (0.0, 0.0),
) -> Axis:
    """Powers of ten and the half-powers between them, far beyond the usual choices."""
    powers = 10.0 ** (np.arange(low * PER_DECADE, high * PER_DECADE + 1) / PER_DECADE)
    values = np.concatenate([[0.0], powers]) if zero else powers
    begin, *looked_at = (int(np.argmin(np.abs(values - value))) for value in (start, *scanned))
    return Axis(values, begin, PER_DECADE, tuple(looked_at), reluctance)


def listed(values: FloatArray) -> Axis:
    """Given candidates; the search starts in the middle."""
    return Axis(values, (len(values) - 1) // 2)


def moderate(penalties: FloatArray, name: str) -> FloatArray:
    """Refuse penalties whose products with each other or with moments leave single precision."""
    if penalties.size and (penalties.min() < _SMALLEST or penalties.max() > _LARGEST):
        raise InputError(
            f"{name}={penalties.tolist()} is not between {_SMALLEST:g} and {_LARGEST:g}",
            "Pass None to select it",
        )
    return penalties
