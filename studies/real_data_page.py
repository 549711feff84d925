"""The tables of `real_data`, between two marks of a page of the documentation."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from beyond_page import header, mean_and_error

PAGE = Path(__file__).parent.parent / "docs" / "real-data.md"
MARKS = {"flights": "<!-- flights -->", "sea": "<!-- sea -->"}
Values = dict[str, dict[int, list[float]]]


def read(table: Path) -> dict[str, Values]:
    """Divergences by data, method and size, in the order of the draws."""
    found: dict[str, Values] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    with table.open() as file:
        for row in csv.DictReader(file):
            found[row["data"]][row["method"]][int(row["n"])].append(float(row["divergence"]))
    return found


def lines_of(values: Values) -> list[str]:
    """Means of all methods, and their paired differences to GRULSIF."""
    sizes = sorted(next(iter(values.values())))
    lines = header("observations per sample", [str(n) for n in sizes])
    for method, by_size in values.items():
        shown = [mean_and_error(by_size[n], ".3f") for n in sizes]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    for method in ("GraphRatio", "Pool", "RULSIF"):
        gains = [np.subtract(values[method][n], values["GRULSIF"][n]) for n in sizes]
        shown = [mean_and_error(list(gain), "+.3f") for gain in gains]
        lines.append(f"| {method} minus GRULSIF | " + " | ".join(shown) + " |")
    return lines


def filled(page: str, table: Path) -> str:
    """The page with the tables of all data sets."""
    for data, values in read(table).items():
        before, _, after = page.split(MARKS[data])
        page = "\n".join([before + MARKS[data], *lines_of(values), MARKS[data] + after])
    return page


def write_page(table: Path) -> None:
    """Write the tables into the page."""
    PAGE.write_text(filled(PAGE.read_text(), table))
