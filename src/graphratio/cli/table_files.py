"""Read CSV and Parquet files, with a message for every common mistake in them."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphratio._utils.errors import InputError, MissingDependencyError, listing
from graphratio._utils.optional import import_optional
from graphratio.cli.file_content import PARQUET, content_of, name_of
from graphratio.data.validation import nearest_name, written


class TableFile:
    """A CSV or Parquet file whose columns are read by name.

    Values of a CSV file are kept as the text that was written, without surrounding spaces. Its
    columns are separated by `delimiter`: by default a comma, or a tab for .tsv. The file is read
    once, so that it may be a pipe; `-` is standard input.
    """

    def __init__(self, path: Path, delimiter: str | None = None) -> None:
        self.name = name_of(path)
        self._content = content_of(path)
        endings = [ending.lower() for ending in path.suffixes]
        self.parquet = self._content.startswith(PARQUET) or endings[-1:] == [".parquet"]
        if delimiter in ("tab", "\\t"):
            delimiter = "\t"
        if delimiter is not None and len(delimiter) != 1:
            raise InputError(
                f"the delimiter {delimiter!r} is not one character",
                "Pass, for instance, --delimiter ';' or --delimiter tab",
            )
        self.delimiter = delimiter or ("\t" if ".tsv" in endings[-2:] else ",")
        self.columns = self._parquet_columns() if self.parquet else self._csv_columns()

    def check(self, column: str, role: str) -> None:
        """Refuse a missing column, suggesting the nearest name, and a repeated one."""
        if column not in self.columns:
            remedy = nearest_name(column, self.columns)
            delimiter = self._likely_delimiter()
            if delimiter:
                remedy = f"Its columns seem to be separated by {delimiter!r}: pass --delimiter"
                remedy += f" '{delimiter}'" if delimiter != "\t" else " tab"
            raise InputError(f"{self.name} has no column {column!r} (given as {role})", remedy)
        if self.columns.count(column) > 1:
            raise InputError(
                f"{self.name} has {self.columns.count(column)} columns called {column!r}",
                "Rename them",
            )

    def read(
        self, columns: Sequence[str], *, blank: Sequence[str] = (), keep: Sequence[str] = ()
    ) -> Any:
        """Return a pandas frame with these existing columns and at least one row.

        Entries in `blank` count as missing, except in the columns `keep`.
        """
        frame = self._read_parquet(columns) if self.parquet else self._read_csv(columns)
        if not len(frame):
            raise InputError(f"{self.name} has a header but no rows", "Check how it was exported")
        for name in [name for name in columns if blank and name not in keep]:
            frame[name] = frame[name].mask(_is_one_of(frame[name], blank), None)
        return frame

    def _likely_delimiter(self) -> str | None:
        """Another character that may separate the columns, if the header is a single column."""
        if self.parquet or len(self.columns) != 1:
            return None
        counts = {character: self.columns[0].count(character) for character in ";\t|,"}
        counts.pop(self.delimiter, None)
        best = max(counts, key=lambda character: counts[character])
        return best if counts[best] else None

    def _csv_columns(self) -> list[str]:
        try:
            text = io.TextIOWrapper(io.BytesIO(self._content), encoding="utf-8-sig", newline="")
            header = next(csv.reader(text, delimiter=self.delimiter), None)
        except (UnicodeDecodeError, csv.Error) as error:
            raise self._refusal(error) from error
        if not header or not any(name.strip() for name in header):
            raise InputError(f"the first line of {self.name} is empty", "Put column names there")
        return [name.strip() for name in header]

    def _read_csv(self, columns: Sequence[str]) -> Any:
        pandas = import_optional("pandas", "cli", "reading CSV files")
        positions = [self.columns.index(name) for name in columns]
        errors = (pandas.errors.ParserError, pandas.errors.ParserWarning)
        try:
            with warnings.catch_warnings():
                # Rows longer than the header would lose fields with no more than a warning.
                warnings.simplefilter("error", pandas.errors.ParserWarning)
                frame = pandas.read_csv(
                    io.BytesIO(self._content),
                    sep=self.delimiter,
                    encoding="utf-8-sig",
                    header=0,
                    names=range(len(self.columns)),
                    index_col=False,
                    dtype=str,
                    keep_default_na=False,
                )
        except (UnicodeDecodeError, *errors) as error:
            raise self._refusal(error) from error
        chosen = frame[positions].apply(lambda column: column.fillna("").str.strip())
        chosen.columns = list(columns)
        return chosen

    def _parquet_columns(self) -> list[str]:
        parquet = import_optional("pyarrow.parquet", "parquet", "reading Parquet files")
        try:
            return [str(name) for name in parquet.read_schema(io.BytesIO(self._content)).names]
        except Exception as error:
            raise self._refusal(error) from error

    def _read_parquet(self, columns: Sequence[str]) -> Any:
        parquet = import_optional("pyarrow.parquet", "parquet", "reading Parquet files")
        try:
            table = parquet.read_table(io.BytesIO(self._content), columns=list(columns))
            # Otherwise pandas would turn a column that was an index into an index again.
            frame = table.to_pandas(ignore_metadata=True)
        except MissingDependencyError:
            raise
        except Exception as error:
            # pyarrow raises its own errors, OSError and others for damaged files.
            raise self._refusal(error) from error
        for name in frame.columns[frame.dtypes.map(str).str.startswith("datetime")]:
            # Times outside these years cannot be written out.
            times = frame[name].dropna().to_numpy(dtype="datetime64[us]")
            years = times.astype("datetime64[Y]").astype(int) + 1970
            if ((years < 1) | (years > 9999)).any():
                raise InputError(
                    f"column {name!r} of {self.name} has times before the year 1 or after 9999",
                    "Correct or remove them",
                )
        return frame

    def _refusal(self, error: Exception) -> InputError:
        """Say what is wrong with a file that a parser refused."""
        reason = " ".join(str(error).split())
        if isinstance(error, UnicodeDecodeError):
            byte = error.object[error.start : error.start + 1].hex()
            return InputError(
                f"{self.name} is not UTF-8 text (byte 0x{byte})",
                "Save it as CSV in UTF-8; Excel calls it 'CSV UTF-8'",
            )
        if self.parquet:
            return InputError(
                f"{self.name} is not a Parquet file, or it is damaged ({reason[:120]})",
                "Write it again, or pass CSV",
            )
        return InputError(
            f"{self.name} cannot be read as a table: {reason}",
            "Give every row as many fields as the header, and close every quote",
        )


def as_text(column: Any) -> Any:
    """Values of a column as a person would type them; missing ones are empty."""
    try:
        words = {value: written(value) for value in column.dropna().unique()}
    except TypeError as error:
        raise InputError(
            f"column {column.name!r} has lists or other composite values", "Use text or numbers"
        ) from error
    return column.map(words, na_action="ignore").astype(object).fillna("")


# Common entries for a missing number.
_NO_NUMBER = {"", "na", "n/a", "nan", "null", "none", "-", "?", ".", "missing"}


def as_numbers(
    column: Any,
    name: str,
    remedy: str = "Correct or remove these values",
) -> Any:
    """Values of a pandas column as floats; other values are an error with this remedy."""
    numbers = _parsed(column)
    bad = numbers.isna() & ~_blank(column)
    if bad.any():
        first = int(bad.to_numpy().argmax()) + 1
        values = listing(dict.fromkeys(str(value) for value in column[bad]), limit=3)
        if column[bad].astype(str).str.fullmatch(r"[+-]?\d+,\d+").all():
            remedy = "Write decimals with a point: 1.5, not 1,5"
        raise InputError(
            f"column {name!r} has {int(bad.sum())} values other than numbers: {values} "
            f"(first in row {first} below the header)",
            remedy,
        )
    return numbers


def _is_one_of(column: Any, words: Sequence[str]) -> Any:
    """Whether entries are one of these words, or the same number as one of them."""
    found = as_text(column).isin(words)
    numbers = _parsed(column)
    for word in words:
        with suppress(ValueError):
            found |= numbers == float(word)
    return found


def is_mostly_numeric(column: Any) -> bool:
    """Tell whether at least half of the entries that are not blank are numbers."""
    numbers = _parsed(column).notna().sum()
    return bool(numbers) and bool(2 * numbers >= (~_blank(column)).sum())


def is_numeric(column: Any) -> bool:
    """Tell whether a column has numbers and, apart from them, only blanks."""
    numbers = _parsed(column)
    return bool(numbers.notna().any() and (numbers.notna() | _blank(column)).all())


def _parsed(column: Any) -> Any:
    pandas = import_optional("pandas", "cli", "reading tables")
    if not str(column.dtype).startswith(("datetime", "timedelta")):
        with suppress(TypeError):  # lists and other composite values
            return pandas.to_numeric(column, errors="coerce").astype(float)
    return pandas.Series(float("nan"), index=column.index)


def _blank(column: Any) -> Any:
    return column.isna() | column.astype(str).str.strip().str.lower().isin(_NO_NUMBER)
