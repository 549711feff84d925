"""New points for a fitted model: checked, in the order and scale of the fit, and their ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError
from graphratio._utils.typing import FloatArray, Label
from graphratio.data import frames
from graphratio.data.sample_input import default_names
from graphratio.data.validation import as_points

if TYPE_CHECKING:
    from graphratio.estimators.base import NodeRatioEstimator

# Points in the scales of all nodes are made for this many rows at a time.
_ROWS = 1 << 16


def read_points(model: NodeRatioEstimator, x: Any) -> FloatArray:
    """Check new points, in the units given; the columns of a frame are matched by name."""
    check_is_fitted(model, "nodes_")
    if model.encoding_ is not None and frames.is_frame(x):
        columns = model.encoding_.columns
        coded = frames.points_by_name(x, columns, model.encoding_.levels)
        return model.encoding_.expand(as_points(coded, len(columns)))
    named = tuple(model.feature_names_in_) != default_names(model.n_features_in_)
    if named and frames.is_frame(x):
        x = frames.points_by_name(x, model.feature_names_in_)
    return as_points(x, model.n_features_in_)


def scaled_points(
    model: NodeRatioEstimator, x: Any, node: Label | None = None, *, standardized: bool = False
) -> FloatArray:
    """Check new points and scale them as the fit does, at a node if each has its own scale.

    With `standardized` they are in this scale already.
    """
    points, scaling = read_points(model, x), model.scaling_
    if scaling is None or standardized:
        return points
    if scaling.nodes is None:
        return scaling.apply(points)
    if node is None:
        raise own_units_error()
    return scaling.apply(points, np.full(len(points), model.graph_.position(node)))


def own_units_error() -> InputError:
    """The error for original units where nodes are looked at together."""
    return InputError(
        "nodes have scales of their own, so a point in original units is another one at each",
        "Pass points in standard deviations from the mean of a node, with standardized=True",
    )


def ratios_at_all(model: NodeRatioEstimator, x: Any, *, standardized: bool = False) -> FloatArray:
    """Unclipped ratios of all nodes at new points, shape (n_points, n_nodes)."""
    scaling = None if standardized else model.scaling_
    if scaling is None or scaling.nodes is None:
        return model._ratios_everywhere(scaled_points(model, x, standardized=standardized))
    points = read_points(model, x)
    n_points, n_nodes = len(points), len(scaling.nodes)
    ratios = np.empty((n_points, n_nodes))
    step = max(1, _ROWS // max(n_points, 1))
    for first in range(0, n_nodes, step):
        nodes = np.arange(first, min(first + step, n_nodes))
        at = np.repeat(nodes, n_points)
        placed = scaling.apply(np.tile(points, (len(nodes), 1)), at)
        ratios[:, nodes] = model._ratios_at_nodes(placed, at).reshape(len(nodes), n_points).T
    return ratios
