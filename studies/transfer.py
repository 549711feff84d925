"""Target error of reweighted models under covariate shift at some nodes.

Eight problems with 40 to 48 nodes and 50 observations in each sample of each node. At some nodes
the target law differs; labels follow the same function everywhere and are known for the
reference only. Errors are on 1,000 fresh target points per node: squared error against the
noise-free function, or share of wrong classes. Differences are paired within draws.

The stress case removes the overlap at a third of the nodes, drawn at random: the reference is drawn
again below the median of its first feature, the target half a standard deviation above it.

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
from graphratio.transfer.weight_powers import USUAL

HERE = Path(__file__).parent
DRAWS = 20
# Problems that are also drawn without any shift.
WITHOUT = ("Ia", "moved", "classes")
# Where the target differs: at some nodes, nowhere, or at some nodes without overlap at a third.
CASES = ("some nodes", "none", "no overlap")
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


@dataclass(frozen=True)
class Data:
    """Reference, target and fresh target points by node; which changed, and which lack overlap."""

    graph: gr.Graph
    changed: Array
    apart: Array
    reference: list[Array]
    target: list[Array]
    fresh: list[Array]


def make_data(problem: Problem, seed: int, case: str) -> Data:
    """Draw the samples of a case."""
    rng = np.random.default_rng(seed)
    shift = case != "none"
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

    nodes = range(graph.n_nodes)
    reference = [sample(v, False, N) for v in nodes]
    target = [sample(v, changed[v], N) for v in nodes]
    fresh = [sample(v, changed[v], FRESH) for v in nodes]
    apart = np.zeros(graph.n_nodes, dtype=bool)
    if case == "no overlap":
        apart[rng.permutation(graph.n_nodes)[: graph.n_nodes // 3]] = True
    for v in np.flatnonzero(apart):
        first = sample(v, False, FRESH)[:, 0]
        middle, gap = np.median(first), first.std() / 2
        reference[v] = only(lambda n, v=v: sample(v, False, n), lambda x, m=middle: x < m, N)
        beyond = only(
            lambda n, v=v: sample(v, changed[v], n), lambda x, m=middle + gap: x > m, N + FRESH
        )
        target[v], fresh[v] = beyond[:N], beyond[N:]
    return Data(graph, changed, apart, reference, target, fresh)


def only(draw: Callable[[int], Array], wanted: Callable[[Array], Array], n: int) -> Array:
    """Points whose first feature is wanted, by rejection."""
    found: list[Array] = []
    while sum(map(len, found)) < n:
        points = draw(20 * n)
        found.append(points[wanted(points[:, 0])])
    return np.concatenate(found)[:n]


def one_draw(cell: tuple[str, int, str]) -> list[dict[str, object]]:
    """Mean target errors of all methods on one draw, by kind of node."""
    warnings.simplefilter("ignore", DataWarning)
    # Thousands of small fits on data that were checked before.
    set_config(assume_finite=True, skip_parameter_validation=True)
    name, seed, case = cell
    problem = PROBLEMS[name]
    data = make_data(problem, seed, case)
    nodes = range(data.graph.n_nodes)
    rng = np.random.default_rng([seed, 1])

    def labels(x: Array, noisy: bool) -> Array:
        if problem.classes:
            return (rng.random(len(x)) < 1 / (1 + np.exp(-problem.function(x)))).astype(int)
        return problem.function(x) + noisy * problem.noise * rng.normal(size=len(x))

    y = [labels(x, True) for x in data.reference]
    truth = [labels(x, False) for x in data.fresh]
    model = LogisticRegression() if problem.classes else LinearRegression()

    def errors(predict: Callable[[int], Array]) -> Array:
        found = [predict(v) for v in nodes]
        if problem.classes:
            return np.array([np.mean(f != t) for f, t in zip(found, truth, strict=True)])
        return np.array([np.mean((f - t) ** 2) for f, t in zip(found, truth, strict=True)])

    def weighted(weights: list[Array | None]) -> Array:
        fits = [
            clone(model).fit(x, own, sample_weight=w)
            for x, own, w in zip(data.reference, y, weights, strict=True)
        ]
        return errors(lambda v: fits[v].predict(data.fresh[v]))

    samples = (data.reference, data.target)
    found = {"unweighted": weighted([None] * len(nodes))}
    joint = gr.GRULSIF(random_state=int(np.random.default_rng(seed).integers(2**31)))
    settings: dict[str, dict] = {"transfer": {"estimator": joint}}
    if case == "some nodes":
        alone = gr.RULSIF(random_state=seed)
        by_node = clone(alone).fit(samples, data.graph).importance_weights(samples)
        found["RULSIF weights"] = weighted(list(by_node.values()))
        settings["transfer, RULSIF"] = {"estimator": alone}
    if case == "no overlap":
        # A power that is given is used without safeguards.
        settings["no safeguards"] = {"estimator": joint, "sharpness": USUAL}
    for method, given in settings.items():
        model_by_node = gr.NodewiseTransfer(model, **given, random_state=seed)
        fitted = model_by_node.fit(samples, y, data.graph)
        found[method] = errors(lambda v, fitted=fitted: fitted.predict(data.fresh[v], node=v))
    kinds = {"no overlap": data.apart, "changed": data.changed & ~data.apart}
    kinds["unchanged"] = ~(data.changed | data.apart)
    return [
        {
            "problem": name,
            "shift": case,
            "seed": seed,
            "nodes": kind,
            "method": method,
            "error": float(error[mask].mean()),
        }
        for method, error in found.items()
        for kind, mask in kinds.items()
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


def harm(rows: list[dict[str, object]], method: str = "transfer", **wanted: object) -> str:
    """Difference to unweighted models with its standard error."""
    gap = series(rows, method=method, **wanted) - series(rows, method="unweighted", **wanted)
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


def stress_table(rows: list[dict[str, object]]) -> str:
    """Errors where the overlap was removed, and at the shifted nodes beside them."""
    lines = [
        "| problem | unweighted | transfer less unweighted | no safeguards less unweighted | "
        "transfer less unweighted, shifted nodes with overlap |",
        "|---|---|---|---|---|",
    ]
    for name in PROBLEMS:
        at = {"problem": name, "shift": "no overlap", "nodes": "no overlap"}
        cells = [
            name,
            f"{series(rows, method='unweighted', **at).mean():.4f}",
            harm(rows, **at),
            harm(rows, "no safeguards", **at),
            harm(rows, **{**at, "nodes": "changed"}),
        ]
        lines.append("| " + " | ".join(cells) + " |")
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
    page = text.replace("{tables}", tables(rows)).replace("{stress}", stress_table(rows))
    page = page.replace("{draws}", str(len({row["seed"] for row in rows})))
    (HERE.parent / "docs" / "transfer.md").write_text(page)


def main() -> None:
    """Run all draws and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    work = [
        (name, 500 + draw, case)
        for draw in range(options.draws)
        for name in PROBLEMS
        for case in CASES
        if case != "none" or name in WITHOUT
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
