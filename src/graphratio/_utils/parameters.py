"""Checks on parameters: numbers in a range, flags, words from a list, seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Real

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import RandomState


def check_real(
    value: object,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    include_low: bool = False,
    include_high: bool = False,
) -> float:
    """Check that a parameter is a finite number inside an interval and return it as float."""
    interval = f"{'[' if include_low else '('}{low:g}, {high:g}{']' if include_high else ')'}"
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    try:
        number = float(value) if isinstance(value, Real) and is_number else math.nan
    except OverflowError:  # an integer beyond the range of float
        number = math.nan
    above = number >= low if include_low else number > low
    below = number <= high if include_high else number < high
    if not (math.isfinite(number) and above and below):
        raise InputError(f"{name}={value!r} is not a number in {interval}")
    return number


def check_integer(value: object, name: str, *, low: int, high: float = math.inf) -> int:
    """Check that a parameter is a whole number of at least `low` and return it as int."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not low <= int(value) <= high:  # type: ignore[call-overload]
        span = f"from {low} to {high:g}" if math.isfinite(high) else f"of at least {low}"
        raise InputError(f"{name}={value!r} is not a whole number {span}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_flag(value: object, name: str) -> bool:
    """Check that a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r} is neither True nor False")
    return bool(value)


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Check that a parameter is one of the given words; the error suggests the nearest one."""
    if isinstance(value, str) and value in choices:
        return value
    near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    hint = f"did you mean {near[0]!r}?" if near else None
    problem = f"{name}={value!r} is not one of {listing(choices, limit=12)}"
    raise InputError(f"{problem}; {hint}" if hint else problem)


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn a seed or generator into a NumPy Generator; a RandomState is advanced by one draw."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or (isinstance(random_state, int | np.integer) and random_state >= 0):
        return np.random.default_rng(random_state)
    raise InputError(
        f"random_state={random_state!r} is not a seed",
        "Pass None, a non-negative integer or a numpy random generator",
    )
