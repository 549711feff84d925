"""Whether fresh results are worse than stored ones: ratios and exponents, never bare seconds."""

from __future__ import annotations

from typing import Any

# A ratio may fall to this share of the stored one before it counts as a regression.
SLACK = 0.75
# An exponent may rise by this much beyond its stored interval.
MARGIN = 0.15


def regressions(stored: dict[str, Any], fresh: dict[str, Any]) -> list[str]:
    """What is clearly worse, one sentence each; both are results with pieces by name."""
    found = []
    for name, piece in fresh["pieces"].items():
        before = stored["pieces"].get(name)
        if before is not None:
            found += [f"{name}: {worse}" for worse in _worse(before, piece)]
    return found


def _worse(stored: dict[str, Any], fresh: dict[str, Any]) -> list[str]:
    found = []
    known = {_name(row): row for row in stored["comparisons"]}
    for row in fresh["comparisons"]:
        old = known.get(_name(row))
        best = row["high"] if row["high"] is not None else row["ratio"]
        if old is not None and best < SLACK * old["ratio"]:
            found.append(f"{row['work']} against {row['peer']}: {old['ratio']} -> {row['ratio']}")
    exponents = {row["what"]: row for row in stored["growth"]}
    for row in fresh["growth"]:
        old = exponents.get(row["what"])
        if old is not None and row["exponent"] > old["high"] + MARGIN:
            found.append(f"growth with {row['what']}: {old['exponent']} -> {row['exponent']}")
    times = {row["what"]: row for row in stored["costs"] if row["unit"] == "times"}
    for row in fresh["costs"]:
        old = times.get(row["what"])
        if old is not None and row["low"] > old["value"] / SLACK:
            found.append(f"{row['what']}: {old['value']} -> {row['value']} times")
    return found


def _name(row: dict[str, Any]) -> tuple[str, str]:
    """A comparison without the number of cycles, which may change from run to run."""
    return row["work"], row["peer"].split(",")[0]
