"""Numbers and names as they stand in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def number(value: float, digits: int = 3) -> str:
    """A number with few digits and no exponent where that is readable."""
    if value == 0:
        return "0"
    if abs(value) >= 10**digits and abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def count(n: int, word: str) -> str:
    """So many of something."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def enumeration(names: Sequence[str], limit: int = 8) -> str:
    """Names in a sentence; the rest is counted."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return "".join(names)


def sentence(text: str) -> str:
    """Capital first, full stop last."""
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
