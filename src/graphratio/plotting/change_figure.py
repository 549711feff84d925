"""Change-points: the panel over time with the events, the scan, and a map of onsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray
from graphratio.plotting import style
from graphratio.plotting.graph_map import begin_map, draw_points, finish_map, node_size

# Standard deviations at which the colours of the panel end.
_REACH = 3.0


def plot_changes(detector: Any, axes: Any = None) -> Any:
    """Draw the panel with its events, the scan, and a map of the onsets.

    The panel shows the first feature; every node is standardised by itself. The map shows the
    onset of the first change of every node. Unchanged nodes are hollow.

    Parameters
    ----------
    detector : fitted GraphChangePointDetector
    axes : sequence of three matplotlib Axes, optional
        Drawn on; default those of a new figure.

    Returns
    -------
    ndarray of matplotlib Axes, shape (3,)

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> import graphratio as gr
    >>> panel = np.random.default_rng(0).normal(size=(120, 4))
    >>> panel[60:, 2:] += 3.0
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> detector = gr.GraphChangePointDetector(n_surrogates=19, random_state=0)
    >>> [ax.get_title(loc="left") for ax in plot_changes(detector.fit(panel, graph))]
    ['x0, every node in its own units', 'Scan, in units of the threshold', 'First onset']
    """
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot", "plot", "plotting")
        figure = pyplot.figure(figsize=(10.5, 6.0), layout="constrained", facecolor="white")
        grid = figure.add_gridspec(2, 2, width_ratios=(1.5, 1.0), height_ratios=(2.2, 1.0))
        top = figure.add_subplot(grid[0, 0])
        axes = [top, figure.add_subplot(grid[1, 0], sharex=top), figure.add_subplot(grid[:, 1])]
    if np.size(axes) != 3:
        raise InputError(f"{np.size(axes)} axes were given", "Pass three: panel, scan and map")
    panel, scan, onsets = np.ravel(axes)
    _draw_panel(panel, detector)
    _draw_scan(scan, detector)
    _draw_onsets(onsets, detector)
    return np.array([panel, scan, onsets])


def standardised(values: FloatArray) -> FloatArray:
    """Standardise every node by its own mean and spread, NaN where missing, (n_times, n_nodes)."""
    there = np.isfinite(values)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, values, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(there, (values - mean) ** 2, 0.0).sum(axis=0) / count)
    return np.asarray((values - mean) / np.where(spread > 0, spread, 1.0))


def first_onsets(detector: Any) -> FloatArray:
    """Step of the first change of every node, NaN where there was none, shape (n_nodes,)."""
    steps = {detector.label(step): step for step in range(detector.n_times_)}
    first = np.full(len(detector.nodes_), np.nan)
    for event in detector.events_:
        for node, onset in event.onsets.items():
            position = detector.graph_.position(node)
            first[position] = np.fmin(first[position], steps[onset])
    return first


def _draw_panel(ax: Any, detector: Any) -> None:
    values = standardised(detector.panel_[:, :, 0])
    how = {"cmap": style.DIVERGING, "vmin": -_REACH, "vmax": _REACH, "interpolation": "nearest"}
    extent = (0, len(values), values.shape[1] - 0.5, -0.5)
    ax.imshow(values.T, aspect="auto", extent=extent, **how)
    for event in detector.events_:
        ax.axvline(event.step, color=style.INK, linewidth=1.2)
    ax.set_ylabel("node")
    style.set_heading(ax, f"{detector.feature_names_in_[0]}, every node in its own units")


def _draw_scan(ax: Any, detector: Any) -> None:
    ax.plot(detector.scan_times_, detector.statistic_, color=style.INK, linewidth=1.0)
    ax.axhline(1.0, color=style.TARGET_COLOUR, linewidth=1.0, linestyle="--")
    for event in detector.events_:
        ax.axvline(event.step, color=style.INK, linewidth=1.2, alpha=0.4)
    ax.set_xlim(0, len(detector.panel_))
    ax.set_ylim(bottom=0)
    style.set_heading(ax, "Scan, in units of the threshold")
    ax.set_xlabel("step" if detector.times_ is None else "time")
    if times := detector.times_:
        ax.xaxis.set_major_formatter(
            lambda value, _: str(times[int(value)]) if 0 <= value < len(times) else ""
        )
        ax.tick_params(axis="x", labelsize=8)
    style.without_frame(ax, "right", "top")


def _draw_onsets(ax: Any, detector: Any) -> None:
    _, layout = begin_map(detector.graph_, ax, edges=True)
    positions = layout.positions
    first = first_onsets(detector)
    changed = ~np.isnan(first)
    size = node_size(len(positions))
    hollow = {"facecolors": "white", "edgecolors": style.FAINT, "linewidths": 1.0, "zorder": 2}
    draw_points(ax, positions[~changed], s=size, **hollow)
    if changed.any():
        how = {"c": first[changed], "cmap": style.SEQUENTIAL, "linewidths": 0.6}
        points = draw_points(ax, positions[changed], s=size, **how)
        style.colour_bar(points, ax, "step", orientation="horizontal", shrink=0.7, pad=0.03)
    finish_map(ax, layout)
    style.set_heading(ax, "First onset" if changed.any() else "No change")
