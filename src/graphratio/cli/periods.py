"""Divide rows by time: before and after a split, or into two ranges."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.optional import import_optional
from graphratio.cli.options import SampleOptions
from graphratio.cli.table_files import as_text, is_numeric

_ISO = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?)?)?")
# Sign, hours and minutes by which a zone is ahead of UTC.
_AHEAD = r"[T ][\d:.]+([+-])(\d\d):?(\d\d)?$"
_HOW = (
    "Write times like 2020-03-01 or 2020-03-01T14:30, say how they are written with --date-format, "
    "or use numbers in column and options"
)


class TimeAxis:
    """A pandas column of times or numbers, and limits in the same unit.

    `values` are in UTC where times have a zone, `local` by the clock of their own zone.
    """

    def __init__(self, column: Any, name: str, date_format: str | None = None) -> None:
        pandas = import_optional("pandas", "cli", "reading tables")
        self.name = name
        self.numeric = date_format is None and is_numeric(column)
        self.known = np.asarray(as_text(column) != "")
        if self.numeric:
            self.values = pandas.to_numeric(column, errors="coerce").to_numpy(dtype=float)
            if np.isinf(self.values).any():
                raise InputError(
                    f"column {name!r} has {int(np.isinf(self.values).sum())} infinite times", _HOW
                )
            self.local = self.values
            return
        text = as_text(column).where(self.known, None)
        try:
            times = pandas.to_datetime(
                text, format=date_format or "ISO8601", utc=True, errors="coerce"
            )
        except ValueError as error:
            raise InputError(
                f"--date-format {date_format} is not a format of dates ({error})",
                "Use codes such as %Y year, %m month, %d day, %H hour, %M minute",
            ) from error
        wrong = np.asarray(times.isna()) & self.known
        if wrong.any():
            found = listing(text[wrong].unique().tolist(), limit=3)
            what = "dates" if date_format is None else f"dates like {date_format}"
            raise InputError(
                f"column {name!r} has {int(wrong.sum())} values that are not {what}: {found}",
                _HOW if date_format is None else "Correct them, or pass another --date-format",
            )
        # Microseconds, because nanoseconds only cover the years 1677 to 2262.
        self.values = times.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
        sign, hours, minutes = (part for _, part in text.str.extract(_AHEAD).items())
        ahead = 60 * hours.astype(float) + minutes.astype(float).fillna(0)
        ahead = ahead.where(sign != "-", -ahead).fillna(0).to_numpy()
        self.local = self.values + ahead.astype("timedelta64[m]")

    def limits(self, text: str) -> tuple[Any, Any]:
        """First and last moment of a date: 2020-03 is the whole of March."""
        pandas = import_optional("pandas", "cli", "reading tables")
        try:
            if self.numeric:
                return float(text), float(text)
            if not _ISO.fullmatch(text.strip()):
                raise ValueError(text)
            period = pandas.Period(text.strip())
            first, last = (end.to_datetime64() for end in (period.start_time, period.end_time))
            return first.astype("datetime64[us]"), last.astype("datetime64[us]")
        except ValueError as error:
            kind = "a number" if self.numeric else "a date"
            raise InputError(
                f"{text!r} is not {kind} like the values of column {self.name!r}", _HOW
            ) from error

    def interval(self, text: str) -> tuple[Any, Any]:
        """Ends of a range "first:last"; times contain colons too, so every colon is tried."""
        found = []
        for position in (i for i, character in enumerate(text) if character == ":"):
            try:
                found.append(
                    (self.limits(text[:position])[0], self.limits(text[position + 1 :])[1])
                )
            except InputError:
                continue
        if len(found) != 1:
            raise InputError(
                f"{text!r} is not a range", "Write first:last, for instance 2019-03-01:2019-05-31"
            )
        first, last = found[0]
        if first > last:
            raise InputError(f"the range {text!r} ends before it begins", "Swap its ends")
        return first, last


def by_time(column: Any, options: SampleOptions) -> tuple[np.ndarray, np.ndarray, str, str]:
    """Masks of the rows in the reference and in the target, and the names of both."""
    axis = TimeAxis(column, str(options.time), options.date_format)
    if options.split is not None:
        begin, _ = axis.limits(options.split)
        return (
            axis.known & (axis.values < begin),
            axis.known & (axis.values >= begin),
            f"before {options.split}",
            f"from {options.split}",
        )
    texts = (str(options.reference_range), str(options.target_range))
    first, second = (axis.interval(text) for text in texts)
    if first[0] <= second[1] and second[0] <= first[1]:
        raise InputError(
            f"the ranges {texts[0]!r} and {texts[1]!r} overlap",
            "Choose two that have no time in common",
        )
    reference, target = (
        axis.known & (axis.values >= low) & (axis.values <= high) for low, high in (first, second)
    )
    return reference, target, _spoken(texts[0]), _spoken(texts[1])


def _spoken(text: str) -> str:
    """A readable range; a single colon is the separator."""
    return " to ".join(text.split(":")) if text.count(":") == 1 else text
