"""The results of the benchmarks as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

HEAD = """# Benchmarks

This page is made by `make bench` from `benchmarks/results.json`. Within a comparison the
library and its peer run in turn in one process, with one thread; seconds are processor time, which
is the time on the clock of a machine that does nothing else. A ratio is the peer's time over the
library's, so above 1 the library is faster, with a 95 % interval over the rounds. Ratios carry
over to other machines, seconds do not. `make bench-check` measures again and fails where a ratio
has fallen clearly below the stored one.
"""


def between(path: Path, name: str, text: str) -> None:
    """Put measured tables into a page, between its two marks."""
    first, last = f"<!-- {name}: measured -->\n", f"<!-- {name}: end -->\n"
    before, rest = path.read_text(encoding="utf-8").split(first)
    path.write_text(before + first + "\n" + text + "\n" + last + rest.split(last)[1], "utf-8")


def page(results: dict[str, Any]) -> str:
    """The whole page."""
    parts = [HEAD, _machine(results["machine"])]
    for piece in results["pieces"].values():
        usual = piece["clock"] == "processor time"
        clock = "" if usual else f" Measured as {piece['clock']}."
        parts.append(f"## {piece['title']}\n\n{piece['remark']}{clock}\n")
        parts += [_comparisons(piece), _growth(piece), _costs(piece)]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _machine(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    return (
        f"Measured on {machine['cores']} cores of {machine['processor']} "
        f"({machine['products_gflops']:g} GFlop/s in double-precision products on one), "
        f"{machine['memory_gib']:g} GiB, {machine['system']}, Python {machine['python']}, "
        f"{packages}.\n"
    )


def _rows(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _comparisons(piece: dict[str, Any]) -> str:
    if not piece["comparisons"]:
        return ""
    measure = piece["comparisons"][0]["accuracy"]
    head = ["work", "peer", "graphratio, s", "peer, s", "ratio", "95 % interval"]
    if measure:
        head += [f"{measure}: graphratio", "peer"]
    rows = []
    for row in piece["comparisons"]:
        cells = [row["work"], row["peer"], _number(row["ours"]), _number(row["theirs"])]
        cells += [
            f"**{_number(row['ratio'])}**",
            f"{_number(row['low'])} to {_number(row['high'])}",
        ]
        if measure:
            cells += [_number(row["our_accuracy"]), _number(row["their_accuracy"])]
        rows.append(cells)
    return _rows(head, rows)


def _growth(piece: dict[str, Any]) -> str:
    if not piece["growth"]:
        return ""
    rows = []
    for row in piece["growth"]:
        pairs = zip(row["sizes"], row["seconds"], strict=True)
        shown = ", ".join(f"{size:g}: {_number(value)}" for size, value in pairs)
        interval = f"{row['low']:.2f} to {row['high']:.2f}"
        rows.append([row["what"], shown, f"**{row['exponent']:.2f}**", interval])
    return _rows(["grows with", "seconds at size", "exponent", "95 % interval"], rows)


def _costs(piece: dict[str, Any]) -> str:
    if not piece["costs"]:
        return ""
    rows = [
        [row["what"], f"**{_number(row['value'])}** {row['unit']}",
         f"{_number(row['low'])} to {_number(row['high'])}"]
        for row in piece["costs"]
    ]  # fmt: skip
    return _rows(["what", "median", "range"], rows)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
