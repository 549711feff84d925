"""Data frames in and out: pandas and polars through narwhals, imported only when needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data.times import as_times
from graphratio.data.validation import as_labels, nearest_name, plain_label, written

Backend: TypeAlias = Literal["pandas", "polars"]


def _is_lazy(value: object) -> bool:
    return type(value).__name__ == "LazyFrame"


def is_frame(value: object) -> bool:
    """Tell whether a value is a data frame, without importing any frame library."""
    # A lazy frame is recognised by its name: asking for its columns would run the query.
    return _is_lazy(value) or (
        hasattr(value, "columns")
        and hasattr(value, "shape")
        and (hasattr(value, "schema") or hasattr(value, "iloc"))
    )


def backend_of(frame: Any) -> Backend:
    """Library of returned tables: polars for polars, pandas for everything else."""
    return "polars" if type(frame).__module__.startswith("polars") else "pandas"


def row_labels(frame: Any) -> tuple[Label, ...] | None:
    """Labels of the index of a pandas frame, or None where it just counts the rows."""
    if not (hasattr(frame, "columns") and hasattr(frame, "index")):
        return None
    labels = as_labels(frame.index)
    return None if labels == tuple(range(len(labels))) else labels


def make_frame(columns: Mapping[str, Sequence[Any] | np.ndarray], backend: Backend) -> Any:
    """Build a table with the given columns in the library `backend`."""
    if backend == "pandas":
        return import_optional("pandas", "frame", "returning a data frame").DataFrame(dict(columns))
    polars = import_optional("polars", "frame", "returning a polars frame")
    series = []
    for name, values in columns.items():
        kinds = {type(value) for value in values} if isinstance(values, list) else set()
        # Labels of several types would be cast to one of them, or lost.
        dtype = polars.Object if len(kinds) > 1 or tuple in kinds else None
        series.append(polars.Series(name, values, dtype=dtype))
    return polars.DataFrame(series)


def numeric_frame(frame: Any) -> tuple[FloatArray, tuple[str, ...]]:
    """Values of a frame whose columns are all numeric, and their names."""
    wrapped = _wrap(frame)
    names = list(wrapped.columns)
    if not names:
        raise InputError("a data frame has no columns", "Pass at least one numeric column")
    values = np.column_stack([_number_column(wrapped, name, "feature") for name in names])
    return values, tuple(str(name) for name in names)


def stacked_columns(frame: Any, time: str, node: str, value: str) -> Any:
    """A table with one column per node as a long one with the columns time, node and value."""
    if hasattr(frame, "index") and time not in frame.columns:
        # The index of a pandas frame holds the times.
        frame = frame.rename_axis(time).reset_index()
    wrapped = _wrap(frame)
    _column(wrapped, time, "time")
    nodes = [name for name in wrapped.columns if name != time]
    if not nodes:
        raise InputError("the frame has no columns besides that of the times", "Add one per node")
    if value in (*nodes, time, node):
        raise InputError(
            f"the values of the frame cannot be called {value!r}, which is the name of a column",
            "Pass features with another name for what its columns hold",
        )
    for name in nodes:
        _number_column(wrapped, name, "column of a node")
    if hasattr(frame, "melt"):
        return frame.melt(time, nodes, var_name=node, value_name=value)
    return wrapped.unpivot(nodes, index=time, variable_name=node, value_name=value).to_native()


def points_by_name(
    frame: Any, names: Iterable[str], levels: Mapping[str, tuple[str, ...] | None] | None = None
) -> FloatArray:
    """Named columns in order, NaN where missing; those with `levels` as level numbers."""
    return _coded_columns(_wrap(frame), list(names), levels or {})[0]


def _wrap(frame: Any) -> Any:
    narwhals = import_optional("narwhals", "frame", "reading a data frame")
    # Checked before narwhals, whose message about repeated names is less clear.
    names = [] if _is_lazy(frame) else list(getattr(frame, "columns", ()))
    if all(isinstance(name, str | int) for name in names) and len(set(names)) != len(names):
        repeated = {name for name in names if names.count(name) > 1}
        raise InputError(
            f"column names are repeated: {listing(sorted(repeated, key=str))}", "Rename them"
        )
    wrapped = narwhals.from_native(frame, pass_through=True)
    if hasattr(wrapped, "collect"):
        wrapped = wrapped.collect()
    if not hasattr(wrapped, "get_column"):
        raise InputError(
            f"{type(frame).__name__} is not a supported data frame", "Pass pandas or polars"
        )
    return wrapped


def _column(wrapped: Any, column: object, role: str) -> Any:
    if column not in wrapped.columns:
        raise InputError(
            f"there is no column {column!r} (given as {role})",
            nearest_name(column, wrapped.columns),
        )
    return wrapped.get_column(column)


def _label_column(wrapped: Any, column: object, role: str) -> tuple[list[Any], IntArray]:
    """Distinct values in order of appearance, and the code of each row; -1 where missing."""
    # Python handles every distinct value only once, for the sake of long tables.
    series = _column(wrapped, column, role)
    present = ~_missing_mask(series)
    values = series.to_list()
    try:
        seen = dict.fromkeys(values)
    except TypeError as error:
        raise InputError(
            f"the column {column!r} (given as {role}) has values that are not hashable ({error})",
            "Use strings or integers",
        ) from error
    for position, value in enumerate(seen):
        seen[value] = position
    raw = np.fromiter(map(seen.__getitem__, values), dtype=np.intp, count=len(values))
    # Codes without the missing values, numbered by first appearance.
    used, codes = np.unique(raw[present], return_inverse=True)
    distinct = list(seen)
    full = np.full(len(values), -1, dtype=np.intp)
    full[present] = codes
    return [distinct[i] for i in used], full


def _missing_mask(series: Any) -> BoolArray:
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if series.dtype.is_float():
        missing = missing | np.asarray(series.is_nan().fill_null(True).to_numpy(), dtype=bool)
    return missing


def _first_word(series: Any) -> str:
    """Name the first row of a text column that is no number: often there is just one.

    The entry itself is not shown: a loader's messages may leave the machine with the data.
    """
    for row, value in enumerate(series.to_list() if str(series.dtype) == "String" else ()):
        if isinstance(value, str) and not _is_number(value):
            return f"; row {row}, counted from 0, has no number"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number_column(wrapped: Any, name: object, role: str) -> FloatArray:
    series = _column(wrapped, name, role)
    if not (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
        raise InputError(
            f"the {role} {name!r} is not numeric (type {series.dtype}{_first_word(series)})",
            "Convert it to numbers, or leave it out"
            + (
                f"; NodeSamples.from_frame reads categories: categorical=[{name!r}]"
                * (role == "feature")
            ),
        )
    present = ~_missing_mask(series)
    values = np.full(len(present), np.nan)
    kept = series if present.all() else series.drop_nulls()
    numbers = np.asarray(kept.to_numpy(), dtype=np.float64)
    # Whether drop_nulls also drops NaN depends on the library.
    values[present] = numbers[~np.isnan(numbers)]
    return values


def _coded_columns(
    wrapped: Any, names: Sequence[Any], levels: Mapping[str, tuple[str, ...] | None]
) -> tuple[FloatArray, dict[str, tuple[str, ...]]]:
    """Numbers as they are, categories as the numbers of their levels, and these levels."""
    columns, found = [], {}
    for name in names:
        if name in levels:
            codes, found[str(name)] = _category_column(wrapped, name, levels[name])
        else:
            codes = _number_column(wrapped, name, "feature")
        columns.append(codes)
    return np.column_stack(columns), found


def _category_column(
    wrapped: Any, name: object, levels: tuple[str, ...] | None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Number of the level of each row, NaN where missing, and the levels."""
    values, codes = _label_column(wrapped, name, "categorical feature")
    words = [written(value) for value in values]
    if levels is None:
        levels = tuple(_in_order(dict.fromkeys(word for word in words if word)))
    position = {level: float(i) for i, level in enumerate(levels)}
    # Blanks are missing values.
    unknown = {
        word: int((codes == i).sum())
        for i, word in enumerate(words)
        if word and word not in position
    }
    if unknown:
        counted = ", ".join(f"{word!r} ({n} rows)" for word, n in list(unknown.items())[:5])
        raise InputError(
            f"the column {name!r} has unknown levels: {counted}; the known ones are "
            f"{listing(levels, limit=12) or 'none'}",
            "Rename them or drop these rows; to allow further levels, list all levels when you "
            f"read the samples: categorical={{{name!r}: [...]}}",
        )
    numbers = np.array([*(position.get(word, np.nan) for word in words), np.nan])
    return numbers[codes], levels


def _in_order(words: Iterable[str]) -> list[str]:
    """Sort numbers by size, everything else alphabetically."""
    found = list(words)
    try:
        return sorted(found, key=float)
    except ValueError:
        return sorted(found)


def long_table(
    frame: Any,
    node: str,
    sample: str,
    features: Sequence[str] | str | None,
    categorical: Mapping[str, tuple[str, ...] | None] | None = None,
    time: str | None = None,
) -> tuple[
    list[Any],
    IntArray,
    list[Any],
    IntArray,
    FloatArray,
    tuple[str, ...],
    dict[str, tuple[str, ...]],
]:
    """Read a long table with one row per observation; by default the times are not a feature.

    Returns distinct nodes and the code of each row (-1 where missing), the same for `sample`,
    values (n_rows, n_columns) with level numbers of categories, column names, and the levels.
    """
    if not is_frame(frame):
        raise InputError(
            f"{type(frame).__name__} is not a supported data frame", "Pass pandas or polars"
        )
    wrapped = _wrap(frame)
    labels, label_codes = _label_column(wrapped, node, "node")
    sides, side_codes = _label_column(wrapped, sample, "sample")
    roles = (node, sample) if time is None else (node, sample, time)
    chosen = _feature_names(wrapped, roles, features, categorical or ())
    asked = {} if categorical is None else {**_declared(wrapped, chosen), **categorical}
    values, levels = _coded_columns(wrapped, chosen, asked)
    names = tuple(str(name) for name in chosen)
    return labels, label_codes, sides, side_codes, values, names, levels


def time_column(frame: Any, name: str) -> np.ndarray:
    """Times in a column, NaN or NaT where missing."""
    column = _column(_wrap(frame), name, "time")
    return as_times(column, f"the column {name!r} (given as time)")


def _declared(wrapped: Any, names: Iterable[Any]) -> dict[str, None]:
    """Columns of a categorical type."""
    types = {name: str(_column(wrapped, name, "feature").dtype) for name in names}
    return {name: None for name, kind in types.items() if kind.startswith(("Categorical", "Enum"))}


def _feature_names(
    wrapped: Any,
    others: tuple[str, ...],
    features: Sequence[str] | str | None,
    categorical: Iterable[str],
) -> list[Any]:
    """The requested features; categorical columns need not be listed twice."""
    for name in categorical:
        _column(wrapped, name, "categorical feature")
        if name in others:
            raise InputError(
                f"the column {name!r} is given as categorical and as node, sample or time",
                "Name only measured columns as features",
            )
    if features is None:
        chosen: list[Any] = [
            name
            for name in wrapped.columns
            if name not in others
            and (name in categorical or wrapped.get_column(name).dtype.is_numeric())
        ]
    elif isinstance(features, str) or not isinstance(features, Iterable):
        chosen = [features]
    else:
        chosen = list(features)
    chosen += [name for name in categorical if name not in chosen]
    if not chosen:
        raise InputError("there are no features", "Name at least one numeric column as features")
    if len({str(name) for name in chosen}) != len(chosen):
        raise InputError(f"features are repeated: {listing(chosen)}", "Name each one once")
    return chosen


def edges_of(
    frame: Any, source: str | None, target: str | None, weight: str | None
) -> tuple[list[Any], list[Any], FloatArray]:
    """Read a table of edges: the two ends and the weight of each."""
    wrapped = _wrap(frame)
    names = list(wrapped.columns)
    if weight is None and "weight" in names and "weight" not in (source, target):
        weight = "weight"
    free = iter(name for name in names if name not in (source, target, weight))
    ends = [end if end is not None else next(free, None) for end in (source, target)]
    if None in ends:
        raise InputError(
            f"a table of edges needs two columns for the ends, this one has "
            f"{listing(names) or 'none'}",
            "Name the columns of the two ends as source= and target=",
        )
    if ends[0] == ends[1]:
        raise InputError(
            f"source and target are both the column {ends[0]!r}", "Name two different columns"
        )
    columns = [
        _label_column(wrapped, name, role)
        for name, role in zip(ends, ("source", "target"), strict=True)
    ]
    gone = np.flatnonzero((columns[0][1] < 0) | (columns[1][1] < 0))
    if gone.size:
        raise InputError(f"edges in rows {listing(gone.tolist())} lack an end", "Drop these rows")
    first, second = (
        [plain[code] for code in codes.tolist()]
        for plain, codes in (([plain_label(v) for v in values], codes) for values, codes in columns)
    )
    weights = np.ones(len(first)) if weight is None else _number_column(wrapped, weight, "weight")
    return first, second, weights
