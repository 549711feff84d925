"""How often bounds, intervals and verdicts are right, on the paper's scenarios.

Three parts. *bounds*: how often the lower bound of the true divergence is one, and how often
the interval for the divergence of the fitted ratios covers it (evaluated on fresh points of each
law). *ratios*: how often the interval for the expected ratio along a line covers it, the
expectation being the mean over the draws, at the hyperparameters of a pilot fit. *graphs*: how
often the comparison of two graphs names one, with 30 % of the edges of one rewired, and with two
graphs of equal quality.

Run with `make intervals`; writes studies/intervals_*.csv and docs/uncertainty.md. What is in the
files already is kept, so that a run that was stopped goes on. A part alone, and no more than so
many units of it: `python studies/intervals.py bounds 40`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from draws import seeds
from intervals_page import page
from scipy import stats

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario
from graphratio.evaluation.bounds import bounds_from, fits_with_noise
from graphratio.evaluation.graph_comparison import node_losses
from graphratio.evaluation.node_means import Difference
from graphratio.evaluation.ratio_interval import Sandwich
from graphratio.evaluation.recipe import Recipe, repeated_folds

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "uncertainty.md"
NAMES = ("Ia", "Ib", "IIa", "IIb")
ALPHA = 0.1
BOUND_DRAWS, RATIO_DRAWS, GRAPH_DRAWS = 80, 60, 100
# Nodes of each group that are looked at in a draw.
RATIO_NODES = 4
FIRST_BOUNDS, FIRST_GRAPH = (100_000, 120_000), 70_000
Row = dict[str, object]
# A unit of work: its key, which starts every row, and how to compute the rows.
Unit = tuple[dict[str, object], Callable[[], list[Row]]]


def fresh_divergences(scenario: Scenario, functions: list, n: int, seed: int) -> np.ndarray:
    """Divergence of the fold fits of every node, on n fresh points, averaged over fits."""
    result = np.zeros(len(scenario.groups))
    for group in np.unique(scenario.groups):
        nodes = np.flatnonzero(scenario.groups == group)
        x = scenario.sample_reference(int(nodes[0]), n, random_state=2 * seed)
        y = scenario.sample_target(int(nodes[0]), n, random_state=2 * seed + 1)
        # Folds that chose the same bandwidth share their features.
        for features in {id(features): features for features, _ in functions}.values():
            psi_x, psi_y = features(x), features(y)
            for theta in [theta for other, theta in functions if other is features]:
                coefficients = theta[nodes].T.astype(float)
                at_x, at_y = (np.clip(1 + p @ coefficients, 0, 1 / ALPHA) for p in (psi_x, psi_y))
                loss = (1 - ALPHA) / 2 * (at_x**2).mean(axis=0)
                loss += (ALPHA / 2 * at_y**2 - at_y).mean(axis=0)
                result[nodes] -= (loss + 0.5) / len(functions)
    return result


def bounds() -> Iterator[Unit]:
    """Lower bounds and intervals of divergences: counts for each draw and group."""
    each = BOUND_DRAWS // len(FIRST_BOUNDS)
    chosen = {
        name: [seed for first in FIRST_BOUNDS for seed in seeds(name, each, first)]
        for name in NAMES
    }
    # Draws outermost, so that a run that is cut short has seen every cell.
    for draw in range(BOUND_DRAWS):
        for n in (50, 100, 250):
            for name in NAMES:
                key = {"scenario": name, "n": n, "seed": chosen[name][draw]}
                yield key, lambda name=name, n=n, seed=chosen[name][draw]: _bounds(name, n, seed)


def _bounds(name: str, n: int, seed: int) -> list[Row]:
    scenario = make_scenario(name, n=n, random_state=seed)
    rng = np.random.default_rng(seed)
    recipe = Recipe.of(
        gr.GRULSIF(prior_ratio=1.0), scenario.samples.aligned(scenario.graph.nodes), rng
    )
    folds = repeated_folds(recipe.samples, 5, 1, rng)
    found, noise = fits_with_noise(recipe, scenario.graph, folds)
    single, joint = (
        bounds_from(recipe.samples, ALPHA, found.ratios, noise, 0.1, simultaneous=s)
        for s in (False, True)
    )
    true = scenario.true_divergence(ALPHA)
    fitted = fresh_divergences(scenario, found.functions, 80 * n, seed)

    def holds(result):
        return result.true_divergence_lower_bound <= true + 1e-12

    def covers(result):
        low, high = result.fitted_divergence_interval.T
        return (low <= fitted) & (fitted <= high)

    counted = {
        "bound_holds": holds(single),
        "bound_above_0": single.true_divergence_lower_bound > 0,
        "interval_covers": covers(single),
        "simultaneous_bound_holds": holds(joint),
        "simultaneous_interval_covers": covers(joint),
    }
    rows: list[Row] = []
    for group in np.unique(scenario.groups):
        nodes = scenario.groups == group
        rows.append(
            {
                "group": group,
                "divergence": round(float(true[nodes].mean()), 4),
                "nodes": int(nodes.sum()),
                **{column: int(hit[nodes].sum()) for column, hit in counted.items()},
            }
        )
    return rows


def ratios() -> Iterator[Unit]:
    """Intervals of the expected ratio: share of draws and points that cover it, per group."""
    for n in (100, 250):
        for name in NAMES:
            yield {"scenario": name, "n": n}, lambda name=name, n=n: _ratios(name, n)


def _ratios(name: str, n: int) -> list[Row]:
    scenario = make_scenario(name, n=n, random_state=next(seeds(name, 1, 3)))
    pilot = gr.GRULSIF(prior_ratio=1.0, random_state=0).fit(scenario.samples, scenario.graph)
    model = gr.GRULSIF(
        prior_ratio=1.0,
        bandwidth=pilot.bandwidth_,
        graph_penalty=pilot.graph_penalty_,
        ridge=pilot.ridge_,
        dictionary=pilot.dictionary_,
    )
    groups = np.unique(scenario.groups)
    lines = {group: _line(scenario, group) for group in groups}
    values: dict = {group: [] for group in groups}
    errors: dict = {group: [] for group in groups}
    for seed in range(RATIO_DRAWS):
        rng = np.random.default_rng(seed)
        drawn = gr.NodeSamples.from_arrays(
            [scenario.sample_reference(v, n, rng) for v in scenario.graph.nodes],
            [scenario.sample_target(v, n, rng) for v in scenario.graph.nodes],
        )
        model.fit(drawn, scenario.graph)
        # What is behind `expected_ratio_interval`, once for all nodes of a draw.
        sandwich = Sandwich(model, drawn)
        for group, line in lines.items():
            at = model.features_(line)
            values[group].append(1 + at @ model.coef_[scenario.groups == group].T)
            nodes = rng.choice(np.flatnonzero(scenario.groups == group), RATIO_NODES, False)
            terms = [sandwich.terms(line, int(node)) for node in nodes]
            errors[group].append(
                {
                    v: np.sqrt((t**2).sum(axis=0)) * stats.t.ppf(0.95, sandwich.freedom(t))
                    for v, t in zip(nodes, terms, strict=True)
                }
            )
    rows: list[Row] = []
    for group in groups:
        value = np.array(values[group])
        # Each draw is part of the mean it is compared with: the factor undoes that.
        apart = np.abs(value - value.mean(axis=0)) * np.sqrt(len(value) / (len(value) - 1))
        position = {v: i for i, v in enumerate(np.flatnonzero(scenario.groups == group))}
        inside = [
            apart[draw, :, position[v]] <= half_width
            for draw, of_draw in enumerate(errors[group])
            for v, half_width in of_draw.items()
        ]
        covers = round(float(np.mean(inside)), 4)
        rows.append({"group": group, "draws": RATIO_DRAWS, "lines": len(inside), "covers": covers})
    return rows


def _line(scenario: Scenario, group: str) -> np.ndarray:
    """Three points across the data of a group's nodes."""
    node = int(np.flatnonzero(scenario.groups == group)[0])
    points = scenario.sample_mixture(node, 400, ALPHA, random_state=0)
    low, high = np.quantile(points, [0.1, 0.9], axis=0)
    return low + (high - low) * np.array([[0.0], [0.5], [1.0]])


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


def graphs() -> Iterator[Unit]:
    """Verdicts on pairs of graphs, Ia with n = 50."""
    for seed in range(FIRST_GRAPH, FIRST_GRAPH + GRAPH_DRAWS):
        yield {"seed": seed}, lambda seed=seed: _graphs(seed)


def _graphs(seed: int) -> list[Row]:
    scenario = make_scenario("Ia", n=50, random_state=seed)
    rng = np.random.default_rng(seed)
    candidates = {
        "true": scenario.graph,
        "rewired": rewired(scenario.graph, 0.3, rng),
        "relabelled": relabelled(scenario.graph, scenario.groups, rng),
    }
    recipe = Recipe.of(
        gr.GRULSIF(prior_ratio=1.0), scenario.samples.aligned(scenario.graph.nodes), rng
    )
    fits = {name: recipe.coupled(graph) for name, graph in candidates.items()}
    # What decides in `compare_graphs`, for all pairs from the same fits.
    folds = repeated_folds(recipe.samples, 5, 2, rng, by_node=True)
    held_out = recipe.run(fits, folds)
    found = node_losses(recipe, {name: part.ratios for name, part in held_out.items()})
    rows: list[Row] = []
    for first, second in [("true", "rewired"), ("true", "relabelled")]:
        apart = Difference.of(found[first].means.mean, found[second].means.mean)
        clear = apart.p_value <= 0.05
        rows.append(
            {
                "first": first,
                "second": second,
                "ratio": round(apart.mean / apart.error, 3),
                "named": (first if apart.mean < 0 else second) if clear else "no clear difference",
            }
        )
    return rows


PARTS = {"bounds": bounds, "ratios": ratios, "graphs": graphs}


def read(part: str) -> list[dict[str, str]]:
    """Rows measured so far."""
    path = HERE / f"intervals_{part}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def run(part: str, limit: int | None) -> None:
    """Compute what is missing of a part, and append it to its file."""
    rows = read(part)
    path = HERE / f"intervals_{part}.csv"
    done: set[tuple[str, ...]] = set()
    todo: list[Unit] = []
    for key, work in PARTS[part]():
        if not done and rows:
            done = {tuple(row[name] for name in key) for row in rows}
        if tuple(map(str, key.values())) not in done:
            todo.append((key, work))
    for key, work in islice(todo, limit):
        found = [{**key, **row} for row in work()]
        new = not path.exists()
        with path.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(found[0]), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(found)


def main(arguments: list[str]) -> None:
    """Run parts and write the page."""
    limit = int(arguments[1]) if len(arguments) > 1 else None
    for part in arguments[:1] or PARTS:
        run(part, limit)
    text = (HERE / "uncertainty.md.in").read_text()
    PAGE.write_text(page(text, {part: read(part) for part in PARTS}))


if __name__ == "__main__":
    main(sys.argv[1:])
