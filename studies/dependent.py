"""False alarms, power and bounds on data that depend on time, with nothing set but `time`.

Every cell draws data sets of 50 nodes on a ring. The test says how many nodes changed at a
family-wise error rate of 5 %, or that the data cannot say. In quiet cells nothing changed. The
common factor is a level that all nodes share in every piece of ten successive times. In the cells
of bounds the first half of the ring is shifted by one standard deviation, and 90 % lower bounds of
an estimator are compared with the true divergence.

Run with `make dependent`, or for some time: python studies/dependent.py 600. What is done is kept
in studies/dependent.csv; a run goes on where the last one stopped. The tables are part of
docs/calibration.md.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import graphratio as gr
from graphratio.exceptions import DataWarning

TABLE = Path(__file__).parent / "dependent.csv"
COLUMNS = ("cell", "seed", "answerable", "rejected", "block", "bounds", "held")
N_NODES = 50
SHARE_OF_FACTOR = 0.4
# No setting was chosen on these draws.
FIRST_SEED, FIRST_SEED_OF_BOUNDS = 11_000, 5000
Array = np.ndarray


@dataclass(frozen=True)
class Cell:
    """The law of a node, the observations per sample, and the shift of all nodes."""

    law: str
    n: int
    sets: int
    phi: float = 0.0
    factor: bool = False
    shift: float = 0.0
    timed: bool = True
    bounds: str = ""

    @property
    def name(self) -> str:
        """The cell in the table."""
        words = [self.law if self.law != "AR" else f"AR(1) {self.phi:g}", f"n = {self.n}"]
        words += ["common factor"] * self.factor
        words += [f"shift {self.shift:g}"] * bool(self.shift)
        words += ["times not given"] * (not self.timed)
        words += [f"bounds of {self.bounds}"] * bool(self.bounds)
        return ", ".join(words)


CELLS = [
    Cell("independent", 150, 100),
    Cell("AR", 150, 100, 0.5),
    Cell("AR", 150, 100, 0.5, factor=True),
    Cell("AR", 600, 100, 0.8),
    Cell("AR", 600, 100, 0.8, factor=True),
    Cell("AR", 150, 100, 0.8),
    Cell("GARCH", 400, 100),
    Cell("GARCH", 600, 60),
    Cell("AR", 150, 40, 0.5, shift=1.5),
    Cell("independent", 50, 60, shift=0.6),
    Cell("independent", 50, 60, shift=0.6, timed=False),
    Cell("AR", 150, 20, 0.5, timed=False),
    Cell("AR", 150, 300, 0.5, shift=1.0, bounds="GRULSIF"),
    Cell("AR", 150, 200, 0.5, shift=1.0, bounds="GraphRatio"),
]


def autoregressive(rng: np.random.Generator, n: int, phi: float) -> Array:
    """Series of all nodes with variance 1, shape (n_nodes, n)."""
    x = rng.normal(size=(N_NODES, n + 100))
    for t in range(1, n + 100):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1 - phi**2) * x[:, t]
    return x[:, 100:]


def volatile(rng: np.random.Generator, n: int) -> Array:
    """Series whose variance remembers the past, GARCH(0.1, 0.85)."""
    x = rng.normal(size=(N_NODES, n + 200))
    variance = np.ones(N_NODES)
    for t in range(n + 200):
        x[:, t] *= np.sqrt(variance)
        variance = 0.05 + 0.1 * x[:, t] ** 2 + 0.85 * variance
    return x[:, 200:]


def drawn(cell: Cell, rng: np.random.Generator) -> Array:
    """One sample of all nodes, shape (n_nodes, n)."""
    x = volatile(rng, cell.n) if cell.law == "GARCH" else autoregressive(rng, cell.n, cell.phi)
    if cell.factor:
        level = rng.normal(size=-(-cell.n // 10)).repeat(10)[: cell.n]
        x = np.sqrt(1 - SHARE_OF_FACTOR) * x + np.sqrt(SHARE_OF_FACTOR) * level
    return x


def samples_of(cell: Cell, seed: int) -> gr.NodeSamples:
    rng = np.random.default_rng([seed, cell.n])
    shifted = np.arange(N_NODES) < (N_NODES // 2 if cell.bounds else N_NODES)
    reference, target = drawn(cell, rng), drawn(cell, rng) + cell.shift * shifted[:, np.newaxis]
    times = (np.arange(cell.n), np.arange(cell.n) + 10 * cell.n)
    options = {"time": times} if cell.timed else {}
    return gr.NodeSamples.from_arrays(list(reference), list(target), **options)


def true_divergence(shift: float, alpha: float) -> float:
    """Relative Pearson divergence of two normal laws that differ by a shift."""
    x = np.linspace(-12, 12 + shift, 100_001)
    target, reference = (np.exp(-((x - mean) ** 2) / 2) / np.sqrt(2 * np.pi) for mean in (shift, 0))
    mixed = alpha * target + (1 - alpha) * reference
    return float(0.5 * np.trapezoid(target**2 / mixed, x) - 0.5)


def judged(cell: Cell, seed: int) -> tuple[int, int, int, int, int]:
    """Whether the data can say anything, nodes called changed, length of a block; bounds that held.

    A bound of a shifted node holds if it is at most the true divergence.
    """
    ring = gr.Graph.from_edges([(i, (i + 1) % N_NODES) for i in range(N_NODES)])
    samples = samples_of(cell, seed)
    if not cell.bounds:
        found = gr.two_sample_test(samples, ring, random_state=seed)
        return int(found.answerable), found.n_rejected, found.blocks.length, 0, 0
    model = getattr(gr, cell.bounds)(random_state=seed)
    bounds = gr.divergence_bounds(samples, ring, model, random_state=seed)
    lower = bounds.true_divergence_lower_bound[: N_NODES // 2]
    lower = lower[np.isfinite(lower)]
    held = int((lower <= true_divergence(cell.shift, model.alpha)).sum())
    changed, length = int(bounds.changed.sum()), bounds.blocks.length
    return int(bounds.answerable), changed, length, len(lower), held


def jobs() -> Iterator[tuple[Cell, int]]:
    """All data sets, a few of every cell at a time."""
    for begin in range(0, max(cell.sets for cell in CELLS), 10):
        for cell in CELLS:
            last = min(begin + 10, cell.sets)
            first = FIRST_SEED_OF_BOUNDS if cell.bounds else FIRST_SEED
            yield from ((cell, first + number) for number in range(begin, last))


def main(seconds: float) -> None:
    warnings.simplefilter("ignore", DataWarning)
    done = set()
    if TABLE.exists():
        with TABLE.open() as file:
            done = {(row["cell"], int(row["seed"])) for row in csv.DictReader(file)}
    else:
        TABLE.write_text(",".join(COLUMNS) + "\n")
    stop = time.monotonic() + seconds
    for cell, seed in jobs():
        if (cell.name, seed) in done:
            continue
        if time.monotonic() > stop:
            break
        found = judged(cell, seed)
        with TABLE.open("a") as file:
            csv.writer(file, lineterminator="\n").writerow((cell.name, seed, *found))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
