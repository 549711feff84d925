"""Target error of reweighted models under covariate shift at some nodes.

Eight problems with 40 to 48 nodes and 50 observations in each sample of each node. At some nodes
the target law differs; labels follow the same function everywhere and are known for the
reference only. Errors are on 1,000 fresh target points per node: squared error against the
noise-free function, or share of wrong classes. Differences are paired within draws.

Run with `make transfer`; writes studies/transfer.csv and docs/transfer.md.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn import set_config
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.exceptions import DataWarning

HERE = Path(__file__).parent
DRAWS = 20
# Problems that are also drawn without any shift.
WITHOUT = ("Ia", "moved", "classes")
N = 50
FRESH = 1_000
Array = np.ndarray
Draw = Callable[[bool, int, np.random.Generator], Array]


@dataclass(frozen=True)
class Problem:
    """Laws, the function to learn, the noise, and the words for the page."""

    text: str
    function: Callable[[Array], Array]
    noise: float
    draw: Draw | None = None
    scenario: str | None = None
    classes: bool = False


def normal(d: int, moved: tuple[float, ...], spread: float = 1.0) -> Draw:
    """N(0, I) as reference; a shifted and scaled one as target."""
    return lambda shift, n, rng: (
        rng.normal(size=(n, d)) * (spread if shift else 1.0) + (np.array(moved) if shift else 0.0)
    )


def narrower(shift: bool, n: int, rng: np.random.Generator) -> Array:
    """Shimodaira's example: N(0.5, 0.5^2) to N(0, 0.3^2)."""
    return rng.normal(0.0 if shift else 0.5, 0.3 if shift else 0.5, size=(n, 1))


PROBLEMS = {
    "Ia": Problem("scenario Ia, y = x^2, line", lambda x: x[:, 0] ** 2, 0.5, scenario="Ia"),
    "Ib": Problem(
        "scenario Ib, y = x0 x1 + x0 / 2, plane",
        lambda x: x[:, 0] * x[:, 1] + x[:, 0] / 2,
        0.5,
        scenario="Ib",
    ),
    "IIb": Problem(
        "scenario IIb, y = abs(x0) + x1^2 / 10, plane",
        lambda x: np.abs(x[:, 0]) + x[:, 1] ** 2 / 10,
        0.5,
        scenario="IIb",
    ),
    "narrower": Problem(
        "N(0.5, 0.5^2) to N(0, 0.3^2), y = x^3 - x, line",
        lambda x: x[:, 0] ** 3 - x[:, 0],
        0.3,
        narrower,
    ),
    "moved": Problem(
        "mean (0, 0) to (1, 0.5), y = exp(x0 / 2) + sin(2 x1), plane",
        lambda x: np.exp(x[:, 0] / 2) + np.sin(2 * x[:, 1]),
        0.3,
        normal(2, (1.0, 0.5)),
    ),
    "three": Problem(
        "mean 0 to (0.7, -0.7, 0), y = max(x0, 0)^2 + x1 abs(x1) + x2, plane",
        lambda x: np.maximum(x[:, 0], 0) ** 2 + x[:, 1] * np.abs(x[:, 1]) + x[:, 2],
        0.5,
        normal(3, (0.7, -0.7, 0.0)),
    ),
    "classes": Problem(
        "mean (0, 0) to (1, 0.5), curved border, logistic regression",
        lambda x: 3 * (x[:, 1] - 0.7 * x[:, 0] ** 2 + 0.7),
        0.0,
        normal(2, (1.0, 0.5)),
        classes=True,
    ),
    "correct": Problem(
        "mean (0, 0) to (1, 0), y = x0 - x1, plane: the model is right, weights cannot help",
        lambda x: x[:, 0] - x[:, 1],
        0.5,
        normal(2, (1.0, 0.0)),
    ),
}


def clusters(rng: np.random.Generator, n_nodes: int = 40) -> gr.Graph:
    """Two clusters joined by few edges, each connected along a path."""
    half = np.arange(n_nodes) < n_nodes // 2
    same = half[:, None] == half
    edges = np.triu(rng.random((n_nodes, n_nodes)) < np.where(same, 0.5, 0.02), 1)
    step = np.arange(n_nodes - 1)
    edges[step, step + 1] |= half[step] == half[step + 1]
    return gr.Graph.from_adjacency((edges | edges.T).astype(float))


def make_data(problem: Problem, seed: int, shift: bool) -> tuple:
    """Graph, which nodes changed, reference, target and fresh target points by node."""
    rng = np.random.default_rng(seed)
    if problem.scenario is not None:
        made = make_scenario(problem.scenario, n_nodes=48, n=N, random_state=seed)
        graph, changed = made.graph, made.changed & shift

        def sample(node: int, moved: bool, n: int) -> Array:
            draw = made.sample_target if moved else made.sample_reference
            return draw(node, n, rng)
    else:
        graph = clusters(rng)
        changed = (np.arange(graph.n_nodes) >= graph.n_nodes // 2) & shift

        def sample(node: int, moved: bool, n: int) -> Array:
            return problem.draw(moved, n, rng)

    reference = [sample(v, False, N) for v in range(graph.n_nodes)]
    target = [sample(v, changed[v], N) for v in range(graph.n_nodes)]
    fresh = [sample(v, changed[v], FRESH) for v in range(graph.n_nodes)]
    return graph, changed, reference, target, fresh


def one_draw(cell: tuple[str, int, bool]) -> list[dict[str, object]]:
    """Mean target errors of all methods on one draw, at changed and at unchanged nodes."""
    warnings.simplefilter("ignore", DataWarning)
    # Thousands of small fits on data that were checked before.
    set_config(assume_finite=True, skip_parameter_validation=True)
    name, seed, shift = cell
    problem = PROBLEMS[name]
    graph, changed, reference, target, fresh = make_data(problem, seed, shift)
    rng = np.random.default_rng([seed, 1])

    def labels(x: Array, noisy: bool) -> Array:
        if problem.classes:
            return (rng.random(len(x)) < 1 / (1 + np.exp(-problem.function(x)))).astype(int)
        return problem.function(x) + noisy * problem.noise * rng.normal(size=len(x))

    y = [labels(x, True) for x in reference]
    truth = [labels(x, False) for x in fresh]
    model = LogisticRegression() if problem.classes else LinearRegression()

    def errors(predict: Callable[[int], Array]) -> Array:
        found = [predict(v) for v in range(graph.n_nodes)]
        if problem.classes:
            return np.array([np.mean(f != t) for f, t in zip(found, truth, strict=True)])
        return np.array([np.mean((f - t) ** 2) for f, t in zip(found, truth, strict=True)])

    def weighted(weights: list[Array | None]) -> Array:
        fits = [
            clone(model).fit(x, own, sample_weight=w)
            for x, own, w in zip(reference, y, weights, strict=True)
        ]
        return errors(lambda v: fits[v].predict(fresh[v]))

    data = (reference, target)
    found = {"unweighted": weighted([None] * graph.n_nodes)}
    joint = gr.GRULSIF(random_state=int(np.random.default_rng(seed).integers(2**31)))
    estimators = {"transfer": joint}
    if shift:
        alone = gr.RULSIF(random_state=seed)
        by_node = clone(alone).fit(data, graph).importance_weights(data)
        found["RULSIF weights"] = weighted(list(by_node.values()))
        estimators["transfer, RULSIF"] = alone
    for method, estimator in estimators.items():
        fitted = gr.NodewiseTransfer(model, estimator, random_state=seed).fit(data, y, graph)
        found[method] = errors(lambda v, fitted=fitted: fitted.predict(fresh[v], node=v))
    return [
        {
            "problem": name,
            "shift": "some nodes" if shift else "none",
            "seed": seed,
            "nodes": nodes,
            "method": method,
            "error": float(error[mask].mean()),
        }
        for method, error in found.items()
        for nodes, mask in (("changed", changed), ("unchanged", ~changed))
        if mask.any()
    ]


def series(rows: list[dict[str, object]], **wanted: object) -> Array:
    """Errors of the draws, in order of the seed."""
    chosen = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return np.array([row["error"] for row in sorted(chosen, key=lambda row: row["seed"])], float)


def paired(rows: list[dict[str, object]], other: str, **wanted: object) -> str:
    """Difference of `transfer` to another method: mean and 95 % interval over draws."""
    gap = series(rows, method="transfer", **wanted) - series(rows, method=other, **wanted)
    half = stats.t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
    return f"{gap.mean():+.4f} ({gap.mean() - half:+.4f}, {gap.mean() + half:+.4f})"


def harm(rows: list[dict[str, object]], **wanted: object) -> str:
    """Difference to unweighted models with its standard error."""
    gap = series(rows, method="transfer", **wanted) - series(rows, method="unweighted", **wanted)
    return f"{gap.mean():+.5f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.5f}"


def overall(rows: list[dict[str, object]], other: str) -> str:
    """Error of `transfer` relative to another method, over the problems that weights can help."""
    at = {"shift": "some nodes", "nodes": "changed"}
    logs = [
        np.log(series(rows, problem=name, method="transfer", **at))
        - np.log(series(rows, problem=name, method=other, **at))
        for name in PROBLEMS
        if name != "correct"
    ]
    mean = np.mean(logs, axis=0)
    half = stats.t.ppf(0.975, len(mean) - 1) * mean.std(ddof=1) / np.sqrt(len(mean))
    low, middle, high = np.exp([mean.mean() - half, mean.mean(), mean.mean() + half])
    return f"{middle:.3f} ({low:.3f}, {high:.3f})"


def tables(rows: list[dict[str, object]]) -> str:
    """The two tables of the page."""
    lines = [
        "| problem | unweighted | transfer | less unweighted | less RULSIF weights | "
        "less transfer with RULSIF |",
        "|---|---|---|---|---|---|",
    ]
    for name, problem in PROBLEMS.items():
        at = {"problem": name, "shift": "some nodes", "nodes": "changed"}
        means = [series(rows, method=m, **at).mean() for m in ("unweighted", "transfer")]
        gaps = [paired(rows, m, **at) for m in ("unweighted", "RULSIF weights", "transfer, RULSIF")]
        cells = [problem.text, *(f"{mean:.4f}" for mean in means), *gaps]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "Geometric mean over all but the last problem of the error relative to unweighted models: "
        f"{overall(rows, 'unweighted')}; to RULSIF weights: {overall(rows, 'RULSIF weights')}; to "
        f"transfer with RULSIF: {overall(rows, 'transfer, RULSIF')}, with 95 % intervals.",
        "",
        "At nodes without a shift, transfer less unweighted, mean and standard error:",
        "",
        "| problem | next to shifted nodes | no shift anywhere |",
        "|---|---|---|",
    ]
    for name in PROBLEMS:
        at = {"problem": name, "nodes": "unchanged"}
        beside = harm(rows, shift="some nodes", **at)
        nowhere = harm(rows, shift="none", **at) if name in WITHOUT else "-"
        lines.append(f"| {name} | {beside} | {nowhere} |")
    return "\n".join(lines)


def save(rows: list[dict[str, object]]) -> None:
    """Write what is known so far."""
    with (HERE / "transfer.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_page(rows: list[dict[str, object]]) -> None:
    """Put the numbers into the page."""
    text = (HERE / "transfer_page.md").read_text()
    page = text.replace("{tables}", tables(rows)).replace(
        "{draws}", str(len({row["seed"] for row in rows}))
    )
    (HERE.parent / "docs" / "transfer.md").write_text(page)


def main() -> None:
    """Run all draws and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    work = [
        (name, 500 + draw, shift)
        for draw in range(options.draws)
        for name in PROBLEMS
        for shift in ((True, False) if name in WITHOUT else (True,))
    ]
    rows: list[dict[str, object]] = []
    with ProcessPoolExecutor(options.processes) as pool:
        for done, found in enumerate(pool.map(one_draw, work), start=1):
            rows += found
            save(rows)
            print(f"\r{done}/{len(work)} draws", end="", flush=True)
    print()
    write_page(rows)
    print("wrote studies/transfer.csv and docs/transfer.md")


if __name__ == "__main__":
    main()
