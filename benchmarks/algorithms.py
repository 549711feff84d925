"""The library's solvers against each other on the same problems, at equal accuracy.

Both run until their relative distance to the exact solution is at most `GOAL`; the number of
cycles and the tolerance that this takes are found beforehand and not part of the time. Where the
paper's CBCGD is not there after `MOST_CYCLES`, that many are timed, the accuracy reached is shown,
and the ratio is a lower bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.exceptions import ConvergenceWarning
from graphratio.moments.node_moments import node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import Basis, basis_of
from graphratio.solvers.cbcgd import solve_cbcgd
from graphratio.solvers.path import solve_pcg
from measure import Piece, compare

GOAL = 0.01
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST_CYCLES = 1000


def problems() -> Iterator[tuple[str, GraphObjective, gr.Graph]]:
    """What is selected on every scenario, and the strongest smoothing of the paper's grid."""
    for name in ("Ia", "Ib", "IIa", "IIb"):
        scenario = make_scenario(name, n=50, random_state=1)
        model = gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)
        chosen = model.graph_penalty_, model.ridge_
        yield f"{name}, as selected", *_problem(scenario, model, *chosen)
    strongest = 10 * scenario.graph.n_nodes / scenario.graph.mean_degree
    yield f"{name}, strongest smoothing", *_problem(scenario, model, strongest, 1e-5 * strongest)


def _problem(scenario, model, lam, rho) -> tuple[GraphObjective, gr.Graph]:
    psi = model.features_(scenario.samples.values)
    moments = node_moments(psi, model.sizes_, model.alpha_)
    return GraphObjective.of(moments, scenario.graph.laplacian, lam, rho), scenario.graph


def tolerance_needed(objective: GraphObjective, basis: Basis, exact: np.ndarray) -> float:
    """Largest tolerance with which conjugate gradients come as near as `GOAL`."""
    return next(
        tolerance
        for tolerance in TOLERANCES
        if distance(solve_pcg(objective, basis, tolerance, 1000).theta, exact) <= GOAL
    )


def cycles_needed(objective: GraphObjective, exact: np.ndarray) -> int:
    """Cycles of CBCGD until its relative distance to `exact` is at most `GOAL`."""
    theta, done, batch = None, 0, 10
    while done < MOST_CYCLES:
        count = min(batch, MOST_CYCLES - done)
        theta = solve_cbcgd(objective, 0.0, count, theta).theta
        done += count
        if distance(theta, exact) <= GOAL:
            return done
    return done


def distance(theta: np.ndarray, exact: np.ndarray) -> float:
    """Relative distance to the exact solution."""
    return float(np.linalg.norm(theta - exact) / np.linalg.norm(exact))


def piece(rounds: int = 5) -> Piece:
    found = Piece(
        "Conjugate gradients against the paper's CBCGD",
        "One solve at given hyperparameters, 100 nodes, n = 50, both of the library and both to "
        f"within {GOAL:.0%} of the solution; where CBCGD is not there after {MOST_CYCLES} cycles, "
        "the ratio is a lower bound.",
    )
    with warnings.catch_warnings():
        # Stopped after a fixed number of cycles, CBCGD says that it has not converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for what, objective, graph in problems():
            basis = basis_of(graph)
            exact = solve_pcg(objective, basis, 1e-12, 5000).theta
            tolerance = tolerance_needed(objective, basis, exact)
            reached = distance(solve_pcg(objective, basis, tolerance, 1000).theta, exact)
            cycles = cycles_needed(objective, exact)
            theirs = distance(solve_cbcgd(objective, 0.0, cycles).theta, exact)
            found.comparisons.append(
                compare(
                    f"{what}, {exact.size} unknowns",
                    f"CBCGD, {cycles} cycles",
                    lambda: solve_pcg(objective, basis, tolerance, 1000),  # noqa: B023
                    lambda: solve_cbcgd(objective, 0.0, cycles),  # noqa: B023
                    rounds if cycles < 200 else 3,
                    "distance to the solution",
                    (reached, theirs),
                )
            )
    return found
