"""Speed of `GRULSIF()` with everything selected, beside the products that cannot be avoided.

The work that no implementation of the paper's model selection can avoid is to form the Gram
matrices of the features: for each of five bandwidths, the second moments of all observations.
They are timed in the same run, on the same features, as plain matrix products.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario
from graphratio.features import NystromMap
from graphratio.kernels import bandwidth_grid, get_kernel, median_bandwidths

SCENARIOS = ("Ia", "Ib", "IIa", "IIb")

# Seconds are also given for a core of this many GFlop/s, to compare runs on different machines.
REFERENCE_SPEED = 43.0


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Smallest wall time of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def product_speed() -> float:
    """Double-precision matrix products in GFlop/s."""
    a = np.random.default_rng(0).normal(size=(1024, 1024))
    return 2 * 1024**3 / best_of(5, lambda: a @ a) / 1e9


def fit(scenario: Scenario) -> gr.GRULSIF:
    """Full selection and final fit; the graph's eigenvectors are part of the work."""
    scenario.graph.__dict__.pop("spectrum", None)
    return gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)


def gram_seconds(scenario: Scenario, model: gr.GRULSIF) -> float:
    """Time of the second moments of all observations, for the five bandwidths."""
    kernel = get_kernel("gaussian")
    values = scenario.samples.values
    stacks = []
    for bandwidth in bandwidth_grid(median_bandwidths(scenario.samples, kernel)):
        features = NystromMap.build(kernel, model.dictionary_, float(bandwidth))
        psi = features(values).reshape(2 * scenario.graph.n_nodes, -1, features.n_components)
        stacks.append((np.ascontiguousarray(psi.transpose(0, 2, 1)), psi))
    return best_of(3, lambda: [left @ right for left, right in stacks])


def speed_table() -> None:
    """Seconds per scenario."""
    speed = product_speed()
    scale = REFERENCE_SPEED / speed
    print(f"double-precision products: {speed:.0f} GFlop/s, one thread")
    print(
        f"{'scenario':>9} {'n':>5} {'seconds':>8} {'Gram products':>14} {'ratio':>6}  scaled to 43"
    )
    scaled = []
    for name, n in [(name, 50) for name in SCENARIOS] + [("IIb", 250)]:
        scenario = make_scenario(name, n=n, random_state=1)
        model = fit(scenario)
        seconds = best_of(3, lambda scenario=scenario: fit(scenario))
        gram = gram_seconds(scenario, model)
        if n == 50:
            scaled.append(seconds / scale)
        print(
            f"{name:>9} {n:5d} {seconds:8.3f} {gram:14.3f} {seconds / gram:6.1f}  "
            f"{seconds / scale:.3f}"
        )
    print(
        f"geometric mean over the four at n = 50, scaled: {np.exp(np.mean(np.log(scaled))):.3f} s"
    )


def growth(label: str, sizes: tuple[int, ...], build: Callable[[str, int], Scenario]) -> None:
    """Seconds against a size, with the exponent of a fitted power."""
    for name in SCENARIOS:
        seconds = []
        for size in sizes:
            scenario = build(name, size)
            seconds.append(best_of(2 if size <= 400 else 1, lambda s=scenario: fit(s)))
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        shown = "  ".join(
            f"{size}: {value:.2f}" for size, value in zip(sizes, seconds, strict=True)
        )
        print(f"{name:>9}  seconds at {label} = {shown}   exponent {exponent:.2f}", flush=True)


def memory() -> None:
    """Peak memory of a selection with 1,000 nodes, 100 observations and 100 atoms."""
    scenario = make_scenario("IIb", n_nodes=1000, n=100, random_state=1)
    gr.GRULSIF(random_state=0, max_atoms=100).fit(scenario.samples, scenario.graph)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory so far, N = 1,000, n = 100, 100 atoms included: {peak:.2f} GiB")


def main() -> None:
    """Print all tables."""
    print("== full selection and final fit, N = 100")
    speed_table()
    print("== memory")
    memory()
    print("== growth with the number of observations, N = 100")
    growth(
        "n",
        (50, 100, 200, 400, 800, 1600),
        lambda name, n: make_scenario(name, n=n, random_state=1),
    )
    print("== growth with the number of nodes, n = 50")
    growth(
        "N",
        (100, 200, 400, 800, 1600),
        lambda name, n: make_scenario(name, n_nodes=n, random_state=1),
    )


if __name__ == "__main__":
    main()
