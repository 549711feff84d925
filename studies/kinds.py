"""Kinds of change: how often a quiet network shows any, and how well true kinds are named.

quiet       networks in which nothing changed: share of data sets in which any node is called
            changed, for several numbers of nodes and observations
scenarios   the paper's four scenarios with 100 nodes: share of the changed nodes that are called
            changed, that are named rightly, of the true kinds that are found, and of unchanged
            nodes among those called changed

A node is named rightly if it carries the kind that stands for its group, after the best one-to-one
matching of found kinds to true groups. A true kind is found if most nodes of some found kind
belong to it.

Run with `make kinds`; writes studies/kinds.json and the tables of docs/guide/kinds.md. What is done
is kept, so that a run goes on where the last one stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
from draws import seeds
from scipy.optimize import linear_sum_assignment
from scipy.stats import binom

import graphratio as gr
from graphratio.datasets import make_scenario

HERE = Path(__file__).parent
STORED = HERE / "kinds.json"
PAGE = HERE.parent / "docs" / "guide" / "kinds.md"
LEVEL = 0.05
QUIET_SETS = 200
# No setting was chosen on these draws.
FIRST_QUIET_SEED = 20_000
SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
SIZES = (50, 100)
DRAWS = 10
FIRST_SEED = 8001


def blocks(n_nodes: int) -> nx.Graph:
    """Four clusters, dense inside and sparse between."""
    between = np.full((4, 4), 0.01) + 0.29 * np.eye(4)
    return nx.stochastic_block_model([n_nodes // 4] * 4, between, seed=0)


# Graph, number of nodes, observations in each sample, features.
QUIET: dict[str, tuple[Callable[[int], nx.Graph], int, int, int]] = {
    "ring, 20 nodes": (nx.cycle_graph, 20, 30, 1),
    "ring, 20 nodes, larger samples": (nx.cycle_graph, 20, 200, 2),
    "four clusters, 100 nodes": (blocks, 100, 30, 2),
    "ring, 200 nodes": (nx.cycle_graph, 200, 30, 1),
    "ring, 200 nodes, larger samples": (nx.cycle_graph, 200, 200, 1),
}


def quiet(cell: str, seed: int) -> float:
    """Whether any node of a quiet network is called changed."""
    make, n_nodes, n, n_features = QUIET[cell]
    graph = gr.Graph.from_adjacency(nx.to_scipy_sparse_array(make(n_nodes), dtype=float))
    rng = np.random.default_rng([seed, n_nodes, n])
    reference, target = rng.normal(size=(2, n_nodes, n, n_features))
    found = gr.kinds_of_change(
        (list(reference), list(target)), graph, level=LEVEL, random_state=rng
    )
    return float(set(found.kinds) != {"no change found"})


def judged(kinds: np.ndarray, groups: np.ndarray, changed: np.ndarray) -> tuple[float, float]:
    """Share of the changed nodes that are named rightly, and of the true kinds that are found."""
    names = sorted(kind for kind in set(kinds.tolist()) if kind.startswith("kind "))
    true = sorted(set(groups[changed].tolist()))
    if not names:
        return 0.0, 0.0
    both = np.array([[((kinds == k) & (groups == g)).sum() for g in true] for k in names])
    matched = both[linear_sum_assignment(-both)].sum() / changed.sum()
    sizes = np.array([(kinds == k).sum() for k in names])
    return float(matched), float((2 * both > sizes[:, np.newaxis]).any(axis=0).mean())


def scenario(cell: str, seed: int) -> list[float]:
    """Shares of a draw: called changed, named rightly, kinds found, false among changed."""
    name, n = cell.split(" n=")
    drawn = make_scenario(name, n_nodes=100, n=int(n), random_state=seed)
    found = gr.kinds_of_change(drawn.samples, drawn.graph, level=LEVEL, random_state=0)
    called = found.test.rejected
    false = (called & ~drawn.changed).sum() / max(called.sum(), 1)
    named = judged(found.kinds, drawn.groups, drawn.changed)
    return [float(called[drawn.changed].mean()), *named, float(false)]


def jobs() -> Iterator[tuple[str, int, Callable[[str, int], object]]]:
    """Every cell with its seeds."""
    for cell in QUIET:
        drawn = range(FIRST_QUIET_SEED, FIRST_QUIET_SEED + QUIET_SETS)
        yield from ((cell, seed, quiet) for seed in drawn)
    for name in SCENARIOS:
        for n in SIZES:
            drawn = seeds(name, DRAWS, FIRST_SEED)
            yield from ((f"{name} n={n}", seed, scenario) for seed in drawn)


def tables(stored: dict[str, dict[str, object]]) -> str:
    """The two tables of the page."""
    highest = int(binom.ppf(0.975, QUIET_SETS, LEVEL))
    total = sum(sum(stored[cell].values()) for cell in QUIET) / (len(QUIET) * QUIET_SETS)
    lines = ["| nothing changed | observations | any node called changed |", "|---|---|---|"]
    for cell, (_, _, n, n_features) in QUIET.items():
        alarms = int(sum(stored[cell].values()))
        dimension = f" in {n_features} dimensions" if n_features > 1 else ""
        lines.append(f"| {cell} | {n}{dimension} | in {alarms} of {len(stored[cell])} data sets |")
    lines += [
        "",
        f"At a rate of 5 % up to {highest} of {QUIET_SETS} are expected (97.5 % quantile). "
        f"Over all data sets the rate is {100 * total:.1f} %.",
        "",
        "| scenario | called changed | named rightly | kinds found | false among changed |",
        "|---|---|---|---|---|",
    ]
    for name in SCENARIOS:
        for n in SIZES:
            means = np.mean(list(stored[f"{name} n={n}"].values()), axis=0)
            shown = " | ".join(f"{value:.2f}" for value in means)
            lines.append(f"| {name}, n = {n} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Do what is missing, and write the tables."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    for cell, seed, evaluate in jobs():
        done = stored.setdefault(cell, {})
        if str(seed) not in done:
            done[str(seed)] = evaluate(cell, seed)
            STORED.write_text(json.dumps(stored, indent=0) + "\n")
            print(f"{cell}, draw {seed}", flush=True)
    begin, end = "<!-- study -->", "<!-- end of study -->"
    before, rest = PAGE.read_text().split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n\n{tables(stored)}\n\n{end}{after}")


if __name__ == "__main__":
    main()
