"""How often change-points are found, and how often where there are none.

Panels of 100 nodes in four clusters (the stochastic block model of the paper) and 1,000 steps.
Either nothing changes, or one cluster of 25 nodes does at step 600: by a shift of one standard
deviation, by a standard deviation half as large again, or by a correlation of 0.7 between two
features that had none. Observations are Gaussian, independent, or with an autocorrelation of
0.5, or with a correlation of 0.3 between all nodes.

Run with `make changepoints`; appends to studies/changepoints.csv what it lacks, and writes the
table in docs/change-points.md.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.stats import binom

import graphratio as gr
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.datasets.random_graphs import clustered

HERE = Path(__file__).parent
RESULTS = HERE / "changepoints.csv"
PAGE = HERE.parent / "docs" / "change-points.md"
MARK = "<!-- measured -->"

N_NODES, N_TIMES, CHANGE, WINDOW = 100, 1000, 600, 50
NEAR = 15
BURN_IN = 50

# change, autocorrelation, correlation between nodes, number of panels
CELLS = [
    ("none", 0.5, 0.0, 200),
    ("shift", 0.0, 0.0, 100),
    ("none", 0.0, 0.3, 200),
    ("none", 0.0, 0.0, 200),
    ("variance", 0.0, 0.0, 50),
    ("correlation", 0.0, 0.0, 50),
    ("shift", 0.5, 0.0, 50),
    ("shift", 0.0, 0.3, 50),
]
COLUMNS = [
    "change", "autocorrelation", "node_correlation", "seed", "n_events", "error", "jaccard",
    "in_interval", "delay", "onset_error", "block", "seconds",
]  # fmt: skip


def draw_panel(
    change: str,
    autocorrelation: float,
    node_correlation: float,
    seed: int,
    n_nodes: int = N_NODES,
    n_times: int = N_TIMES,
    step: int = CHANGE,
) -> tuple[FloatArray, gr.Graph, IntArray]:
    """A panel, its graph, and the nodes that change at `step`."""
    rng = np.random.default_rng(seed)
    adjacency, groups = clustered(n_nodes, rng)
    changed = np.flatnonzero(groups == "C2")
    n_features = 2 if change in ("variance", "correlation") else 1
    shape = (n_times + BURN_IN, n_nodes, n_features)
    common = rng.normal(size=(shape[0], 1, n_features))
    noise = np.sqrt(1 - node_correlation) * rng.normal(size=shape)
    noise = noise + np.sqrt(node_correlation) * common
    if autocorrelation:
        gain = np.sqrt(1 - autocorrelation**2)
        noise = lfilter([gain], [1, -autocorrelation], noise, axis=0)
    panel = noise[BURN_IN:]
    after = panel[step:, changed]
    if change == "shift":
        after = after + 1.0
    elif change == "variance":
        after = after * 1.5
    elif change == "correlation":
        mixed = 0.7 * after[:, :, 0] + np.sqrt(1 - 0.7**2) * after[:, :, 1]
        after = np.stack([after[:, :, 0], mixed], axis=2)
    panel[step:, changed] = after
    return panel, gr.Graph.from_adjacency(adjacency), changed


def one_panel(change: str, autocorrelation: float, node_correlation: float, seed: int) -> dict:
    """Outcome on one panel; the nearest event counts as the change."""
    panel, graph, changed = draw_panel(change, autocorrelation, node_correlation, seed)
    began = time.process_time()
    detector = gr.GraphChangePointDetector(WINDOW, random_state=seed).fit(panel, graph)
    seconds = time.process_time() - began
    row = dict.fromkeys(COLUMNS, "")
    row |= {
        "change": change,
        "autocorrelation": autocorrelation,
        "node_correlation": node_correlation,
        "seed": seed,
        "n_events": len(detector.events_),
        "block": detector.block_,
        "seconds": round(seconds, 2),
    }
    if change != "none" and detector.events_:
        event = min(detector.events_, key=lambda one: abs(one.step - CHANGE))
        found, true = set(event.nodes), set(changed.tolist())
        onsets = [onset for node, onset in event.onsets.items() if node in true]
        row |= {
            "error": event.step - CHANGE,
            "jaccard": round(len(found & true) / len(found | true), 4),
            "in_interval": int(event.interval[0] <= CHANGE <= event.interval[1]),
            "delay": event.alarm - CHANGE,
            "onset_error": round(float(np.mean(np.abs(np.subtract(onsets, CHANGE)))), 2)
            if onsets
            else "",
        }
    return row


def table(rows: list[dict]) -> str:
    """The tables of the page, from the rows of the results."""
    quiet = [
        "| autocorrelation | correlation between nodes | panels | with a false alarm | 99 % band |",
        "|---|---|---|---|---|",
    ]
    found = [
        "| change | autocorrelation | correlation between nodes | panels | found within 15 steps | "
        "Jaccard, median | in the interval | alarm after, median | further events per panel |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for change, autocorrelation, node_correlation, _ in CELLS:
        cell = (change, str(autocorrelation), str(node_correlation))
        chosen = [
            row
            for row in rows
            if (row["change"], str(row["autocorrelation"]), str(row["node_correlation"])) == cell
        ]
        n = len(chosen)
        if not n:
            continue
        events = np.array([int(row["n_events"]) for row in chosen])
        if change == "none":
            low, high = binom.ppf([0.005, 0.995], n, 0.05) / n
            quiet.append(
                f"| {autocorrelation} | {node_correlation} | {n} | {np.mean(events > 0):.1%} | "
                f"{low:.1%} to {high:.1%} |"
            )
            continue
        hits = [row for row in chosen if row["error"] != "" and abs(int(row["error"])) <= NEAR]
        inside = np.mean([int(row["in_interval"]) for row in hits])
        found.append(
            f"| {change} | {autocorrelation} | {node_correlation} | {n} | {len(hits) / n:.0%} | "
            f"{np.median([float(row['jaccard']) for row in hits]):.2f} | {inside:.0%} | "
            f"{np.median([int(row['delay']) for row in hits]):.0f} steps | "
            f"{(events.sum() - len(hits)) / n:.2f} |"
        )
    seconds = np.median([float(row["seconds"]) for row in rows])
    return "\n".join([*quiet, "", *found, "", f"Median processor time of a fit: {seconds:.1f} s."])


def main() -> None:
    """Run what the results lack, and write the page."""
    rows: list[dict] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
    done = {
        (r["change"], float(r["autocorrelation"]), float(r["node_correlation"]), int(r["seed"]))
        for r in rows
    }
    # Seed by seed, so that a run that is stopped has seen some of everything.
    work = [(*cell[:3], seed) for seed in range(200) for cell in CELLS if seed < cell[3]]
    with RESULTS.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=COLUMNS, lineterminator="\n")
        if not rows:
            writer.writeheader()
        for count, item in enumerate(work, start=1):
            if item not in done:
                rows.append(one_panel(*item))
                writer.writerow(rows[-1])
                stream.flush()
            print(f"\r{count}/{len(work)} panels", end="", flush=True)
    print()
    begin, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{begin}{MARK}\n\n{table(rows)}\n")
    print("wrote studies/changepoints.csv and docs/change-points.md")


if __name__ == "__main__":
    main()
