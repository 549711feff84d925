"""Few observations of real networks: how well do the estimates describe the rest?

From every node and sample a few observations are drawn at random. The estimators see these; the
mean Pearson divergence that their ratios reach on all other observations judges them, higher is
better. Differences are paired within draws.

Run with `make real-data`, or for some time: python studies/real_data.py 400. What is done is kept
in studies/real-data.csv, so that a run goes on where the last one stopped; it also writes
docs/real-data.md. Draws have the seeds from 1,000 on; GraphRatio was developed on others.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from real_data_page import write_page

import graphratio as gr
from graphratio.exceptions import DataWarning

HERE = Path(__file__).parent
TABLE = HERE / "real-data.csv"
COLUMNS = ("data", "n", "seed", "method", "divergence")
FIRST_SEED = 1000
DRAWS = {"flights": 40, "sea": 10}
SIZES = {"flights": (8, 15, 30, 60), "sea": (8, 15, 30)}
METHODS = {
    "GraphRatio": lambda: gr.GraphRatio(random_state=0),
    "GRULSIF": lambda: gr.GRULSIF(prior_ratio=1.0, random_state=0),
    "Pool": lambda: gr.Pool(prior_ratio=1.0, random_state=0),
    "RULSIF": lambda: gr.RULSIF(random_state=0),
}
Job = tuple[str, int, int]


def jobs() -> Iterator[Job]:
    """All draws, the first of every cell first."""
    for draw in range(max(DRAWS.values())):
        for data, sizes in SIZES.items():
            if draw < DRAWS[data]:
                yield from ((data, n, FIRST_SEED + draw) for n in sizes)


def drawn(samples: gr.NodeSamples, n: int, seed: int) -> tuple[gr.NodeSamples, gr.NodeSamples]:
    """At random n observations of every sample, and the others."""
    keys = np.random.default_rng(seed).random(samples.n_observations)
    segments = samples.segments
    order = np.lexsort((keys, segments))
    position = np.arange(samples.n_observations) - samples.offsets[segments]
    chosen = np.zeros(samples.n_observations, dtype=bool)
    chosen[order] = position < n
    return samples.subset(observations=chosen), samples.subset(observations=~chosen)


def judged(data, n: int, seed: int) -> dict[str, float]:
    """Mean divergence over nodes that the ratios of every method reach on the rest."""
    few, rest = drawn(data.samples.standardized(), n, seed)
    return {
        name: float(np.mean(make().fit(few, data.graph).divergence(rest)))
        for name, make in METHODS.items()
    }


def main(seconds: float) -> None:
    warnings.simplefilter("ignore", DataWarning)
    loaded = {
        "flights": gr.datasets.load_flights(),
        "sea": gr.datasets.load_sea_temperature(),
    }
    done = set()
    if TABLE.exists():
        with TABLE.open() as file:
            done = {(row["data"], int(row["n"]), int(row["seed"])) for row in csv.DictReader(file)}
    else:
        TABLE.write_text(",".join(COLUMNS) + "\n")
    stop = time.monotonic() + seconds
    for data, n, seed in jobs():
        if (data, n, seed) in done:
            continue
        if time.monotonic() > stop:
            break
        found = judged(loaded[data], n, seed)
        with TABLE.open("a") as file:
            csv.writer(file, lineterminator="\n").writerows(
                (data, n, seed, method, f"{value:.6g}") for method, value in found.items()
            )
        print(data, n, seed, {method: round(value, 4) for method, value in found.items()})
    write_page(TABLE)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
