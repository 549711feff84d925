"""Iterative refinement: solve with stored moments, compute the residual from the observations.

Stored moments may be in single precision. Their solution is checked with exact products. The
same moments then solve for a correction from the residual, which is added. Each correction gains
about as many digits as single precision has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.moments.objective import GraphObjective
from graphratio.moments.streaming import StreamedData
from graphratio.solvers.conjugate_gradients import REMEDY
from graphratio.solvers.path import solve
from graphratio.solvers.solution import Solution, without_judgement

MAX_CORRECTIONS = 3


def solve_streamed(
    objective: GraphObjective,
    data: StreamedData,
    graph: Graph,
    method: str,
    tol: float,
    max_iter: int,
) -> tuple[Solution, FloatArray]:
    """Solve a single candidate; the residual comes from the observations in `data`.

    Also returns psi' theta at every observation, shape (n_observations,).
    """
    norm = float(np.linalg.norm(objective.rhs)) or 1.0
    total = Solution(np.zeros_like(objective.rhs), False, 0, 1.0, [], "")
    first = objective.moments.first
    goal = tol
    for _ in range(1 + MAX_CORRECTIONS):
        problem = replace(objective, moments=replace(objective.moments, first=first))
        # Only the residual from the observations counts, below.
        with without_judgement():
            found = solve(problem, graph, method, goal, max_iter)
        total = _sum(total, found)
        product, fitted = data.apply(total.theta)
        gradient = product - objective.rhs
        gradient += objective.penalty_gradient(total.theta[:, np.newaxis])[:, 0]
        residual = float(np.linalg.norm(gradient)) / norm
        total = replace(total, residual=residual, converged=residual <= tol)
        if total.converged or total.n_iter >= max_iter:
            break
        first = -gradient
        # `tol` is relative to the first right-hand side; half of it for safety.
        goal = min(0.5, 0.5 * tol / residual)
    return total.warn_unless_converged(tol, REMEDY), fitted


def _sum(total: Solution, correction: Solution) -> Solution:
    scale = total.residual
    return replace(
        correction,
        theta=total.theta + correction.theta,
        n_iter=total.n_iter + correction.n_iter,
        history=total.history + [scale * step for step in correction.history],
    )
