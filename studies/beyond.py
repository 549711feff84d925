"""What lies beyond the paper: GraphRatio against the plain fits, on good graphs and bad ones.

Parts, each a function below and a section of docs/beyond-the-paper-tables.md:

accuracy    error of `GraphRatio()`, GRULSIF and POOL on the paper's scenarios, with times
graphs      loss on fresh data with the true graph, none, a random one of the same degrees, and
            30 % of the edges rewired
own         a network in which every node changes in its own way
defaults    grids, prior_ratio, size of the dictionary, adaptive edges, clipping
penalties   error over graph penalty times degree and ridge, varied independently

Run with `make beyond`, or one part for some time: python studies/beyond.py accuracy 400. What
is done is kept in studies/beyond-*.csv, so that a run goes on where the last one stopped. Times
are processor times of one process.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
from beyond_page import write_page
from draws import seeds

import graphratio as gr
from graphratio.datasets import make_scenario

HERE = Path(__file__).parent
ALPHA = 0.1
NAMES = ("Ia", "Ib", "IIa", "IIb")
FIRST_SEED = 3001
Row = dict[str, object]
Job = tuple[str, int]


def fitted(model, samples, graph):
    """Fit, and the processor time it took."""
    start = time.process_time()
    model.fit(samples, graph)
    return model, time.process_time() - start


def scenarios(count: int) -> Iterator[Job]:
    """Draws of the four scenarios, the first of each first."""
    drawn = {name: list(seeds(name, count, FIRST_SEED)) for name in NAMES}
    for number in range(count):
        yield from ((name, drawn[name][number]) for name in NAMES)


def accuracy_jobs() -> Iterator[Job]:
    for n, count in ((50, 10), (250, 5)):
        yield from ((f"{name} n={n}", seed) for name, seed in scenarios(count))


def accuracy(cell: str, seed: int) -> Iterator[Row]:
    name, n = cell.split(" n=")
    scenario = make_scenario(name, n=int(n), random_state=seed)
    kinds = {"GraphRatio": gr.GraphRatio, "GRULSIF": gr.GRULSIF, "POOL": gr.Pool}
    for method, kind in kinds.items():
        model, spent = fitted(kind(random_state=0), scenario.samples, scenario.graph)
        error = scenario.mean_squared_error(model.predict, ALPHA, random_state=seed)
        yield {"method": method, "error": error.mean(), "seconds": spent}


def swapped(graph: gr.Graph, share: float, seed: int) -> gr.Graph:
    """Exchange the ends of pairs of edges, which keeps all degrees."""
    network = nx.from_scipy_sparse_array(graph.adjacency)
    count = max(1, round(share * network.number_of_edges() / 2))
    nx.double_edge_swap(network, nswap=count, max_tries=1000 * count, seed=seed)
    nodes = range(graph.n_nodes)
    return gr.Graph.from_adjacency(nx.to_scipy_sparse_array(network, nodelist=nodes))


def fresh_samples(scenario, seed: int, size: int = 300):
    rng = np.random.default_rng(seed + 10**6)
    nodes = scenario.graph.nodes
    return (
        [scenario.sample_reference(node, size, rng) for node in nodes],
        [scenario.sample_target(node, size, rng) for node in nodes],
    )


def graphs(cell: str, seed: int) -> Iterator[Row]:
    scenario = make_scenario(cell, n=50, random_state=seed)
    fresh, true = fresh_samples(scenario, seed), scenario.graph
    settings = {
        "plain": (gr.GRULSIF(random_state=0), true),
        "true": (gr.GraphRatio(random_state=0), true),
        "none": (gr.GraphRatio(random_state=0), gr.Graph.empty(true.n_nodes)),
        "random": (gr.GraphRatio(random_state=0), swapped(true, 20.0, seed)),
        "rewired": (gr.GraphRatio(random_state=0), swapped(true, 0.3, seed)),
    }
    for label, (model, graph) in settings.items():
        loss = -model.fit(scenario.samples, graph).score(fresh)
        yield {"method": label, "loss": loss, "profiles": getattr(model, "n_profiles_", 0)}


def own_changes(seed: int, sizes: tuple[int, int], n_nodes: int = 100):
    """Every node has its own shift, spreads and correlation; the graph says nothing about it."""
    rng = np.random.default_rng(seed)
    angle, length = rng.uniform(0, 2 * np.pi, n_nodes), rng.uniform(0.3, 1.5, n_nodes)
    spread = rng.uniform(0.6, 1.3, (n_nodes, 1, 2))
    rho = rng.uniform(-0.7, 0.7, (n_nodes, 1))
    shift = (length * np.stack([np.cos(angle), np.sin(angle)])).T[:, np.newaxis]
    for n in sizes:
        target = rng.normal(size=(n_nodes, n, 2))
        target[..., 1] = rho * target[..., 0] + np.sqrt(1 - rho**2) * target[..., 1]
        yield list(rng.normal(size=(n_nodes, n, 2))), list(target * spread + shift)


def own(cell: str, seed: int) -> Iterator[Row]:
    train, fresh = own_changes(seed, (int(cell.removeprefix("own n=")), 400))
    network = nx.random_regular_graph(6, 100, seed=seed)
    graph = gr.Graph.from_adjacency(nx.to_scipy_sparse_array(network, nodelist=range(100)))
    for label, kind in (("plain", gr.GRULSIF), ("GraphRatio", gr.GraphRatio)):
        model = kind(random_state=0).fit(train, graph)
        yield {
            "method": label,
            "loss": -model.score(fresh),
            "profiles": getattr(model, "n_profiles_", 0),
        }


def defaults(cell: str, seed: int) -> Iterator[Row]:
    towards_one = {"random_state": 0, "prior_ratio": 1.0}
    variants = {
        "GRULSIF: the paper's grid, towards 0": gr.GRULSIF(random_state=0),
        "the same towards 1": gr.GRULSIF(**towards_one),
        "towards 1, adaptive edges": gr.GRULSIF(**towards_one, adaptive=True),
        "towards 1, independent grids": gr.GraphRatio(random_state=0, n_profiles=0, adaptive=False),
        "GraphRatio": gr.GraphRatio(random_state=0),
        "GraphRatio, towards 0": gr.GraphRatio(random_state=0, prior_ratio=0.0),
        "GraphRatio, edges as given": gr.GraphRatio(random_state=0, adaptive=False),
        "GraphRatio, at most 100 atoms": gr.GraphRatio(random_state=0, max_atoms=100),
        "GraphRatio, at most 50 atoms": gr.GraphRatio(random_state=0, max_atoms=50),
        "GraphRatio, at most 25 atoms": gr.GraphRatio(random_state=0, max_atoms=25),
    }
    scenario = make_scenario(cell, n=50, random_state=seed)
    for label, model in variants.items():
        model, spent = fitted(model, scenario.samples, scenario.graph)
        for clip in (True, False) if label == "GraphRatio" else (True,):

            def predict(x, node, model=model, clip=clip):
                return model.predict(x, node, clip=clip)

            error = scenario.mean_squared_error(predict, ALPHA, 2000, random_state=seed)
            yield {
                "method": label if clip else f"{label}, unclipped",
                "error": error.mean(),
                "seconds": spent,
                "atoms": model.n_atoms_,
            }


def penalties(cell: str, seed: int) -> Iterator[Row]:
    scenario = make_scenario(cell, n=50, random_state=seed)
    graph = scenario.graph
    start = gr.GRULSIF(random_state=0, prior_ratio=1.0).fit(scenario.samples, graph)
    for strength in 10.0 ** np.arange(-3, 4):
        for ridge in 10.0 ** np.arange(-6, 1):
            model = gr.GRULSIF(
                prior_ratio=1.0,
                dictionary=start.dictionary_,
                bandwidth=start.bandwidth_,
                graph_penalty=strength / graph.mean_degree,
                ridge=ridge,
            )
            model.fit(scenario.samples, graph)
            error = scenario.mean_squared_error(model.predict, ALPHA, 500, random_state=seed)
            yield {"method": f"{strength:g}, {ridge:g}", "error": error.mean()}


PARTS = {
    "accuracy": (accuracy, accuracy_jobs),
    "graphs": (graphs, lambda: scenarios(20)),
    "own": (own, lambda: (("own n=50", seed) for seed in range(20))),
    "defaults": (defaults, lambda: scenarios(5)),
    "penalties": (penalties, lambda: scenarios(2)),
}


def stored(part: str) -> list[dict[str, str]]:
    """Rows of a part that were written so far."""
    path = HERE / f"beyond-{part}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def run(part: str, seconds: float) -> None:
    """Do what is missing of a part, until it is done or the time is over."""
    began = time.monotonic()
    evaluate, jobs = PARTS[part]
    done = {(row["cell"], int(row["seed"])) for row in stored(part)}
    for cell, seed in jobs():
        if time.monotonic() - began > seconds:
            print(f"{part}: out of time, to be continued")
            return
        if (cell, seed) in done:
            continue
        rows = [{"cell": cell, "seed": seed, **row} for row in evaluate(cell, seed)]
        path = HERE / f"beyond-{part}.csv"
        new = not path.exists()
        with path.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)
        print(f"{part}: {cell}, draw {seed}", flush=True)


def main() -> None:
    """Run the part named on the command line for some seconds, or all parts to their end."""
    parts = sys.argv[1].split(",") if len(sys.argv) > 1 else list(PARTS)
    for part in parts:
        run(part, float(sys.argv[2]) if len(sys.argv) > 2 else np.inf)
    write_page({part: stored(part) for part in PARTS})


if __name__ == "__main__":
    main()
