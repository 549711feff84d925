"""Data frames in and out: pandas and polars through narwhals, imported only when needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from graphratio._optional import import_optional
from graphratio.exceptions import InputError, listing
from graphratio.typing import BoolArray, FloatArray
from graphratio.validation import nearest_name

Backend: TypeAlias = Literal["pandas", "polars"]


def is_frame(value: object) -> bool:
    """Tell whether a value is a data frame, without importing any frame library."""
    return (
        hasattr(value, "columns")
        and hasattr(value, "shape")
        and hasattr(value, "schema") | (hasattr(value, "iloc"))
    )


def backend_of(frame: Any) -> Backend:
    """Which library tables should come back in: polars for polars, pandas for the rest."""
    return "polars" if type(frame).__module__.startswith("polars") else "pandas"


def make_frame(columns: Mapping[str, Sequence[Any] | np.ndarray], backend: Backend) -> Any:
    """Build a table with the given columns in the library `backend`."""
    if backend == "polars":
        return import_optional("polars", "frame", "returning a polars frame").DataFrame(
            {name: list(values) for name, values in columns.items()}, strict=False
        )
    return import_optional("pandas", "frame", "returning a data frame").DataFrame(dict(columns))


def _wrap(frame: Any) -> Any:
    narwhals = import_optional("narwhals", "frame", "reading a data frame")
    wrapped = narwhals.from_native(frame, pass_through=True)
    if hasattr(wrapped, "collect"):
        wrapped = wrapped.collect()
    if not hasattr(wrapped, "to_native"):
        raise InputError(f"{type(frame)} is not a supported data frame", "Pass pandas or polars")
    names = list(wrapped.columns)
    if len(set(names)) != len(names):
        repeated = {name for name in names if names.count(name) > 1}
        raise InputError(f"column names are repeated: {listing(sorted(map(str, repeated)))}")
    return wrapped


def _need(wrapped: Any, column: object, role: str) -> None:
    if column not in wrapped.columns:
        raise InputError(
            f"there is no column {column!r} (given as {role})",
            nearest_name(column, wrapped.columns),
        )


def column_values(wrapped: Any, column: str, role: str) -> list[Any]:
    """Values of one column as Python objects; missing ones are None."""
    _need(wrapped, column, role)
    series = wrapped[column]
    missing = _missing_mask(series)
    values = series.to_list()
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def _missing_mask(series: Any) -> BoolArray:
    missing = series.is_null()
    if series.dtype.is_float():
        missing = missing | series.is_nan().fill_null(True)
    return np.asarray(missing.to_numpy(), dtype=bool)


def _feature_column(wrapped: Any, name: str) -> FloatArray:
    _need(wrapped, name, "a feature")
    series = wrapped[name]
    if not (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
        raise InputError(
            f"the feature {name!r} is not numeric (type {series.dtype})",
            "Convert it to numbers first, or leave it out of features",
        )
    missing = _missing_mask(series)
    values = np.full(len(missing), np.nan)
    values[~missing] = np.asarray(
        series.filter([not gone for gone in missing]).to_numpy(), dtype=np.float64
    )
    return values


def long_table(
    frame: Any, node: str, sample: str, features: Sequence[str] | str | None
) -> tuple[list[Any], list[Any], FloatArray, tuple[str, ...]]:
    """Read a long table: labels, which sample, and the features, one row per observation.

    Missing numbers come back as NaN, missing labels as None.
    """
    wrapped = _wrap(frame)
    labels = column_values(wrapped, node, "node")
    sides = column_values(wrapped, sample, "sample")
    if isinstance(features, str):
        features = [features]
    if features is None:
        others = [name for name in wrapped.columns if name not in (node, sample)]
        features = [name for name in others if wrapped[name].dtype.is_numeric()]
    if not features:
        raise InputError("there are no features", "Name at least one numeric column as features")
    names = tuple(str(name) for name in features)
    if len(set(names)) != len(names):
        raise InputError(f"features are repeated: {listing(names)}", "Name each one once")
    values = np.column_stack([_feature_column(wrapped, name) for name in features])
    return labels, sides, values, names


def edges_of(
    frame: Any, source: str | None, target: str | None, weight: str | None
) -> tuple[list[tuple[Any, Any]], FloatArray]:
    """Read a table of edges: the pairs of ends and the weights."""
    wrapped = _wrap(frame)
    names = list(wrapped.columns)
    if (source is None or target is None) and len(names) < 2:
        raise InputError(
            f"a table of edges needs two columns, this one has {listing(names) or 'none'}",
            "Name the columns of the two ends as source= and target=",
        )
    first = column_values(wrapped, names[0] if source is None else source, "source")
    second = column_values(wrapped, names[1] if target is None else target, "target")
    gone = [i for i, pair in enumerate(zip(first, second, strict=True)) if None in pair]
    if gone:
        raise InputError(f"edges in rows {listing(gone)} lack an end", "Drop these rows")
    if weight is None and "weight" in names:
        weight = "weight"
    if weight is None:
        weights: FloatArray = np.ones(len(first))
    else:
        weights = _feature_column(wrapped, weight)
    return list(zip(first, second, strict=True)), weights
