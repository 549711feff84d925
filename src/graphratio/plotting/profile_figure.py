"""The profiles that the nodes share, each with a map of its coordinates."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import FloatArray
from graphratio.data.alignment import as_samples
from graphratio.data.samples import NodeSamples
from graphratio.data.scaling import in_common_units
from graphratio.plotting import columns, style
from graphratio.plotting.graph_map import begin_map, draw_points, finish_map, node_size

_POINTS_IN_PLANE = 60

# In a plane the colours run from 1 / this ratio to this ratio.
_LARGEST = 4.0


def plot_profiles(
    model: Any, samples: Any, feature: str | int | None = None, *, most: int = 3
) -> np.ndarray:
    """Draw the profiles of a model, each with a map of where it occurs.

    The left column shows the ratio of a node that has only this profile, with the mean coordinate
    of the nodes that use it, the right column the coordinate of every node; 0 is no change.

    Parameters
    ----------
    model : fitted GraphRatio
    samples : NodeSamples, or a tuple (reference, target)
        The data of the fit, before or after `standardized`.
    feature : str or int, optional
        Feature to draw along, with the others at their medians. Default: the plane if there are
        two features, and otherwise the first.
    most : int, default 3
        Largest number of profiles to draw, the most used first.

    Returns
    -------
    ndarray of matplotlib Axes, shape (n_drawn, 2)

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=60, random_state=1)
    >>> model = gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)
    >>> axes = gr.plot_profiles(model, scenario.samples)
    >>> axes.shape, axes[0, 0].get_title(loc="left")
    ((2, 2), 'Profile 1')
    """
    style.check_fitted(model, "profiles_")
    count = min(check_integer(most, "most", low=1), int(model.n_profiles_))
    data = columns.in_columns(columns.common_samples(as_samples(samples), model))
    column = columns.feature_column(model, feature)
    axes = style.new_axes(count, 2, (10.5, 3.6 * count))
    for k, (left, right) in enumerate(axes):
        if feature is None and model.n_features_in_ == 2 and model.encoding_ is None:
            _draw_plane(left, model, data, k)
        else:
            alone = partial(_alone, model, k=k)
            columns.draw_ratios(left, model, data, column, alone, [{"color": style.INK}])
        style.set_heading(left, f"Profile {k + 1}")
        _draw_coordinates(right, model, k)
    return axes


def _alone(model: Any, points: FloatArray, k: int) -> FloatArray:
    """Ratio of a node that has only profile k, at the mean coordinate of its users, as a column.

    The points are in the scale of the fit.
    """
    used = model.coordinates_[:, [k]]
    total = np.square(used).sum(axis=0)
    # Weighted by the squared coordinate, so that nodes that do not use it do not count.
    typical = np.divide((used**3).sum(axis=0), total, out=np.zeros_like(total), where=total > 0)
    values = model.profile_values(points, standardized=True)
    ratio = model.prior_ratio_ + typical * values[:, [k]]
    return np.asarray(np.clip(ratio, 0.0, 1 / model.alpha if model.alpha > 0 else None))


def _draw_plane(ax: Any, model: Any, data: NodeSamples, k: int) -> None:
    colors = import_optional("matplotlib.colors", "plot", "plotting")
    log = [
        columns.takes_logarithm(model, column) and not columns.has_own_scales(model, column)
        for column in (0, 1)
    ]
    usual = np.quantile(data.values, columns.SHOWN_QUANTILES, axis=0).T
    x, y = (columns.evenly(usual[column], _POINTS_IN_PLANE, log[column]) for column in (0, 1))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    points = in_common_units(model.scaling_, points)
    ratio = np.maximum(_alone(model, points, k), 1 / _LARGEST).reshape(len(y), len(x))
    norm = colors.LogNorm(1 / _LARGEST, _LARGEST)
    image = ax.pcolormesh(
        x, y, ratio, cmap=style.DIVERGING, norm=norm, shading="gouraud", rasterized=True
    )
    for scale, setter in zip(log, (ax.set_xscale, ax.set_yscale), strict=True):
        setter("log" if scale else "linear")
    for column, setter in enumerate((ax.set_xlabel, ax.set_ylabel)):
        setter(f"{model.feature_names_in_[column]}{columns.own_units(model, column)}")
    how: dict[str, Any] = {"extend": "both", "ticks": [0.25, 0.5, 1, 2, 4], "format": "%g"}
    style.colour_bar(image, ax, "target / reference", **how).ax.minorticks_off()


def _draw_coordinates(ax: Any, model: Any, k: int) -> None:
    _, layout = begin_map(model.graph_, ax, edges=True)
    positions = layout.positions
    values = model.coordinates_[:, k]
    top = float(np.abs(values).max()) or 1.0
    order = np.argsort(np.abs(values), kind="stable")
    colours = {"cmap": style.DIVERGING, "vmin": -top, "vmax": top}
    size = node_size(len(positions))
    points = draw_points(ax, positions[order], c=values[order], s=size, **colours)
    finish_map(ax, layout)
    style.set_heading(ax, "where it occurs")
    style.colour_bar(points, ax, "coordinate (0 = no change)")
