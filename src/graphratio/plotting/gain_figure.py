"""What a graph gained at every node."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.plotting.style import (
    FAINT,
    INK,
    REFERENCE_COLOUR,
    TARGET_COLOUR,
    most_of,
    new_axes,
    without_frame,
)


def plot_gains(gain: FloatArray, half_width: FloatArray, ax: Any = None) -> Any:
    """Draw gains of all nodes from smallest to largest, with intervals.

    Parameters
    ----------
    gain, half_width : ndarray of shape (n_nodes,)
        NaN where a node could not be judged; those are left out.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = plot_gains(np.array([0.3, -0.1]), np.array([0.1, 0.2]))
    >>> sorted(text.get_text() for text in ax.get_legend().get_texts())
    ['helped (1)', 'unclear (1)']
    """
    if ax is None:
        ax = new_axes((7.0, 3.5))
    known = np.flatnonzero(np.isfinite(gain))
    order = known[np.argsort(gain[known], kind="stable")]
    place = np.arange(len(order))
    kinds = [
        ("hurt", TARGET_COLOUR, gain < -half_width),
        ("unclear", FAINT, np.abs(gain) <= half_width),
        ("helped", REFERENCE_COLOUR, gain > half_width),
    ]
    for label, colour, chosen in kinds:
        at = chosen[order]
        if at.any():
            ax.errorbar(
                place[at],
                gain[order][at],
                half_width[order][at],
                fmt="o",
                markersize=3,
                linewidth=0.8,
                color=colour,
                label=f"{label} ({int(at.sum())})",
            )
    ax.axhline(0, color=INK, linewidth=0.8)
    if len(order):
        most_of(ax, (gain - half_width)[order], (gain + half_width)[order])
    ax.set_xlabel("nodes, from smallest to largest gain")
    ax.set_ylabel("lower held-out loss than alone")
    without_frame(ax, "top", "right")
    ax.legend(frameon=False, loc="upper left")
    return ax
