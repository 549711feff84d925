"""The tables of `beyond`, as a page of the documentation."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parent.parent / "docs" / "beyond-the-paper-tables.md"
Rows = list[dict[str, str]]

TEXTS = {
    "accuracy": "Mean squared error of the estimated ratio, alpha = 0.1, 100 nodes, 10,000 fresh "
    "points per node; on IIa and IIb draws with 25 to 35 changed nodes. GraphRatio was developed "
    "on other draws.",
    "graphs": "Loss on 300 fresh observations per sample and node (lower is better), n = 50. "
    "plain: GRULSIF with the true graph; the others: GraphRatio with the true graph, no graph, a "
    "random graph of the same degrees, and the true graph with 30 % of its edges rewired.",
    "own": "Every node has a shift, spreads and a correlation of its own; the graph is random. "
    "Loss on 400 fresh observations per sample and node.",
    "defaults": "Mean squared error at n = 50, 2,000 fresh points per node.",
    "penalties": "Mean squared error of GRULSIF shrunk towards 1, n = 50, at the bandwidth that "
    "was selected, over the graph penalty times the mean degree (rows) and the ridge (columns). "
    "The paper's grid couples the two: its ridge is between 0.00001 and 1 times the graph penalty.",
}
PAIRS = {
    "graphs": [
        ("true", "plain"),
        ("random", "none"),
        ("rewired", "plain"),
        ("true", "none"),
        ("rewired", "none"),
    ],
    "own": [("GraphRatio", "plain")],
}


def by_method(rows: Rows, value: str) -> dict[tuple[str, str], dict[str, float]]:
    """Values by method and cell, and then by draw."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        found[row["method"], row["cell"]][row["seed"]] = float(row[value])
    return found


def unique(rows: Rows, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def mean_and_error(values: list[float], form: str) -> str:
    array = np.array(values)
    if len(array) < 2:
        return f"{array.mean():{form}}" if len(array) else "to come"
    error = array.std(ddof=1) / np.sqrt(len(array))
    return f"{array.mean():{form}} ± {error:{form.removeprefix('+')}}"


def header(first: str, columns: list[str]) -> list[str]:
    return [f"| {first} | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]


def table(rows: Rows, value: str, form: str = ".4f") -> list[str]:
    """Means and standard errors, one line per method and one column per cell."""
    cells, found = unique(rows, "cell"), by_method(rows, value)
    lines = header("", cells)
    for method in unique(rows, "method"):
        shown = [mean_and_error(list(found[method, cell].values()), form) for cell in cells]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return lines


def differences(rows: Rows, pairs: list[tuple[str, str]]) -> list[str]:
    """Paired differences of losses with their standard errors."""
    cells, found = unique(rows, "cell"), by_method(rows, "loss")
    lines = header("paired difference", cells)
    for one, other in pairs:
        shown = []
        for cell in cells:
            a, b = found[one, cell], found[other, cell]
            shown.append(mean_and_error([a[seed] - b[seed] for seed in a], "+.4f"))
        lines.append(f"| {one} - {other} | " + " | ".join(shown) + " |")
    return lines


def surface(rows: Rows) -> list[str]:
    """Mean errors over two penalties, for every scenario."""
    lines = []
    found = by_method(rows, "error")
    for cell in unique(rows, "cell"):
        pairs = [tuple(method.split(", ")) for method in unique(rows, "method")]
        columns = list(dict.fromkeys(ridge for _, ridge in pairs))
        lines += [f"{cell}:", "", *header("", columns)]
        for strength in dict.fromkeys(strength for strength, _ in pairs):
            means = [
                np.mean(list(found[f"{strength}, {ridge}", cell].values())) for ridge in columns
            ]
            lines.append(f"| {strength} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
        lines.append("")
    return lines


def draws(rows: Rows) -> str:
    """How many draws the cells have."""
    seeds: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        seeds[row["cell"]].add(row["seed"])
    numbers = sorted(len(found) for found in seeds.values())
    said = " to ".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1])))
    return f"{said} draws, mean ± standard error"


def write_page(parts: dict[str, Rows]) -> None:
    """Write the tables of all parts that have results."""
    lines = ["# Beyond the paper: tables", ""]
    lines += ["Written by `make beyond`, which goes on where it stopped and adds draws.", ""]
    for part, rows in parts.items():
        if not rows:
            continue
        draws = sorted(
            {len({r["seed"] for r in rows if r["cell"] == c}) for c in unique(rows, "cell")}
        )
        said = " to ".join(str(number) for number in dict.fromkeys((draws[0], draws[-1])))
        lines += [
            f"## {part.capitalize()}",
            "",
            f"{TEXTS[part]} {said} draws, mean ± standard error.",
            "",
        ]
        if part == "penalties":
            lines += surface(rows)
            continue
        lines += table(rows, "error" if "error" in rows[0] else "loss")
        if "seconds" in rows[0]:
            lines += ["", "Seconds of processor time:", "", *table(rows, "seconds", ".2f")]
        if "profiles" in rows[0]:
            lines += ["", "Profiles:", "", *table(rows, "profiles", ".1f")]
        if "atoms" in rows[0]:
            lines += ["", "Atoms of the dictionary:", "", *table(rows, "atoms", ".0f")]
        if part in PAIRS:
            lines += ["", *differences(rows, PAIRS[part])]
        lines.append("")
    PAGE.write_text("\n".join(lines))
