"""Read a table over time and a graph from files."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional
from graphratio.cli.graph_files import build_graph
from graphratio.cli.inputs import measured_columns, needed, refuse_blanks, split_names, with_labels
from graphratio.cli.options import GraphOptions, TableOptions, TimeOptions
from graphratio.cli.periods import TimeAxis
from graphratio.cli.table_files import TableFile, as_numbers, as_text
from graphratio.data.graph import Graph


def read_over_time(
    data: TableOptions, time: TimeOptions, graph: GraphOptions
) -> tuple[Any, list[str], Graph, list[str]]:
    """Read the table and the edges, and match them.

    Returns a pandas frame with node, time and features, the features, the graph, and notes.
    """
    notes: list[str] = []
    file = TableFile(data.data, data.delimiter)
    places = split_names(graph.coordinates, file.columns)
    features = split_names(data.features, file.columns)
    roles = [(data.node, "--node"), (time.time, "--time")]
    roles += [(name, "--coordinates") for name in places]
    roles += [(name, "--features") for name in features]
    for name, role in roles:
        file.check(name, role)
    special = [data.node, time.time, *places]
    if data.node == time.time or {data.node, time.time} & set(features):
        raise InputError(
            "--node, --time and --features name a column twice", "Name different columns"
        )
    raw = file.read(needed(file, special, features))
    labels = as_text(raw[data.node])
    if not features:
        features = measured_columns(raw, labels, special, data, notes)
    axis = TimeAxis(raw[time.time], time.time)
    refuse_blanks(time.time, int((~axis.known).sum()), len(raw), data)
    kept = axis.known & with_labels(labels, axis.known, data, notes)
    chosen = raw[kept]
    frame = import_optional("pandas", "cli", "reading tables").DataFrame(
        {
            data.node: labels[kept].to_numpy(),
            time.time: _whole(axis.values[kept]),
            **{name: as_numbers(chosen[name], name).to_numpy() for name in features},
        }
    )
    built = build_graph(labels[kept], chosen, places, graph, data.delimiter, notes, borrow=False)
    return frame, features, built, notes


def _whole(times: np.ndarray) -> np.ndarray:
    """Turn whole numbers into integers, as they were written."""
    if times.dtype.kind == "f" and np.all((times == np.round(times)) & (abs(times) < 2**53)):
        return np.asarray(times.astype(np.int64))
    return times
