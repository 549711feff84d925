"""What single things cost: import, first fit, prediction, a step online, threads, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

import graphratio as gr
from graphratio._utils import jobs
from graphratio.datasets import make_scenario
from measure import Cost, Piece, compare, cost

IMPORT = """
import json, time
began = time.process_time()
import numpy, scipy, sklearn.base
middle = time.process_time()
import graphratio
print(json.dumps([middle - began, time.process_time() - middle]))
"""
FIRST_FIT = """
import json, time
import graphratio as gr
from graphratio.datasets import make_scenario
scenario = make_scenario("IIb", n=50, random_state=1)
def fit():
    began = time.process_time()
    scenario.graph.__dict__.pop("spectrum", None)
    gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)
    return time.process_time() - began
print(json.dumps([fit(), fit()]))
"""
# Peaks since the start of the program: what getrusage says includes the process that started it.
MEMORY = """
import json
import graphratio as gr
from graphratio.datasets import make_scenario

def peak():
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) / 2**10 for line in stream if line.startswith("VmHWM"))

scenario = make_scenario("IIb", n_nodes=1000, n=100, random_state=1)
before = peak()
gr.GRULSIF(random_state=0, max_atoms=100).fit(scenario.samples, scenario.graph)
print(json.dumps([scenario.samples.values.nbytes / 2**20, before, peak()]))
"""


def in_new_process(program: str, rounds: int) -> np.ndarray:
    """Numbers that a program prints, run in fresh interpreters, shape (rounds, n_numbers)."""
    return np.array(
        [
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", program],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=os.environ,
                ).stdout
            )
            for _ in range(rounds)
        ]
    )


def piece(rounds: int = 5) -> Piece:
    found = Piece("Single costs", "Import, first fit and memory are those of fresh interpreters.")
    add = found.costs.append
    imports = in_new_process(IMPORT, rounds)
    add(_of("import of NumPy, SciPy and scikit-learn's base", imports[:, 0], "s"))
    add(_of("import graphratio, on top", imports[:, 1], "s"))
    fits = in_new_process(FIRST_FIT, rounds)
    add(_of("first fit with selection in a process, IIb, n = 50", fits[:, 0], "s"))
    add(_of("second fit in that process", fits[:, 1], "s"))
    memory = in_new_process(MEMORY, 2)
    add(_of("memory: the samples, 1,000 nodes, n = 100", memory[:, 0], "MiB"))
    add(_of("memory: the process before the fit", memory[:, 1], "MiB"))
    add(_of("memory: its peak with selection, 100 atoms", memory[:, 2], "MiB"))
    _predictions(found, rounds)
    _online(found, rounds)
    _flights(found)
    _threads(found, rounds)
    return found


def _of(what: str, values: np.ndarray, unit: str) -> Cost:
    return Cost(what, float(np.median(values)), float(values.min()), float(values.max()), unit)


def _predictions(found: Piece, rounds: int) -> None:
    scenario = make_scenario("IIb", n=50, random_state=1)
    model = gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)
    points = np.random.default_rng(0).normal(size=(20_000, 2))
    node = model.nodes_[0]
    atoms = f"{model.n_atoms_} atoms"
    for what, work, count in (
        (f"predict at one node, per point, {atoms}", lambda: model.predict(points, node=node), 1),
        (f"predict at 100 nodes, per point and node, {atoms}", lambda: model.predict(points), 100),
    ):
        found.costs.append(cost(what, work, rounds, "ns", 1e9 / len(points) / count))


def _online(found: Piece, rounds: int) -> None:
    rng = np.random.default_rng(0)
    graph = make_scenario("Ia", n=1, random_state=1).graph
    panel = rng.normal(size=(300, 100))
    detector = gr.GraphChangePointDetector(n_surrogates=19, random_state=0).fit(panel, graph)
    more = rng.normal(size=(100, 100))

    def steps() -> None:
        for row in more:
            detector.update(row)

    what = "change-points online: one step, 100 nodes"
    found.costs.append(cost(what, steps, rounds, "ms", 1e3 / len(more)))


def _flights(found: Piece) -> None:
    data = gr.datasets.load_flights()
    samples = data.samples.standardized()
    model = gr.GraphRatio(random_state=0)
    what = f"the demo's fit: flights, {data.graph.n_nodes} nodes, {samples.n_observations} flights"
    found.costs.append(cost(what, lambda: model.fit(samples, data.graph), 2))


def _threads(found: Piece, rounds: int) -> None:
    """A selection with one thread, as the library does it, and with all of the machine."""
    scenario = make_scenario("IIb", n=50, random_state=1)
    cores = os.cpu_count() or 1

    def fit() -> None:
        gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)

    def with_all() -> None:
        usual = jobs.single_thread
        jobs.single_thread = lambda: threadpool_limits(cores)
        try:
            fit()
        finally:
            jobs.single_thread = usual

    fit()
    found.comparisons.append(
        compare(
            "GRULSIF with selection, IIb, one thread (wall time)",
            f"itself with {cores} threads",
            fit,
            with_all,
            rounds,
            clock=time.perf_counter,
        )
    )
