"""The argument `block`: "auto", None, a number of observations, or a duration such as "6h"."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from graphratio._utils.errors import Argument, InputError
from graphratio._utils.parameters import check_integer

_DURATION = re.compile(r"(\d*)\s*(w|d|h|min|s)", re.IGNORECASE)

DAY: np.timedelta64 = np.timedelta64(86_400_000_000, "us")
_WEEK = 7 * DAY
_UNITS = {"w": _WEEK, "d": DAY, "h": DAY // 24, "min": DAY // 1440, "s": DAY // 86_400}

_NAMES = ((_WEEK, "week"), (DAY, "day"), (DAY // 24, "hour"), (DAY // 1440, "minute"))


def check_block(block: Any, time: np.ndarray | None) -> Any:
    """Check the argument `block` against the kind of time, and return it."""
    if block is None or (isinstance(block, str) and block == "auto"):
        return block
    if not isinstance(block, str):
        return check_integer(block, "block", low=1)
    parse_duration(block)
    if time is None or time.dtype.kind != "M":
        lack = "there are no times" if time is None else "the times are numbers"
        raise InputError(
            (Argument("block", block), f" is a duration, but {lack}"),
            ("Give dates as ", Argument("time"), ", or the number of observations in a block"),
        )
    return block


def parse_duration(text: str) -> np.timedelta64:
    """Read a duration such as "1D", "6h", "30min", "10s" or "2W".

    Examples
    --------
    >>> print(parse_duration("90min"))
    5400000000 microseconds
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or (match[1] and not int(match[1])):
        raise InputError(
            (Argument("block", text), " is not a duration"),
            'Pass "auto", None, a number of observations, or a duration such as "1D", "6h", '
            '"30min" or "1W"',
        )
    return int(match[1] or 1) * _UNITS[match[2].lower()]


def duration_words(duration: np.timedelta64) -> str:
    """Write a duration in its largest fitting unit.

    Examples
    --------
    >>> duration_words(np.timedelta64(80, "m")), duration_words(np.timedelta64(48, "h"))
    ('80 minutes', '2 days')
    """
    for unit, name in _NAMES[1:]:
        count = duration / unit
        if count >= 2 or (count == 1 and name == "day"):
            rounded = int(count) if count == int(count) else round(count, 1)
            return f"{rounded:g} {name}{'' if rounded == 1 else 's'}"
    return f"{duration / np.timedelta64(1, 's'):g} seconds"


def calendar_number(time: np.ndarray, duration: np.timedelta64) -> np.ndarray:
    """Number of the piece of the calendar in which each time lies.

    Days begin at midnight and weeks on Monday; other durations are counted from the midnight
    before the first time, so that a piece of several days begins with the data.

    Examples
    --------
    >>> calendar_number(np.array(["2020-03-01T23", "2020-03-02T01"], "M8[us]"), DAY).tolist()
    [18322, 18323]
    """
    since = time - np.datetime64("1970-01-01", "us")
    if duration == _WEEK:
        # The first of January 1970 was a Thursday.
        return np.asarray((since + 3 * DAY) // duration)
    if DAY % duration != np.timedelta64(0, "us"):
        since = since - (since.min() // DAY) * DAY
    return np.asarray(since // duration)
