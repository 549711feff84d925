"""Theorem 1 evaluated on the scenarios, graph by graph.

Symbols
-------
r_g         true relative ratio of the nodes of group g
psi         Nystrom features, in which the norm of the kernel space is the Euclidean one
A_g         second moment of psi under the mixture of group g
theta_g     coefficients of r_g
Lambda      half the squared graph norm of all ratios is Lambda^2

The nodes of a group share their ratio, so the graph norm needs no more than the norms of the
r_g, of their differences, and the edges between groups:

    2 Lambda^2 = sum over g < h of W(g, h) |r_g - r_h|^2 + gamma sum over g of N_g |r_g|^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphratio.datasets import Scenario, make_scenario
from graphratio.exceptions import InputError
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.theory import ConvergenceBound, convergence_bound, estimate_capacity, graph_factor
from studies.paper.tables import run_errors

# The paper's grid of gamma: the theorem holds for each, so the smallest bound counts.
GAMMAS = (1e-5, 1e-3, 0.1, 1.0)

# The ratios are not in the space of a Gaussian kernel, which contains no constants. Their best
# approximations under this ridge replace them: a smaller ridge comes closer, with a larger norm.
RIDGE = 1e-4

_ATOMS = 300
_POINTS = 20_000


@dataclass(frozen=True)
class GroupRatios:
    """The true ratios of a scenario in a kernel space; they do not depend on the graph.

    Attributes
    ----------
    groups : tuple of str
    coefficients : ndarray of shape (n_groups, m)
        theta_g.
    unexplained : ndarray of shape (n_groups,)
        Mean squared distance of the approximation from the ratio.
    decay, capacity : float
        How fast the eigenvalues of A_g fall; see `theory.estimate_capacity`.
    alpha : float
    """

    groups: tuple[str, ...]
    coefficients: np.ndarray
    unexplained: np.ndarray
    decay: float
    capacity: float
    alpha: float


def group_ratios(scenario: Scenario, bandwidth: float, alpha: float) -> GroupRatios:
    """Approximate the true ratio of every group in the space of a Gaussian kernel.

    Examples
    --------
    >>> found = group_ratios(make_scenario("Ia", n_nodes=8, n=1, random_state=0), 1.0, 0.1)
    >>> found.groups, bool(found.decay > 1)
    (('C1', 'C2', 'C3', 'C4'), True)
    """
    rng = np.random.default_rng(0)
    behaviours = scenario.behaviours
    draws = {
        group: behaviour.sample_mixture(_POINTS, alpha, rng)
        for group, behaviour in behaviours.items()
    }
    atoms = np.concatenate([points[: _ATOMS // len(draws)] for points in draws.values()])
    features = NystromMap.build(get_kernel("gaussian"), atoms, bandwidth)
    moments, coefficients, unexplained = [], [], []
    for group, points in draws.items():
        psi = features(points)
        ratio = behaviours[group].ratio(points, alpha)
        moment = psi.T @ psi / len(psi)
        theta = np.linalg.solve(moment + RIDGE * np.eye(len(moment)), psi.T @ ratio / len(psi))
        moments.append(moment)
        coefficients.append(theta)
        unexplained.append(np.mean((psi @ theta - ratio) ** 2))
    capacity = estimate_capacity(np.stack(moments))
    return GroupRatios(
        groups=tuple(draws),
        coefficients=np.stack(coefficients),
        unexplained=np.array(unexplained),
        decay=capacity.decay,
        capacity=capacity.capacity,
        alpha=alpha,
    )


def smoothness(scenario: Scenario, ratios: GroupRatios, gamma: float) -> float:
    """Lambda of the true ratios on the graph of a scenario."""
    member = (scenario.groups[:, np.newaxis] == np.array(ratios.groups)).astype(np.float64)
    between = member.T @ (scenario.graph.adjacency @ member)
    gram = ratios.coefficients @ ratios.coefficients.T
    norms = np.diag(gram)
    distances = norms[:, np.newaxis] + norms - 2.0 * gram
    # Every pair of groups stands twice in `between`.
    twice = 0.5 * float((between * distances).sum())
    twice += gamma * float(member.sum(axis=0) @ norms)
    return math.sqrt(0.5 * twice)


def bound_on(scenario: Scenario, ratios: GroupRatios, n: int) -> dict[str, float]:
    """Theorem 1's right-hand side for one graph, with the pieces that depend on the graph.

    Returns
    -------
    dict
        bound (on the mean squared error), gamma (the one of the paper's grid with the
        smallest bound), smoothness (Lambda), graph_factor, n_directions (the proof needs at
        least one).
    """
    # Estimates are cut to [0, 1 / alpha].
    reach = 1.0 / ratios.alpha

    def at(gamma: float) -> tuple[ConvergenceBound, dict[str, float]]:
        radius = smoothness(scenario, ratios, gamma)
        factor = graph_factor(scenario.graph, gamma)
        found = convergence_bound(
            n,
            scenario.graph.n_nodes,
            decay=ratios.decay,
            capacity=ratios.capacity,
            smoothness=radius,
            bound=reach,
            alpha=ratios.alpha,
            graph_factor=factor,
        )
        pieces = {"gamma": gamma, "smoothness": radius, "graph_factor": factor}
        return found, pieces

    best, pieces = min((at(g) for g in GAMMAS), key=lambda pair: pair[0].squared_error)
    return {"bound": best.squared_error, **pieces, "n_directions": best.n_directions}


def theory_curve(results: pd.DataFrame) -> pd.DataFrame:
    """Error of GRULSIF against the number of nodes, beside Theorem 1's right-hand side.

    Parameters
    ----------
    results : frame
        Of a study with several graph sizes.

    Returns
    -------
    frame
        One row per scenario, n_nodes and seed: `error`, and the columns of `bound_on`;
        `power` is the bound's power of n_nodes by itself, 1 at the smallest graph. All rows of
        a scenario share n, alpha and the bandwidth, the median of the selected ones; only the
        graph differs.
    """
    chosen = graph_size_part(results)
    chosen = chosen[chosen["method"] == "GRULSIF"]
    bandwidths = chosen.groupby("scenario")["bandwidth"].median()
    runs = run_errors(chosen)
    spaces: dict[str, GroupRatios] = {}
    smallest = runs["n_nodes"].min()
    rows = []
    for run in runs.itertuples():
        scenario = make_scenario(run.scenario, n_nodes=run.n_nodes, n=1, random_state=run.seed)
        if run.scenario not in spaces:
            spaces[run.scenario] = group_ratios(scenario, bandwidths[run.scenario], run.alpha)
        ratios = spaces[run.scenario]
        rows.append(
            {
                "scenario": run.scenario,
                "n_nodes": run.n_nodes,
                "seed": run.seed,
                "error": run.error,
                **bound_on(scenario, ratios, run.n),
                "power": (run.n_nodes / smallest) ** (-1.0 / (1.0 + ratios.decay)),
                "decay": ratios.decay,
            }
        )
    return pd.DataFrame(rows)


def graph_size_part(results: pd.DataFrame) -> pd.DataFrame:
    """The rows at the n and alpha for which there are several graph sizes."""
    relative = results[results["alpha"] > 0]
    sizes = relative.groupby(["n", "alpha"])["n_nodes"].nunique()
    if not len(sizes) or sizes.max() < 2:
        raise InputError(
            "the study has one graph size, so there is no error against the number of nodes",
            "Run more of the study",
        )
    n, alpha = sizes.idxmax()
    return results[(results["n"] == n) & (results["alpha"] == alpha)]
