"""Change-points: the panel over time with the events, the scan, and a map of onsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray
from graphratio.plotting import style
from graphratio.plotting.graph_map import begin_map, draw_points, finish_map, node_size

# The colours of the panel end between these numbers of standard deviations.
_REACH = (0.5, 3.0)

# Columns of the panel: means over several steps show a change that single steps hide.
_MOST_COLUMNS = 100

# Nodes up to this many are named at the panel.
_NAMED = 24

_MOST_TICKS = 5


def plot_changes(detector: Any, axes: Any = None) -> Any:
    """Draw the panel with its events, the scan, and a map of the onsets.

    The panel shows the feature that changed most often; every node is standardised by itself, nodes
    that changed are above the others. The map shows the onset of the first change of every node.
    Nodes where no change was found are hollow. Without a graph it shows the most changed node
    before and after.

    Parameters
    ----------
    detector : fitted GraphChangePointDetector
    axes : sequence of three matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.

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
    ['x0: 2 changed nodes above 2 others', 'Evidence, in units of the threshold', 'First onset']
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
    if detector.graph_.n_edges or not detector.events_:
        _draw_onsets(onsets, detector)
    else:
        _draw_before_and_after(onsets, detector)
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


def main_feature(detector: Any) -> int:
    """Position of the measured feature that changed at most nodes."""
    count = np.zeros(detector.n_features_in_)
    for event in detector.events_:
        for one in event.changes.values():
            count += [feature.mean_changed or feature.spread_changed for feature in one.features]
    return int(np.argmax(count))


def _draw_panel(ax: Any, detector: Any) -> None:
    """Means over short stretches of time, so that a change stands out of the noise."""
    feature = main_feature(detector)
    for event in detector.events_:
        ax.axvline(event.step, color=style.INK, linewidth=1.2)
    ax.tick_params(labelbottom=False)
    name = detector.feature_names_in_[feature]
    if len(detector.nodes_) == 1:
        ax.plot(detector.adjusted_[:, 0, feature], color=style.REFERENCE_COLOUR, linewidth=0.8)
        style.set_heading(ax, f"{name} at {detector.nodes_[0]}")
        return
    values = standardised(detector.adjusted_[:, :, feature])
    changed = ~np.isnan(first_onsets(detector))
    order = np.argsort(~changed, kind="stable")
    edges = np.linspace(0, len(values), min(_MOST_COLUMNS, len(values)) + 1).round().astype(int)
    there = np.isfinite(values)
    count = np.add.reduceat(there, edges[:-1], axis=0, dtype=float)
    means = np.add.reduceat(np.where(there, values, 0.0), edges[:-1], axis=0)
    means /= np.where(count > 0, count, np.nan)
    reach = float(np.clip(np.nanquantile(np.abs(means), 0.98), *_REACH))
    how = {"cmap": style.DIVERGING, "vmin": -reach, "vmax": reach, "interpolation": "nearest"}
    extent = (0, len(values), values.shape[1] - 0.5, -0.5)
    ax.imshow(means[:, order].T, aspect="auto", extent=extent, **how)
    number = int(changed.sum())
    if 0 < number < len(changed):
        ax.axhline(number - 0.5, color=style.INK, linewidth=1.2)
    if len(changed) <= _NAMED:
        labels = [str(detector.nodes_[i]) for i in order]
        ax.set_yticks(range(len(labels)), labels, fontsize=8)
    else:
        ax.set_yticks([])
        ax.set_ylabel("nodes")
    ax.tick_params(labelbottom=False)
    kinds = (
        f"{number} changed node{'s' if number != 1 else ''} above {len(changed) - number} others"
    )
    mixed = 0 < number < len(changed)
    what = kinds if mixed else "every node in its own units"
    style.set_heading(ax, f"{name}: {what}")


def _draw_scan(ax: Any, detector: Any) -> None:
    ax.plot(detector.scan_times_, detector.statistic_, color=style.INK, linewidth=1.0)
    ax.axhline(1.0, color=style.TARGET_COLOUR, linewidth=1.0, linestyle="--")
    for event in detector.events_:
        ax.axvline(event.step, color=style.INK, linewidth=1.2, alpha=0.4)
    ax.set_xlim(0, len(detector.panel_))
    ax.set_ylim(bottom=0)
    style.set_heading(ax, "Evidence, in units of the threshold")
    ax.set_xlabel("step" if detector.times_ is None else "time")
    if times := detector.times_:
        ticks = np.linspace(0, len(times) - 1, min(_MOST_TICKS, len(times))).round().astype(int)
        ax.set_xticks(ticks, [_short(times[i]) for i in ticks], fontsize=8)
    style.without_frame(ax, "right", "top")


def _short(label: Any) -> str:
    """A time on an axis: midnights as dates, other times without seconds."""
    text = str(label).removesuffix(" 00:00:00")
    return text[:-3].replace(" ", "\n") if text.count(":") == 2 else text


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
        low, high = int(first[changed].min()), int(first[changed].max())
        ticks = np.linspace(low, high, min(high - low, 2) + 1).round().astype(int)
        points.set_clim(low - 1, high)
        if high > low:
            bar = style.colour_bar(points, ax, "", orientation="horizontal", shrink=0.7, pad=0.03)
            bar.set_ticks(ticks, labels=[_short(detector.label(int(tick))) for tick in ticks])
    finish_map(ax, layout)
    if detector.graph_.coordinates is None:
        # Places that only show edges may fill the axes.
        ax.set_aspect("auto")
    style.set_heading(ax, "First onset" if changed.any() else "No change found")


def _draw_before_and_after(ax: Any, detector: Any) -> None:
    """Values of the most changed node before and after the clearest event, as two histograms."""
    event = max(detector.events_, key=lambda one: one.statistic)
    node = max(event.changes, key=lambda one: event.changes[one].divergence)
    feature = main_feature(detector)
    samples = detector.event_samples(event)
    sides = [part(node)[:, feature] for part in (samples.reference, samples.target)]
    bins = np.histogram_bin_edges(np.concatenate(sides), bins=30)
    for side, name, colour in zip(
        sides, ("before", "after"), (style.REFERENCE_COLOUR, style.TARGET_COLOUR), strict=True
    ):
        ax.hist(side, bins, density=True, alpha=0.5, color=colour, label=name)
    ax.legend(frameon=False, fontsize=8.5)
    ax.set_yticks([])
    ax.set_xlabel(str(detector.feature_names_in_[feature]))
    style.without_frame(ax, "left", "right", "top")
    where = f" at {node}" if len(detector.nodes_) > 1 else ""
    style.set_heading(ax, f"Before and after {_short(event.time)}{where}".replace("\n", " "))
