"""Features as pictures show them: which one, in original units, over which range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphratio.exceptions import InputError
from graphratio.plotting._common import FittedModel, in_original_units
from graphratio.samples import NodeSamples
from graphratio.typing import FloatArray
from graphratio.validation import nearest_name


def feature_column(model: FittedModel, feature: str | int | None) -> int:
    """Position of a feature by its name or number; the first for None."""
    names = [str(name) for name in model.feature_names_in_]
    if feature is None:
        return 0
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if whole and 0 <= int(feature) < len(names):
        return int(feature)
    raise InputError(f"there is no feature {feature!r}", nearest_name(feature, names))


def raw_samples(samples: NodeSamples, model: FittedModel) -> NodeSamples:
    """Samples of the model's nodes in original units."""
    if samples.n_features != model.n_features_in_:
        raise InputError(
            f"the samples have {samples.n_features} features, "
            f"but the model was fitted with {model.n_features_in_}",
            "Pass the same features in the same order as in fit",
        )
    values = in_original_units(samples.values, samples.scaling)
    return replace(samples.aligned(model.nodes_), values=values, scaling=None)


def takes_logarithm(model: FittedModel, column: int) -> bool:
    """Whether the model was fitted on the logarithm of a feature."""
    scaling = model.scaling_
    return scaling is not None and scaling.log is not None and bool(scaling.log[column])


def evenly(values: FloatArray, count: int, logarithmic: bool) -> FloatArray:
    """Evenly spaced values over the range of the data."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        margin = abs(low) * 0.05 or 0.5
        low, high = low - margin, high + margin
    return np.asarray(
        np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)
    )
