"""Features as figures show them: by column, in original units, over the range of the data.

A category is one column here, not one indicator for each level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.data.encoding import Encoding
from graphratio.data.samples import NodeSamples
from graphratio.data.scaling import in_common_units
from graphratio.data.validation import nearest_name
from graphratio.plotting import style

# Figures of ratios cover the data between these quantiles: outside, a ratio rests on very few
# observations.
SHOWN_QUANTILES = (0.005, 0.995)

_CURVE_POINTS = 200

# Beside the data a curve is dotted over this share of their range.
_BESIDE_DATA = 0.05


def columns_of(model: Any) -> tuple[list[str], list[tuple[str, ...]]]:
    """Names of the columns of the data, and the levels of each; a number has none."""
    if model.encoding_ is None:
        names = [str(name) for name in model.feature_names_in_]
        return names, [()] * len(names)
    names = list(model.encoding_.columns)
    return names, [model.encoding_.levels.get(name, ()) for name in names]


def feature_column(model: Any, feature: str | int | None) -> int:
    """Position of a column given by name or number; None is the first."""
    names = columns_of(model)[0]
    if feature is None:
        return 0
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if whole and 0 <= int(feature) < len(names):
        return int(feature)
    raise InputError(f"there is no feature {feature!r}", nearest_name(feature, names))


def raw_samples(samples: NodeSamples, model: Any) -> NodeSamples:
    """Samples of the model's nodes in original units."""
    if samples.n_features != model.n_features_in_:
        raise InputError(
            f"the samples have {samples.n_features} features, "
            f"but the model was fitted with {model.n_features_in_}",
            "Pass the same features in the same order as in fit",
        )
    return samples.original().aligned(model.nodes_)


def common_samples(samples: NodeSamples, model: Any) -> NodeSamples:
    """Samples of the model's nodes in units that all nodes have in common.

    These are the original ones, but the scale of the fit in features that nodes have scales of
    their own in.
    """
    raw, scaling = raw_samples(samples, model), model.scaling_
    if scaling is None or not scaling.own_mask.any():
        return raw
    scaled = raw.scaled(scaling).values
    return replace(raw, values=np.where(scaling.own_mask, scaled, raw.values))


def in_scale_of_fit(model: Any, points: FloatArray, position: int) -> FloatArray:
    """Points in original units, as the fit sees them at a node."""
    scaling = model.scaling_
    return points if scaling is None else scaling.apply(points, np.full(len(points), position))


def has_own_scales(model: Any, column: int) -> bool:
    """Whether nodes have scales of their own in a column of the data."""
    if model.scaling_ is None:
        return False
    return bool(model.scaling_.own_mask[_feature_of(model, column)])


def _feature_of(model: Any, column: int) -> int:
    """Position of the (first) feature of a column."""
    return column if model.encoding_ is None else int(model.encoding_.starts[column])


def takes_logarithm(model: Any, column: int) -> bool:
    """Whether the original units of a column are logarithms in the fit."""
    scaling = model.scaling_
    return scaling is not None and bool(scaling.log_mask[_feature_of(model, column)])


def evenly(values: FloatArray, count: int, logarithmic: bool) -> FloatArray:
    """Evenly spaced values over the range of the data."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        margin = abs(low) * 0.05 or 0.5
        low, high = low - margin, high + margin
    return np.asarray(
        np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)
    )


def axis_of(
    values: FloatArray, levels: tuple[str, ...], count: int, logarithmic: bool
) -> tuple[FloatArray, FloatArray]:
    """Positions of a curve along a column, and its values there; a level has two, its ends."""
    if not levels:
        grid = evenly(values, count, logarithmic)
        return grid, grid
    edges = np.arange(len(levels) + 1) - 0.5
    return np.repeat(edges, 2)[1:-1], np.repeat(np.arange(edges[-1]), 2)


def points_along(
    encoding: Encoding | None, centre: FloatArray, column: int, along: FloatArray
) -> FloatArray:
    """Points in the model's features that vary one column and hold the others at a centre."""
    points = np.tile(centre, (len(along), 1))
    points[:, column] = along
    return points if encoding is None else encoding.expand(points)


def in_columns(samples: NodeSamples) -> NodeSamples:
    """Return the samples with every category as one column that holds the number of the level."""
    encoding = samples.encoding
    if encoding is None:
        return samples
    return replace(
        samples,
        values=encoding.collapse(samples.values),
        feature_names=encoding.columns,
        encoding=None,
    )


def typical_values(values: FloatArray, levels: Sequence[tuple[str, ...]]) -> FloatArray:
    """Median of every number and most frequent level of every category, shape (n_columns,)."""
    middle = np.median(values, axis=0)
    for j, names in enumerate(levels):
        if names:
            middle[j] = np.bincount(values[:, j].astype(int)).argmax()
    return np.asarray(middle)


def draw_ratios(
    ax: Any,
    model: Any,
    data: NodeSamples,
    column: int,
    evaluate: Callable[[FloatArray], FloatArray],
    curves: Sequence[dict[str, Any]],
    members: Sequence[BoolArray] | None = None,
) -> None:
    """Draw curves of ratios over the usual range of a column of the data.

    The data are in common units and by column. `evaluate` returns the ratios at points in the scale
    of the fit, shape (n_points, n_curves); `curves` says how to draw each. `members` are the
    observations of each curve, shape (n_observations,): it is solid over their usual range, dotted
    a little beyond, and ends there.
    """
    names, levels = columns_of(model)
    logarithmic = takes_logarithm(model, column) and not has_own_scales(model, column)
    usual = np.quantile(data.values[:, column], SHOWN_QUANTILES)
    grid, along = axis_of(usual, levels[column], _CURVE_POINTS, logarithmic)
    centre = typical_values(data.values, levels)
    points = points_along(model.encoding_, centre, column, along)
    ratios = evaluate(in_common_units(model.scaling_, points))
    ax.axhline(1.0, color=style.FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    for k, (ratio, how) in enumerate(zip(ratios.T, curves, strict=True)):
        inside = near = np.ones(len(grid), dtype=bool)
        if members is not None and not levels[column]:
            low, high = np.quantile(data.values[members[k], column], SHOWN_QUANTILES)
            inside = (grid >= low) & (grid <= high)
            beside = _BESIDE_DATA * (high - low)
            near = (grid >= low - beside) & (grid <= high + beside)
        ax.plot(grid[inside], ratio[inside], linewidth=2, **how)
        if not inside[near].all():
            ax.plot(grid[near], ratio[near], ":", linewidth=1.2, color=how["color"])
    scale_column(ax, levels[column], logarithmic)
    ax.set_ylim(bottom=0.0)
    name = f"{names[column]}{own_units(model, column)}"
    ax.set_xlabel(f"{name} (other features at their medians)" if len(names) > 1 else name)
    ax.set_ylabel("target / reference")
    style.without_frame(ax, "top", "right")


def own_units(model: Any, column: int) -> str:
    """What to add to the name of a column where nodes have scales of their own."""
    if not has_own_scales(model, column):
        return ""
    logarithmic = "log " if takes_logarithm(model, column) else ""
    return f", {logarithmic}SDs from the node's mean"


def scale_column(ax: Any, levels: tuple[str, ...], logarithmic: bool) -> None:
    """Scale the horizontal axis for a column, and name the levels of a category."""
    if logarithmic:
        ax.set_xscale("log")
    if levels:
        ax.set_xticks(np.arange(len(levels)), levels)
