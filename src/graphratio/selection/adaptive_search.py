"""Choice of the graph penalty and the rounds of reweighting edges in GRULSIF.

Held-out data decide; every training fold learns its own weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.jobs import each
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.selection.cross_validation import SOLVE_ITERATIONS, SOLVE_TOLERANCE
from graphratio.selection.held_out_data import Folds
from graphratio.selection.search import PER_DECADE, Axis, Point, Trial, search
from graphratio.solvers.learned_edges import adaptive_rounds

ADAPTIVE_ROUNDS = 3

# The graph penalty changes by at most this many powers of ten; the ridge stays.
WIDEST = 4


@dataclass(frozen=True, eq=False)
class AdaptiveChoice:
    """Graph penalty, rounds (0 if reweighting does not help), and the trials of all penalties."""

    graph_penalty: float
    n_rounds: int
    tried: dict[float, Trial]


def choose_adaptive(
    folds: Folds,
    graph: Graph,
    graph_penalty: float,
    ridge: float,
    *,
    fixed: bool,
    n_rounds: int | None = None,
) -> AdaptiveChoice:
    """Choose the graph penalty, unless it is fixed, and the number of rounds, unless given."""
    most = ADAPTIVE_ROUNDS if n_rounds is None else n_rounds
    powers = np.arange(-WIDEST * PER_DECADE, WIDEST * PER_DECADE + 1) / PER_DECADE
    axis = Axis(graph_penalty * 10.0**powers, WIDEST * PER_DECADE, stride=PER_DECADE, held=fixed)

    def evaluate(point: Point, n_folds: int | None) -> Trial:
        lam = float(axis.values[point[0]])
        losses = known.setdefault(point, [])

        def held_out(number: int) -> FloatArray:
            fold = folds[number]
            path = adaptive_rounds(
                fold.train, graph, lam, ridge, most, SOLVE_TOLERANCE, SOLVE_ITERATIONS
            )
            used = path if n_rounds is None else path[-1:]
            return fold.losses(np.stack([fit.theta for fit in used], axis=1)).T

        losses += each(held_out, range(len(folds))[len(losses) : n_folds])
        return Trial(np.stack(losses, axis=1))

    known: dict[Point, list[FloatArray]] = {}
    best, tried = search([axis], evaluate)
    by_penalty = {float(axis.values[point[0]]): trial for point, trial in tried.items()}
    rounds = tried[best].best_round if n_rounds is None else n_rounds
    return AdaptiveChoice(float(axis.values[best[0]]), rounds, by_penalty)
