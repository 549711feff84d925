"""RULSIF of all nodes against densratio, node by node, on the same grid and as many centres.

densratio sets negative coefficients to zero, so gr.RULSIF(nonnegative=True) is the same
estimator; gr.RULSIF() is the plain solution. The ratios of all are cut to [0, 1 / alpha], the
range of the true one, before their error is taken.

Run with one BLAS thread: OMP_NUM_THREADS=1 python benchmarks/classical.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario

ALPHA = 0.1
SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
FACTORS = (0.6, 0.8, 1.0, 1.2, 1.4)
PENALTIES = (1e-5, 1e-3, 0.1, 10.0)
N_CENTRES = 50
MISSING = "densratio is not installed, so there is nothing to compare with: pip install densratio"


def _timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def _fit_densratio(scenario: Scenario, medians: np.ndarray) -> list[Any]:
    import densratio

    samples = scenario.samples
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


def _error(scenario: Scenario, predict: Callable[..., Any]) -> float:
    errors = scenario.mean_squared_error(
        lambda x, node: np.clip(predict(x, node), 0, 1 / ALPHA),
        ALPHA,
        n_points=2000,
        random_state=1,
    )
    return float(errors.mean())


def run(
    name: str = "IIb", n_nodes: int = 100, n: int = 50, repeats: int = 3, seed: int = 0
) -> list[dict[str, Any]]:
    """Fit all on one scenario; one row per method with seconds, speed and error."""
    scenario = make_scenario(name, n_nodes=n_nodes, n=n, random_state=seed)
    plain = gr.RULSIF(ALPHA, n_centers=N_CENTRES, random_state=seed)
    same = gr.RULSIF(ALPHA, n_centers=N_CENTRES, nonnegative=True, random_state=seed)
    plain_seconds, _ = _timed(lambda: plain.fit(scenario.samples), repeats)
    same_seconds, _ = _timed(lambda: same.fit(scenario.samples), repeats)
    # The grid of densratio is the one that ours has just used, handed over for free.
    table = plain.cv_results_["bandwidth"].reshape(n_nodes, len(FACTORS), len(PENALTIES))
    np.random.seed(seed)  # noqa: NPY002 - densratio draws centres from the global generator
    seconds, fitted = _timed(lambda: _fit_densratio(scenario, table[:, 2, 0]), repeats)
    position = {node: i for i, node in enumerate(scenario.samples.nodes)}
    rows = [
        ("densratio", seconds, lambda x, node: fitted[position[node]].compute_density_ratio(x)),
        ("RULSIF()", plain_seconds, plain.predict),
        ("RULSIF(nonnegative=True)", same_seconds, same.predict),
    ]
    return [
        {
            "scenario": name,
            "method": method,
            "seconds": needed,
            "times faster": seconds / needed,
            "mean squared error": _error(scenario, predict),
        }
        for method, needed, predict in rows
    ]


def main() -> None:
    if find_spec("densratio") is None:
        print(MISSING)
        return
    print("100 nodes, n = 50, grid of 5 bandwidths x 4 penalties, 50 centres, best of 3 timings")
    print(f"{'scenario':<10}{'method':<26}{'seconds':>9}{'ratio':>8}{'MSE':>10}")
    with threadpool_limits(1):
        for name in SCENARIOS:
            for row in run(name):
                print(
                    f"{row['scenario']:<10}{row['method']:<26}{row['seconds']:>9.3f}"
                    f"{row['times faster']:>8.1f}{row['mean squared error']:>10.4f}"
                )


if __name__ == "__main__":
    main()
