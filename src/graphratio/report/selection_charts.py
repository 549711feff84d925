"""The cross-validation as charts: a surface over both penalties and lines along each parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.arrays import grid_partner
from graphratio._utils.typing import FloatArray
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.report.page_file import short
from graphratio.report.words import number

_WORDS = {
    "n_profiles": "number of profiles",
    "bandwidth": "bandwidth",
    "graph_penalty": "graph penalty",
    "ridge": "ridge",
    "gamma": "ridge / graph penalty",
    "n_rounds": "number of rounds",
}


def selection_charts(model: NodeRatioEstimator) -> list[dict[str, Any]]:
    """Describe the charts of the selection; empty if nothing was selected.

    Each has the keys kind ("surface" or "line"), caption, x, y and selected_x, and a surface also
    z and selected_y. The y of a line are mean scores; other x and y are names of candidates, in
    increasing order.
    """
    results: dict[str, Any] | None = getattr(model, "cv_results_", None)
    if results is None:
        return []
    if "node" in results:
        return _per_node(model, results)
    best = int(np.argmin(results["rank"]))
    chosen = {name: float(results[name][best]) for name in _WORDS if name in results}
    surface = [] if "n_profiles" in results else _penalties(results, chosen)
    if surface:
        chosen = {"bandwidth": chosen["bandwidth"]}
    else:
        chosen.pop("gamma", None)
    return [*surface, *_lines(results, chosen)]


def _lines(results: dict[str, Any], chosen: dict[str, float]) -> list[dict[str, Any]]:
    """The best score at every value of each setting that has several."""
    charts = []
    for name, selected in chosen.items():
        values, position = np.unique(results[name], return_inverse=True)
        if values.size > 1:
            best = np.full(values.size, -np.inf)
            np.maximum.at(best, position, results["mean_score"])
            caption = f"Best score at each {_WORDS[name]}"
            charts.append(_line(_WORDS[name], values, _nearest(values, selected), best, caption))
    return charts


def _penalties(results: dict[str, Any], chosen: dict[str, float]) -> list[dict[str, Any]]:
    """The surface over both penalties at the selected bandwidth; none if one of them is fixed."""
    across = grid_partner(results, "graph_penalty", ("ridge", "gamma"))
    names = ("bandwidth", "graph_penalty", across)
    width, graph, ridge = (np.asarray(results[name]) for name in names)
    widths, rows, columns = (np.unique(values) for values in (width, graph, ridge))
    if rows.size == 1 or columns.size == 1:
        return []
    at = width == widths[_nearest(widths, chosen["bandwidth"])]
    scores = np.full((rows.size, columns.size), np.nan)
    where = np.searchsorted(rows, graph[at]), np.searchsorted(columns, ridge[at])
    scores[where] = np.asarray(results["mean_score"])[at]
    return [
        _surface(
            (_WORDS[across], columns, _nearest(columns, chosen[across])),
            ("graph penalty", rows, _nearest(rows, chosen["graph_penalty"])),
            scores,
            f"Score of every pair of penalties at the bandwidth {number(chosen['bandwidth'])}",
        )
    ]


def _nearest(values: FloatArray, wanted: float) -> int:
    return int(np.argmin(np.abs(values - wanted)))


def _per_node(model: Any, results: dict[str, Any]) -> list[dict[str, Any]]:
    """Mean over nodes; the candidates for the bandwidth may differ from node to node."""
    penalties = np.unique(results["ridge"])
    shape = (len(model.nodes_), -1, penalties.size)
    widths = np.asarray(results["bandwidth"], dtype=np.float64).reshape(shape)[:, :, 0]
    scores = np.asarray(results["mean_score"], dtype=np.float64).reshape(shape)
    scored = ~np.isnan(scores).any(axis=(1, 2))
    if not scored.any():
        return []
    mean = scores[scored].mean(axis=0)
    caption = "Score of every candidate, mean over nodes; every node makes its own choice"
    if not (widths == widths[0]).all():
        caption += ", and bandwidths are multiples of a scale of the node (their mean is shown)"
    typical = widths.mean(axis=0)
    if typical.size > 1 and penalties.size > 1:
        return [_surface(("ridge", penalties, None), ("bandwidth", typical, None), mean, caption)]
    name, values = ("bandwidth", typical) if typical.size > 1 else ("ridge", penalties)
    return [_line(name, values, None, mean.ravel(), caption)]


def _surface(
    x: tuple[str, FloatArray, int | None],
    y: tuple[str, FloatArray, int | None],
    z: FloatArray,
    caption: str,
) -> dict[str, Any]:
    # Without this limit poor candidates would give all good ones the same colour.
    best, middle = float(np.nanmax(z)), float(np.nanmedian(z))
    low = max(float(np.nanmin(z)), best - 3 * (best - middle))
    axes = {**_axis("x", *x), **_axis("y", *y)}
    return {"kind": "surface", "caption": caption, **axes, "z": short(z), "low": low, "high": best}


def _axis(letter: str, name: str, values: FloatArray, selected: int | None) -> dict[str, Any]:
    shown = [number(value) for value in values]
    return {f"{letter}_name": name, letter: shown, f"selected_{letter}": selected}


def _line(
    name: str, values: FloatArray, selected: int | None, scores: FloatArray, caption: str
) -> dict[str, Any]:
    axis = _axis("x", name, values, selected)
    return {"kind": "line", "caption": caption, **axis, "y": short(scores)}
