"""The cross-validation as charts: a surface over both penalties and lines along each parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.report.words import number

_WORDS = {
    "bandwidth": "bandwidth",
    "graph_penalty": "graph penalty",
    "node_penalty": "node penalty",
}
_SEARCHED = {"n_profiles": "number of profiles", **_WORDS, "n_rounds": "number of rounds"}


def selection_charts(model: NodeRatioEstimator) -> list[dict[str, Any]]:
    """Describe the charts of the selection; empty if nothing was selected.

    Returns
    -------
    charts : list of dict
        Each with the keys kind ("surface" or "line"), caption, x and selected_x, and for a
        surface y, z and selected_y, for a line y, the mean scores; x and y of surfaces are
        names of candidates, in increasing order.
    """
    results: dict[str, Any] | None = getattr(model, "cv_results_", None)
    if results is None:
        return []
    if "node" in results:
        return _per_node(model, results)
    if "n_profiles" in results:
        return _search(results)
    grid, scores = _cube(results)
    chosen = {name: float(getattr(model, f"{name}_")) for name in grid}
    place = {name: int(np.argmin(np.abs(grid[name] - chosen[name]))) for name in grid}
    charts: list[dict[str, Any]] = []
    if grid["graph_penalty"].size > 1 and grid["node_penalty"].size > 1:
        charts.append(
            _surface(
                ("node penalty", grid["node_penalty"], place["node_penalty"]),
                ("graph penalty", grid["graph_penalty"], place["graph_penalty"]),
                scores[place["bandwidth"]],
                f"Score of every pair of penalties at the bandwidth {number(chosen['bandwidth'])}",
            )
        )
        lines = ["bandwidth"]
    else:
        lines = list(grid)
    for axis, name in enumerate(grid):
        if name in lines and grid[name].size > 1:
            others = tuple(other for other in range(3) if other != axis)
            charts.append(
                _line(
                    _WORDS[name],
                    grid[name],
                    place[name],
                    scores.max(axis=others),
                    f"Best score at every {_WORDS[name]}",
                )
            )
    return charts


def _search(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The best score at every value of each setting that a search went along."""
    chosen = int(np.argmin(results["rank"]))
    charts = []
    for name, words in _SEARCHED.items():
        values, position = np.unique(results[name], return_inverse=True)
        if values.size > 1:
            best = np.full(values.size, -np.inf)
            np.maximum.at(best, position, results["mean_score"])
            caption = f"Best score at every {words} that was tried"
            charts.append(_line(words, values, int(position[chosen]), best, caption))
    return charts


def _cube(results: dict[str, Any]) -> tuple[dict[str, FloatArray], FloatArray]:
    """Candidates of each parameter, and mean scores, axes in the order of the names."""
    grid = {name: np.unique(results[name]) for name in _WORDS}
    scores = np.full([values.size for values in grid.values()], np.nan)
    where = tuple(np.searchsorted(grid[name], results[name]) for name in grid)
    scores[where] = results["mean_score"]
    return grid, scores


def _per_node(model: Any, results: dict[str, Any]) -> list[dict[str, Any]]:
    """Mean over nodes; the candidates for the bandwidth may differ from node to node."""
    penalties = np.unique(results["node_penalty"])
    shape = (len(model.nodes_), -1, penalties.size)
    widths = np.asarray(results["bandwidth"], dtype=np.float64).reshape(shape)[:, :, 0]
    scores = np.asarray(results["mean_score"], dtype=np.float64).reshape(shape)
    scored = ~np.isnan(scores).any(axis=(1, 2))
    if not scored.any():
        return []
    mean = scores[scored].mean(axis=0)
    same = bool((widths == widths[0]).all())
    caption = "Score of every candidate, mean over nodes; every node makes its own choice"
    if not same:
        caption += ", and bandwidths are multiples of a scale of the node (their mean is shown)"
    typical = widths.mean(axis=0)
    if typical.size > 1 and penalties.size > 1:
        return [
            _surface(("node penalty", penalties, None), ("bandwidth", typical, None), mean, caption)
        ]
    name, values = ("bandwidth", typical) if typical.size > 1 else ("node penalty", penalties)
    return [_line(name, values, None, mean.ravel(), caption)]


def _surface(
    x: tuple[str, FloatArray, int | None],
    y: tuple[str, FloatArray, int | None],
    z: FloatArray,
    caption: str,
) -> dict[str, Any]:
    # Hopeless candidates would leave all good ones with the same colour.
    best, middle = float(np.nanmax(z)), float(np.nanmedian(z))
    low = max(float(np.nanmin(z)), best - 3 * (best - middle))
    return {
        "kind": "surface",
        "caption": caption,
        "x_name": x[0],
        "x": [number(value) for value in x[1]],
        "selected_x": x[2],
        "y_name": y[0],
        "y": [number(value) for value in y[1]],
        "selected_y": y[2],
        "z": [[float(f"{value:.4g}") for value in row] for row in z],
        "low": low,
        "high": best,
    }


def _line(
    name: str, values: FloatArray, selected: int | None, scores: FloatArray, caption: str
) -> dict[str, Any]:
    return {
        "kind": "line",
        "caption": caption,
        "x_name": name,
        "x": [number(value) for value in values],
        "selected_x": selected,
        "y": [float(f"{value:.4g}") for value in scores],
    }
