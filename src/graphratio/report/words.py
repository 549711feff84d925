"""Numbers and names as they stand in sentences."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """A number with few digits and no exponent where that is readable."""
    if value == 0:
        return "0"
    if abs(value) >= 10**digits and abs(value) < 1e9:
        return minus(f"{value:,.0f}")
    return minus(f"{value:.{digits}g}")


def fixed(value: float, decimals: int, *, sign: bool = False) -> str:
    """A number with this many decimals, on request with a plus."""
    # Adding 0 turns the negative zero of rounding into a zero.
    return minus(f"{round(value, decimals) + 0.0:{'+' if sign else ''}.{decimals}f}")


def minus(text: str) -> str:
    """The sign of a number as charts write it."""
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


def decimals_of(text: str) -> int:
    """How many decimals a number has, also one with an exponent."""
    digits, _, exponent = text.partition("e")
    return max(len(digits.partition(".")[2]) - int(exponent or 0), 0)


def difference(value: float, half: float, decimals: int) -> str:
    """A signed difference and half the width of its interval; a dash if it is not known."""
    if not math.isfinite(value):
        return "\N{EN DASH}"
    width = f"± {half:.{decimals}f}" if math.isfinite(half) else "(interval unknown)"
    return f"{fixed(value, decimals, sign=True)} {width}"


def count(n: int, word: str) -> str:
    """So many of something."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def sentence(text: str) -> str:
    """Capital first, full stop last."""
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
