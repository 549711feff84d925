"""When observations were made: numbers, dates and text become one array of times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from numbers import Real
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import IntArray, Label

# The unit of stored dates: nanoseconds cover only the years 1677 to 2262.
MOMENT = "datetime64[us]"

_ISO = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?)?")
_HOW = "Use dates (2020-03-01), times (2020-03-01T14:30) or numbers"


def is_date(time: np.ndarray) -> bool:
    """Tell whether times are dates, not numbers."""
    return time.dtype.kind == "M"


def as_times(values: Any, what: str) -> np.ndarray:
    """Read times as float64 or datetime64[us]; NaN or NaT where one is missing.

    Times with a zone keep the clock of that zone, since days begin at local midnight.

    Examples
    --------
    >>> as_times(["2020-03-01T01:30+01:00", None], "time")
    array(['2020-03-01T01:30:00.000000',                        'NaT'],
          dtype='datetime64[us]')
    """
    raw = values if isinstance(values, np.ndarray) else _as_array(values, what)
    if raw.ndim != 1:
        raise InputError(f"{what} has {raw.ndim} dimensions", "Give one time per observation")
    if raw.dtype.kind == "M":
        return raw.astype(MOMENT)
    times = raw.astype(np.float64) if raw.dtype.kind in "iuf" else _read_objects(raw, what)
    if times.dtype.kind == "f" and np.isinf(times).any():
        raise InputError(f"{what} has {int(np.isinf(times).sum())} infinite times", _HOW)
    return times


def _as_array(values: Any, what: str) -> np.ndarray:
    dtype = getattr(values, "dtype", None)
    # Both libraries would convert to UTC: polars knows a time_zone, pandas a tz.
    if getattr(dtype, "time_zone", None) is not None:
        values = values.dt.replace_time_zone(None)
    elif getattr(dtype, "tz", None) is not None:
        values = getattr(values, "dt", values).tz_localize(None)
    try:
        raw = values.to_numpy() if hasattr(values, "to_numpy") else list(values)
    except TypeError as error:
        raise InputError(f"{what} of type {type(values).__name__} cannot be read", _HOW) from error
    if isinstance(raw, list) and any(isinstance(value, datetime | str) for value in raw[:1]):
        # NumPy would drop time zones, or cut text.
        array = np.empty(len(raw), dtype=object)
        array[:] = raw
        return array
    return np.asarray(raw)


def _read_objects(raw: np.ndarray, what: str) -> np.ndarray:
    """Times from text and Python objects; every distinct one is read once."""
    entries = raw.tolist()
    try:
        distinct = dict.fromkeys(entries)
    except TypeError as error:
        raise InputError(f"{what} has values that are not times ({error})", _HOW) from error
    read = {value: _moment(value) for value in distinct}
    wrong = [value for value, found in read.items() if found is None]
    if wrong:
        raise InputError(f"{what} has values that are not times: {listing(wrong, limit=3)}", _HOW)
    kinds = {type(found) for found in read.values() if found is not _MISSING}
    zones = {found.tzinfo is not None for found in read.values() if isinstance(found, datetime)}
    if len(kinds) > 1 or len(zones) > 1:
        several = "numbers and dates" if len(kinds) > 1 else "times with and without a time zone"
        raise InputError(f"{what} has {several}", "Use the same kind everywhere")
    if float in kinds:
        numbers = {value: np.nan if t is _MISSING else t for value, t in read.items()}
        return np.array([numbers[value] for value in entries], dtype=np.float64)
    moments = {value: _stored(found) for value, found in read.items()}
    return np.array([moments[value] for value in entries], dtype=MOMENT)


_MISSING = object()


def _moment(value: Any) -> Any:
    """Return a datetime, a float, `_MISSING`, or None if the value is not a time."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return _MISSING
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, np.datetime64):
        value = value.astype(MOMENT).item()
        return _MISSING if value is None else value
    try:
        if value != value:
            return _MISSING
    except (TypeError, ValueError):
        # pandas.NA: even the comparison is missing.
        return _MISSING
    if isinstance(value, datetime):
        plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
        return plain
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return None if isinstance(value, bool) or not isinstance(value, Real) else float(value)


def _from_text(text: str) -> datetime | None:
    if not _ISO.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text + "-01-01"[len(text) - 4 :] if len(text) < 8 else text)
    except ValueError:
        return None


def _stored(found: Any) -> np.datetime64:
    if found is _MISSING:
        return np.datetime64("NaT", "us")
    return np.datetime64(found.replace(tzinfo=None), "us")


def joined(parts: Iterable[np.ndarray], what: str) -> np.ndarray:
    """All times as one array; dates and numbers do not mix."""
    pieces = [part for part in parts if len(part)]
    if len({part.dtype.kind for part in pieces}) > 1:
        raise InputError(f"{what} has numbers and dates", "Use the same kind everywhere")
    return np.concatenate(pieces)


def times_of_nodes(time: Any, labels: Sequence[Label], sizes: IntArray) -> np.ndarray:
    """Times of all observations, node after node, reference before target.

    `time` is a pair (reference, target). Each part is a list or dict over nodes of sequences as
    long as the node's sample, or one sequence for all nodes. `sizes` has shape (n_nodes, 2).
    """
    if not isinstance(time, tuple) or len(time) != 2:
        raise InputError(
            f"time of type {type(time).__name__} cannot be read",
            "Pass a tuple (reference, target) with the times of each node's observations",
        )
    sides = [_by_node(part, labels) for part in time]
    parts = []
    for position, node in enumerate(labels):
        for side, name in enumerate(("reference", "target")):
            expected = int(sizes[position, side])
            if not expected:
                continue
            times = sides[side](position)
            if len(times) != expected:
                raise InputError(
                    f"time has {len(times)} {name} times for node {node!r}, which has {expected} "
                    f"{name} observations",
                    "Give one time for each observation, in the same order",
                )
            parts.append(times)
    return joined(parts, "time")


def _by_node(part: Any, labels: Sequence[Label]) -> Any:
    """Return a function from the position of a node to its times."""
    if isinstance(part, Mapping):
        return lambda position: as_times(part.get(labels[position], ()), "time")
    # A table of times has one row per node.
    entries = part if isinstance(part, np.ndarray) else list(part)
    if not (len(entries) and _is_sequence(entries[0])):
        shared = as_times(part, "time")
        return lambda _: shared
    if len(entries) != len(labels):
        raise InputError(
            f"time has {len(entries)} entries for {len(labels)} nodes",
            "Give one sequence of times for each node, or one for all",
        )
    return lambda position: as_times(entries[position], "time")


def _is_sequence(entry: Any) -> bool:
    return not isinstance(entry, str | bytes) and hasattr(entry, "__len__")
