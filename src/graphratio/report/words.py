"""Numbers and names as they stand in sentences."""

from __future__ import annotations


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


def sentence(text: str) -> str:
    """Capital first, full stop last."""
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
