"""The graph of a command: from an edges file, from coordinates, or without edges."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import FloatArray
from graphratio.cli.options import GraphOptions, Metric
from graphratio.cli.table_files import TableFile, as_numbers, as_text
from graphratio.data.graph import Graph

# Nodes that are compared with all other labels, in search of a misspelling.
_COMPARED = 20
_LATITUDES = {"lat", "latitude"}
_LONGITUDES = {"lon", "lng", "long", "longitude"}


def _places(labels: Any, table: Any, columns: list[str]) -> dict[str, tuple[float, float]]:
    """Coordinates of every node; they must be the same in all of its rows."""
    if len(columns) != 2:
        raise InputError(
            f"--coordinates names {len(columns)} columns: {listing(columns)}",
            "Name two, for instance --coordinates lat,lon",
        )
    values = [as_numbers(table[name], name) for name in columns]
    for name, column in zip(columns, values, strict=True):
        grouped = column.groupby(labels.to_numpy())
        moved = grouped.max() - grouped.min()
        if (moved > 0).any():
            where = moved.index[moved > 0]
            node = where[0]
            seen = column[(labels == node).to_numpy()].dropna().unique()[:2]
            raise InputError(
                f"column {name!r} is not the same in all rows of node {node!r} "
                f"({seen[0]:g}, {seen[1]:g}); {len(where)} nodes have several places",
                "Give every node one place",
            )
    first = [column.groupby(labels.to_numpy(), sort=False).first() for column in values]
    lost = first[0].index[first[0].isna() | first[1].isna()]
    if len(lost):
        raise InputError(
            f"{len(lost)} nodes have no coordinates: {listing(lost.tolist())}",
            f"Fill the columns {listing(columns)} there",
        )
    return {label: (float(x), float(y)) for label, x, y in zip(first[0].index, *first, strict=True)}


def _metric(columns: list[str], options: GraphOptions) -> str:
    """The given metric, or haversine for columns called latitude and longitude."""
    names = [name.lower() for name in columns]
    if names[0] in _LONGITUDES and names[1] in _LATITUDES:
        raise InputError(
            f"--coordinates {','.join(columns)} has the longitude first",
            f"Put the latitude first: --coordinates {columns[1]},{columns[0]}",
        )
    if options.metric is not None:
        return options.metric.value
    on_globe = names[0] in _LATITUDES and names[1] in _LONGITUDES
    return Metric.haversine.value if on_globe else Metric.euclidean.value


def build_graph(
    node_column: Any,
    table: Any,
    columns: list[str],
    options: GraphOptions,
    delimiter: str | None,
    notes: list[str],
    *,
    borrow: bool = True,
) -> Graph:
    """Return the graph over the nodes of the table; adds notes about it.

    `columns` are the coordinates in the table, if any. With `borrow`, nodes that only the edges
    file names are kept if they are connected.
    """
    labels = node_column.unique().tolist()
    places = _places(node_column, table, columns) if columns else {}
    metric = _metric(columns, options) if columns else ""
    if options.edges is not None:
        graph = _from_file(options.edges, labels, options, delimiter, notes, borrow=borrow)
    elif options.no_graph or not columns:
        graph = Graph.empty(labels)
    else:
        n_nodes, k = len(places), options.neighbors
        if k >= n_nodes:
            raise InputError(
                f"--neighbors {k} is too many for {n_nodes} node{'s' if n_nodes > 1 else ''}",
                f"Pass --neighbors {n_nodes - 1} or less" if n_nodes > 1 else "Pass --no-graph",
            )
        distance = "great-circle distance" if metric == "haversine" else "plane distance"
        shown = ", ".join(columns)
        notes.append(f"every node is joined to its {k} nearest by {distance} ({shown})")
        return Graph.from_coordinates(places, k=k, metric=metric)
    lost = [node for node in graph.nodes if node not in places] if columns else []
    if lost:
        notes.append(
            f"no map: {len(lost)} nodes of the edges file are not in the table and have no "
            f"coordinates: {listing(lost)}"
        )
    elif columns:
        points = np.array([places[str(node)] for node in graph.nodes], dtype=np.float64)
        return replace(graph, coordinates=read_only(points), metric=metric)
    return graph


def _from_file(
    edges: Path,
    labels: list[str],
    options: GraphOptions,
    delimiter: str | None,
    notes: list[str],
    *,
    borrow: bool,
) -> Graph:
    file = TableFile(edges, delimiter)
    if len(file.columns) < 2:
        raise InputError(
            f"{file.name} has a single column {file.columns[0]!r}",
            "Put the two ends of an edge in two columns separated by commas, or pass --delimiter",
        )
    whole = _from_matrix(file, labels, options, notes)
    whole = _from_list(file, labels, options, notes) if whole is None else whole
    return (_within_reach if borrow else _observed)(whole, len(labels), notes)


def _from_matrix(
    file: TableFile, labels: list[str], options: GraphOptions, notes: list[str]
) -> Graph | None:
    """The graph of a square matrix of weights with labels in the header; None for a list of edges.

    The first column may repeat the labels.
    """
    if len(set(file.columns)) != len(file.columns):
        return None
    named = file.columns[1:]
    first = as_text(file.read(file.columns[:1])[file.columns[0]]).tolist()
    if sorted(first) == sorted(named):
        table = file.read(file.columns)
        table.index = first
        table = table.loc[named, named]
    elif len(first) == len(file.columns) > 2 and set(file.columns) <= set(labels):
        table, named = file.read(file.columns), file.columns
    else:
        return None
    use = "The entries of the matrix are weights: use numbers"
    weights = np.column_stack([_numbers(table[name], name, file, use) for name in named])
    empty = int(np.isnan(weights).sum())
    if empty:
        notes.append(f"{empty} empty weights in {file.name} count as no edge")
    _match(labels, named, options, file)
    known = set(labels)
    every = [*labels, *(label for label in named if label not in known)]
    place = {label: i for i, label in enumerate(every)}
    order = [place[label] for label in named]
    matrix = np.zeros((len(every), len(every)))
    matrix[np.ix_(order, order)] = np.nan_to_num(weights, nan=0.0)
    if (np.diag(matrix)[order] == 1).all():
        notes.append(f"the diagonal of {file.name} is 1 at every node and was left out")
        np.fill_diagonal(matrix, 0.0)
    if not np.array_equal(matrix, matrix.T):
        notes.append(f"{file.name} is not symmetric; the larger weight of each pair was taken")
    return Graph.from_adjacency(matrix, every, symmetrize=True)


def _from_list(
    file: TableFile, labels: list[str], options: GraphOptions, notes: list[str]
) -> Graph:
    """The graph of a list of edges."""
    columns = file.columns[:3]
    if set(columns[:2]) <= set(labels):
        raise InputError(
            f"the first line of {file.name} is an edge, {columns[0]!r} - {columns[1]!r}, and not a "
            "header",
            "Add a first line with the names of the columns, such as: from,to",
        )
    for name in columns:
        file.check(name, "column of the edges file")
    table = file.read(columns)
    ends = [as_text(table[name]).tolist() for name in columns[:2]]
    empty = [row + 1 for row, pair in enumerate(zip(*ends, strict=True)) if "" in pair]
    if empty:
        raise InputError(
            f"{file.name} has {len(empty)} edges without one of their ends, in rows "
            f"{listing(empty)} below the header",
            "Fill the first two columns",
        )
    weights = _weights(table[columns[2]], columns[2], file) if len(columns) == 3 else None
    in_file = list(dict.fromkeys(end for pair in zip(*ends, strict=True) for end in pair))
    _match(labels, in_file, options, file)
    triples = list(zip(*ends, weights if weights is not None else np.ones(len(table)), strict=True))
    given = set(zip(*ends, strict=True))
    both = sum((second, first) in given for first, second in given if first != second) // 2
    if both:
        notes.append(
            f"{both} edges are given in both directions; the larger weight of each was taken"
        )
    known = set(labels)
    every = [*labels, *(label for label in in_file if label not in known)]
    return Graph.from_edges(triples, nodes=every, symmetrize=True)


def _weights(column: Any, name: str, file: TableFile) -> FloatArray:
    weights = _numbers(column, name, file, "The third column is the weight: use numbers")
    if weights.isna().any():
        raise InputError(
            f"{file.name} has {int(weights.isna().sum())} edges without a weight in the third "
            f"column {name!r}",
            "Fill it, or remove the column",
        )
    return np.asarray(weights, dtype=np.float64)


def _numbers(column: Any, name: str, file: TableFile, remedy: str) -> Any:
    try:
        return as_numbers(column, name, remedy)
    except InputError as error:
        raise InputError(f"in {file.name}, {error.problem}", error.remedy) from error


def _match(labels: list[str], in_file: list[str], options: GraphOptions, file: TableFile) -> None:
    """Refuse nodes of the table that the edges file does not name, unless they are allowed."""
    known = set(in_file)
    lacking = [label for label in labels if label not in known]
    if not lacking or (options.allow_isolated and len(lacking) < len(labels)):
        return
    remedy = "Add edges for them, or pass --allow-isolated to estimate them separately"
    if len(lacking) == len(labels):
        has = f"The edges file has {listing(in_file, limit=3)}"
        remedy = f"{has}: write the labels in the same way in both files"
    elif set(map(_loosely, lacking)) & set(map(_loosely, in_file)):
        alike = {_loosely(label): label for label in in_file}
        pair = next((a, alike[_loosely(a)]) for a in lacking if _loosely(a) in alike)
        remedy = (
            "Write the labels in the same way in both files: the table has "
            f"{pair[0]!r}, the edges file {pair[1]!r}"
        )
    elif near := _near_pair(lacking, [label for label in in_file if label not in set(labels)]):
        remedy += f". A misspelling? The table has {near[0]!r}, the edges file {near[1]!r}"
    raise InputError(
        f"{file.name} lacks {len(lacking)} of {len(labels)} nodes of the table: {listing(lacking)}",
        remedy,
    )


def _near_pair(lacking: list[str], strangers: list[str]) -> tuple[str, str] | None:
    """A node, among the first few, that resembles a label which only the edges file has.

    Labels with different digits are different nodes, such as "sensor 30" and "sensor 31".
    """
    for label in lacking[:_COMPARED]:
        alike = [other for other in strangers if _digits(other) == _digits(label)]
        if near := get_close_matches(label, alike, n=1, cutoff=0.8):
            return label, near[0]
    return None


def _digits(label: str) -> str:
    return "".join(filter(str.isdigit, label))


def _loosely(label: str) -> str:
    """A label without case, or a number without padding zeros: both often differ between files."""
    try:
        return f"{float(label):g}"
    except ValueError:
        return label.casefold()


def _within_reach(graph: Graph, n_observed: int, notes: list[str]) -> Graph:
    """Keep the nodes without rows that can borrow from observed nodes."""
    reached = np.zeros(graph.n_components, dtype=bool)
    reached[graph.components[:n_observed]] = True
    kept = np.flatnonzero(reached[graph.components])
    without, far = len(kept) - n_observed, graph.n_nodes - len(kept)
    if without:
        shown = listing([graph.nodes[i] for i in kept[n_observed:]], limit=3)
        notes.append(
            f"the edges file names {without} nodes without rows in the table: {shown}. The ratio "
            "there is inferred from neighbours; check the spelling if you expected rows"
        )
    if far:
        notes.append(f"left out {far} nodes of the edges file without a path to the table")
        nodes = [graph.nodes[i] for i in kept]
        return Graph.from_adjacency(graph.adjacency[kept][:, kept], nodes)
    return graph


def _observed(graph: Graph, n_observed: int, notes: list[str]) -> Graph:
    """Leave out the nodes that only the edges file names."""
    if graph.n_nodes == n_observed:
        return graph
    shown = listing(graph.nodes[n_observed:], limit=3)
    notes.append(
        f"left out {graph.n_nodes - n_observed} nodes of the edges file without rows in the "
        f"table: {shown}"
    )
    inside = graph.adjacency[:n_observed][:, :n_observed]
    return Graph.from_adjacency(inside, graph.nodes[:n_observed])
