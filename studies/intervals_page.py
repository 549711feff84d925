"""The page on uncertainty: its text with the tables made from the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Rows = list[dict[str, str]]
MISSING = "Not measured yet: `make intervals` fills this in."


def page(text: str, results: dict[str, Rows]) -> str:
    """Fill the marks of the text in.

    Parameters
    ----------
    text : str
        With marks such as @BOUNDS@.
    results : dict of str to list of dict
        Rows of the parts `bounds`, `ratios` and `graphs`.
    """
    filled = {
        "BOUNDS": _bounds(results["bounds"]),
        "SIMULTANEOUS": _simultaneous(results["bounds"]),
        "RATIOS": _ratios(results["ratios"]),
        "GRAPHS": _graphs(results["graphs"]),
        "DRAWS": _counts(results["bounds"]),
        "RATIO_DRAWS": next((row["draws"] for row in results["ratios"]), "0"),
    }
    for mark, value in filled.items():
        text = text.replace(f"@{mark}@", value)
    return text


def _counts(rows: Rows) -> str:
    """How many draws the cells have, as a number or a range."""
    cells = _cells(rows, "scenario", "n")
    found = sorted({len({row["seed"] for row in part}) for _, part in cells})
    return (
        " to ".join(str(count) for count in dict.fromkeys([found[0], found[-1]])) if found else "0"
    )


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in body]
    if not lines:
        return MISSING
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])


def _cells(rows: Rows, *keys: str) -> list[tuple[tuple[str, ...], Rows]]:
    """Rows that agree in the keys, by scenario, n and group."""
    cells: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        cells.setdefault(tuple(row[key] for key in keys), []).append(row)
    return sorted(cells.items(), key=lambda item: (item[0][0], int(item[0][1]), item[0][2:]))


def _bounds(rows: Rows) -> str:
    body = []
    for (name, n, group), part in _cells(rows, "scenario", "n", "group"):
        total = sum(int(row["nodes"]) for row in part)
        shares = [
            f"{sum(int(row[column]) for row in part) / total:.1%}"
            for column in ("bound_holds", "bound_above_0", "interval_covers")
        ]
        truth = f"{float(part[0]['divergence']):.3f}"
        body.append([name, n, group, str(total), truth, *shares])
    head = ["scenario", "n", "group", "nodes", "true divergence", "bound holds", "bound above 0"]
    return _table([*head, "interval covers"], body)


def _simultaneous(rows: Rows) -> str:
    body = []
    for (name, n), part in _cells(rows, "scenario", "n"):
        draws: dict[str, list[bool]] = {}
        # Draws of before these intervals were widened have none.
        for row in (row for row in part if row["simultaneous_interval_covers"]):
            right = draws.setdefault(row["seed"], [True, True])
            for i, column in enumerate(
                ("simultaneous_bound_holds", "simultaneous_interval_covers")
            ):
                right[i] &= row[column] == row["nodes"]
        if not draws:
            continue
        shares = [f"{sum(right[i] for right in draws.values()) / len(draws):.0%}" for i in (0, 1)]
        body.append([name, n, str(len(draws)), *shares])
    return _table(["scenario", "n", "draws", "all bounds hold", "all intervals cover"], body)


def _ratios(rows: Rows) -> str:
    body = [
        [name, n, group, row["lines"], f"{float(row['covers']):.1%}"]
        for (name, n, group), (row,) in _cells(rows, "scenario", "n", "group")
    ]
    return _table(["scenario", "n", "group", "lines", "covers"], body)


def _graphs(rows: Rows) -> str:
    pairs: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        pairs.setdefault((row["first"], row["second"]), []).append(row["named"])
    body = []
    for (first, second), named in pairs.items():
        counts = [named.count(item) for item in (first, second, "no clear difference")]
        body.append([f"{first}, {second}", *map(str, counts)])
    return _table(["pair", "names the first", "names the second", "no clear difference"], body)
