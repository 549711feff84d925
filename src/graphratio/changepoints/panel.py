"""The data of change-point detection: one observation of every node at every time."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from graphratio._utils.errors import Argument, DataWarning, InputError, listing, warn_caller
from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data.alignment import check_graph
from graphratio.data.graph import Graph
from graphratio.data.sample_input import default_names
from graphratio.data.validation import (
    as_numeric,
    check_magnitude,
    nearest_name,
    plain_label,
    written,
)
from graphratio.data.xarray_input import is_xarray, stacked_table

_FILL = ("Fill it, or pass ", Argument("missing", "drop"), " to go on without these values")


# Fewest values of a node in a panel with gaps.
FEWEST_VALUES = 2

# Times are on an even grid if this share of them is one step after the one before.
_NEARLY_ALL = 0.9


@dataclass(frozen=True, eq=False)
class Panel:
    """Observations (n_times, n_nodes, n_features), NaN where a node lacks a value.

    `times` is None if steps are counted.
    """

    values: FloatArray
    times: tuple[Label, ...] | None
    feature_names: tuple[str, ...]
    backend: frames.Backend = "pandas"


def read_panel(
    panel: Any,
    graph: Graph | None,
    *,
    node: str | None = "node",
    time: str = "time",
    features: Sequence[str] | str | None = None,
    missing: str = "error",
) -> tuple[Panel, Graph]:
    """Check a panel and bring it into the order of the graph; input as in `fit` of the detector."""
    graph = None if graph is None else check_graph(graph)
    check_choice(missing, "missing", ("error", "drop"))
    if is_xarray(panel):
        node = "node" if node is None else node
        panel, names = stacked_table(panel, node)
        features = names if features is None else features
    if frames.is_frame(panel):
        if node is None:
            node, features = "node", _name_of_values(features)
            panel = frames.stacked_columns(panel, time, node, features)
        return _from_frame(panel, graph, node, time, features, missing)
    if features is not None:
        raise InputError(
            f"features={features!r} names columns of a data frame, but the panel is an array",
            "Leave features out, or pass the wanted features only: panel[:, :, [...]]",
        )
    values = as_numeric(panel, "panel")
    if values.ndim == 2:
        values = values[:, :, np.newaxis]
    if values.ndim != 3 or 0 in values.shape:
        raise InputError(
            f"a panel of shape {np.shape(panel)} cannot be used",
            "Pass an array of shape (n_times, n_nodes, n_features), or (n_times, n_nodes) for one "
            "feature, or a long data frame; a single series as series[:, np.newaxis]",
        )
    if graph is None:
        graph = Graph.empty(values.shape[1])
    if graph.n_nodes != values.shape[1]:
        raise InputError(
            f"the panel has {values.shape[1]} nodes and the graph {graph.n_nodes}",
            "Pass an array of shape (n_times, n_nodes, n_features) with the nodes in the order of "
            "the graph",
        )
    values = _with_gaps(values, graph, range(len(values)), missing)
    return Panel(values, None, default_names(values.shape[2])), graph


def _name_of_values(features: Sequence[str] | str | None) -> str:
    """What the columns of a wide frame hold."""
    given = ["value"] if features is None else [features] if isinstance(features, str) else features
    if len(given) != 1:
        raise InputError(
            f"a wide frame has one feature, and features={features!r} names {len(given)}",
            "Pass one name for what its columns hold, or a long frame",
        )
    return given[0]


def _from_frame(
    frame: Any,
    graph: Graph | None,
    node: str,
    time: str,
    features: Sequence[str] | str | None,
    missing: str,
) -> tuple[Panel, Graph]:
    labels, label_codes, times, time_codes, rows, names, _ = frames.long_table(
        frame, node, time, features
    )
    if not len(rows):
        raise InputError("the panel has no rows", "Pass one row per node and time")
    for name, codes in ((node, label_codes), (time, time_codes)):
        if (codes < 0).any():
            raise InputError(
                f"column {name!r} is missing in {int((codes < 0).sum())} of {len(codes)} rows",
                "Fill it, or drop these rows",
            )
    plain = [plain_label(label) for label in labels]
    if graph is None:
        graph = Graph.empty(plain)
    place = _positions(plain, graph)
    rank, ordered = _ranked(times, time)
    place_of, ordered = _even(ordered, missing)
    rank = place_of[rank]
    values = np.full((len(ordered), graph.n_nodes, rows.shape[1]), np.nan)
    seen = np.zeros(values.shape[:2], dtype=np.intp)
    where = (rank[time_codes], place[label_codes])
    np.add.at(seen, where, 1)
    if (seen > 1).any():
        step, position = np.argwhere(seen > 1)[0]
        raise InputError(
            f"node {graph.nodes[position]!r} has {seen[step, position]} rows at time "
            f"{written(ordered[step])}",
            "Keep one row per node and time, for instance their mean",
        )
    values[where] = rows
    values = _with_gaps(values, graph, ordered, missing)
    return Panel(values, ordered, names, frames.backend_of(frame)), graph


def _positions(labels: Sequence[Label], graph: Graph) -> IntArray:
    """Position in the graph of every label of a frame; both must have the same nodes."""
    known = {label: position for position, label in enumerate(graph.nodes)}
    extra = [label for label in labels if label not in known]
    if extra:
        raise InputError(
            f"nodes of the panel are not in the graph: {listing(extra)}",
            nearest_name(extra[0], graph.nodes),
        )
    lacking = sorted(set(graph.nodes) - set(labels), key=graph.position)
    if lacking:
        raise InputError(
            f"nodes of the graph have no rows in the panel: {listing(lacking)}",
            "Give every node one row at every time, or leave it out of the graph",
        )
    return np.array([known[label] for label in labels], dtype=np.intp)


def _ranked(times: list[Any], column: str) -> tuple[IntArray, tuple[Label, ...]]:
    """Rank of every distinct time, and the times in order."""
    plain = [plain_label(time, "time") for time in times]
    try:
        order = sorted(range(len(plain)), key=lambda i: plain[i])  # type: ignore[arg-type, return-value]
    except TypeError as error:
        raise InputError(
            f"the times in column {column!r} cannot be put in order ({error})",
            "Use numbers, dates, or text that sorts in time",
        ) from error
    rank = np.empty(len(plain), dtype=np.intp)
    rank[order] = np.arange(len(plain))
    return rank, tuple(plain[i] for i in order)


def _even(times: tuple[Label, ...], missing: str) -> tuple[IntArray, tuple[Label, ...]]:
    """Places of times on an even grid, and the grid, if nearly all are one step apart.

    Times that no node has shift the phase of a rhythm. They become gaps, or there is a warning.
    """
    place = np.arange(len(times))
    if len(times) < 3 or not all(isinstance(one, int | dt.date) for one in times):
        return place, times
    apart: list[Any] = [b - a for a, b in pairwise(times)]  # type: ignore[operator]
    step, often = Counter(apart).most_common(1)[0]
    skipped = [one // step - 1 for one in apart]
    if often < _NEARLY_ALL * len(apart) or any(one % step for one in apart) or not any(skipped):
        return place, times
    total = len(times) + sum(skipped)
    if missing == "error":
        warn_caller(
            (
                f"{sum(skipped)} of {total} times are absent at all nodes; the others are taken as "
                "consecutive steps. Pass ",
                Argument("missing", "drop"),
                " to keep the places of absent times",
            ),
            DataWarning,
        )
        return place, times
    place[1:] += np.cumsum(skipped)
    return place, tuple(times[0] + i * step for i in range(total))


def _with_gaps(
    values: FloatArray, graph: Graph, times: Sequence[Label], missing: str
) -> FloatArray:
    """The values, all features NaN where one is missing; gaps are an error or counted."""
    lacking: BoolArray = np.asarray(~np.isfinite(values).all(axis=2))
    if np.isinf(values).any():
        step, position, _ = np.argwhere(np.isinf(values))[0]
        raise InputError(
            f"node {graph.nodes[position]!r} has an infinite value at time {written(times[step])}",
            "Replace it by a number",
        )
    check_magnitude(values[~lacking], "the panel")
    if not lacking.any():
        return values
    if missing == "error":
        step, position = np.argwhere(lacking)[0]
        raise InputError(
            f"node {graph.nodes[position]!r} has no value at time {written(times[step])}; "
            f"{int(lacking.sum())} of {lacking.size} are missing",
            _FILL,
        )
    empty = np.flatnonzero((~lacking).sum(axis=0) < FEWEST_VALUES)
    if empty.size:
        raise InputError(
            f"nodes have fewer than {FEWEST_VALUES} values: "
            f"{listing([graph.nodes[i] for i in empty])}",
            "Leave them out of the panel and of the graph",
        )
    warn_caller(
        f"{int(lacking.sum())} of {lacking.size} observations are missing, at "
        f"{int(lacking.any(axis=0).sum())} of {graph.n_nodes} nodes; the others are used",
        DataWarning,
    )
    return np.where(lacking[:, :, np.newaxis], np.nan, values)


def read_step(
    x: Any, nodes: tuple[Label, ...], n_features: int, missing: str = "error"
) -> FloatArray:
    """Check the observations of one time, shape (n_nodes, n_features); input as in `update`."""
    if isinstance(x, Mapping):
        lacking = [node for node in nodes if node not in x]
        if lacking:
            raise InputError(
                f"x_t lacks the nodes {listing(lacking)}", "Give a value for every node"
            )
        extra = [node for node in x if node not in set(nodes)]
        if extra:
            raise InputError(
                f"nodes of x_t are not in the panel: {listing(extra)}",
                nearest_name(extra[0], nodes),
            )
        x = [x[node] for node in nodes]
    values = as_numeric(x, "x_t")
    if values.ndim == 1 and n_features == 1:
        values = values[:, np.newaxis]
    if values.shape != (len(nodes), n_features):
        raise InputError(
            f"x_t has shape {np.shape(x)}, but there are {len(nodes)} nodes and {n_features} "
            f"feature{'s' if n_features > 1 else ''}",
            "Pass one row per node, in the order of the graph",
        )
    gaps: BoolArray = np.asarray(np.isnan(values).any(axis=1))
    bad = np.flatnonzero(np.isinf(values).any(axis=1) | (gaps & (missing == "error")))
    if bad.size:
        raise InputError(
            f"x_t has missing or infinite values at nodes {listing([nodes[i] for i in bad])}",
            "Fill them, or fit with missing='drop' to allow missing values",
        )
    check_magnitude(values[~gaps], "x_t")
    return np.where(gaps[:, np.newaxis], np.nan, values)


def check_later(time: Any, times: Sequence[Label] | None) -> Label | None:
    """Check the time of an update against those before; None if steps are counted."""
    if times is None:
        if time is not None:
            raise InputError(
                f"time={time!r} is given, but the panel had no times: steps are counted",
                "Call update without time",
            )
        return None
    if time is None:
        raise InputError("the update has no time, but the panel had times", "Pass time too")
    label = plain_label(time, "time")
    if not label > times[-1]:  # type: ignore[operator]
        raise InputError(
            f"the time {written(label)} is not after the last one, {written(times[-1])}",
            "Pass updates in the order of time",
        )
    return label
