"""Other divergences over the graph: errors of ratios and divergences with every loss.

For draws of the paper's four scenarios with 100 nodes and 50 observations in each sample:

ratio       mean squared error of the relative ratio at alpha = 0.1, under the mixture of each node
KL          mean squared error over nodes of KL(target || reference), at alpha = 0
Jensen-Shannon   the same of the Jensen-Shannon divergence
seconds     processor time of selection and fit at alpha = 0.1

by `GRULSIF` and `GraphRatio` with every loss, and node by node: KLIEP, and logistic regression on
50 Gaussian features of the node, with its bandwidth the median distance and its penalty chosen by
five-fold cross-validation. Exact ratios and divergences come from quadrature. A relative ratio of
a method that estimates the plain ratio r is r / (1 - alpha + alpha r).

Run with `make divergences`, or with other numbers of nodes, observations and draws: python
studies/divergences.py 20 20 1. What is done is kept in studies/divergences.json, so that a run goes
on where the last one stopped; it also writes the tables of docs/guide/divergences.md. Settings were
chosen on draws 0 to 5. After a look at draws from 9,001 on two things about "kl" were changed: that
neighbours share its intercept, and that its divergence is the mean of log f over the target. So the
draws here begin at 40,001, and nothing was chosen on them.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from draws import seeds
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline

import graphratio as gr
from graphratio.datasets import make_scenario

HERE = Path(__file__).parent
STORED = HERE / "divergences.json"
PAGE = HERE.parent / "docs" / "guide" / "divergences.md"
ALPHA = 0.1
N_NODES, N, DRAWS = 100, 50, 4
FIRST_SEED = 40001
SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
LOSSES = ("pearson", "kl", "jensen-shannon")
KINDS = {"GRULSIF": gr.GRULSIF, "GraphRatio": gr.GraphRatio}
Cell = dict[str, float]


class NodewiseLogistic:
    """Log-ratios by logistic regression, node by node."""

    def fit(self, samples: gr.NodeSamples) -> NodewiseLogistic:
        """Choose the penalty of every node, and fit."""
        self.models, self.shift = {}, {}
        for node in samples.nodes:
            reference, target = samples.reference(node), samples.target(node)
            x = np.concatenate([reference, target])
            y = np.repeat([0, 1], [len(reference), len(target)])
            distances = np.linalg.norm(x[:, np.newaxis] - x, axis=2)
            width = np.median(distances[np.triu_indices(len(x), 1)])
            features = Nystroem(
                gamma=0.5 / width**2, n_components=min(50, len(x) // 2), random_state=0
            )
            chosen = LogisticRegressionCV(
                Cs=np.logspace(-3, 2, 6),
                cv=5,
                scoring="neg_log_loss",
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            )
            self.models[node] = make_pipeline(features, chosen).fit(x, y)
            # Of the prior odds in the samples.
            self.shift[node] = np.log(len(reference) / len(target))
        return self

    def log_ratio(self, x: np.ndarray, node: object) -> np.ndarray:
        """Logarithm of the plain ratio of a node, shape (n_points,)."""
        return self.models[node].decision_function(x) + self.shift[node]


def relative(plain: np.ndarray) -> np.ndarray:
    return plain / (1 - ALPHA + ALPHA * plain)


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return fit(), time.process_time() - start


def squared(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean((np.asarray(found) - truth) ** 2))


def of_library(scenario: Any, kind: str, loss: str, seed: int) -> Cell:
    """Errors of an estimator of the library with one loss."""
    settings = {"loss": loss, "random_state": 0}
    data = (scenario.samples, scenario.graph)
    model, spent = timed(lambda: KINDS[kind](alpha=ALPHA, **settings).fit(*data))
    error = scenario.mean_squared_error(model.predict, ALPHA, 2000, random_state=seed)
    cell = {"ratio": float(error.mean()), "seconds": spent}
    if loss == "kl":
        plain = KINDS[kind](alpha=0.0, **settings).fit(*data)
        cell["KL"] = squared(plain.divergence_, scenario.true_kl_divergence())
    if loss == "jensen-shannon":
        truth = scenario.true_jensen_shannon_divergence()
        cell["Jensen-Shannon"] = squared(model.divergence_, truth)
    return cell


def kliep(scenario: Any, seed: int) -> Cell:
    model, spent = timed(lambda: gr.KLIEP(random_state=0).fit(scenario.samples, scenario.graph))
    error = scenario.mean_squared_error(
        lambda x, node: relative(model.predict(x, node)), ALPHA, 2000, random_state=seed
    )
    truth = scenario.true_kl_divergence()
    kl = squared(model.divergence_, truth)
    return {"ratio": float(error.mean()), "seconds": spent, "KL": kl}


def logistic(scenario: Any, seed: int) -> Cell:
    samples = scenario.samples
    model, spent = timed(lambda: NodewiseLogistic().fit(samples))
    error = scenario.mean_squared_error(
        lambda x, node: relative(np.exp(model.log_ratio(x, node))), ALPHA, 2000, random_state=seed
    )
    kl, js = [], []
    for node in samples.nodes:
        low, high = (
            model.log_ratio(x, node) for x in (samples.reference(node), samples.target(node))
        )
        kl.append(high.mean())
        loss = np.logaddexp(0, low).mean() + np.logaddexp(0, -high).mean()
        js.append(np.log(2) - 0.5 * loss)
    return {
        "ratio": float(error.mean()),
        "seconds": spent,
        "KL": squared(np.array(kl), scenario.true_kl_divergence()),
        "Jensen-Shannon": squared(np.array(js), scenario.true_jensen_shannon_divergence()),
    }


def judged(name: str, seed: int, n_nodes: int = N_NODES, n: int = N) -> dict[str, Cell]:
    """All methods on one draw."""
    scenario = make_scenario(name, n_nodes=n_nodes, n=n, random_state=seed)
    cells = {
        f"{kind}, {loss}": of_library(scenario, kind, loss, seed)
        for kind in KINDS
        for loss in LOSSES
    }
    return cells | {"KLIEP": kliep(scenario, seed), "logistic": logistic(scenario, seed)}


def jobs(draws: int = DRAWS) -> Iterator[tuple[str, int]]:
    drawn = {name: list(seeds(name, draws, FIRST_SEED)) for name in SCENARIOS}
    for number in range(draws):
        yield from ((name, drawn[name][number]) for name in SCENARIOS)


def means(stored: dict[str, dict[str, dict[str, Cell]]], column: str) -> dict[str, list[float]]:
    """Mean over draws, by method and scenario, of the methods that have the column."""
    table: dict[str, list[float]] = {}
    for name in SCENARIOS:
        draws = list(stored[name].values())
        for method, cell in draws[0].items():
            if column in cell:
                own = float(np.mean([draw[method][column] for draw in draws]))
                table.setdefault(method, []).append(own)
    return table


def tables(stored: dict[str, dict[str, dict[str, Cell]]]) -> str:
    """The tables of the page."""
    titles = {
        "ratio": "Mean squared error of the relative ratio",
        "KL": "Mean squared error of the KL divergence at alpha = 0, relative to KLIEP",
        "Jensen-Shannon": "Mean squared error of the Jensen-Shannon divergence, relative to "
        "logistic regression node by node",
        "seconds": "Seconds of selection and fit, one thread",
    }
    beside = {"KL": "KLIEP", "Jensen-Shannon": "logistic"}
    lines = []
    for column, title in titles.items():
        found = means(stored, column)
        base = np.array(found[beside[column]]) if column in beside else 1.0
        lines += [f"| {title} | {' | '.join(SCENARIOS)} |", "|---" * (1 + len(SCENARIOS)) + "|"]
        for method, row in found.items():
            shown = " | ".join(f"{value:.2g}" for value in np.array(row) / base)
            lines.append(f"| {method} | {shown} |")
        lines.append("")
    n_draws = min(len(stored[name]) for name in SCENARIOS)
    lines.append(f"Means over {n_draws} draws.")
    return "\n".join(lines)


def main(n_nodes: int = N_NODES, n: int = N, draws: int = DRAWS) -> None:
    """Do what is missing, and write the tables."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    usual = (n_nodes, n) == (N_NODES, N)
    stored = json.loads(STORED.read_text()) if usual and STORED.exists() else {}
    for name, seed in jobs(draws):
        done = stored.setdefault(name, {})
        if str(seed) not in done:
            done[str(seed)] = judged(name, seed, n_nodes, n)
            print(f"{name}, draw {seed}", flush=True)
            if usual:
                STORED.write_text(json.dumps(stored, indent=1) + "\n")
    if not usual:
        print(tables(stored))
        return
    begin, end = "<!-- study -->", "<!-- end of study -->"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(f"{before}{begin}\n\n{tables(stored)}\n\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
