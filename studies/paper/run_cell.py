"""One cell of the study: draw the data, fit, measure."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from graphratio.datasets import make_scenario
from graphratio.exceptions import ConvergenceWarning
from studies.paper.cells import Cell
from studies.paper.methods import make_estimator

# Columns of the results, in their order.
COLUMNS = (
    "scenario", "method", "n", "n_nodes", "alpha", "seed", "n_points",
    "node", "group", "changed", "squared_error",
    "divergence", "divergence_estimated", "divergence_true",
    "bandwidth", "graph_penalty", "ridge", "seconds", "converged",
)  # fmt: skip


def run_cell(cell: Cell) -> dict[str, Any]:
    """Fit one method to one data set and measure its error at every node.

    Returns
    -------
    dict of column to value
        The columns of `COLUMNS`. A list has one entry per node; any other value holds for all:

        squared_error
            Mean over fresh points from (1 - alpha) reference + alpha target of
            (estimate - exact ratio)^2. The estimate comes from `predict`: cut to [0, 1 / alpha].
        divergence, divergence_estimated, divergence_true
            Its name, "Pearson" or "KL", its estimate on the training samples, and its exact
            value, which may be infinite at alpha = 0.
        bandwidth, graph_penalty, ridge
            The selected values; NaN if the method has none.
        seconds
            Processor time of the fit, with its selection.
        converged
            False if the solver of the final fit stopped before its tolerance.

    Examples
    --------
    >>> found = run_cell(Cell("Ia", "POOL", n=20, n_nodes=8, alpha=0.1, seed=0, n_points=100))
    >>> len(found["squared_error"]), found["divergence"], found["converged"]
    (8, 'Pearson', True)
    """
    scenario = make_scenario(cell.scenario, n_nodes=cell.n_nodes, n=cell.n, random_state=cell.seed)
    model = make_estimator(cell.method, cell.alpha, cell.seed)
    began = time.process_time()
    with warnings.catch_warnings():
        # The column `converged` tells it instead.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scenario.samples, scenario.graph)
    seconds = time.process_time() - began
    # A stream of its own: the points must not repeat the numbers that made the samples.
    points_rng = np.random.default_rng([cell.seed, 1])
    errors = scenario.mean_squared_error(model.predict, cell.alpha, cell.n_points, points_rng)
    if model.divergence_name_ == "KL":
        true = scenario.true_kl_divergence()
    else:
        true = scenario.true_divergence(cell.alpha)
    found = asdict(cell) | {
        "node": list(range(cell.n_nodes)),
        "group": scenario.groups.tolist(),
        "changed": scenario.changed.tolist(),
        "squared_error": errors.tolist(),
        "divergence": model.divergence_name_,
        "divergence_estimated": model.divergence_.tolist(),
        "divergence_true": true.tolist(),
        "seconds": seconds,
        "converged": bool(model.solution_.converged),
    }
    for name in ("bandwidth", "graph_penalty", "ridge"):
        found[name] = np.asarray(getattr(model, f"{name}_", np.nan), dtype=np.float64).tolist()
    return {name: found[name] for name in COLUMNS}
