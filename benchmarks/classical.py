"""RULSIF of all nodes against densratio, node by node, on the same grid and as many centres.

densratio sets negative coefficients to zero, so gr.RULSIF(nonnegative=True) is the same
estimator; the plain one is shown too.

Run with one BLAS thread: OMP_NUM_THREADS=1 python benchmarks/classical.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario

ALPHA = 0.1
FACTORS = (0.6, 0.8, 1.0, 1.2, 1.4)
PENALTIES = (1e-5, 1e-3, 0.1, 10.0)
N_CENTRES = 50


def _densratio() -> Any:
    try:
        import densratio
    except ImportError as error:
        raise SystemExit(
            "benchmarks/classical.py compares with densratio, which is not installed. "
            "Run: pip install densratio==0.4.0"
        ) from error
    return densratio


def _timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def _fit_densratio(scenario: Scenario, medians: np.ndarray) -> list[Any]:
    densratio, samples = _densratio(), scenario.samples
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
    errors = scenario.mean_squared_error(predict, ALPHA, n_points=2000, random_state=1)
    return float(errors.mean())


def run(name: str = "IIb", n_nodes: int = 100, n: int = 50, repeats: int = 3) -> list[dict]:
    """Fit both; one row per method with seconds, speed and mean squared error."""
    scenario = make_scenario(name, n_nodes=n_nodes, n=n, random_state=0)
    model = gr.RULSIF(ALPHA, n_centers=N_CENTRES, random_state=0)
    ours, _ = _timed(lambda: model.fit(scenario.samples), repeats)
    # The grid of densratio is the one that ours has just used, handed over for free.
    table = model.cv_results_
    widths = table["bandwidth"].reshape(n_nodes, len(FACTORS), len(PENALTIES))[:, 2, 0]
    np.random.seed(0)  # noqa: NPY002 - densratio draws its centres from the global generator
    theirs, fitted = _timed(lambda: _fit_densratio(scenario, widths), repeats)
    same = gr.RULSIF(ALPHA, n_centers=N_CENTRES, nonnegative=True, random_state=0)
    clipped, _ = _timed(lambda: same.fit(scenario.samples), repeats)
    rows = [
        ("densratio RuLSIF", theirs, lambda x, node: fitted[node].compute_density_ratio(x)),
        ("gr.RULSIF(nonnegative=True)", clipped, same.predict),
        ("gr.RULSIF()", ours, model.predict),
    ]
    return [
        {
            "method": method,
            "seconds": seconds,
            "times faster": theirs / seconds,
            "mean squared error": _error(scenario, predict),
        }
        for method, seconds, predict in rows
    ]


def main() -> None:
    print("100 nodes of scenario IIb, n = 50, grid of 5 bandwidths x 4 penalties, 50 centres")
    print(f"{'method':<30}{'seconds':>10}{'times faster':>15}{'mean squared error':>21}")
    for row in run():
        print(
            f"{row['method']:<30}{row['seconds']:>10.3f}{row['times faster']:>15.1f}"
            f"{row['mean squared error']:>21.4f}"
        )


if __name__ == "__main__":
    main()
