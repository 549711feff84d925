"""Figures of uncertainty: gains and bounds of all nodes, and a ratio with its interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.plotting import style


def plot_gains(gain: FloatArray, half_width: FloatArray, ax: Any = None) -> Any:
    """Draw the gains of all nodes from smallest to largest, with intervals.

    Parameters
    ----------
    gain, half_width : ndarray of shape (n_nodes,)
        Nodes with NaN are left out.
    ax : matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from graphratio.plotting import plot_gains
    >>> ax = plot_gains(np.array([0.3, -0.1]), np.array([0.1, 0.2]))
    >>> sorted(text.get_text() for text in ax.get_legend().get_texts())
    ['helped (1)', 'unclear (1)']
    """
    ax = style.axes_or_new(ax, (7.0, 3.5))
    order = _ranked(gain)
    place, gain, half_width = np.arange(len(order)), gain[order], half_width[order]
    for label, colour, chosen in [
        ("hurt", style.TARGET_COLOUR, gain < -half_width),
        ("unclear", style.FAINT, np.abs(gain) <= half_width),
        ("helped", style.REFERENCE_COLOUR, gain > half_width),
    ]:
        if chosen.any():
            how = {"fmt": "o", "markersize": 3, "linewidth": 0.8, "color": colour}
            name = f"{label} ({int(chosen.sum())})"
            ax.errorbar(place[chosen], gain[chosen], half_width[chosen], label=name, **how)
    _finish_ranked(ax, "gain", gain - half_width, gain + half_width)
    ax.set_ylabel("held-out loss: alone minus graph")
    # Values rise from left to right, so that this corner is empty.
    ax.legend(frameon=False, loc="lower right")
    return ax


def plot_bounds(lower: FloatArray, fitted: FloatArray, interval: FloatArray, ax: Any = None) -> Any:
    """Draw the lower bounds of all nodes from smallest to largest, with fitted divergences.

    Parameters
    ----------
    lower, fitted : ndarray of shape (n_nodes,)
        Nodes with NaN are left out.
    interval : ndarray of shape (n_nodes, 2)
    ax : matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from graphratio.plotting import plot_bounds
    >>> lower, fitted = np.array([0.0, 0.2]), np.array([0.1, 0.4])
    >>> ax = plot_bounds(lower, fitted, np.column_stack([fitted - 0.1, fitted + 0.1]))
    >>> ax.lines[0].get_label()
    'fitted, with interval'
    """
    ax = style.axes_or_new(ax, (7.0, 3.5))
    order = _ranked(lower)
    place = np.arange(len(order))
    ax.vlines(place, *interval[order].T, color=style.FAINT, linewidth=0.8)
    own = {"markersize": 3, "color": style.FAINT, "label": "fitted, with interval"}
    ax.plot(place, fitted[order], "o", **own)
    above = lower[order] > 0
    for chosen, colour, what in [
        (~above, style.REFERENCE_COLOUR, "not above 0"),
        (above, style.TARGET_COLOUR, "above 0"),
    ]:
        label = f"lower bound of the true divergence, {what} ({int(chosen.sum())})"
        ax.plot(place[chosen], lower[order][chosen], ".", markersize=4, color=colour, label=label)
    _finish_ranked(ax, "bound", *interval[order].T)
    ax.set_ylabel("divergence")
    ax.legend(edgecolor="none", framealpha=0.8, loc="lower right", fontsize="small")
    return ax


def _ranked(values: FloatArray) -> IntArray:
    """Positions of the finite values, from smallest to largest."""
    known = np.flatnonzero(np.isfinite(values))
    return np.asarray(known[np.argsort(values[known], kind="stable")])


def _finish_ranked(ax: Any, what: str, low: FloatArray, high: FloatArray) -> None:
    ax.set_xlabel(f"nodes, from smallest to largest {what}")
    ax.axhline(0, color=style.INK, linewidth=0.8)
    if len(low):
        # Scale to most of the intervals, so that a few wide ones do not hide the rest.
        ends = (np.quantile(low, 0.05), np.quantile(high, 0.95))
        room = 0.5 * (ends[1] - ends[0])
        shown = (max(low.min(), ends[0] - room), min(high.max(), ends[1] + room))
        margin = 0.05 * (shown[1] - shown[0])
        if margin:
            ax.set_ylim(shown[0] - margin, shown[1] + margin)
    style.without_frame(ax, "top", "right")


def plot_band(
    points: FloatArray,
    names: tuple[str, ...],
    ratio: FloatArray,
    low: FloatArray,
    high: FloatArray,
    ax: Any = None,
) -> Any:
    """Draw a ratio along a line of points with a band around it.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        With several features the horizontal axis is the distance from the first point.
    names : tuple of str
    ratio, low, high : ndarray of shape (n_points,)
    ax : matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from graphratio.plotting import plot_band
    >>> x = np.linspace(0.0, 1.0, 5)[:, None]
    >>> ax = plot_band(x, ("speed",), 1 + x[:, 0], x[:, 0], 2 + x[:, 0])
    >>> ax.get_xlabel()
    'speed'
    """
    ax = style.axes_or_new(ax, (6.0, 3.5))
    single = points.shape[1] == 1
    along = points[:, 0] if single else np.linalg.norm(points - points[0], axis=1)
    order = np.argsort(along, kind="stable")
    along, ratio, low, high = along[order], ratio[order], low[order], high[order]
    band = {"alpha": 0.25, "linewidth": 0, "label": "interval of its expectation"}
    ax.fill_between(along, low, high, color=style.REFERENCE_COLOUR, **band)
    ax.plot(along, ratio, color=style.REFERENCE_COLOUR, label="estimated ratio")
    ax.axhline(1, color=style.INK, linewidth=0.8, linestyle="--")
    ax.set_xlabel(names[0] if single else "distance from the first point")
    ax.set_ylabel("ratio = target / reference")
    style.without_frame(ax, "top", "right")
    ax.legend(frameon=False)
    return ax
