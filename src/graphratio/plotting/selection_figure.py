"""Scores of the candidates of a selection, with the choice marked."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.arrays import grid_partner
from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.plotting import style

# The first two of these that vary span the figure; gamma is ridge / graph penalty.
_AXES = ("graph_penalty", "ridge", "gamma", "bandwidth", "n_profiles", "n_rounds")


def plot_selection(model: Any, ax: Any = None) -> Any:
    """Draw the scores of the cross-validation, with the choice marked.

    The colour of a pair of candidates shows how much its held-out loss exceeds the best one, at the
    chosen values of the other hyperparameters. If only one varies, its scores are a line. If every
    node chose for itself, a cell counts the nodes that chose it.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=12, random_state=0)
    >>> model = gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)
    >>> ax = gr.plot_selection(model)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('graph penalty', 'gamma = ridge / graph penalty')
    """
    style.check_fitted(model)
    results = model.cv_results_
    if results is None:
        raise InputError(
            "nothing was selected: bandwidth and penalties were given as numbers",
            "Leave one of them out, or pass several candidates, and fit again",
        )
    ax = style.axes_or_new(ax, (6.6, 4.4))
    if "node" in results:
        _draw_counts(ax, model, results)
        return ax
    first = int(np.argmin(results["rank"]))
    chosen = {name: float(results[name][first]) for name in _AXES if name in results}
    ridge = grid_partner(results, "graph_penalty", ("ridge", "gamma"))
    chosen.pop("gamma" if ridge == "ridge" else "ridge", None)
    varying = [name for name in chosen if len(np.unique(results[name])) > 1]
    held = {name: value for name, value in chosen.items() if name not in varying[:2]}
    here = np.all([results[name] == value for name, value in held.items()], axis=0)
    if len(varying) == 1:
        _draw_line(ax, results, varying[0], chosen[varying[0]])
    else:
        _draw_surface(ax, results, here, (varying[0], varying[1]), chosen)
    fixed = ", ".join(f"{_words(name)} {value:.3g}" for name, value in held.items())
    style.set_heading(ax, f"Cross-validation at {fixed}")
    return ax


def _words(name: str) -> str:
    if name == "gamma":
        return "gamma = ridge / graph penalty"
    return name.removeprefix("n_").replace("_", " ")


def _draw_surface(
    ax: Any,
    results: dict[str, Any],
    here: BoolArray,
    names: tuple[str, str],
    chosen: dict[str, float],
) -> None:
    colors = import_optional("matplotlib.colors", "plot", "plotting")
    (x, column), (y, row) = (
        np.unique(_readable(results[name][here]), return_inverse=True) for name in names
    )
    scores = np.full((len(y), len(x)), -np.inf)
    np.maximum.at(scores, (row, column), results["mean_score"][here])
    scores[np.isinf(scores)] = np.nan
    excess = np.nanmax(results["mean_score"]) - scores
    # Weak penalties can lose a thousand times as much; a logarithmic scale shows both ends.
    positive = excess[excess > 0]
    low = float(positive.min()) if positive.size else 1e-3
    high = max(float(np.nanmax(excess)), 1.0001 * low)
    norm = colors.LogNorm(low, high)
    shown = np.maximum(excess, low)
    image = ax.imshow(shown, cmap=style.SEQUENTIAL, norm=norm, origin="lower", aspect="auto")
    _write_cells(ax, scores, norm(shown), "{:.4g}")
    corner = [
        int(np.flatnonzero(grid == _readable(np.array([chosen[name]])))[0]) - 0.5
        for grid, name in zip((x, y), names, strict=True)
    ]
    # Orange stands out from every colour of the scale. The axes must not clip the frame.
    frame = {"edgecolor": style.TARGET_COLOUR, "linewidth": 3, "fill": False, "clip_on": False}
    patches = import_optional("matplotlib.patches", "plot", "plotting")
    ax.add_patch(patches.Rectangle(corner, 1, 1, zorder=5, **frame))
    _name_cells(ax, names, (x, y))
    meaning = "held-out loss above the best\n(cells: score, framed: chosen)"
    style.colour_bar(image, ax, meaning, 0.03)


def _readable(values: FloatArray) -> FloatArray:
    """Values to three digits: candidates that differ by rounding share a row."""
    return np.array([float(f"{value:.3g}") for value in values])


def _write_cells(ax: Any, values: FloatArray, darkness: FloatArray, form: str) -> None:
    for i, j in np.argwhere(np.isfinite(values)):
        colour = "white" if darkness[i, j] > 0.5 else style.INK
        text = form.format(values[i, j])
        ax.text(j, i, text, ha="center", va="center", fontsize=8.5, color=colour)


def _name_cells(ax: Any, names: tuple[str, str], grids: tuple[FloatArray, FloatArray]) -> None:
    for axis, name, grid in zip((ax.xaxis, ax.yaxis), names, grids, strict=True):
        axis.set_ticks(range(len(grid)), [f"{value:.3g}" for value in grid])
        axis.set_label_text(_words(name))
    ax.tick_params(length=0)
    style.without_frame(ax, "left", "right", "top", "bottom")


def _draw_line(ax: Any, results: dict[str, Any], name: str, chosen: float) -> None:
    order = np.argsort(results[name], kind="stable")
    x, mean = results[name][order], results["mean_score"][order]
    folds = [key for key in results if key.startswith("fold_")]
    for number, key in enumerate(folds):
        label = f"each of {len(folds)} folds" if number == 0 else None
        ax.plot(
            x, results[key][order], color=style.REFERENCE_COLOUR, alpha=0.3, lw=0.8, label=label
        )
    ax.plot(x, mean, color=style.INK, linewidth=2, marker="o", markersize=4, label="mean")
    at = int(np.flatnonzero(x == chosen)[0])
    ring = {"mfc": "none", "mec": style.TARGET_COLOUR, "mew": 2.5, "label": "chosen"}
    ax.plot(x[at], mean[at], "o", markersize=10, **ring)
    if x[0] > 0 and x[-1] / x[0] > 20:
        ax.set_xscale("log")
    ax.set_xlabel(_words(name))
    ax.set_ylabel("held-out score (higher is better)")
    ax.legend(frameon=False, fontsize=8.5)
    style.without_frame(ax, "top", "right")


def _draw_counts(ax: Any, model: Any, results: dict[str, Any]) -> None:
    """Count the nodes that chose each candidate, where every node chose for itself."""
    penalties = np.unique(results["ridge"])
    n_nodes = len(model.nodes_)
    widths = results["bandwidth"].reshape(n_nodes, -1, len(penalties))[:, :, 0]
    width = np.argmin(np.abs(widths - model.bandwidth_[:, np.newaxis]), axis=1)
    penalty = np.searchsorted(penalties, model.ridge_)
    counts = np.zeros((widths.shape[1], len(penalties)))
    np.add.at(counts, (width, penalty), 1)
    image = ax.imshow(
        counts, cmap=style.SEQUENTIAL, vmin=0, vmax=counts.max(), origin="lower", aspect="auto"
    )
    _write_cells(ax, counts, counts / counts.max(), "{:.0f}")
    shared = np.all(widths == widths[0])
    relative = widths[0] / widths[0, widths.shape[1] // 2]
    _name_cells(ax, ("ridge", "bandwidth"), (penalties, widths[0] if shared else relative))
    if not shared:
        ax.set_ylabel("bandwidth / middle candidate of the node")
    style.set_heading(ax, f"Chosen at each of {n_nodes} nodes by itself")
    style.colour_bar(image, ax, "number of nodes", 0.03)
