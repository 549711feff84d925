"""False-alarm rates and power of `two_sample_test`.

Every cell draws data sets in which the tested nodes did not change, and counts how often they
are rejected at nominal 1, 5 and 10 %. Cells that the test claims to be valid on are compared
with the simultaneous band of their nominal level; the others show what happens when an
assumption fails. The power is compared with per-node permutation tests under the same
correction.

Run with `make calibration`; writes studies/calibration.csv, studies/calibration_power.csv and
docs/calibration.md.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from calibration_page import page
from draws import seeds
from per_node_tests import per_node_p_values

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.testing.multiplicity import adjust

HERE = Path(__file__).parent
LEVELS = (0.01, 0.05, 0.1)
N_NODES = 16
UNCHANGED = np.array([0, 5, 10, 15])
# Draws of every scenario: so many from each of these seeds on. No setting was chosen on them.
DRAWS = 20
FIRST_SEEDS = (2000, 3000)
SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
POWER_PERMUTATIONS = 9_999


def graphs() -> list[gr.Graph]:
    """Five graphs of 16 nodes."""
    ring = [(i, (i + 1) % N_NODES) for i in range(N_NODES)]
    grid = [(i, i + 1) for i in range(N_NODES) if i % 4 < 3]
    grid += [(i, i + 4) for i in range(N_NODES - 4)]
    star = [(0, i) for i in range(1, N_NODES)]
    cliques = [(i, j) for j in range(N_NODES) for i in range(j) if i // 8 == j // 8] + [(7, 8)]
    chosen = np.random.default_rng(0).random((N_NODES, N_NODES)) < 0.25
    at_random = [(i, j) for j in range(N_NODES) for i in range(j) if chosen[i, j]]
    nodes = range(N_NODES)
    return [gr.Graph.from_edges(e, nodes=nodes) for e in (ring, grid, star, cliques, at_random)]


GRAPHS = dict(zip(("ring", "grid", "star", "two cliques", "random"), graphs(), strict=True))


def own_law(rng: np.random.Generator, d: int) -> Callable[[int], np.ndarray]:
    """A law drawn at random, one for each node: shape, location, scale and correlation."""
    shape = rng.integers(4)
    mixing = np.eye(d) + 0.5 * rng.normal(size=(d, d))
    location, scale = 2 * rng.normal(size=d), np.exp(0.5 * rng.normal())

    def draw(n: int) -> np.ndarray:
        x = rng.normal(size=(n, d))
        if shape == 1:
            x = rng.exponential(size=(n, d))
        elif shape == 2:
            x = rng.uniform(-1.7, 1.7, size=(n, d))
        elif shape == 3:
            x += 2 * rng.choice([-1, 1], size=(n, 1))
        return location + scale * x @ mixing

    return draw


Data = tuple[Any, gr.Graph]


def heterogeneous(rng: np.random.Generator, i: int, n_nodes: int = N_NODES) -> Data:
    """Nothing changed: laws and sizes of their own at every node, graphs and dimensions in turn."""
    d, graph = 1 + i % 5, list(GRAPHS.values())[i // 5 % 5]
    if n_nodes != N_NODES:
        graph = gr.Graph.from_edges([(v, v + 1) for v in range(n_nodes - 1)])
    laws = [own_law(rng, d) for _ in range(n_nodes)]
    sizes = rng.integers(10, 36, size=(n_nodes, 2))
    reference = [law(n) for law, (n, _) in zip(laws, sizes, strict=True)]
    target = [law(n) for law, (_, n) in zip(laws, sizes, strict=True)]
    return (reference, target), graph


def surrounded(rng: np.random.Generator, i: int) -> Data:
    """All nodes but four changed, all in the same way, by two or so standard deviations."""
    (reference, target), graph = heterogeneous(rng, i)
    for v in np.setdiff1d(np.arange(N_NODES), UNCHANGED):
        target[v] = target[v] + 2 * reference[v].std(axis=0)
    return (reference, target), graph


def correlated(rng: np.random.Generator, i: int, rho: float, timed: bool, lost: int = 0) -> Data:
    """Nothing changed; all nodes follow a common fluctuation from one time to the next.

    Up to `lost` of the last observations of each sample of a node are missing.
    """
    d, n = 1 + i % 2, 30
    common = rng.normal(size=(1, 2 * n, d))
    x = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=(N_NODES, 2 * n, d))
    sizes = n - rng.integers(lost + 1, size=(N_NODES, 2))
    reference = [x[v, :count] for v, (count, _) in enumerate(sizes)]
    target = [x[v, n : n + count] for v, (_, count) in enumerate(sizes)]
    times = None
    if timed:
        times = ([range(k) for k in sizes[:, 0]], [range(n, n + k) for k in sizes[:, 1]])
    samples = gr.NodeSamples.from_arrays(reference, target, time=times)
    return samples, list(GRAPHS.values())[i % 5]


def autocorrelated(rng: np.random.Generator, i: int, phi: float, length: int | None) -> Data:
    """Nothing changed; every node is a stationary autoregressive series, cut in two."""
    n = 150
    noise = rng.normal(size=(2 * n + 50, N_NODES))
    x = np.zeros_like(noise)
    for t in range(1, len(x)):
        x[t] = phi * x[t - 1] + noise[t]
    x = x[50:].T
    samples = gr.NodeSamples.from_arrays(list(x[:, :n]), list(x[:, n:]), block=length)
    return samples, list(GRAPHS.values())[i % 5]


def odd(rng: np.random.Generator, i: int, kind: str) -> Data:
    """Nothing changed; data of a kind that breaks careless tests, on the graphs in turn."""
    graph = list(GRAPHS.values())[i % 5]
    sizes = np.tile([30, 30], (N_NODES, 1))
    draw: Callable[[int], np.ndarray] = lambda n: rng.normal(size=(n, 1))  # noqa: E731
    if kind == "ties":
        draw = lambda n: rng.poisson(1.0, size=(n, 1)).astype(float)  # noqa: E731
    elif kind == "Cauchy":
        draw = lambda n: rng.standard_cauchy(size=(n, 1))  # noqa: E731
    elif kind == "8 against 400":
        sizes = np.tile([8, 400], (N_NODES, 1))
    elif kind == "d = 10":
        draw = lambda n: rng.normal(size=(n, 10))  # noqa: E731
    elif kind == "weights":
        pairs = np.argwhere(np.triu(graph.adjacency.toarray()))
        edges = [(u, v, 10 ** rng.uniform(-6, 6)) for u, v in pairs.tolist()]
        graph = gr.Graph.from_edges(edges, nodes=graph.nodes)
    elif kind == "categories":
        table = pd.DataFrame(
            {
                "node": np.repeat(np.arange(N_NODES), 60),
                "sample": np.tile(np.repeat(["before", "after"], 30), N_NODES),
                "kind": rng.choice(["a", "b", "c"], size=60 * N_NODES, p=[0.6, 0.3, 0.1]),
            }
        )
        samples = gr.NodeSamples.from_frame(
            table,
            node="node",
            sample="sample",
            reference="before",
            target="after",
            features=["kind"],
            categorical=["kind"],
        )
        return samples, graph
    reference = [draw(n) for n, _ in sizes]
    return (reference, [draw(n) for _, n in sizes]), graph


@dataclass(frozen=True, eq=False)
class Cell:
    """One kind of data sets and one null hypothesis.

    Attributes
    ----------
    claim : bool
        Whether the test claims to be valid here.
    family : bool
        Also count data sets in which Holm rejects any unchanged node.
    correction : str or None
        If given, the smallest adjusted p-value of a data set counts: any node.
    stream : str
        Seeds the draws, if not the name.
    """

    name: str
    draw: Callable[..., Data]
    null: str
    claim: bool = True
    n_sets: int = 2000
    n_permutations: int = 199
    nodes: np.ndarray | None = None
    family: bool = False
    correction: str | None = None
    options: dict[str, object] = field(default_factory=dict)
    stream: str = ""


CELLS = [
    Cell("nothing changed", heterogeneous, "node", n_sets=1500, n_permutations=399, family=True),
    Cell("nothing changed", heterogeneous, "global"),
    Cell("four nodes among changed ones", surrounded, "node", n_sets=1500, nodes=UNCHANGED),
    Cell("three nodes only", heterogeneous, "node", options={"n_nodes": 3}),
    *(
        Cell(
            f"correlation {rho}, {text} times",
            correlated,
            null,
            claim,
            n,
            options={"rho": rho, "timed": text == "with"},
            stream=f"correlation {rho}, {text} index",
        )
        for rho in (0.3, 0.6)
        for text, null, claim, n in (
            ("without", "global", False, 250),
            ("with", "global", True, 2000),
        )
    ),
    *(
        Cell(
            f"common factor {rho}, {text}",
            correlated,
            "node",
            n_sets=500,
            n_permutations=999,
            correction="fwer",
            options={"rho": rho} | options,
        )
        for rho in (0.5, 0.8)
        for text, options in (
            ("with times", {"timed": True}),
            ("without times", {"timed": False}),
            ("without times, unequal sizes", {"timed": False, "lost": 3}),
        )
    ),
    *(
        Cell(name, odd, "node", n_sets=500, n_permutations=399, family=True, options={"kind": kind})
        for name, kind in (
            ("counts with many ties", "ties"),
            ("Cauchy", "Cauchy"),
            ("8 against 400 observations", "8 against 400"),
            ("ten features", "d = 10"),
            ("edge weights from 1e-6 to 1e6", "weights"),
            ("a feature with three categories", "categories"),
        )
    ),
    *(
        Cell(f"autoregression 0.3, {text}", autocorrelated, null, claim, n, options=options)
        for null in ("node", "global")
        for text, claim, n, options in (
            ("no blocks", False, 250, {"phi": 0.3, "length": None}),
            ("blocks of 5", False, 250, {"phi": 0.3, "length": 5}),
            ("blocks of 25", True, 2000 if null == "global" else 500, {"phi": 0.3, "length": 25}),
        )
    ),
]


def one_set(cell: Cell, i: int) -> np.ndarray:
    """P-values of the unchanged nodes, or the global one, of data set number i."""
    rng = np.random.default_rng([crc32(f"{cell.stream or cell.name} {cell.null}".encode()), i])
    samples, graph = cell.draw(rng, i, **cell.options)
    with warnings.catch_warnings():
        # Correlated nodes are what some of the cells are about.
        warnings.simplefilter("ignore", gr.exceptions.DataWarning)
        result = gr.two_sample_test(
            samples,
            graph,
            null=cell.null,
            correction=cell.correction,
            n_permutations=cell.n_permutations,
            random_state=rng,
        )
    if cell.null == "global":
        return np.array([result.global_p_value])
    if cell.correction is not None:
        return np.array([result.adjusted_p_value.min()])
    return result.p_value if cell.nodes is None else result.p_value[cell.nodes]


def rates(cell: Cell, p_values: np.ndarray, name: str, kind: str) -> Iterator[dict[str, object]]:
    """Rejection rates of one table of p-values, shape (n_sets, n_nodes)."""
    for level in LEVELS:
        per_set = (p_values <= level).mean(axis=1)
        yield {
            "cell": name,
            "null": cell.null,
            "kind": kind,
            "claim": cell.claim,
            "level": level,
            "n_sets": len(per_set),
            "rate": per_set.mean(),
            # Spread between data sets, since nodes of one set are not independent; at least
            # that of independent nodes with the nominal rate.
            "error": max(per_set.std(ddof=1), np.sqrt(level * (1 - level) / p_values.shape[1]))
            / np.sqrt(len(per_set)),
        }


def summarise(cell: Cell, p_values: np.ndarray) -> list[dict[str, object]]:
    """Rates of a cell, by dimension and graph too where both vary."""
    kind = "whole graph" if cell.null == "global" else "a node"
    if cell.correction is not None:
        kind = "any node"
    rows = list(rates(cell, p_values, cell.name, kind))
    if cell.family:
        smallest = np.array([adjust(p, "fwer").min() for p in p_values])
        rows += rates(cell, smallest[:, np.newaxis], cell.name, "any node, Holm")
    if cell.draw is heterogeneous and not cell.options and len(p_values) >= 500:
        number = np.arange(len(p_values))
        for d in range(1, 6):
            some = p_values[number % 5 == d - 1]
            rows += rates(cell, some, f"{cell.name}, d = {d}", kind)
        for g, name in enumerate(GRAPHS):
            some = p_values[number // 5 % 5 == g]
            rows += rates(cell, some, f"{cell.name}, {name}", kind)
    return rows


def power_draw(name: str, seed: int) -> list[dict[str, object]]:
    """Power of all tests on one draw of a scenario."""
    scenario = make_scenario(name, n=50, random_state=seed)
    ours = gr.two_sample_test(
        scenario.samples, scenario.graph, n_permutations=POWER_PERMUTATIONS, random_state=seed
    )
    found = {"graphratio": ours.p_value}
    found |= per_node_p_values(scenario.samples, POWER_PERMUTATIONS, np.random.default_rng(seed))
    rows = []
    for test, p_values in found.items():
        for correction in ("fwer", "fdr"):
            rejected = adjust(p_values, correction) <= 0.05
            rows.append(
                {
                    "scenario": name,
                    "seed": seed,
                    "test": test,
                    "correction": correction,
                    "power": rejected[scenario.changed].mean(),
                    "any_false": bool(rejected[~scenario.changed].any()),
                    "false_share": rejected[~scenario.changed].sum() / max(rejected.sum(), 1),
                }
            )
    return rows


# Changes of single nodes: graph, observations, features, shift, factor of the spread, shift of the
# four nearest nodes. "two modes": a law with two modes instead of one, of equal mean and spread.
LONE: dict[str, dict[str, Any]] = {
    "one node, shift 0.9": {"shift": 0.9},
    "one node, shift 1.3": {"shift": 1.3},
    "one node, shift 0.6 of three features": {"shift": 0.6, "d": 3},
    "one node, spread x 2": {"factor": 2.0},
    "one node of a 10 x 10 grid, shift 1, n = 50": {"shift": 1.0, "n": 50, "grid": True},
    "one node down by 1.5, four neighbours up": {"shift": -1.5, "around": 1.5},
    "one node, two modes, n = 60": {"modes": True, "n": 60},
    "all nodes, shift 0.9": {"shift": 0.9, "everywhere": True},
}
LONE_DRAWS = 200


def lone_problem(
    rng: np.random.Generator,
    shift: float = 0.0,
    factor: float = 1.0,
    n: int = 40,
    d: int = 1,
    around: float = 0.0,
    grid: bool = False,
    modes: bool = False,
    everywhere: bool = False,
) -> tuple[np.ndarray, np.ndarray, gr.Graph, int]:
    """Standard normal samples, shape (n_nodes, n, d), with a change at one node or at all."""
    if grid:
        edges = [(i, i + 1) for i in range(100) if i % 10 < 9] + [(i, i + 10) for i in range(90)]
        graph = gr.Graph.from_edges(edges, nodes=range(100))
    else:
        graph = gr.Graph.from_edges([(i, (i + 1) % 25) for i in range(25)])
    reference, target = rng.normal(size=(2, graph.n_nodes, n, d))
    node = graph.n_nodes // 2
    changed = slice(None) if everywhere else node
    target[changed] = factor * target[changed] + shift
    if modes:
        modes_at = 0.95 * rng.choice([-1, 1], size=(n, d))
        target[node] = modes_at + np.sqrt(1 - 0.95**2) * target[node]
    if around:
        for near in (-2, -1, 1, 2):
            target[node + near] += around
    return reference, target, graph, node


def lone_draw(name: str, seed: int) -> list[dict[str, object]]:
    """Whether each test finds a node, by Holm, with nothing else changed or its neighbours."""
    rng = np.random.default_rng([crc32(name.encode()), seed])
    reference, target, graph, node = lone_problem(rng, **LONE[name])
    samples = gr.NodeSamples.from_arrays(list(reference), list(target))
    count = 10 * graph.n_nodes * 20 - 1
    ours = gr.two_sample_test(samples, graph, n_permutations=count, random_state=seed)
    # Only the changed node by the others: Holm then compares it with level / number of nodes.
    every = LONE[name].get("everywhere", False)
    some = samples if every else samples.subset([node])
    found = {"graphratio": ours.p_value}
    for test, p_values in per_node_p_values(some, count, rng).items():
        if not test.startswith("RULSIF"):
            found[test] = (
                p_values if every else np.where(np.arange(graph.n_nodes) == node, p_values, 1)
            )
    return [
        {
            "case": name,
            "seed": seed,
            "test": test,
            "found": (adjust(p_values, "fwer") <= 0.05)[slice(None) if every else node].mean(),
        }
        for test, p_values in found.items()
    ]


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write a table."""
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )


def main(processes: int = 2) -> None:
    """Run everything on some processes and write the results."""
    rows: list[dict[str, object]] = []
    power: list[dict[str, object]] = []
    with ProcessPoolExecutor(processes) as pool:
        for cell in CELLS:
            draws = pool.map(one_set, [cell] * cell.n_sets, range(cell.n_sets), chunksize=25)
            rows += summarise(cell, np.stack(list(draws)))
            print(f"{cell.null}: {cell.name}", flush=True)
            write(HERE / "calibration.csv", rows)
        work = [
            (name, seed)
            for name in SCENARIOS
            for first in FIRST_SEEDS
            for seed in seeds(name, DRAWS, first)
        ]
        for found in pool.map(power_draw, *zip(*work, strict=True)):
            power += found
            write(HERE / "calibration_power.csv", power)
        lone: list[dict[str, object]] = []
        work = [(name, seed) for name in LONE for seed in range(LONE_DRAWS)]
        for found in pool.map(lone_draw, *zip(*work, strict=True), chunksize=10):
            lone += found
        write(HERE / "calibration_lone.csv", lone)
    (HERE.parent / "docs" / "calibration.md").write_text(page(HERE))
    print("wrote studies/calibration.csv, calibration_power.csv and docs/calibration.md")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
