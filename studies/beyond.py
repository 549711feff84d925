"""What lies beyond the paper: the preset against the plain fits, and against bad graphs.

Parts, each a function below and a table in docs/beyond-the-paper.md:

accuracy    error of `recommended()`, GRULSIF and POOL on the paper's scenarios, with times
graphs      loss on fresh data with the true graph, none, a random one of the same degrees, and
            30 % of the edges rewired
own         a network in which every node changes in its own way
defaults    prior_ratio, size of the dictionary, clipping, adaptive GRULSIF

Run with `make beyond` (or one part: python studies/beyond.py accuracy); writes
studies/beyond-*.csv and docs/beyond-the-paper-tables.md. Times are processor times of one
process.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
from accuracy import seeds

import graphratio as gr
from graphratio.datasets import make_scenario

HERE = Path(__file__).parent
ALPHA = 0.1
NAMES = ("Ia", "Ib", "IIa", "IIb")
DRAWS = {"accuracy": 10, "graphs": 20, "own": 20, "defaults": 5}
Row = dict[str, object]


def fitted(model, samples, graph):
    """Fit, and the processor time it took."""
    start = time.process_time()
    model.fit(samples, graph)
    return model, time.process_time() - start


def first_seeds(name: str, count: int) -> list[int]:
    found = seeds(name)
    return [next(found) for _ in range(count)]


def accuracy() -> Iterator[Row]:
    kinds = {"recommended": gr.recommended, "GRULSIF": gr.GRULSIF, "POOL": gr.Pool}
    for n in (50, 250):
        for name in NAMES:
            for seed in first_seeds(name, DRAWS["accuracy"]):
                scenario = make_scenario(name, n=n, random_state=seed)
                for method, kind in kinds.items():
                    model, spent = fitted(kind(random_state=0), scenario.samples, scenario.graph)
                    error = scenario.mean_squared_error(model.predict, ALPHA, random_state=seed)
                    yield {
                        "cell": f"{name} n={n}",
                        "seed": seed,
                        "method": method,
                        "error": error.mean(),
                        "seconds": spent,
                    }


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


def graphs() -> Iterator[Row]:
    for name in NAMES:
        for seed in first_seeds(name, DRAWS["graphs"]):
            scenario = make_scenario(name, n=50, random_state=seed)
            fresh = fresh_samples(scenario, seed)
            true = scenario.graph
            settings = {
                "plain": (gr.GRULSIF(random_state=0), true),
                "true": (gr.recommended(random_state=0), true),
                "none": (gr.recommended(random_state=0), gr.Graph.empty(true.n_nodes)),
                "random": (gr.recommended(random_state=0), swapped(true, 20.0, seed)),
                "rewired": (gr.recommended(random_state=0), swapped(true, 0.3, seed)),
            }
            for label, (model, graph) in settings.items():
                loss = -model.fit(scenario.samples, graph).score(fresh)
                yield {"cell": name, "seed": seed, "method": label, "loss": loss}


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


def own() -> Iterator[Row]:
    for seed in range(DRAWS["own"]):
        train, fresh = own_changes(seed, (50, 400))
        network = nx.random_regular_graph(6, 100, seed=seed)
        graph = gr.Graph.from_adjacency(nx.to_scipy_sparse_array(network, nodelist=range(100)))
        for label, kind in (("plain", gr.GRULSIF), ("recommended", gr.recommended)):
            loss = -kind(random_state=0).fit(train, graph).score(fresh)
            yield {"cell": "own", "seed": seed, "method": label, "loss": loss}


def defaults() -> Iterator[Row]:
    variants = {
        "GRULSIF, the paper's grid, towards 0": gr.GRULSIF(random_state=0),
        "the same towards 1": gr.GRULSIF(random_state=0, prior_ratio=1.0),
        "towards 1, adaptive edges": gr.GRULSIF(random_state=0, prior_ratio=1.0, adaptive=True),
        "at most 50 atoms": gr.GRULSIF(random_state=0, prior_ratio=1.0, max_atoms=50),
        "at most 25 atoms": gr.GRULSIF(random_state=0, prior_ratio=1.0, max_atoms=25),
        "recommended without adaptive edges": gr.recommended(random_state=0, adaptive=False),
        "recommended, at most 50 atoms": gr.recommended(random_state=0, max_atoms=50),
        "recommended": gr.recommended(random_state=0),
    }
    for name in NAMES:
        for seed in first_seeds(name, DRAWS["defaults"]):
            scenario = make_scenario(name, n=50, random_state=seed)
            for label, model in variants.items():
                model, spent = fitted(model, scenario.samples, scenario.graph)
                for clip in (True, False):

                    def predict(x, node, model=model, clip=clip):
                        return model.predict(x, node, clip=clip)

                    error = scenario.mean_squared_error(predict, ALPHA, 2000, random_state=seed)
                    yield {
                        "cell": name,
                        "seed": seed,
                        "method": label if clip else f"{label}, unclipped",
                        "error": error.mean(),
                        "seconds": spent,
                    }


def table(rows: list[Row], value: str) -> list[str]:
    """Means and standard errors, one line per method and one column per cell."""
    cells = list(dict.fromkeys(str(row["cell"]) for row in rows))
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        found[str(row["method"]), str(row["cell"])].append(float(str(row[value])))
    lines = ["| | " + " | ".join(cells) + " |", "|---|" + "---|" * len(cells)]
    for method in dict.fromkeys(str(row["method"]) for row in rows):
        shown = []
        for cell in cells:
            values = np.array(found[method, cell])
            spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            shown.append(f"{values.mean():.4f} ± {spread:.4f}")
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return lines


def differences(rows: list[Row], pairs: list[tuple[str, str]]) -> list[str]:
    """Paired differences of losses with their standard errors."""
    cells = list(dict.fromkeys(str(row["cell"]) for row in rows))
    by: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        key = (str(row["method"]), str(row["cell"]))
        by[key][int(str(row["seed"]))] = float(str(row["loss"]))
    lines = ["| paired difference | " + " | ".join(cells) + " |", "|---|" + "---|" * len(cells)]
    for one, other in pairs:
        shown = []
        for cell in cells:
            gap = np.array([by[one, cell][s] - by[other, cell][s] for s in by[one, cell]])
            shown.append(f"{gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.4f}")
        lines.append(f"| {one} - {other} | " + " | ".join(shown) + " |")
    return lines


PARTS = {"accuracy": accuracy, "graphs": graphs, "own": own, "defaults": defaults}


def stored(part: str) -> list[Row]:
    path = HERE / f"beyond-{part}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def write_page() -> None:
    lines = ["# Beyond the paper: tables", "", "Written by `make beyond`.", ""]
    for part in PARTS:
        rows = stored(part)
        if not rows:
            continue
        draws = len({(row["cell"], row["seed"]) for row in rows}) // len(
            {row["cell"] for row in rows}
        )
        lines += [f"## {part}", "", f"{draws} draws, mean and standard error.", ""]
        lines += table(rows, "error" if "error" in rows[0] else "loss")
        if "seconds" in rows[0]:
            lines += ["", "Seconds of processor time:", "", *table(rows, "seconds")]
        if part == "graphs":
            pairs = [("true", "plain"), ("random", "none"), ("rewired", "plain")]
            lines += ["", *differences(rows, [*pairs, ("rewired", "none"), ("true", "none")])]
        if part == "own":
            lines += ["", *differences(rows, [("recommended", "plain")])]
        lines.append("")
    (HERE.parent / "docs" / "beyond-the-paper-tables.md").write_text("\n".join(lines))


def main() -> None:
    """Run the parts named on the command line, or all."""
    for part in sys.argv[1:] or PARTS:
        rows = []
        for row in PARTS[part]():
            rows.append(row)
            print(*row.values(), flush=True)
        with (HERE / f"beyond-{part}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        write_page()


if __name__ == "__main__":
    main()
