"""RULSIF of all nodes against densratio, node by node, on the same grid and as many centres.

densratio sets negative coefficients to zero, so gr.RULSIF(nonnegative=True) is the same
estimator; gr.RULSIF() is the plain solution. The ratios of all are cut to [0, 1 / alpha], the
range of the true one, before their error is taken.
"""

from __future__ import annotations

from typing import Any

import densratio
import numpy as np

import graphratio as gr
from by_hand import ALPHA, error
from graphratio.datasets import Scenario, make_scenario
from measure import Piece, compare

SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
FACTORS = (0.6, 0.8, 1.0, 1.2, 1.4)
PENALTIES = (1e-5, 1e-3, 0.1, 10.0)
N_CENTRES = 50
N_NODES = 100


def fit_densratio(scenario: Scenario, medians: np.ndarray) -> list[Any]:
    """One fit for each node, with the grid around its median distance."""
    samples = scenario.samples
    np.random.seed(0)  # noqa: NPY002 - densratio draws centres from the global generator
    # Its x is the numerator and its y the denominator; its alpha mixes x into y, as ours does.
    return [
        densratio.densratio(
            samples.target(node),
            samples.reference(node),
            method="RuLSIF",
            sigma_range=median * np.array(FACTORS),
            lambda_range=np.array(PENALTIES),
            alpha=ALPHA,
            kernel_num=N_CENTRES,
            verbose=False,
        )
        for node, median in zip(samples.nodes, medians, strict=True)
    ]


def piece(rounds: int = 3) -> Piece:
    found = Piece(
        "Classical estimators against densratio",
        f"{N_NODES} nodes, n = 50, selection over 5 bandwidths and 4 penalties, {N_CENTRES} "
        "centres; densratio node by node, with numba.",
    )
    for name in SCENARIOS:
        scenario = make_scenario(name, n_nodes=N_NODES, n=50, random_state=0)
        plain = gr.RULSIF(ALPHA, n_centers=N_CENTRES, random_state=0).fit(scenario.samples)
        # The grid of densratio is the one that ours has just used, handed over for free.
        table = plain.cv_results_["bandwidth"].reshape(N_NODES, len(FACTORS), len(PENALTIES))
        medians = table[:, FACTORS.index(1.0), 0]
        fitted = fit_densratio(scenario, medians)
        position = {node: i for i, node in enumerate(scenario.samples.nodes)}

        def peer(x: np.ndarray, node: Any, at: Any = position, fitted: Any = fitted) -> Any:
            return fitted[at[node]].compute_density_ratio(x)

        their_error = error(scenario, peer)
        for nonnegative in (True, False):
            model = gr.RULSIF(
                ALPHA, n_centers=N_CENTRES, nonnegative=nonnegative, random_state=0
            ).fit(scenario.samples)
            found.comparisons.append(
                compare(
                    f"RULSIF({'nonnegative=True' if nonnegative else ''}), {name}",
                    "densratio",
                    lambda: model.fit(scenario.samples),  # noqa: B023 - run right away
                    lambda: fit_densratio(scenario, medians),  # noqa: B023
                    rounds,
                    "mean squared error",
                    (error(scenario, model.predict), their_error),
                )
            )
    return found
