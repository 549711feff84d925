"""Reading graphs in the forms users have them, with errors that name the entries at fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from graphratio import _frames
from graphratio.exceptions import InputError, listing
from graphratio.typing import FloatArray, IntArray, Label
from graphratio.validation import (
    as_labels,
    as_numeric,
    check_magnitude,
    nearest_name,
    plain_label,
)

# Weights of the two directions may differ by this much, relative to the largest weight,
# before a matrix counts as directed: room for rounding, not for a direction.
SYMMETRY_TOLERANCE = 1e-10


def at_least_one_node(n_nodes: int) -> int:
    """Refuse a graph without nodes."""
    if n_nodes < 1:
        raise InputError("the graph has no nodes", "Pass at least one node")
    return n_nodes


def find_label(positions: Mapping[Label, int], node: object) -> int:
    """Position of a label, or an error that names the nearest known one."""
    label = plain_label(node)
    if label not in positions:
        raise InputError(f"there is no node {label!r}", nearest_name(label, positions))
    return positions[label]


def square_matrix(adjacency: Any) -> tuple[sparse.csr_array, tuple[Label, ...] | None]:
    """Return the weights as CSR, and the labels if a data frame carried them."""
    labels = None
    if hasattr(adjacency, "columns") and hasattr(adjacency, "index"):
        labels = as_labels(adjacency.index)
        if labels != as_labels(adjacency.columns):
            raise InputError(
                "rows and columns of the adjacency frame have different labels",
                "Reorder the columns as the index: frame.loc[nodes, nodes]",
            )
        adjacency = adjacency.to_numpy()
    if sparse.issparse(adjacency):
        if adjacency.dtype.kind == "c":
            raise InputError("the adjacency has complex values", "Pass real weights")
        matrix = sparse.csr_array(adjacency, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
    else:
        dense = as_numeric(adjacency, "the adjacency")
        if dense.ndim != 2:
            raise InputError(
                f"the adjacency has {dense.ndim} dimensions", "Pass a square matrix of weights"
            )
        matrix = sparse.csr_array(dense)
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"the adjacency has shape {matrix.shape}, which is not square",
            "Pass one row and one column for each node; for a list of edges use Graph.from_edges",
        )
    at_least_one_node(matrix.shape[0])
    return matrix, labels


def undirected(
    matrix: sparse.csr_array,
    labels: Sequence[Label],
    *,
    symmetrize: bool,
    one_sided: bool = False,
) -> sparse.csr_array:
    """Check the weights and return the symmetric matrix in canonical form.

    With `one_sided`, each edge is expected once, in either direction, as in a list of edges;
    an edge in both directions then needs `symmetrize`.
    """
    entries = matrix.tocoo()
    _refuse(entries, ~np.isfinite(entries.data), labels, "NaN or infinite", "Give finite weights")
    _refuse(entries, entries.data < 0, labels, "negative", "Weights measure similarity: use >= 0")
    loops = (entries.row == entries.col) & (entries.data != 0)
    _refuse(
        entries, loops, labels, "on self-loops", "Remove them (set the diagonal of a matrix to 0)"
    )
    matrix.eliminate_zeros()
    transpose = sparse.csr_array(matrix.T)
    if symmetrize:
        matrix = sparse.csr_array(matrix.maximum(transpose))
    elif one_sided:
        twice = matrix.multiply(transpose).tocoo()
        both = (twice.data > 0) & (twice.row < twice.col)
        remedy = "Give each edge once, or pass symmetrize=True"
        _refuse(twice, both, labels, "given in both directions", remedy)
        matrix = sparse.csr_array(matrix + transpose)
    else:
        difference = (matrix - transpose).tocoo()
        largest = matrix.data.max() if matrix.nnz else 0.0
        uneven = difference.data > SYMMETRY_TOLERANCE * largest
        remedy = "Pass symmetrize=True to take the larger weight of each pair"
        _refuse(difference, uneven, labels, "larger than in the other direction (directed)", remedy)
        # Averaged so that what rounding left is gone; equal weights stay as they are.
        matrix = sparse.csr_array(matrix / 2 + transpose / 2)
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix


def _refuse(
    entries: sparse.coo_array, bad: Any, labels: Sequence[Label], what: str, remedy: str
) -> None:
    where = np.flatnonzero(bad)
    if not where.size:
        return
    pairs = [(labels[entries.row[i]], labels[entries.col[i]]) for i in where[:6]]
    shown = ", ".join(f"{u!r} - {v!r}" for u, v in pairs[:5])
    more = f" and {where.size - 5} more" if where.size > 5 else ""
    count = "1 edge weight is" if where.size == 1 else f"{where.size} edge weights are"
    raise InputError(f"{count} {what}: {shown}{more}", remedy)


def edge_list(
    edges: Any, source: str | None, target: str | None, weight: str | None
) -> tuple[list[tuple[Any, Any]], FloatArray]:
    """Return the pairs of ends and the weights of a frame, an array or a sequence."""
    if _frames.is_frame(edges):
        return _frames.edges_of(edges, source, target, weight)
    if source is not None or target is not None or weight is not None:
        raise InputError(
            "source, target and weight name columns, but edges is not a data frame",
            "Leave them out, or pass a pandas or polars frame",
        )
    rows = [tuple(edge) for edge in edges]
    lengths = {len(row) for row in rows}
    if not lengths <= {2} and not lengths <= {3}:
        wrong = next(row for row in rows if len(row) not in (2, 3) or len(lengths) > 1)
        raise InputError(
            f"edges are pairs or triples, but one is {wrong!r} (lengths found: {sorted(lengths)})",
            "Pass (end, end) for every edge, or (end, end, weight) for every edge",
        )
    values = edge_weights([row[2] if len(row) == 3 else 1.0 for row in rows])
    return [(row[0], row[1]) for row in rows], values


def edge_weights(values: Sequence[Any]) -> FloatArray:
    """Weights as float64; empty input gives an empty array."""
    return as_numeric(values if len(values) else np.empty(0), "the edge weights")


def index_ends(
    ends: Sequence[tuple[Any, Any]], given: tuple[Label, ...] | None
) -> tuple[tuple[Label, ...], IntArray, IntArray]:
    """Turn labels of the ends into positions; unknown ones are an error that lists them."""
    flat = [plain_label(end) for pair in ends for end in pair]
    labels = given if given is not None else tuple(dict.fromkeys(flat))
    at_least_one_node(len(labels))
    position = {label: i for i, label in enumerate(labels)}
    unknown = [label for label in dict.fromkeys(flat) if label not in position]
    if unknown:
        raise InputError(
            f"edges name {len(unknown)} nodes that are not in nodes: {listing(unknown)}",
            "Add them to nodes or remove these edges",
        )
    index = np.array([position[label] for label in flat], dtype=np.intp).reshape(-1, 2)
    return labels, index[:, 0], index[:, 1]


def edges_to_matrix(
    rows: IntArray, columns: IntArray, weights: FloatArray, labels: Sequence[Label]
) -> sparse.csr_array:
    """Build the one-sided matrix of a list of edges; a repeated edge is an error."""
    n = len(labels)
    code = rows * n + columns
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    repeated = first[counts > 1]
    if repeated.size:
        shown = [(labels[rows[i]], labels[columns[i]]) for i in repeated[:6]]
        raise InputError(
            f"{repeated.size} edges are given more than once: {listing(shown)}",
            "Merge them into one edge with one weight",
        )
    # Weights are checked later, so NaN and negative ones must survive this step.
    return sparse.csr_array((weights, (rows, columns)), shape=(n, n))


def coordinates_of(coordinates: Mapping[Any, Any], nodes: Sequence[Any]) -> list[Any]:
    """Coordinates of the nodes, in order; missing ones are an error."""
    missing = [node for node in nodes if node not in coordinates]
    if missing:
        raise InputError(
            f"{len(missing)} nodes have no coordinates: {listing(missing)}",
            "Add them or leave these nodes out",
        )
    return [coordinates[node] for node in nodes]


def coordinate_array(coordinates: Any, labels: tuple[Label, ...] | None, metric: str) -> FloatArray:
    """Check coordinates and return them as an array of shape (n_nodes, n_dimensions)."""
    points = as_numeric(coordinates, "coordinates").copy()
    if points.ndim != 2 or points.shape[1] < 1:
        raise InputError(
            f"coordinates have shape {points.shape}", "Pass shape (n_nodes, n_dimensions)"
        )
    if labels is not None and len(labels) != len(points):
        raise InputError(
            f"{len(labels)} node labels for {len(points)} coordinates", "Give one for each"
        )
    names = labels if labels is not None else tuple(range(len(points)))
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise InputError(
            f"coordinates are missing or infinite at: {listing([names[i] for i in bad])}",
            "Give coordinates to these nodes or leave them out",
        )
    check_magnitude(points, "coordinates")
    if metric == "haversine":
        if points.shape[1] != 2:
            raise InputError("haversine needs two columns", "Pass (latitude, longitude) in degrees")
        wrong = np.flatnonzero((np.abs(points[:, 0]) > 90) | (np.abs(points[:, 1]) > 360))
        if wrong.size:
            raise InputError(
                f"not (latitude, longitude) in degrees at: {listing([names[i] for i in wrong])}",
                "Latitude comes first and lies in [-90, 90]",
            )
    return points


def nearest_neighbours(points: FloatArray, k: int, metric: str) -> sparse.csr_array:
    """Adjacency of the k nearest neighbours, an edge if either end chose the other."""
    # Chords of the unit sphere order pairs as great-circle distances do.
    space = _on_sphere(points) if metric == "haversine" else points
    _, found = cKDTree(space).query(space, k=k + 1)
    own = np.arange(len(points))[:, np.newaxis]
    # The node itself is usually first, but not among coincident points: move it last.
    order = np.argsort(found == own, axis=1, kind="stable")
    chosen = np.take_along_axis(found, order, axis=1)[:, :k]
    shape = (len(points), len(points))
    rows = np.repeat(own.ravel(), k)
    matrix = sparse.csr_array((np.ones(rows.size), (rows, chosen.ravel())), shape=shape)
    matrix = sparse.csr_array(matrix.maximum(matrix.T))
    matrix.sort_indices()
    return matrix


def _on_sphere(degrees: FloatArray) -> FloatArray:
    latitude, longitude = np.radians(degrees).T
    return np.column_stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )
