"""The tables of docs/graphs.md that come from the study of graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import binomtest

PAGE = Path(__file__).parent.parent / "docs" / "graphs.md"
BEGIN, END = "<!-- study: begin -->", "<!-- study: end -->"
Rows = list[dict[str, str]]


def write_page(tables: dict[str, Rows]) -> None:
    """Replace what stands between the marks."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{study_text(tables)}\n\n{END}{after}")


def study_text(tables: dict[str, Rows]) -> str:
    """Tables of verdicts and of the worth."""
    parts = []
    if tables["power"]:
        parts.append(_power(tables["power"]))
    if tables["nodes"]:
        parts.append(_nodes(tables["nodes"]))
    sizes = dict.fromkeys(row["n"] for row in tables["worth"])
    parts += [_worth(n, [row for row in tables["worth"] if row["n"] == n]) for n in sizes]
    return "\n\n".join(parts)


def _power(rows: Rows) -> str:
    words = {
        "right": "`best` is the right graph of three",
        "equal": "one of two equally good graphs is called better than the other",
        "alone": "`best` is a random graph instead of None",
    }
    lines = [
        "| what happens | n | isolated nodes | share, 95 % interval | draws |",
        "|---|---|---|---|---|",
    ]
    keys = dict.fromkeys((row["case"], row["n"], row["isolated"]) for row in rows)
    for case, n, isolated in sorted(keys, key=lambda key: (list(words).index(key[0]), *key[1:])):
        part = [r for r in rows if (r["case"], r["n"], r["isolated"]) == (case, n, isolated)]
        said = "named" if case == "equal" else "best"
        named = [row[said] == "right" if case == "right" else bool(row[said]) for row in part]
        lines.append(f"| {words[case]} | {n} | {isolated} | {_share(named)} | {len(part)} |")
    return "\n".join(lines)


def _share(found: list[bool]) -> str:
    """A share with its exact binomial interval."""
    low, high = binomtest(sum(found), len(found)).proportion_ci()
    return f"{np.mean(found):.0%} ({low:.0%} to {high:.0%})"


def _nodes(rows: Rows) -> str:
    """How often the right graph is named in smaller networks."""
    lines = []
    for nodes in dict.fromkeys(row["nodes"] for row in rows):
        named = [row["best"] == "right" for row in rows if row["nodes"] == nodes]
        lines.append(f"{_share(named)} of {len(named)} draws with {nodes} nodes")
    wrong = sum(row["best"] not in ("right", "") for row in rows)
    return (
        f"With fewer nodes the right graph is found less often. At n = {rows[0]['n']}, without "
        f"isolated nodes, `best` is the right graph of three in {'; in '.join(lines)}. It is "
        f"another graph in {wrong} of {len(rows)}; otherwise it is None."
    )


def _worth(n: str, rows: Rows) -> str:
    low, high, truth = (
        np.array([float(row[name]) for row in rows]) for name in ("low", "high", "truth")
    )
    estimate = np.array([float(row["estimate"]) for row in rows])
    covers = (low <= truth) & (truth <= high)
    return (
        f"{n} random flights per airport and season, {len(rows)} draws: the flights held back "
        f"give a worth of {truth[0]:.1f}. The estimate is {np.median(estimate):.1f} at the median. "
        f"The 95 % interval covers the value in {covers.mean():.0%} of the draws, and its lower "
        f"end is above 1.3 in {np.mean(low > 1.3):.0%}. {np.isinf(high).mean():.0%} of the "
        "intervals are open above."
    )
