"""What README and docs say about speed, and the measured number behind each sentence.

    python benchmarks/claims.py     the sentences that sound like speed and have no number here

A sentence is found wherever it stands in README.md and docs; its number must lie between the two
limits in benchmarks/results.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Claim:
    """A sentence and the row of the results that backs it.

    Attributes
    ----------
    words : str
    piece, row : str
        Name of the piece, and how `what` or `work` of the row begins.
    low, high : float
        Between which the number must be for the words to be true.
    """

    words: str
    piece: str
    row: str
    low: float
    high: float


CLAIMS = [
    Claim("a step online takes about a millisecond", "costs", "change-points online", 0.3, 3.0),
    Claim("One more time step, in about a millisecond", "costs", "change-points online", 0.3, 3.0),
    Claim("it is several times slower than with one", "costs", "GRULSIF with selection", 2.0, 20.0),
    Claim("The fit takes a few seconds", "costs", "the demo's fit", 1.0, 8.0),
    Claim(
        "ruptures with a given penalty is many times faster",
        "ruptures",
        "change of the mean, somebody else",
        0.01,
        0.2,
    ),  # the ratio is ours
]
# Sentences about how long `make` targets and studies run, about time itself, about time limits,
# and what follows from a cost model.
OTHERS = (
    "hour on two cores", "under a minute", "faster than the bound", "after 20 seconds",
    "is a second, independent", "library is faster", "each takes a few minutes",
    "noticed at once or within a second", "an hour by default", "Dask raises with the number",
    "from 50, 6 seconds for 1,000", "a little over a minute after features",
    "the first screen for ten seconds", "2 ms for each message", "is a second example",
    "A second group gives", "save at least 10 minutes", "save ten minutes or more",
    "were *these* flights faster",
)  # fmt: skip
# Tables that the benchmarks put into pages themselves.
_MADE = re.compile(r"<!-- \w+: measured -->.*?<!-- \w+: end -->", re.DOTALL)
_SOUNDS = re.compile(
    r"\b(?:[\d.,]+|an?|one|two|three|ten|few|several|half an) (?:milli|micro)?(?:seconds?|minutes?"
    r"|hours?|ms)\b|\btimes (?:as fast|faster|slower)|\bfaster than|\bslower than",
    re.IGNORECASE,
)


def pages() -> dict[str, str]:
    """Text of README and docs, with single spaces, without what the benchmarks wrote."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        str(path.relative_to(ROOT)): " ".join(_MADE.sub("", path.read_text("utf-8")).split())
        for path in files
        if path.name != "benchmarks.md"
    }


def number(results: dict[str, Any], claim: Claim) -> float:
    """The measured number behind a claim: a cost, a ratio or an exponent."""
    piece = results["pieces"][claim.piece]
    for rows, name, value in (
        ("costs", "what", "value"),
        ("comparisons", "work", "ratio"),
        ("growth", "what", "exponent"),
    ):
        for row in piece[rows]:
            if row[name].startswith(claim.row):
                return float(row[value])
    raise LookupError(f"{claim.row!r} is not measured in {claim.piece!r}")


def unbacked() -> list[str]:
    """Passages that sound like a speed and are neither a known claim nor something else."""
    known = [*(claim.words for claim in CLAIMS), *OTHERS]
    found = []
    for name, text in pages().items():
        for match in _SOUNDS.finditer(text):
            around = text[max(0, match.start() - 80) : match.end() + 80]
            if not any(words in around for words in known):
                found.append(f"{name}: ...{around}...")
    return found


if __name__ == "__main__":
    print("\n".join(unbacked()) or "every sentence about speed has its number")
