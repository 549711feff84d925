"""How often change-points are found, and how often where there are none.

Five parts: quiet panels, a quiet stream, single series, panels on a grid, and panels of four
clusters. The settings of the detector were chosen on other seeds than those used here.

Run with `make changepoints`, or with the names of parts; appends to studies/changepoints-*.csv what
they lack, and writes the tables in docs/change-points.md. `studies/changepoint_peers.py` runs
ruptures and skchange on the same single series and panels.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from changepoint_draws import (
    PANEL_CHANGE,
    SINGLE,
    clustered_panel,
    found_exactly,
    graph_of,
    grid_panel,
    quiet_panel,
    single_series,
)
from scipy.stats import binom

import graphratio as gr

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "change-points.md"
MARK = "<!-- measured -->"
FIRST_SEED = 1000

QUIET = [
    ("independent", 400, 1), ("independent", 300, 3), ("independent", 300, 100),
    ("t with 3 degrees", 400, 16), ("AR 0.5", 100, 16), ("AR 0.5", 200, 16),
    ("AR 0.5", 1000, 16), ("AR 0.5", 100, 1), ("AR 0.5", 200, 1), ("AR 0.8", 600, 16),
    ("AR 0.8", 600, 1), ("GARCH", 400, 16), ("GARCH", 400, 1), ("GARCH", 2000, 16),
    ("GARCH", 2000, 1), ("correlation 0.3", 400, 16), ("unequal nodes", 400, 16),
]  # fmt: skip
STREAM = [("stream after 120 steps", 400, 16), ("stream after 120 steps", 400, 1)]
GRID = [
    "corner +0.35", "corner +0.2", "corner +0.2, common factor", "corner spread x 1.4",
    "scattered +0.5", "corner +0.35, 5 % missing",
]  # fmt: skip
CLUSTERS = ["shift", "spread x 1.5", "correlation 0.7", "shift, AR 0.5", "shift, common factor"]
COLUMNS = [
    "case", "n_times", "n_nodes", "seed", "n_events", "found", "error", "jaccard", "in_interval",
    "block", "too_short", "seconds",
]  # fmt: skip

Row = dict[str, Any]


def fitted(panel: np.ndarray, graph: gr.Graph, seed: int) -> tuple[Any, float]:
    """A detector with its defaults, and the processor time of its fit."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gr.exceptions.DataWarning)
        found = gr.GraphChangePointDetector(random_state=seed).fit(panel, graph, missing="drop")
    return found, time.process_time() - began


def outcome(case: str, detector: Any, seconds: float, seed: int) -> Row:
    """What was found, without comparison with the truth."""
    n_times, n_nodes = detector.panel_.shape[:2]
    return dict.fromkeys(COLUMNS, "") | {
        "case": case,
        "n_times": n_times,
        "n_nodes": n_nodes,
        "seed": seed,
        "n_events": len(detector.events_),
        "found": " ".join(str(step) for step in detector.predict()[:-1]),
        "block": detector.block_,
        "too_short": int(detector.too_short_),
        "seconds": round(seconds, 3),
    }


def quiet(case: tuple[str, int, int], seed: int) -> Row:
    """A panel without change."""
    return outcome(case[0], *fitted(quiet_panel(*case, seed), graph_of(case[2]), seed), seed)


def stream(case: tuple[str, int, int], seed: int) -> Row:
    """400 quiet steps one by one, after a fit on 120."""
    panel = quiet_panel("independent", 120 + case[1], case[2], seed)
    detector, seconds = fitted(panel[:120], graph_of(case[2]), seed)
    before = len(detector.events_)
    alarms = sum(detector.update(x) is not None for x in panel[120:])
    row = outcome(case[0], detector, seconds, seed)
    return row | {"n_times": case[1], "n_events": alarms, "too_short": before}


def single(case: str, seed: int) -> Row:
    """One series of 400 steps; `in_interval` says whether exactly the true changes were found."""
    detector, seconds = fitted(single_series(case, seed), gr.Graph.empty(1), seed)
    row = outcome(case, detector, seconds, seed)
    return row | {"in_interval": int(found_exactly(case, detector.predict()[:-1]))}


def changed(case: str, seed: int, draw: Callable[..., Any], step: int) -> Row:
    """A panel with a change; the nearest event counts as the change."""
    panel, graph, nodes = draw(case, seed)
    detector, seconds = fitted(panel, graph, seed)
    row = outcome(case, detector, seconds, seed)
    if detector.events_:
        event = min(detector.events_, key=lambda one: abs(one.step - step))
        named, true = set(event.nodes), set(nodes.tolist())
        row |= {
            "error": event.step - step,
            "jaccard": round(len(named & true) / len(named | true), 4),
            "in_interval": int(event.interval[0] <= step <= event.interval[1]),
        }
    return row


# Cases, number of draws, and what is done with one.
PARTS: dict[str, tuple[list[Any], int, Callable[[Any, int], Row]]] = {
    "single": (["none", *SINGLE], 400, single),
    "grid": (GRID, 100, lambda case, seed: changed(case, seed, grid_panel, PANEL_CHANGE)),
    "quiet": (QUIET, 200, quiet),
    "stream": (STREAM, 100, stream),
    "clusters": (CLUSTERS, 20, lambda case, seed: changed(case, seed, clustered_panel, 600)),
}


def stored(part: str) -> list[Row]:
    """Rows of a part that have been computed."""
    path = HERE / f"changepoints-{part}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(part: str) -> None:
    """Compute what a part lacks, seed by seed, so that a run that is stopped has some of all."""
    cases, n_draws, one = PARTS[part]
    rows = stored(part)
    done = {(row["case"], row["n_times"], row["n_nodes"], row["seed"]) for row in rows}
    with (HERE / f"changepoints-{part}.csv").open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, lineterminator="\n")
        if not rows:
            writer.writeheader()
        for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
            for case in cases:
                name = case if isinstance(case, str) else case[0]
                sizes = _sizes(part, case)
                if (name, *sizes, str(seed)) not in done:
                    writer.writerow(one(case, seed))
                    file.flush()
            print(f"\r{part}: seed {seed}", end="", flush=True)
    print()


def _sizes(part: str, case: Any) -> tuple[str, str]:
    if not isinstance(case, str):
        return str(case[1]), str(case[2])
    return {"single": ("400", "1"), "grid": ("600", "100"), "clusters": ("1000", "100")}[part]


def _chosen(rows: list[Row], part: str, case: Any) -> list[Row]:
    name = case if isinstance(case, str) else case[0]
    key = (name, *_sizes(part, case))
    return [row for row in rows if (row["case"], row["n_times"], row["n_nodes"]) == key]


def quiet_table() -> Iterator[str]:
    """False alarms of quiet panels and streams."""
    yield "| data | steps | nodes | panels | with a false alarm | 99 % band | too short to tell |"
    yield "|---|---|---|---|---|---|---|"
    for part in ("quiet", "stream"):
        rows = stored(part)
        for case in PARTS[part][0]:
            some = _chosen(rows, part, case)
            if not some:
                continue
            share = np.mean([int(row["n_events"]) > 0 for row in some])
            low, high = binom.ppf([0.005, 0.995], len(some), 0.05) / len(some)
            short = np.mean([int(row["too_short"]) > 0 for row in some])
            yield (
                f"| {case[0]} | {case[1]} | {case[2]} | {len(some)} | {share:.1%} | "
                f"{low:.1%} to {high:.1%} | {'' if part == 'stream' else f'{short:.0%}'} |"
            )


def single_table() -> Iterator[str]:
    """Single series beside ruptures and skchange, over the same draws."""
    path = HERE / "changepoints-peers.csv"
    peers: list[Row] = []
    if path.exists():
        with path.open(newline="") as file:
            peers = list(csv.DictReader(file))
    yield "| change | series | detector | ruptures KernelCPD | skchange CUSUM |"
    yield "|---|---|---|---|---|"
    rows = stored("single")
    for case in ("none", *SINGLE):
        theirs = {row["seed"]: row for row in peers if row["case"] == case}
        some = [row for row in _chosen(rows, "single", case) if row["seed"] in theirs]
        if not some:
            continue
        ours = np.mean([int(row["in_interval"]) for row in some])
        other = [
            np.mean([int(theirs[row["seed"]][name]) for row in some])
            for name in ("ruptures", "skchange")
        ]
        yield f"| {case} | {len(some)} | {ours:.2f} | {other[0]:.2f} | {other[1]:.2f} |"


def change_table(part: str) -> Iterator[str]:
    """Panels with a change."""
    yield (
        "| change | panels | detected | within 5 | within 15 | within 20 | Jaccard, median | "
        "in the interval | further events per panel |"
        + (" ESAC: found | within 15 |" if part == "grid" else "")
    )
    yield "|---|---|---|---|---|---|---|---|---|" + ("---|---|" if part == "grid" else "")
    rows, esac = stored(part), stored("esac")
    for case in PARTS[part][0]:
        some = _chosen(rows, part, case)
        if not some:
            continue
        hits = [row for row in some if row["error"] != ""]
        error = np.array([abs(int(row["error"])) for row in hits])
        near = [np.sum(error <= reach) / len(some) for reach in (5, 15, 20)]
        inside = np.mean([int(row["in_interval"]) for row in hits])
        further = sum(int(row["n_events"]) for row in some) - len(hits)
        yield (
            f"| {case} | {len(some)} | {len(hits) / len(some):.0%} | "
            f"{near[0]:.0%} | {near[1]:.0%} | {near[2]:.0%} | "
            f"{np.median([float(row['jaccard']) for row in hits]):.2f} | "
            f"{inside:.0%} | {further / len(some):.2f} |"
            + (_esac_cells([row for row in esac if row["case"] == case]) if part == "grid" else "")
        )


def _esac_cells(rows: list[Row]) -> str:
    """What skchange finds by ESAC scores on the same panels, where it was run."""
    if not rows:
        return "  |  |"
    near = [row["error"] != "" and abs(int(row["error"])) <= 15 for row in rows]
    return f" {np.mean([int(row['n_found']) > 0 for row in rows]):.0%} | {np.mean(near):.0%} |"


def esac_alarms() -> Iterator[str]:
    """How often ESAC finds something where nothing changes."""
    rows = [row for row in stored("esac") if row["case"] == "none"]
    if rows:
        share = np.mean([int(row["n_found"]) > 0 for row in rows])
        yield f"ESAC finds a change in {share:.0%} of {len(rows)} panels without one."


def write_page() -> None:
    """Write the tables into the page."""
    tables = [quiet_table(), single_table(), change_table("grid")]
    tables += [esac_alarms(), change_table("clusters")]
    begin = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(f"{begin}{MARK}\n\n" + "\n\n".join("\n".join(t) for t in tables) + "\n")
    print("wrote docs/change-points.md")


if __name__ == "__main__":
    for chosen_part in sys.argv[1:] or PARTS:
        run(chosen_part)
    write_page()
