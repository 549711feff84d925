"""A cluster on paper, checked by partitions in this process: from 2 to 64 of them.

Messages are pickled and counted as they would travel. The partitions take turns, and the processor
time of each is measured, so a step would take as long as the slowest of them. The driver's part is
measured too: what it computes between the steps, and what it does once before them (partitioning,
low modes, plans), on growing graphs. Assumed is only the network.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphratio as gr
from dask_engine import Case, grid, samples_on
from graphratio._utils.threads import single_thread
from graphratio.distributed import LocalEngine, partition_graph
from graphratio.distributed.conjugate import MOST_MODES, coarse_modes
from graphratio.distributed.local import LocalPartitions
from graphratio.distributed.partition import make_plans
from graphratio.distributed.protocol import Call, Reply
from page import between

RESULTS = Path(__file__).with_name("simulated.json")
DASK = Path(__file__).with_name("dask.json")
PAGE = Path(__file__).parents[1] / "docs" / "dask.md"

CASE = Case(128)
SHARED_SIDE = 64
PARTITIONS = (2, 4, 8, 16, 32, 64)
SET_UP = (128, 256, 512)
# The example of the page.
NODES, WORKERS, FEATURES, PROFILES = 10_000_000, 100, 100, 4
# The network: bytes per second through the driver, and seconds that a message costs it. A message
# cost the driver about 2 ms in the runs with Dask on this page: 8 ms for two steps and two workers.
BANDWIDTH, PER_MESSAGE = 1e9, 2e-3


@dataclass(frozen=True)
class Delivery:
    """One step: its method, seconds and bytes of every partition, and seconds of the driver."""

    method: str
    seconds: Sequence[float]
    n_bytes: Sequence[int]
    driver: float


class TimedPartitions(LocalPartitions):
    """Partitions in this process that keep a record of their deliveries."""

    record: list[Delivery]
    left: float

    def _deliver(self, partitions: Sequence[int], calls: Sequence[Call], slow: bool) -> list[Reply]:
        driver = time.process_time() - self.left
        replies, seconds, n_bytes = [], [], []
        with single_thread():
            for p, call in zip(partitions, calls, strict=True):
                sent = pickle.dumps((call.inbox, call.arguments), protocol=5)
                inbox, arguments = pickle.loads(sent)
                began = time.process_time()
                reply = self.parts[p].run(call.method, inbox, arguments)
                seconds.append(time.process_time() - began)
                back = pickle.dumps(reply, protocol=5)
                replies.append(pickle.loads(back))
                n_bytes.append(len(sent) + len(back))
        self.record.append(Delivery(calls[0].method, seconds, n_bytes, driver))
        self.left = time.process_time()
        return replies


class TimedEngine(LocalEngine):
    """An engine in this process with a record."""

    def open(self, plans: Any, sources: Any) -> TimedPartitions:
        """Start with an empty record."""
        self.opened = TimedPartitions(plans, sources)
        self.opened.record, self.opened.left = [], time.process_time()
        return self.opened


def solved(count: int) -> dict[str, float]:
    """A solve on so many partitions: what an iteration takes."""
    graph, engine = grid(CASE.side), TimedEngine(count)
    penalties = {"graph_penalty": 1 / graph.mean_degree, "ridge": 1e-3 / graph.mean_degree}
    model = gr.GRULSIF(
        bandwidth=1.0, max_atoms=CASE.n_atoms, tol=1e-8, engine=engine, **penalties
    ).fit(samples_on(graph, CASE), graph)
    steps = [
        one
        for one in engine.opened.record
        if one.method in ("conjugate.direction", "conjugate.advance")
    ]
    n_iter, m = model.solution_.n_iter, model.n_components_
    boundary = model.solution_.boundary_rows
    return {
        "partitions": count,
        "iterations": n_iter,
        "boundary": boundary,
        "messages": sum(len(one.seconds) for one in steps) / n_iter,
        "bytes": sum(sum(one.n_bytes) for one in steps) / n_iter,
        "bytes_by_model": 8 * (2 * m * boundary + count * (2 * MOST_MODES * m + 5)),
        "work": sum(sum(one.seconds) for one in steps) / n_iter,
        "slowest": sum(max(one.seconds) for one in steps) / n_iter,
        "driver": sum(one.driver for one in steps) / n_iter,
    }


def shared(count: int) -> dict[str, float]:
    """Rounds of shared profiles on so many partitions: messages and bytes of the whole fit."""
    graph, engine = grid(SHARED_SIDE), TimedEngine(count)
    model = gr.GraphRatio(
        n_profiles=PROFILES, n_rounds=2, bandwidth=1.0, ridge=0.01, max_atoms=CASE.n_atoms,
        graph_penalty=1 / graph.mean_degree, engine=engine,
    ).fit(samples_on(graph, CASE), graph)  # fmt: skip
    steps = [one for one in engine.opened.record if one.method.startswith("profiles.")]
    n_nodes, m, r = graph.n_nodes, model.n_components_, PROFILES
    calls = [one.method for one in steps]
    by_model = {
        "profiles.projected": 8 * (n_nodes * r * (r + 1) + count * m * r),
        "profiles.pooled": 8 * (n_nodes * r + count * (r * (r + 1) // 2 * m * m + r * m)),
        "profiles.first": 8 * n_nodes * m,
        "profiles.metric": 8 * count * m * m,
        "profiles.loss": 8 * (n_nodes * r + count * m * r),
    }
    return {
        "partitions": count,
        "messages": sum(len(one.seconds) for one in steps),
        "bytes": sum(sum(one.n_bytes) for one in steps),
        "bytes_by_model": sum(by_model[name] for name in calls),
        "slowest": sum(max(one.seconds) for one in steps),
        "driver": sum(one.driver for one in steps),
    }


def set_up(side: int) -> dict[str, float]:
    """What the driver does once, in seconds of processor time."""
    graph = grid(side)
    seconds = {}
    began = time.process_time()
    parted = partition_graph(graph, 64)
    seconds["partition"] = time.process_time() - began
    began = time.process_time()
    _, vectors = coarse_modes(graph)
    seconds["modes"] = time.process_time() - began
    began = time.process_time()
    make_plans(graph, parted, vectors)
    seconds["plans"] = time.process_time() - began
    return {"nodes": graph.n_nodes, **seconds}


def solve_table(rows: list[dict[str, float]]) -> str:
    """An iteration on 2 to 64 partitions, in Markdown."""
    head = "partitions | iterations | boundary rows | messages | bytes: measured, by the formula"
    head += " | work of all | slowest partition | driver | as long on a cluster"
    lines = [f"| {head} |", "|---" * 9 + "|"]
    for row in rows:
        network = row["bytes"] / BANDWIDTH + row["messages"] * PER_MESSAGE
        cells = [f"{row['partitions']}", f"{row['iterations']}", f"{row['boundary']:,}"]
        cells += [f"{row['messages']:.0f}"]
        cells += [f"{row['bytes']:,.0f}; {row['bytes_by_model']:,.0f}"]
        times = [row["work"], row["slowest"], row["driver"]]
        times.append(row["slowest"] + row["driver"] + network)
        cells += [f"{1e3 * value:.1f} ms" for value in times]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def shared_table(rows: list[dict[str, float]]) -> str:
    """The fit of shared profiles on 2 to 64 partitions, in Markdown."""
    lines = [
        "| partitions | messages | bytes: measured, by the formula | slowest partitions | driver |"
    ]
    lines.append("|---" * 5 + "|")
    for row in rows:
        cells = [f"{row['partitions']}", f"{row['messages']}"]
        cells += [f"{row['bytes']:,}; {row['bytes_by_model']:,}"]
        cells += [f"{1e3 * row[name]:.0f} ms" for name in ("slowest", "driver")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def set_up_table(rows: list[dict[str, float]]) -> str:
    """What the driver does once, with the example of the page extrapolated, in Markdown."""
    names = ("partition", "modes", "plans")
    lines = ["| nodes | partitioning | low modes | plans |", "|---" * 4 + "|"]
    for row in rows:
        cells = [f"{row['nodes']:,}", *(f"{row[name]:.1f} s" for name in names)]
        lines.append(f"| {' | '.join(cells)} |")
    last = rows[-1]
    ahead = [last[name] * NODES / last["nodes"] for name in names]
    cells = [f"{NODES:,}, extrapolated", *(f"{value / 60:.0f} min" for value in ahead)]
    lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def example(found: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """What partitions, driver and network take in the example of the page, from these measures.

    The time of a partition per node is that of the last row of the growth in `dask_engine`, which
    has as many features. A grid has about 4 sqrt(P) boundary rows per partition of P nodes.
    """
    growth = json.loads(DASK.read_text())["growth"][-1]
    own = NODES / WORKERS
    boundary = 4 * own**0.5 * WORKERS
    sent = 8 * (2 * FEATURES * boundary + WORKERS * 2 * MOST_MODES * FEATURES)
    last, profiles = found["solve"][-1], found["shared"][-1]
    iteration = {
        "what": "an iteration of the solve",
        "partitions": 1e-3 * growth["milliseconds"] / growth["nodes"] * own,
        "driver": last["driver"] / last["partitions"] * WORKERS,
        "bytes": sent,
        "messages": 2 * WORKERS,
    }
    n_nodes = SHARED_SIDE**2
    # Two partitions with equal work, so twice the slower one is the work of all.
    both = 2 * found["shared"][0]["slowest"]
    per_round = NODES * PROFILES * (PROFILES + 1) + NODES * PROFILES
    rounds = {
        "what": f"shared profiles, {PROFILES} of them, two rounds",
        "partitions": both / n_nodes * own * (FEATURES / CASE.n_atoms) ** 2,
        "driver": profiles["driver"] / n_nodes * NODES,
        "bytes": 8 * (4 * per_round + NODES * FEATURES),
        "messages": profiles["messages"] / profiles["partitions"] * WORKERS,
    }
    return [iteration, rounds]


def example_table(found: dict[str, list[dict[str, float]]]) -> str:
    """The example of the page, in Markdown."""
    lines = ["| | partitions, side by side | driver | bytes through it | messages | network |"]
    lines.append("|---" * 6 + "|")
    for row in example(found):
        network = row["bytes"] / BANDWIDTH + row["messages"] * PER_MESSAGE
        cells = [row["what"], f"{row['partitions']:.1f} s", f"{row['driver']:.1f} s"]
        cells += [f"{row['bytes'] / 1e9:.1f} GB", f"{row['messages']:,.0f}", f"{network:.1f} s"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, store and put the tables into the page."""
    found = {
        "solve": [solved(count) for count in PARTITIONS],
        "shared": [shared(count) for count in PARTITIONS],
        "set_up": [set_up(side) for side in SET_UP],
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    for name, made in (("solve", solve_table), ("shared", shared_table), ("set_up", set_up_table)):
        print(made(found[name]))
        between(PAGE, f"simulated_{name}", made(found[name]))
    between(PAGE, "simulated_example", example_table(found))


if __name__ == "__main__":
    main()
