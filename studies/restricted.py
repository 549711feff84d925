"""What a dictionary without observations costs in accuracy.

The same fits with the paper's dictionary, with centres of 5, 10 and 20 observations, and with
quasi-random points in bounds that were declared before any data were drawn. On the scenarios the
measure is the paper's mean squared error of the ratio, lower is better; on the flights it is the
mean divergence that ratios reach on all other observations, higher is better. Differences are
paired within draws.

Run with `make restricted`, or for some time: python studies/restricted.py 400. What is done is
kept in studies/restricted.csv, so that a run goes on where the last one stopped; it also writes the
tables of docs/restricted-data.md. Draws have the seeds from 9,001 on; the rules of the dictionaries
were chosen on others.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from beyond_page import header, mean_and_error
from draws import seeds
from real_data import drawn

import graphratio as gr
from graphratio.datasets import make_scenario

HERE = Path(__file__).parent
TABLE = HERE / "restricted.csv"
PAGE = HERE.parent / "docs" / "restricted-data.md"
COLUMNS = ("data", "seed", "estimator", "dictionary", "value", "atoms")
FIRST_SEED = 9001
DRAWS = 10
ALPHA = 0.1
# Observations per node and sample, and points per node on which the error is measured.
SIZES = {"scenario": 50, "flights": 30}
FRESH = 5_000
BOUNDS: dict[str, list[tuple[float, float]]] = {
    "Ia": [(-6, 6)],
    "Ib": [(-6, 6)] * 2,
    "IIa": [(-6, 6)] * 3,
    "IIb": [(-15, 15)] * 2,
    "flights": [(0, 700)],
}
ESTIMATORS = {"GRULSIF": gr.GRULSIF, "GraphRatio": gr.GraphRatio}


def dictionaries(data: str) -> dict[str, dict[str, Any]]:
    """Parameters of an estimator, by the name of the dictionary."""
    centres = {f"centres of {k}": {"dictionary": "centres", "group_size": k} for k in (5, 10, 20)}
    points = {"dictionary": "quasi-random", "bounds": BOUNDS[data]}
    return {"observations": {}, **centres, "quasi-random": points}


def judged(data: str, seed: int, n: int, fresh: int) -> Iterator[tuple[str, str, float, int]]:
    """Estimator, dictionary, value and number of atoms, for all pairs on one draw."""
    if data == "flights":
        whole = gr.datasets.load_flights()
        samples, rest = drawn(whole.samples.standardized(), n, seed)
        graph = whole.graph
    else:
        scenario = make_scenario(data, n=n, random_state=seed)
        samples, graph = scenario.samples, scenario.graph
    for name, kind in ESTIMATORS.items():
        for label, options in dictionaries(data).items():
            model = kind(alpha=ALPHA, random_state=0, **options).fit(samples, graph)
            if data == "flights":
                value = np.mean(model.divergence(rest))
            else:
                value = scenario.mean_squared_error(
                    model.predict, ALPHA, fresh, random_state=seed
                ).mean()
            yield name, label, float(value), model.n_atoms_


def jobs() -> Iterator[tuple[str, int]]:
    """All draws, the first of every data set first."""
    of = {
        data: range(FIRST_SEED, FIRST_SEED + DRAWS)
        if data == "flights"
        else list(seeds(data, DRAWS, FIRST_SEED))
        for data in BOUNDS
    }
    for draw in range(DRAWS):
        yield from ((data, of[data][draw]) for data in BOUNDS)


def tables(path: Path) -> str:
    """Means with the paper's dictionary, and paired differences of the others, in Markdown."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    atoms: dict[tuple[str, str], list[int]] = defaultdict(list)
    with path.open() as file:
        for row in csv.DictReader(file):
            found[row["estimator"], row["dictionary"], row["data"]].append(float(row["value"]))
            if row["estimator"] == "GRULSIF":
                atoms[row["dictionary"], row["data"]].append(int(row["atoms"]))
    lines: list[str] = []
    labels = list(dictionaries("Ia"))
    for name in ESTIMATORS:
        lines += header(name, list(BOUNDS))
        shown = [mean_and_error(found[name, labels[0], data], ".3f") for data in BOUNDS]
        lines.append(f"| {labels[0]} | " + " | ".join(shown) + " |")
        for label in labels[1:]:
            shown = [
                mean_and_error(
                    list(np.subtract(found[name, label, data], found[name, labels[0], data])),
                    "+.3f",
                )
                for data in BOUNDS
            ]
            lines.append(f"| {label}, difference | " + " | ".join(shown) + " |")
        lines.append("")
    lines += header("atoms, mean", list(BOUNDS))
    for label in labels:
        shown = [f"{np.mean(atoms[label, data]):.0f}" for data in BOUNDS]
        lines.append(f"| {label} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def write_page() -> None:
    """Put the tables between the two marks of the page."""
    first, last = "<!-- accuracy: measured -->\n", "<!-- accuracy: end -->\n"
    before, rest = PAGE.read_text(encoding="utf-8").split(first)
    text = before + first + "\n" + tables(TABLE) + "\n" + last + rest.split(last)[1]
    PAGE.write_text(text, encoding="utf-8")


def main(seconds: float) -> None:
    done = set()
    if TABLE.exists():
        with TABLE.open() as file:
            done = {(row["data"], int(row["seed"])) for row in csv.DictReader(file)}
    else:
        TABLE.write_text(",".join(COLUMNS) + "\n")
    stop = time.monotonic() + seconds
    for data, seed in jobs():
        if (data, seed) in done:
            continue
        if time.monotonic() > stop:
            break
        n = SIZES["flights" if data == "flights" else "scenario"]
        rows = [
            (data, seed, *names, f"{value:.6g}", atoms)
            for *names, value, atoms in judged(data, seed, n, FRESH)
        ]
        with TABLE.open("a") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        print(data, seed, f"{rows[0][-2]} with observations", flush=True)
    write_page()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
