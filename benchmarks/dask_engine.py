"""Cost of the Dask engine: overhead per iteration, and growth with the size of the graph.

Every iteration of conjugate gradients takes two steps. Their time is measured between the
calls of the driver, with two worker processes on this machine, and beside it the time of the
same steps with both partitions in this process, which is the computation without the engine.
Bytes that travel and bytes that the partitions hold are compared with the cost model of
docs/dask.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphratio as gr
from graphratio.distributed import LocalEngine, Message
from graphratio.distributed.conjugate import FEWEST_MODES, MOST_MODES, NODES_PER_MODE
from graphratio.distributed.local import LocalPartitions
from page import between

RESULTS = Path(__file__).with_name("dask.json")
PAGE = Path(__file__).parents[1] / "docs" / "dask.md"


@dataclass(frozen=True)
class Case:
    """A grid graph of `side` squared nodes, and the sizes of what is at a node.

    Attributes
    ----------
    side : int
    n_observations : int
        Per sample.
    dimension : int
        Of an observation.
    n_atoms : int
        At the most.
    """

    side: int
    n_observations: int = 10
    dimension: int = 2
    n_atoms: int = 30


# Growing graphs, and the nodes of the example in docs/dask.md.
SMALL = (Case(16), Case(32), Case(64))
CASES = (*SMALL, Case(128), Case(48, 25, 4, 100))

# Arrays of the size of the coefficients that a partition holds: iterates and preconditioner.
ITERATES = 10

# Fits whose medians are compared for the overhead; the smallest is the least disturbed.
REPEATS = 5


def grid(side: int) -> gr.Graph:
    """Square grid of side * side nodes."""
    place = np.arange(side * side).reshape(side, side)
    across = np.column_stack([place[:, :-1].ravel(), place[:, 1:].ravel()])
    down = np.column_stack([place[:-1].ravel(), place[1:].ravel()])
    return gr.Graph.from_edges([tuple(edge) for edge in np.vstack([across, down]).tolist()])


def samples_on(graph: gr.Graph, case: Case, seed: int = 0) -> gr.NodeSamples:
    """Normal samples, the target shifted in one half of the nodes."""
    rng = np.random.default_rng(seed)
    shape = (graph.n_nodes, case.n_observations, case.dimension)
    shift = (np.arange(graph.n_nodes) < graph.n_nodes // 2)[:, np.newaxis, np.newaxis]
    reference, target = rng.normal(size=shape), rng.normal(size=shape) + shift
    return gr.NodeSamples.from_arrays(reference, target, nodes=graph.nodes)


class KeptEngine(LocalEngine):
    """An engine in this process whose partitions can be looked at afterwards."""

    opened: LocalPartitions

    def open(self, plans: Any, sources: Any) -> LocalPartitions:
        """Keep what is opened."""
        self.opened = super().open(plans, sources)
        return self.opened


def held_bytes(thing: Any, seen: set[int] | None = None) -> int:
    """Bytes of all arrays that an object holds, each memory counted once."""
    seen = set() if seen is None else seen
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(held_bytes(value, seen) for value in thing.values())
    if isinstance(thing, tuple | list):
        return sum(held_bytes(value, seen) for value in thing)
    return held_bytes(vars(thing), seen) if hasattr(thing, "__dict__") else 0


class Watch:
    """Times and bytes of the iterations, from the messages of an engine."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.iterations: list[float] = []
        self.bytes: list[int] = []
        self.began: float | None = None

    def __call__(self, message: Message) -> None:
        """Follow the two steps of an iteration, direction and advance."""
        if message.method == "conjugate.direction" and not message.outgoing:
            if message.partition == 0:
                self.began = self.clock()
                self.bytes.append(0)
        elif not message.method.startswith("conjugate") or self.began is None:
            return
        if message.method in ("conjugate.direction", "conjugate.advance"):
            self.bytes[-1] += payload_bytes(message.payload)
        last = message.outgoing and message.partition == 1
        if message.method == "conjugate.advance" and last:
            self.iterations.append(self.clock() - self.began)


def payload_bytes(payload: Any) -> int:
    """Bytes of the arrays in a message."""
    if isinstance(payload, np.ndarray):
        return payload.nbytes
    if isinstance(payload, dict):
        return sum(payload_bytes(value) for value in payload.values())
    if isinstance(payload, tuple | list):
        return sum(payload_bytes(value) for value in payload)
    return 8 if isinstance(payload, float) else 0


def watched(
    make: Callable[[Watch], Any], case: Case, clock: Callable[[], float] = time.perf_counter
) -> tuple[gr.GRULSIF, Watch]:
    """Fit at fixed hyperparameters on an engine; returns the model and what was seen."""
    watch = Watch(clock)
    graph = grid(case.side)
    model = gr.GRULSIF(
        bandwidth=np.sqrt(0.5 * case.dimension),
        graph_penalty=1.0 / graph.mean_degree,
        ridge=1e-3 / graph.mean_degree,
        max_atoms=case.n_atoms,
        tol=1e-8,
        engine=make(watch),
    ).fit(samples_on(graph, case), graph)
    return model, watch


def least_disturbed(make: Callable[[Watch], Any], case: Case) -> tuple[gr.GRULSIF, float]:
    """A model, and the smallest of several fits' median wall times of an iteration in ms."""
    fits = [watched(make, case) for _ in range(REPEATS)]
    return fits[0][0], 1e3 * min(float(np.median(seen.iterations)) for _, seen in fits)


def growth() -> list[dict[str, float]]:
    """Processor time and bytes of an iteration, two partitions in this process."""
    rows = []
    for case in CASES:
        engines: list[KeptEngine] = []

        def make(watch: Watch, kept: list[KeptEngine] = engines) -> KeptEngine:
            kept.append(KeptEngine(2, observe=watch))
            return kept[0]

        model, seen = watched(make, case, time.process_time)
        graph, m, n = model.graph_, model.n_components_, 2 * case.n_observations
        modes = min(max(FEWEST_MODES, graph.n_nodes // NODES_PER_MODE), MOST_MODES)
        boundary = model.solution_.boundary_rows
        per_node = n * (case.dimension + m) + m * min(m, n) + ITERATES * m + modes
        rows.append(
            {
                "nodes": graph.n_nodes,
                "observations": n,
                "features": m,
                "iterations": model.solution_.n_iter,
                "milliseconds": 1e3 * float(np.median(seen.iterations)),
                "bytes": seen.bytes[-1],
                "bytes_by_model": 8 * (2 * m * boundary + 2 * (2 * modes * m + 5)),
                "megabytes": 1e-6 * sum(held_bytes(p) for p in engines[0].opened.parts.values()),
                "megabytes_by_model": 8e-6 * graph.n_nodes * per_node,
            }
        )
    return rows


def overhead() -> list[dict[str, Any]]:
    """Wall time of an iteration on two local workers, beside the same work in this process."""
    from distributed import Client, LocalCluster

    rows = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        for case in SMALL:
            here, local = least_disturbed(lambda watch: LocalEngine(2, observe=watch), case)
            there, dask = least_disturbed(
                lambda watch: gr.DaskEngine(client, 2, observe=watch), case
            )
            rows.append(
                {
                    "nodes": case.side**2,
                    "features": there.n_components_,
                    # In this process the partitions take turns, on workers they run side by side.
                    "alone": local / 2,
                    "dask": dask,
                    "same_bits": bool(np.array_equal(here.coef_, there.coef_)),
                }
            )
    return rows


def overhead_table(rows: list[dict[str, Any]]) -> str:
    """What the engine adds to an iteration, in Markdown."""
    lines = ["| nodes | features | without the engine | on two workers | added | same bits |"]
    lines.append("|---" * 6 + "|")
    for row in rows:
        times = (row["alone"], row["dask"], row["dask"] - row["alone"])
        cells = " | ".join(f"{value:.1f} ms" for value in times)
        same = "yes" if row["same_bits"] else "no"
        lines.append(f"| {row['nodes']:,} | {row['features']} | {cells} | {same} |")
    return "\n".join(lines) + "\n"


def growth_table(rows: list[dict[str, float]]) -> str:
    """Time, bytes and memory beside the cost model, in Markdown."""
    head = "nodes | n, m | iterations to 1e-8 | time of an iteration | per node"
    both = "measured, by the formula"
    lines = [f"| {head} | bytes of an iteration: {both} | memory held: {both} |", "|---" * 7 + "|"]
    for row in rows:
        cells = [f"{row['nodes']:,}", f"{row['observations']}, {row['features']}"]
        cells += [str(row["iterations"]), f"{row['milliseconds']:.1f} ms"]
        cells += [f"{1e3 * row['milliseconds'] / row['nodes']:.1f} µs"]
        cells += [f"{row['bytes']:,}; {row['bytes_by_model']:,}"]
        cells += [f"{row['megabytes']:.1f}; {row['megabytes_by_model']:.1f} MB"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, store and put both tables into the page."""
    found = {"overhead": overhead(), "growth": growth()}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    for name, table in (("overhead", overhead_table), ("growth", growth_table)):
        print(table(found[name]))
        between(PAGE, name, table(found[name]))


if __name__ == "__main__":
    main()
