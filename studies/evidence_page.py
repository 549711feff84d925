"""The tables of docs/evidence.md, from the stored studies: `python studies/evidence_page.py`.

Every number of that page is taken from a file of `studies` or `benchmarks`; between two marks of
the page stands what this program writes there. A test pins the page to the files.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from beyond_page import by_method, header, mean_and_error
from real_data_page import read

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "evidence.md"
SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
Rows = list[dict[str, str]]


def rows_of(name: str) -> Rows:
    """Rows of a stored table."""
    with (HERE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def line(first: str, cells: Iterable[str]) -> str:
    # A value and its error stay on one line.
    return f"| {first} | " + " | ".join(cells).replace(" ± ", "\u00a0±\u00a0") + " |"


def accuracy() -> list[str]:
    """Mean squared errors on the paper's scenarios; RULSIF was run on other draws."""
    ours = by_method(rows_of("beyond-accuracy"), "error")
    single: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows_of("accuracy"):
        if row["method"] == "RULSIF":
            single[row["scenario"], row["n"]].append(float(row["error"]))
    lines = header("scenario", ["n", "GraphRatio", "GRULSIF", "POOL", "RULSIF"])
    for n in ("50", "250"):
        for name in SCENARIOS:
            values = [
                [*ours[method, f"{name} n={n}"].values()]
                for method in ("GraphRatio", "GRULSIF", "POOL")
            ]
            cells = [mean_and_error(each, ".3f") for each in (*values, single[name, n])]
            lines.append(line(name, [n, *cells]))
    return lines


def real_data() -> list[str]:
    """Divergence on hidden observations of two real networks."""
    found = read(HERE / "real-data.csv")
    lines = header("data", ["per sample", "GraphRatio", "GRULSIF", "Pool", "RULSIF"])
    for data, title in (("flights", "flights, 67 airports"), ("sea", "sea, 421 blocks")):
        for n in sorted(found[data]["GRULSIF"]):
            cells = [
                mean_and_error(found[data][method][n], ".2f")
                for method in ("GraphRatio", "GRULSIF", "Pool", "RULSIF")
            ]
            lines.append(line(title, [str(n), *cells]))
    return lines


# What the calibration measured, as it is called there, and as it is called on the page.
_ALARMS = (
    ("nothing changed", "node", "a node", "nothing changed: an unchanged node"),
    ("nothing changed", "node", "any node, Holm", "nothing changed: any node, Holm"),
    ("four nodes among changed ones", "node", "a node", "an unchanged node among changed ones"),
    ("common factor 0.5, with times", "node", "any node", "correlated nodes: any node, Holm"),
    ("nothing changed", "global", "whole graph", "nothing changed: the whole graph"),
    ("autoregression 0.3, blocks of 25", "node", "a node", "autocorrelated rows, with blocks"),
    ("autoregression 0.3, no blocks", "node", "a node", "**autocorrelated rows, times not given**"),
    ("correlation 0.6, without times", "global", "whole graph",
     "**correlated nodes, times not given: the whole graph**"),
)  # fmt: skip


def false_alarms() -> list[str]:
    """Rates of rejection at a nominal level of 5 %."""
    found = {
        (row["cell"], row["null"], row["kind"]): row
        for row in rows_of("calibration")
        if float(row["level"]) == 0.05
    }
    lines = header("at a level of 5 %", ["data sets", "rejected"])
    for *key, title in _ALARMS:
        row = found[tuple(key)]
        lines.append(line(title, [row["n_sets"], f"{float(row['rate']):.1%}"]))
    return lines


def power() -> list[str]:
    """Share of changed nodes found, n = 50, beside tests that look at each node by itself."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows_of("calibration_power"):
        found[row["scenario"], row["test"], row["correction"]].append(float(row["power"]))
    columns = [("graphratio", "fwer"), ("energy", "fwer"), ("MMD", "fwer"),
               ("graphratio", "fdr"), ("energy", "fdr"), ("MMD", "fdr")]  # fmt: skip
    named = {"fwer": "Holm", "fdr": "FDR"}
    lines = header("scenario", [f"{test}, {named[each]}" for test, each in columns])
    for name in SCENARIOS:
        cells = [f"{np.mean(found[name, test, each]):.2f}" for test, each in columns]
        lines.append(line(name, cells))
    return lines


def lone() -> list[str]:
    """Share found where one node changes alone, or against its neighbours."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of("calibration_lone"):
        found[row["case"]][row["test"]].append(float(row["found"]))
    tests = ("graphratio", "energy", "MMD", "KS")
    lines = header("change", list(tests))
    for case, values in found.items():
        cells = [f"{np.mean(values[test]):.2f}" if values[test] else "" for test in tests]
        lines.append(line(case, cells))
    return lines


def coverage() -> list[str]:
    """Bounds and intervals at a nominal 90 %, over all nodes of a scenario."""
    counts: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(3))
    lowest: dict[tuple[str, str], dict[str, np.ndarray]] = defaultdict(
        lambda: defaultdict(lambda: np.zeros(3))
    )
    for row in rows_of("intervals_bounds"):
        key = row["scenario"], row["n"]
        these = np.array([int(row[c]) for c in ("nodes", "bound_holds", "interval_covers")])
        counts[key] += these
        lowest[key][row["group"]] += these
    columns = ["n", "bounds hold", "worst group", "intervals cover", "worst group"]
    lines = header("scenario", columns)
    for name, n in ((name, n) for name in SCENARIOS for n in ("50", "100", "250")):
        nodes, holds, covers = counts[name, n]
        worst = [min(each[k] / each[0] for each in lowest[name, n].values()) for k in (1, 2)]
        shares = (holds / nodes, worst[0], covers / nodes, worst[1])
        lines.append(line(name, [n, *(f"{share:.1%}" for share in shares)]))
    return lines


def change_points() -> list[str]:
    """Single series beside ruptures and skchange: exactly the true changes, within 15 steps."""
    peers = {(row["case"], row["seed"]): row for row in rows_of("changepoints-peers")}
    own = [row for row in rows_of("changepoints-single") if (row["case"], row["seed"]) in peers]
    lines = header("one series", ["series", "graphratio", "ruptures", "skchange"])
    for case in ("none", "mean +1", "mean +0.6", "spread x 2", "up and down"):
        some = [row for row in own if row["case"] == case]
        theirs = [peers[case, row["seed"]] for row in some]
        shares = [np.mean([int(row["in_interval"]) for row in some])]
        shares += [np.mean([int(row[peer]) for row in theirs]) for peer in ("ruptures", "skchange")]
        lines.append(line(case, [str(len(some)), *(f"{share:.2f}" for share in shares)]))
    return lines


def panels() -> list[str]:
    """Panels of 100 nodes beside skchange's ESAC, and false alarms of quiet panels."""
    grid, esac = rows_of("changepoints-grid"), rows_of("changepoints-esac")
    lines = header("panel of 100 nodes", ["panels", "graphratio", "ESAC (skchange)"])

    def near(rows: Rows) -> float:
        return float(np.mean([row["error"] != "" and abs(int(row["error"])) <= 15 for row in rows]))

    for case in ("corner +0.35", "corner +0.2", "scattered +0.5"):
        ours, theirs = ([row for row in rows if row["case"] == case] for rows in (grid, esac))
        cells = [str(len(ours)), f"{near(ours):.0%}", f"{near(theirs):.0%}"]
        lines.append(line(f"{case}, found within 15 steps", cells))
    quiet = [row for row in rows_of("changepoints-quiet") if row["case"] == "independent"]
    quiet = [row for row in quiet if row["n_nodes"] == "100"]
    theirs = [int(row["n_found"]) > 0 for row in esac if row["case"] == "none"]
    alarms = np.mean([int(row["n_events"]) > 0 for row in quiet])
    cells = [str(len(quiet)), f"{alarms:.0%}", f"{np.mean(theirs):.0%}"]
    return [*lines, line("nothing changes, a false alarm", cells)]


def speed() -> list[str]:
    """Every comparison of the benchmarks: how many times faster, with its interval."""
    pieces = json.loads((ROOT / "benchmarks" / "results.json").read_text())["pieces"]
    lines = header("work", ["peer", "times faster", "95 % interval"])
    for piece in ("by-hand", "cbcgd", "densratio", "ruptures", "skchange"):
        for each in pieces[piece]["comparisons"]:
            span = f"{each['low']:.3g} to {each['high']:.3g}"
            lines.append(line(each["work"], [each["peer"], f"{each['ratio']:.3g}", span]))
    return lines


def scale() -> list[str]:
    """Seconds and memory of one fit on a plane of nodes, at given penalties."""
    runs: list[dict[str, Any]] = json.loads((ROOT / "benchmarks" / "scale.json").read_text())
    lines = header("nodes", ["seconds", "GiB", "iterations"])
    chosen = [
        run
        for run in runs
        if run["graph"] == "plane" and run.get("law") == "alike" and "n_iter" in run
        and (run.get("coupling"), run.get("gamma")) == (10.0, 1e-5) and not run.get("again")
    ]  # fmt: skip
    for run in chosen:
        cells = [f"{run['seconds']:.0f}", f"{run['gibibytes']:.1f}", str(run["n_iter"])]
        lines.append(line(f"{run['n_nodes']:,}", cells))
    return lines


TABLES = {
    each.__name__.replace("_", "-"): each
    for each in (accuracy, real_data, false_alarms, power, lone, coverage, change_points, panels,
                 speed, scale)
}  # fmt: skip


def filled(page: str) -> str:
    """The page with all tables."""
    for name, table in TABLES.items():
        mark = f"<!-- {name} -->"
        before, _, after = page.split(mark)
        page = "\n".join([before + mark, *table(), mark + after])
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
