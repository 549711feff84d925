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


def correlated(rng: np.random.Generator, i: int, rho: float, timed: bool) -> Data:
    """Nothing changed; all nodes follow a common fluctuation from one time to the next."""
    d, n = 1 + i % 2, 30
    common = rng.normal(size=(1, 2 * n, d))
    x = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=(N_NODES, 2 * n, d))
    times = (range(n), range(n, 2 * n)) if timed else None
    samples = gr.NodeSamples.from_arrays(list(x[:, :n]), list(x[:, n:]), time=times)
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


@dataclass(frozen=True, eq=False)
class Cell:
    """One kind of data sets and one null hypothesis.

    Attributes
    ----------
    claim : bool
        Whether the test claims to be valid here.
    family : bool
        Also count data sets in which Holm rejects any unchanged node.
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
    options: dict[str, object] = field(default_factory=dict)
    stream: str = ""


CELLS = [
    Cell("nothing changed", heterogeneous, "node", n_permutations=399, family=True),
    Cell("nothing changed", heterogeneous, "global"),
    Cell("four nodes among changed ones", surrounded, "node", nodes=UNCHANGED),
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
            ("without", "node", False, 250),
            ("without", "global", False, 250),
            ("with", "global", True, 2000),
        )
    ),
    *(
        Cell(f"autoregression 0.3, {text}", autocorrelated, null, claim, n, options=options)
        for null in ("node", "global")
        for text, claim, n, options in (
            ("no blocks", False, 250, {"phi": 0.3, "length": None}),
            ("blocks of 5", False, 250, {"phi": 0.3, "length": 5}),
            ("blocks of 25", True, 2000, {"phi": 0.3, "length": 25}),
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
            correction=None,
            n_permutations=cell.n_permutations,
            random_state=rng,
        )
    if cell.null == "global":
        return np.array([result.global_p_value])
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
    (HERE.parent / "docs" / "calibration.md").write_text(page(HERE))
    print("wrote studies/calibration.csv, calibration_power.csv and docs/calibration.md")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
