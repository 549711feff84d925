"""Labelled arrays of xarray as long tables: one row per node and observation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.optional import import_optional
from graphratio.data.validation import nearest_name

# Name of an array that has none, and of the column that says which sample a row belongs to.
NO_NAME = "value"
_PART = "sample\0"


class Marked(NamedTuple):
    """A long table, the column that divides it, and its values for the two samples."""

    frame: Any
    column: str
    values: tuple[Any, Any]


def is_xarray(value: object) -> bool:
    """Tell whether a value is an array or a data set of xarray, without importing it."""
    return type(value).__module__.partition(".")[0] == "xarray"


def stacked_table(data: Any, node: str, feature: str | None = None) -> tuple[Any, list[str]]:
    """A pandas frame with one row per node and observation, and the names of the features."""
    xarray = import_optional("xarray", "xarray", "reading labelled arrays")
    if isinstance(data, xarray.DataArray):
        if feature is not None:
            _check_dimension(data, feature, "feature")
            data = data.to_dataset(dim=feature)
        else:
            data = data.rename(NO_NAME if data.name is None else data.name).to_dataset()
    elif not isinstance(data, xarray.Dataset):
        raise InputError(
            f"{type(data).__name__} is not a labelled array",
            "Pass an xarray.DataArray or an xarray.Dataset",
        )
    _check_dimension(data, node, "node")
    features = [name for name in data.data_vars if node in data[name].dims]
    if not features:
        raise InputError(f"no variable has the dimension {node!r}", "Name the dimension of nodes")
    uneven = [name for name in features if set(data[name].dims) != set(data[features[0]].dims)]
    if uneven:
        raise InputError(
            f"the variables {listing([features[0], *uneven])} have different dimensions",
            "Select variables that were observed together: data[[...]]",
        )
    frame = data[features].to_dataframe().reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return frame, [str(name) for name in features]


def _check_dimension(data: Any, name: str, role: str) -> None:
    if name not in data.dims:
        raise InputError(
            f"there is no dimension {name!r} (given as {role})", nearest_name(name, data.dims)
        )


def two_parts(
    frame: Any, data: Any, sample: str | None, time: str | None, reference: Any, target: Any
) -> Marked:
    """Mark the sample of each row, by the values of a coordinate or by times."""
    if sample is not None:
        if sample not in frame:
            raise InputError(
                f"there is no coordinate {sample!r} (given as sample)",
                nearest_name(sample, data.coords),
            )
        return Marked(frame, sample, (reference, target))
    if time is None:
        raise InputError(
            "neither sample nor time says how to divide the observations",
            "Name a coordinate with sample=, or the coordinate of the times with time=",
        )
    chosen = [_within(data, time, frame, part) for part in (reference, target)]
    both = int((chosen[0] & chosen[1]).sum())
    if both:
        raise InputError(
            f"reference and target have {both} observations in common",
            "Choose two periods that do not overlap",
        )
    part = np.select(chosen, ["reference", "target"], "neither")
    return Marked(frame.assign(**{_PART: part}), _PART, ("reference", "target"))


def _within(data: Any, time: str, frame: Any, part: Any) -> np.ndarray:
    """Rows whose time a slice or label selects, as xarray understands it."""
    pandas = import_optional("pandas", "frame", "times of labelled arrays")
    try:
        chosen = np.atleast_1d(data[time].sel({time: part}).values)
    except (KeyError, TypeError, ValueError, pandas.errors.InvalidIndexError) as error:
        raise InputError(
            f"{part!r} selects no times of {time!r} ({error})",
            'Pass a slice such as slice("2019-01", "2019-03")',
        ) from error
    if not chosen.size:
        raise InputError(f"no time is inside {part!r}", "Choose times inside those of the data")
    return np.isin(frame[time].to_numpy(), chosen)
