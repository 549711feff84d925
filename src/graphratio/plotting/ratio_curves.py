"""Ratios along one feature, with the other features at their medians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.samples import NodeSamples
from graphratio.plotting import columns, style

_POINTS = 200

# Figures of ratios cover the data between these quantiles.
SHOWN_QUANTILES = (0.005, 0.995)


def draw_ratios(
    ax: Any,
    model: style.FittedModel,
    data: NodeSamples,
    column: int,
    evaluate: Callable[[FloatArray], FloatArray],
    curves: Sequence[dict[str, Any]],
) -> None:
    """Draw curves of ratios over the usual range of a column of the data.

    The data are in original units and by column. `evaluate` returns the ratios at points, shape
    (n_points, n_curves); `curves` says how to draw each.
    """
    names, levels = columns.columns_of(model)
    logarithmic = columns.takes_logarithm(model, column)
    usual = np.quantile(data.values[:, column], SHOWN_QUANTILES)
    grid, along = columns.axis_of(usual, levels[column], _POINTS, logarithmic)
    centre = columns.typical_values(data.values, levels)
    ratios = evaluate(columns.points_along(model.encoding_, centre, column, along))
    ax.axhline(1.0, color=style.FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    for ratio, how in zip(ratios.T, curves, strict=True):
        ax.plot(grid, ratio, linewidth=2, **how)
    if logarithmic:
        ax.set_xscale("log")
    if levels[column]:
        ax.set_xticks(np.arange(len(levels[column])), levels[column])
    ax.set_ylim(bottom=0.0)
    name = names[column]
    ax.set_xlabel(f"{name} (other features at their medians)" if len(names) > 1 else name)
    ax.set_ylabel("target / reference")
    style.without_frame(ax, "top", "right")
