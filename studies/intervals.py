"""How often bounds, intervals and verdicts are right, on the paper's scenarios.

Three parts. *bounds*: how often the lower bound of the true divergence is one, and how often
the interval for the divergence of the fitted ratios covers it (evaluated on 20,000 fresh points
of each law). *ratios*: how often the interval for the expected ratio along a line covers it,
the expectation being the mean over the draws, at the hyperparameters of a pilot fit. *graphs*:
how often the comparison of two graphs names one, with 30 % of the edges of one rewired, and
with two graphs of equal quality.

Run with `make intervals`; writes studies/intervals_*.csv and docs/uncertainty.md. A part alone:
`python studies/intervals.py bounds`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario
from graphratio.inference._paired import Difference
from graphratio.inference._plan import Plan
from graphratio.inference.divergence_bounds import bounds_from
from graphratio.inference.graph_comparison import node_losses

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "uncertainty.md"
NAMES = ("Ia", "Ib", "IIa", "IIb")
ALPHA = 0.1
BOUND_DRAWS, RATIO_DRAWS, GRAPH_DRAWS = 6, 20, 100
FRESH = 20_000
Row = dict[str, object]


def fresh_divergences(scenario: Scenario, functions: list, seed: int) -> np.ndarray:
    """Divergence of the fold fits of every node, on fresh points, averaged over fits."""
    result = np.zeros(len(scenario.groups))
    for group in np.unique(scenario.groups):
        nodes = np.flatnonzero(scenario.groups == group)
        x = scenario.sample_reference(int(nodes[0]), FRESH, random_state=2 * seed)
        y = scenario.sample_target(int(nodes[0]), FRESH, random_state=2 * seed + 1)
        for features, theta in functions:
            at_x, at_y = (
                np.clip(1 + features(points) @ theta[nodes].T.astype(float), 0, 1 / ALPHA)
                for points in (x, y)
            )
            loss = (1 - ALPHA) / 2 * (at_x**2).mean(axis=0)
            loss += (ALPHA / 2 * at_y**2 - at_y).mean(axis=0)
            result[nodes] -= (loss + 0.5) / len(functions)
    return result


def bounds() -> Iterator[Row]:
    """Lower bounds and intervals of divergences: counts for each draw and group."""
    model = gr.GRULSIF(prior_ratio=1.0)
    # Draws outermost, so that a run that is cut short has seen every cell.
    for seed in range(BOUND_DRAWS):
        for n in (50, 100, 250):
            for name in NAMES:
                scenario = make_scenario(name, n=n, random_state=20_000 + seed)
                rng = np.random.default_rng(seed)
                plan = Plan.of(model, scenario.samples.aligned(scenario.graph.nodes), rng)
                fits = {"fit": plan.coupled(scenario.graph)}
                found = plan.run(fits, 5, 1, rng, with_noise=True)["fit"]
                result = bounds_from(plan, found, 0.9, simultaneous=False)
                lower = result.true_divergence_lower_bound
                low, high = result.fitted_divergence_interval.T
                true = scenario.true_divergence(ALPHA)
                fitted = fresh_divergences(scenario, found.functions, seed)
                for group in np.unique(scenario.groups):
                    nodes = scenario.groups == group
                    yield {
                        "scenario": name,
                        "n": n,
                        "group": group,
                        "seed": seed,
                        "divergence": round(float(true[nodes].mean()), 4),
                        "nodes": int(nodes.sum()),
                        "true_above_bound": int((lower <= true + 1e-12)[nodes].sum()),
                        "bound_above_0": int((lower > 0)[nodes].sum()),
                        "interval_covers": int(((low <= fitted) & (fitted <= high))[nodes].sum()),
                    }


def ratios() -> Iterator[Row]:
    """Intervals of the expected ratio: share of draws that cover it, per group."""
    for n in (100, 250):
        for name in NAMES:
            scenario = make_scenario(name, n=n, random_state=3)
            pilot = gr.GRULSIF(prior_ratio=1.0, random_state=0)
            pilot.fit(scenario.samples, scenario.graph)
            model = gr.GRULSIF(
                prior_ratio=1.0,
                bandwidth=pilot.bandwidth_,
                graph_penalty=pilot.graph_penalty_,
                node_penalty=pilot.node_penalty_,
                dictionary=pilot.dictionary_,
            )
            lines = {}
            for group in np.unique(scenario.groups):
                for node in np.flatnonzero(scenario.groups == group)[[0, -1]]:
                    points = scenario.sample_mixture(int(node), 400, ALPHA, random_state=0)
                    low, high = np.quantile(points, [0.05, 0.95], axis=0)
                    steps = np.linspace(0, 1, 9)[:, np.newaxis]
                    lines[group, int(node)] = low + (high - low) * steps
            found: dict = {key: [] for key in lines}
            for seed in range(RATIO_DRAWS):
                rng = np.random.default_rng(seed)
                drawn = (
                    [scenario.sample_reference(v, n, rng) for v in scenario.graph.nodes],
                    [scenario.sample_target(v, n, rng) for v in scenario.graph.nodes],
                )
                model.fit(drawn, scenario.graph)
                for (group, node), line in lines.items():
                    band = gr.expected_ratio_interval(model, drawn, line, node)
                    raw = model.predict(line, node=node, clip=False)
                    found[group, node].append((raw, band.standard_error))
            for group in np.unique(scenario.groups):
                covered = []
                for (of, _), draws in found.items():
                    if of == group:
                        value, error = (np.array(part) for part in zip(*draws, strict=True))
                        inside = np.abs(value - value.mean(axis=0)) <= 1.6449 * error
                        covered.append(inside.mean())
                yield {
                    "scenario": name,
                    "n": n,
                    "group": group,
                    "draws": RATIO_DRAWS,
                    "coverage": round(float(np.mean(covered)), 4),
                }


def rewired(graph: gr.Graph, share: float, rng: np.random.Generator) -> gr.Graph:
    """Move a share of the edges to random places."""
    matrix = graph.adjacency.toarray()
    rows, columns = np.nonzero(np.triu(matrix, 1))
    moved = rng.permutation(len(rows))[: round(share * len(rows))]
    absent = np.argwhere(np.triu(matrix == 0, 1))
    new = absent[rng.permutation(len(absent))[: len(moved)]]
    matrix[rows[moved], columns[moved]] = matrix[columns[moved], rows[moved]] = 0
    matrix[new[:, 0], new[:, 1]] = matrix[new[:, 1], new[:, 0]] = 1
    return gr.Graph.from_adjacency(matrix)


def relabelled(graph: gr.Graph, groups: np.ndarray, rng: np.random.Generator) -> gr.Graph:
    """Swap the nodes of each group among themselves: the same quality, other edges."""
    order = np.arange(graph.n_nodes)
    for group in np.unique(groups):
        nodes = np.flatnonzero(groups == group)
        order[nodes] = rng.permutation(nodes)
    return gr.Graph.from_adjacency(graph.adjacency.toarray()[np.ix_(order, order)])


def graphs() -> Iterator[Row]:
    """Verdicts on pairs of graphs, Ia with n = 50."""
    model = gr.GRULSIF(prior_ratio=1.0)
    for seed in range(GRAPH_DRAWS):
        scenario = make_scenario("Ia", n=50, random_state=30_000 + seed)
        rng = np.random.default_rng(seed)
        worse = rewired(scenario.graph, 0.3, rng)
        candidates = {
            "true": scenario.graph,
            "rewired": worse,
            "rewired relabelled": relabelled(worse, scenario.groups, rng),
            "rewired anew": rewired(scenario.graph, 0.3, rng),
        }
        plan = Plan.of(model, scenario.samples.aligned(scenario.graph.nodes), rng)
        fits = {name: plan.coupled(graph) for name, graph in candidates.items()}
        found = node_losses(plan, plan.run(fits, 5, 2, rng, by_node=True))
        pairs = [
            ("true", "rewired"),
            ("rewired", "rewired relabelled"),
            ("rewired", "rewired anew"),
        ]
        for first, second in pairs:
            apart = Difference.of(found[first].means.mean, found[second].means.mean)
            clear = apart.p_value <= 0.05
            yield {
                "seed": seed,
                "first": first,
                "second": second,
                "ratio": round(apart.mean / apart.error, 3),
                "named": (first if apart.mean < 0 else second) if clear else "no clear difference",
            }


PARTS = {"bounds": bounds, "ratios": ratios, "graphs": graphs}


def read(part: str) -> list[dict[str, str]]:
    path = HERE / f"intervals_{part}.csv"
    if not path.exists():
        return []
    with path.open() as stream:
        return list(csv.DictReader(stream))


def page() -> str:
    """The measured part of the page, as tables."""
    lines = ["| scenario | n | group | true divergence | bound holds | bound above 0 | interval |"]
    lines += ["|---|---|---|---|---|---|---|"]
    cells: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in read("bounds"):
        cells.setdefault((row["scenario"], row["n"], row["group"]), []).append(row)
    for (name, n, group), rows in sorted(
        cells.items(), key=lambda item: (item[0][0], int(item[0][1]), item[0][2])
    ):
        total = sum(int(row["nodes"]) for row in rows)
        share = [
            sum(int(row[column]) for row in rows) / total
            for column in ("true_above_bound", "bound_above_0", "interval_covers")
        ]
        truth = f"{float(rows[0]['divergence']):.3f}"
        shown = " | ".join(f"{value:.1%}" for value in share)
        lines.append(f"| {name} | {n} | {group} | {truth} | {shown} |")
    ratio_lines = ["| scenario | n | group | interval of the expected ratio |", "|---|---|---|---|"]
    ratio_lines += [
        f"| {row['scenario']} | {row['n']} | {row['group']} | {float(row['coverage']):.1%} |"
        for row in read("ratios")
    ]
    graph_lines = ["| pair | names the first | names the second | no clear difference |"]
    graph_lines += ["|---|---|---|---|"]
    pairs: dict[tuple[str, str], list[str]] = {}
    for row in read("graphs"):
        pairs.setdefault((row["first"], row["second"]), []).append(row["named"])
    for (first, second), named in pairs.items():
        counts = [named.count(item) for item in (first, second, "no clear difference")]
        graph_lines.append(f"| {first}, {second} | " + " | ".join(map(str, counts)) + " |")
    text = (HERE / "uncertainty.md.in").read_text()
    for mark, table in {"BOUNDS": lines, "RATIOS": ratio_lines, "GRAPHS": graph_lines}.items():
        measured = len(table) > 2
        shown = "\n".join(table) if measured else "Not measured yet: `make intervals` fills this in."
        text = text.replace(f"@{mark}@", shown)
    return text.replace("@DRAWS@", str(len({row["seed"] for row in read("bounds")})))


def main(parts: list[str]) -> None:
    """Run parts and write the page."""
    for part in parts or PARTS:
        with (HERE / f"intervals_{part}.csv").open("w", newline="") as stream:
            writer = None
            for row in PARTS[part]():
                if writer is None:
                    writer = csv.DictWriter(stream, fieldnames=list(row), lineterminator="\n")
                    writer.writeheader()
                writer.writerow(row)
                stream.flush()
        print(f"wrote studies/intervals_{part}.csv", flush=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
