"""Shared by all figures: colours, axes, headings, colour bars."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional

# Readers with any kind of colour vision can tell these apart; in print they differ in lightness.
REFERENCE_COLOUR = "#0072b2"
TARGET_COLOUR = "#d55e00"
INK = "#222222"
FAINT = "#9a9a9a"
# Light for small values, dark for large ones.
SEQUENTIAL = "YlGnBu"
# Light in the middle, for values of both signs.
DIVERGING = "RdBu_r"
# None of them is the colour of a sample; maps have shapes as well.
KIND_COLOURS = ("#991f1f", "#c98a00", "#7f7f2a", "#775544", "#cc6677", "#4d5a6a", INK)
KIND_SHAPES = ("o", "s", "D", "^", "P", "*", "v")
# A legend below the axes, which covers nothing.
OUTSIDE: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.045),
    "ncols": 3,
    "fontsize": 8.5,
    "frameon": False,
}


def check_fitted(model: Any, attribute: str = "divergence_") -> None:
    """Refuse anything but a fitted estimator with the given attribute."""
    if not hasattr(model, "get_params") or (
        hasattr(model, "divergence_") and not hasattr(model, attribute)
    ):
        raise InputError(
            f"{type(model).__name__} has no {attribute}, so it cannot be drawn here",
            "Pass a fitted estimator, such as gr.GraphRatio().fit(samples, graph)",
        )
    check_is_fitted(model, attribute)


def new_axes(rows: int, columns: int, size: tuple[float, float]) -> np.ndarray:
    """Axes of a new figure of this size in inches, shape (rows, columns)."""
    pyplot = import_optional("matplotlib.pyplot", "plot", "plotting")
    how = {"figsize": size, "squeeze": False, "layout": "constrained", "facecolor": "white"}
    return np.asarray(pyplot.subplots(rows, columns, **how)[1])


def axes_or_new(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given axes; for None, those of a new figure."""
    return new_axes(1, 1, size)[0, 0] if ax is None else ax


def set_heading(ax: Any, text: str) -> None:
    """Write the title of axes, flush left."""
    ax.set_title(text, loc="left", fontsize=11)


def colour_bar(mappable: Any, ax: Any, label: str, width: float | None = None, **how: Any) -> Any:
    """Add a colour bar: of the given share of the axes' width outside them, or beside them."""
    place = {"ax": ax} if width is None else {"cax": ax.inset_axes((1.02, 0.0, width, 1.0))}
    bar = ax.figure.colorbar(mappable, **place, **how)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar


def without_frame(ax: Any, *sides: str) -> None:
    """Hide sides of the frame."""
    for side in sides:
        ax.spines[side].set_visible(False)
