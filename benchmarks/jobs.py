"""`n_jobs=2` against one thread, on the clock: the same work, and the same bits."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np

import graphratio as gr
from graphratio.datasets import make_scenario
from measure import Comparison, Cost, Piece, Work, compare


def piece(rounds: int = 3) -> Piece:
    """Measure; needs two idle cores."""
    found = Piece(
        "Two threads against one",
        "Seconds on the clock of two idle cores; the ratio is how much faster two threads are. "
        "The results have the same bits. Below is what the machine gives at most: two processes "
        "that share nothing, over one.",
        clock="time on the clock",
    )
    found.costs += _ceilings(rounds)
    found.comparisons += _selections(rounds)
    large = make_scenario("IIb", n_nodes=1000, n=50, random_state=1)
    usual = make_scenario("Ia", n_nodes=400, n=50, random_state=1)
    panel = np.random.default_rng(0).normal(size=(1000, 100))
    panel[500:, :16] += 0.35
    graph = make_scenario("Ia", n=1, random_state=1).graph
    work = {
        "GRULSIF with selection, IIb, 1,000 nodes": lambda n: gr.GRULSIF(
            n_jobs=n, random_state=0
        ).fit(large.samples, large.graph),
        "GraphRatio with selection, Ia, 400 nodes": lambda n: gr.GraphRatio(
            n_jobs=n, random_state=0
        ).fit(usual.samples, usual.graph),
        "node test, Ia, 400 nodes": lambda n: gr.two_sample_test(
            usual.samples, usual.graph, n_jobs=n, random_state=0
        ),
        "divergence bounds of GRULSIF, Ia, 400 nodes": lambda n: gr.divergence_bounds(
            usual.samples, usual.graph, gr.GRULSIF(), n_jobs=n, random_state=0
        ),
        "change-points, 100 nodes, 1,000 steps": lambda n: gr.GraphChangePointDetector(
            n_jobs=n, random_state=0
        ).fit(panel, graph),
    }
    found.comparisons += [_compared(name, run, rounds) for name, run in work.items()]
    return found


def _ceilings(rounds: int) -> list[Cost]:
    """How much two processes do together, over one of them alone."""
    found = []
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for name in LOOPS:
            gains = []
            for _ in range(rounds):
                alone = pool.map(_count, [name])[0]
                gains.append(sum(pool.map(_count, [name] * 2, chunksize=1)) / alone)
            what = f"two processes over one, {name}"
            found.append(
                Cost(what, float(np.median(gains)), min(gains), max(gains), "times the work")
            )
    return found


def _count(name: str) -> int:
    """Runs of a loop within a second."""
    rng = np.random.default_rng(0)
    work, array, count = LOOPS[name], rng.random((600, 600), dtype=np.float32), 0
    large = rng.random(4_000_000)
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        work(array, large)
        count += 1
    return count


LOOPS = {
    "matrix products": lambda array, _: array @ array,
    "exponentials": lambda array, _: np.exp(array),
    "moving memory": lambda _, large: np.add(large, large),
    "the interpreter": lambda _, __: sum(i * i for i in range(10_000)),
}


def _selections(rounds: int) -> list[Comparison]:
    """The paper's sizes, at which tasks take a few milliseconds."""
    found = []
    for name in ("Ia", "Ib", "IIa", "IIb"):
        scenario = make_scenario(name, n=50, random_state=1)

        def fit(n_jobs: int, scenario=scenario) -> None:
            gr.GRULSIF(n_jobs=n_jobs, random_state=0).fit(scenario.samples, scenario.graph)

        found.append(_compared(f"GRULSIF with selection, {name}, 100 nodes", fit, 4 * rounds))
    return found


def _compared(name: str, run, rounds: int) -> Comparison:
    run(1)  # fills caches
    ours: Work = lambda: run(2)  # noqa: E731
    theirs: Work = lambda: run(1)  # noqa: E731
    return compare(name, "one thread", ours, theirs, rounds, clock=time.perf_counter)
