"""The paper's block coordinate gradient descent on partitions.

A cycle visits the colours in turn. Nodes of a colour are not adjacent, so they are updated all
at once, each from its own moments and its neighbours' parameters; then the neighbours are told.
This is the paper's algorithm with the nodes ordered by colour. Nothing else travels but two
numbers per colour for the stopping rule.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.distributed.conjugate import Problem, Progress, place, set_problem
from graphratio.distributed.recovery import Fleet


def solve_descent(
    fleet: Fleet,
    problem: Problem,
    n_colours: int,
    tol: float,
    max_iter: int,
    *,
    every: int,
    start: list[FloatArray] | None = None,
) -> tuple[Progress, bool]:
    """Run cycles until the relative change of the coefficients is at most `tol`.

    Parameters
    ----------
    fleet : Fleet
        Its partitions have their moments.
    problem : Problem
        With one candidate.
    n_colours : int
    tol : float
    max_iter : int
        Largest number of cycles.
    every : int
        Cycles between copies of the coefficients.
    start : list of ndarray of shape (n_own, 1, m), optional

    Returns
    -------
    progress : Progress
        Its history has the relative changes, its `relative` the residual in the end.
    met : bool
        Whether the stopping rule was met.
    """
    norm, _ = set_problem(fleet, problem, "cbcgd", "none")
    progress = Progress(np.zeros(1, dtype=np.intp), np.full(1, np.inf), preconditioner="none")
    fleet.begin(start)

    def cycles() -> bool:
        place(fleet.engine, "descent", fleet.saved)
        received: int | None = None
        met = False
        while not met and progress.n_iter[0] < max_iter:
            change = before = 0.0
            for colour in range(n_colours):
                sums = fleet.engine.step("descent.update", colour=colour, received=received)
                change, before = change + sums[0], before + sums[1]
                received = colour
            progress.n_iter[0] += 1
            if before > 0:
                progress.history.append(np.array([np.sqrt(change / before)]))
                met = bool(progress.history[-1][0] <= tol)
            else:
                # From zero the first relative change is undefined; all zero is the solution.
                met = change == 0
            if met or progress.n_iter[0] % every == 0 or progress.n_iter[0] == max_iter:
                parts = fleet.engine.gather("descent.coefficients")
                fleet.save(parts, int(progress.n_iter[0]))
        place(fleet.engine, "conjugate", fleet.saved)
        squares, _, _ = fleet.engine.step("conjugate.restart")
        progress.relative = np.sqrt(squares) / norm
        return met

    return progress, fleet.attempt(cycles)
