"""What the pictures share: the model they need, colours, new axes, original units."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.encoding import Encoding
from graphratio.data.graph import Graph
from graphratio.data.scaling import Scaling

# Told apart by readers with any kind of colour vision, and by their lightness in print.
REFERENCE_COLOUR = "#0072b2"
TARGET_COLOUR = "#d55e00"
INK = "#222222"
FAINT = "#9a9a9a"
# Light for little, dark for much.
SEQUENTIAL = "YlGnBu"
# Light in the middle, for what can go either way.
DIVERGING = "RdBu_r"
KIND_COLOURS = (REFERENCE_COLOUR, TARGET_COLOUR, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)


class FittedModel(Protocol):
    """The part of a fitted estimator that pictures look at."""

    nodes_: tuple[Label, ...]
    graph_: Graph
    n_features_in_: int
    feature_names_in_: np.ndarray
    divergence_: FloatArray
    divergence_name_: str
    scaling_: Scaling | None
    encoding_: Encoding | None
    cv_results_: dict[str, Any] | None

    def predict(self, x: Any, node: Label | None = None, *, clip: bool = True) -> FloatArray:
        """Ratio = target / reference at given points."""


def new_axes(size: tuple[float, float]) -> Any:
    """Axes of a new figure of the given size in inches."""
    pyplot = import_optional("matplotlib.pyplot", "plot", "plotting")
    _, ax = pyplot.subplots(figsize=size, layout="constrained", facecolor="white")
    return ax


def in_original_units(values: FloatArray, scaling: Scaling | None) -> FloatArray:
    """Undo the transform of standardised values, shape (n, n_features)."""
    if scaling is None:
        return values
    undone = values * scaling.scale + scaling.mean
    return undone if scaling.log is None else np.where(scaling.log, np.exp(undone), undone)


def without_frame(ax: Any, *sides: str) -> None:
    """Take away sides of the frame."""
    for side in sides:
        ax.spines[side].set_visible(False)


def most_of(ax: Any, low: FloatArray, high: FloatArray) -> None:
    """Show where most of many intervals lie, so that a few wide ones do not hide the rest."""
    ends = (np.quantile(low, 0.05), np.quantile(high, 0.95))
    room = 0.5 * (ends[1] - ends[0])
    shown = (max(low.min(), ends[0] - room), min(high.max(), ends[1] + room))
    margin = 0.05 * (shown[1] - shown[0])
    ax.set_ylim(shown[0] - margin, shown[1] + margin)
