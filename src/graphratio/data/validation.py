"""Checks on the data that users pass in: labels, observations, points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from scipy import sparse

from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import FloatArray, IntArray, Label

# Squared distances of larger values overflow, and statistics of them are meaningless.
LARGEST_VALUE = 1e100


def plain_label(label: object, what: str = "node label") -> Label:
    """Turn NumPy and pandas scalars into Python ones, so that labels compare and hash alike."""
    # The common types first: this runs for every label of a large graph.
    if type(label) in (str, int):
        return label
    if isinstance(label, np.generic):
        label = _python_scalar(label)
    elif hasattr(label, "to_pydatetime") and not getattr(label, "nanosecond", 0):
        label = label.to_pydatetime()
    try:
        hash(label)
    except TypeError as error:
        raise InputError(
            f"the {what} {label!r} is not hashable", "Use strings or integers"
        ) from error
    if label is None or _has_nan(label):
        raise InputError(f"a {what} is missing ({label!r})", f"Give a {what} everywhere")
    return label


def _python_scalar(label: np.generic) -> object:
    value: object = label.item()
    if isinstance(value, int) and isinstance(label, np.datetime64 | np.timedelta64):
        # Python has microseconds; NumPy turns finer units into bare integers.
        coarse = label.astype(f"{label.dtype.kind}8[us]")
        return coarse.item() if coarse == label else label
    return value


def _has_nan(label: object) -> bool:
    """Tell whether a label or a part of it is NaN, which no lookup finds."""
    if isinstance(label, tuple):
        return any(_has_nan(part) for part in label)
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        # pandas.NA: even the comparison is missing.
        return True


def as_labels(nodes: Iterable[object]) -> tuple[Label, ...]:
    """Return the labels as a tuple after checking that they are hashable and distinct."""
    if isinstance(nodes, set | frozenset):
        raise InputError("nodes is a set, which has no order", "Pass a list of labels")
    if isinstance(nodes, str | bytes):
        raise InputError(f"nodes is the single string {nodes!r}", "Pass a list of labels")
    if not isinstance(nodes, Iterable):
        raise InputError(f"nodes={nodes!r} is not a collection", "Pass a list of labels")
    labels = tuple(plain_label(node) for node in nodes)
    if len(set(labels)) != len(labels):
        repeated = [label for label, count in Counter(labels).items() if count > 1]
        raise InputError(
            f"node labels are repeated: {listing(repeated)}", "Give every node its own label"
        )
    return labels


def find_label(positions: Mapping[Label, int], node: object) -> int:
    """Position of a label, or an error that names the nearest known one."""
    label = plain_label(node)
    if label not in positions:
        raise InputError(f"there is no node {label!r}", nearest_name(label, positions))
    return positions[label]


def written(value: object) -> str:
    """Write a value as one would type it: whole numbers without a point, midnights as dates."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace").strip()
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00")
    return str(value).strip()


def distinct_codes(values: IntArray) -> tuple[list[Any], IntArray]:
    """Distinct integers in order of appearance, and the code of each entry."""
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order].tolist(), rank[codes]


def as_numeric(array: Any, what: str) -> FloatArray:
    """Convert to float64, or raise an error that says why not; masked entries become NaN."""
    if sparse.issparse(array):
        raise InputError(f"{what} is a sparse matrix", "Pass a dense array: x.toarray()")
    try:
        raw = np.asarray(array)
    except ValueError as error:
        raise InputError(
            f"{what} is not a rectangular array ({error})",
            "Pass an array of shape (n_observations, n_features)",
        ) from error
    if raw.dtype.kind == "c":
        raise InputError(f"{what} has complex values", "Pass real numbers")
    if raw.dtype.kind not in "fiubO":
        raise InputError(
            f"{what} has values of type {raw.dtype}, not numbers",
            "Convert them to numbers first; categories are read from data frames, with "
            "NodeSamples.from_frame(..., categorical=...)",
        )
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{what} has values that are not numbers ({error})", "Pass real numbers"
        ) from error
    if isinstance(array, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(array), np.nan, values)
    return values


def as_observations(array: Any, what: str) -> FloatArray:
    """One sample as float64 (n_observations, n_features); 1-D means a single feature."""
    values = as_numeric(array, what)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2:
        raise InputError(
            f"{what} is {values.ndim}-D"
            if values.ndim
            else f"{what} is the single value {array!r}",
            "Pass an array of shape (n_observations, n_features), or 1-D for one feature",
        )
    if values.shape[1] == 0 and values.shape[0]:
        raise InputError(f"{what} has no features", "Pass at least one column")
    return values


def check_magnitude(values: FloatArray, what: str) -> None:
    """Refuse values so large that their squared distances would overflow."""
    if values.size and (largest := float(np.max(np.abs(values)))) > LARGEST_VALUE:
        raise InputError(
            f"{what} contains values as large as {largest:.3g}",
            f"Rescale them; magnitudes up to {LARGEST_VALUE:g} can be handled",
        )


def as_points(x: Any, n_features: int, what: str = "x") -> FloatArray:
    """Check points at which a fitted function is evaluated, shape (n_points, n_features)."""
    values = as_numeric(x, what)
    if n_features > 1 and values.shape == (n_features,):
        raise InputError(
            f"{what} is 1-D with {n_features} values, but the model has {n_features} features",
            "For a single point pass x.reshape(1, -1)",
        )
    points = as_observations(values if values.ndim else x, what)
    if points.shape[1] != n_features:
        raise InputError(
            f"{what} has {points.shape[1]} features, but the model was fitted with {n_features}",
            "Pass the same features in the same order as in fit",
        )
    if not np.all(np.isfinite(points)):
        rows = np.flatnonzero(~np.isfinite(points).all(axis=1))
        raise InputError(
            f"{what} contains NaN or infinite values in rows {listing(rows.tolist())}",
            "Drop or fill these rows",
        )
    check_magnitude(points, what)
    return points


def nearest_name(name: object, available: Iterable[object], otherwise: str | None = None) -> str:
    """Remedy for an unknown name: the nearest known one, or all of them, or `otherwise`."""
    known = {str(other): other for other in available}
    near = get_close_matches(str(name), known, n=1)
    if not near:
        return otherwise or f"Available: {listing(known.values(), limit=12) or 'none'}"
    other = known[near[0]]
    if str(name) == near[0]:
        return f"Did you mean {other!r}, of type {type(other).__name__}?"
    return f"Did you mean {other!r}?"
