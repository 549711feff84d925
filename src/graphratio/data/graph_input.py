"""Read graphs from matrices, tables, lists and coordinates; errors name the wrong entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from graphratio._utils.errors import DataWarning, InputError, first_few, listing, warn_caller
from graphratio._utils.parameters import check_flag
from graphratio._utils.typing import FloatArray, Label
from graphratio.data import frames
from graphratio.data.validation import (
    as_labels,
    as_numeric,
    check_magnitude,
    distinct_codes,
    nearest_name,
    plain_label,
)

Ends: TypeAlias = np.ndarray | Sequence[Any]
"""One end of every edge: integers in an array, or labels in a list."""

# Weights beyond this, or below its inverse, leave the range of single precision in products.
LARGEST_WEIGHT = 1e30
_TOO_EXTREME = (
    f"not between {1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}",
    "Use another unit: only ratios of weights matter",
)

# A matrix is directed if the weights of the two directions differ by more than this, relative
# to the largest weight. This allows for rounding.
SYMMETRY_TOLERANCE = 1e-10


def at_least_one_node(n_nodes: int) -> int:
    """Refuse a graph without nodes."""
    if n_nodes < 1:
        raise InputError("the graph has no nodes", "Pass at least one node")
    return n_nodes


def square_matrix(adjacency: Any) -> tuple[sparse.csr_array, tuple[Label, ...] | None]:
    """Return the weights as CSR, and the labels if a data frame carried them."""
    labels = frames.row_labels(adjacency)
    if labels is not None and labels != as_labels(adjacency.columns):
        raise InputError(
            "rows and columns of the adjacency frame have different labels",
            "Reorder the columns as the index: frame.loc[nodes, nodes]",
        )
    if sparse.issparse(adjacency):
        if adjacency.dtype.kind not in "fiub":
            raise InputError(
                f"the adjacency has values of type {adjacency.dtype}", "Pass real weights"
            )
    else:
        adjacency = as_numeric(adjacency, "the adjacency")
    if adjacency.ndim != 2:
        raise InputError(f"the adjacency is {adjacency.ndim}-D", "Pass a square matrix of weights")
    matrix = sparse.csr_array(adjacency, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"the adjacency has shape {matrix.shape}, which is not square",
            "Pass one row and one column for each node; for a list of edges use Graph.from_edges",
        )
    at_least_one_node(matrix.shape[0])
    return matrix, labels


def undirected(
    matrix: sparse.csr_array, labels: Sequence[Label], *, symmetrize: bool, one_sided: bool = False
) -> sparse.csr_array:
    """Check the weights and return the symmetric matrix in canonical form.

    With `one_sided` each edge is expected once; of two directions the larger weight is taken.
    """
    matrix = _without_unit_diagonal(matrix)
    entries = matrix.tocoo()
    _refuse(entries, ~np.isfinite(entries.data), labels, "NaN or infinite", "Give finite weights")
    _refuse(entries, entries.data < 0, labels, "negative", "Weights measure similarity: use >= 0")
    loops = (entries.row == entries.col) & (entries.data != 0)
    _refuse(
        entries, loops, labels, "on self-loops", "Remove them (set the diagonal of a matrix to 0)"
    )
    extreme = (entries.data > LARGEST_WEIGHT) | (entries.data < 1 / LARGEST_WEIGHT)
    _refuse(entries, extreme & (entries.data > 0), labels, *_TOO_EXTREME)
    matrix.eliminate_zeros()
    transpose = sparse.csr_array(matrix.T)
    if check_flag(symmetrize, "symmetrize"):
        matrix = sparse.csr_array(matrix.maximum(transpose))
    elif one_sided:
        _warn_of_two_weights(matrix, transpose, labels)
        matrix = sparse.csr_array(matrix.maximum(transpose))
    else:
        difference = (matrix - transpose).tocoo()
        largest = matrix.data.max() if matrix.nnz else 0.0
        uneven = difference.data > SYMMETRY_TOLERANCE * largest
        remedy = "Pass symmetrize=True to take the larger weight of each pair"
        _refuse(difference, uneven, labels, "larger than in the other direction (directed)", remedy)
        # The average removes rounding errors; equal weights stay as they are.
        matrix = sparse.csr_array((matrix + transpose) / 2)
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix


def _without_unit_diagonal(matrix: sparse.csr_array) -> sparse.csr_array:
    """Leave out a diagonal of ones, which similarities have and edges do not need."""
    if matrix.shape[0] > 1 and (matrix.diagonal() == 1).all():
        warn_caller(
            "the diagonal of the adjacency is 1 at every node and was left out: a node is not "
            "its own neighbour",
            DataWarning,
        )
        return sparse.csr_array(matrix - sparse.eye_array(matrix.shape[0]))
    return matrix


def _warn_of_two_weights(
    matrix: sparse.csr_array, transpose: sparse.csr_array, labels: Sequence[Label]
) -> None:
    """Say which edges have different weights in their two directions."""
    # Patterns are multiplied, because products of tiny weights would vanish.
    both = matrix.astype(bool).multiply(transpose.astype(bool))
    apart = sparse.csr_array((matrix - transpose).multiply(both)).tocoo()
    where = np.flatnonzero(apart.data > 0)
    if where.size:
        pairs = [f"{labels[apart.row[i]]!r} - {labels[apart.col[i]]!r}" for i in where]
        count = "1 edge has" if where.size == 1 else f"{where.size} edges have"
        warn_caller(
            f"{count} two different weights, one in each direction: {first_few(pairs)}. The larger "
            "was taken",
            DataWarning,
        )


def _refuse(
    entries: sparse.coo_array, bad: Any, labels: Sequence[Label], what: str, remedy: str
) -> None:
    where = np.flatnonzero(bad)
    if not where.size:
        return
    pairs = [f"{labels[entries.row[i]]!r} - {labels[entries.col[i]]!r}" for i in where]
    count = "1 edge weight is" if where.size == 1 else f"{where.size} edge weights are"
    raise InputError(f"{count} {what}: {first_few(pairs)}", remedy)


def edge_list(
    edges: Any, source: str | None, target: str | None, weight: str | None
) -> tuple[Ends, Ends, FloatArray]:
    """Return the two ends and the weights of the edges of a frame, an array or a sequence."""
    if frames.is_frame(edges):
        return frames.edges_of(edges, source, target, weight)
    if source is not None or target is not None or weight is not None:
        raise InputError(
            "source, target and weight name columns, but edges is not a data frame",
            "Leave them out, or pass a pandas or polars frame",
        )
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.dtype.kind in "iuf":
        return _edge_array(edges)
    if not isinstance(edges, Iterable) or isinstance(edges, str | Mapping):
        raise InputError(
            f"edges of type {type(edges).__name__} cannot be read",
            "Pass a list of (end, end) or (end, end, weight), or a data frame",
        )
    rows = [_edge_tuple(edge) for edge in edges]
    lengths = {len(row) for row in rows}
    if not lengths <= {2} and not lengths <= {3}:
        wrong = next(row for row in rows if len(row) not in (2, 3) or len(lengths) > 1)
        raise InputError(
            f"edges are pairs or triples, but one is {wrong!r} (lengths found: {sorted(lengths)})",
            "Pass (end, end) for every edge, or (end, end, weight) for every edge",
        )
    values = edge_weights([row[2] if len(row) == 3 else 1.0 for row in rows])
    return [row[0] for row in rows], [row[1] for row in rows], values


def _edge_tuple(edge: Any) -> tuple[Any, ...]:
    # A string has characters, not ends: "ab" is no edge between "a" and "b".
    if isinstance(edge, str | bytes) or not isinstance(edge, Iterable):
        raise InputError(f"{edge!r} is not an edge", "Pass (end, end) or (end, end, weight)")
    return tuple(edge)


def _edge_array(edges: np.ndarray) -> tuple[Ends, Ends, FloatArray]:
    """Ends and weights of an array of numbers with two or three columns."""
    if edges.shape[1] not in (2, 3):
        raise InputError(
            f"edges have shape {edges.shape}", "Pass two columns of ends, or three with the weight"
        )
    ends = edges[:, :2]
    weights = edges[:, 2].astype(np.float64) if edges.shape[1] == 3 else np.ones(len(edges))
    if ends.dtype.kind == "f":
        # Fractional weights turn integer ends into floats; fractional ends are labels as they are.
        whole = np.isfinite(ends).all() and (np.abs(ends) < 2**53).all() and (ends % 1 == 0).all()
        if not whole:
            return ends[:, 0].tolist(), ends[:, 1].tolist(), weights
        ends = ends.astype(np.int64)
    return ends[:, 0], ends[:, 1], weights


def networkx_edges(
    graph: Any, weight: str | None, *, symmetrize: bool
) -> tuple[Ends, Ends, FloatArray]:
    """Ends and weights of the edges of a networkx graph."""
    if not all(hasattr(graph, name) for name in ("is_directed", "nodes", "edges")):
        raise InputError(f"{type(graph).__name__} is not a networkx graph", "Pass networkx.Graph")
    if weight is not None and not isinstance(weight, str):
        raise InputError(f"weight={weight!r} is not the name of an attribute", "Pass a str or None")
    if graph.is_directed() and not check_flag(symmetrize, "symmetrize"):
        raise InputError(
            "the networkx graph is directed", "Pass symmetrize=True, or graph.to_undirected()"
        )
    edges = list(graph.edges(data=True))
    values = [1 if weight is None else data.get(weight, 1) for _, _, data in edges]
    # A graph without the default attribute has no weights; any other name must exist.
    if weight not in (None, "weight") and edges and not any(weight in e[2] for e in edges):
        found = dict.fromkeys(name for _, _, data in edges for name in data)
        raise InputError(f"no edge has the attribute {weight!r}", nearest_name(weight, found))
    return [u for u, _, _ in edges], [v for _, v, _ in edges], edge_weights(values)


def edge_weights(values: Sequence[Any]) -> FloatArray:
    """Weights as float64; empty input gives an empty array."""
    weights = as_numeric(values if len(values) else np.empty(0), "the list of edge weights")
    if weights.ndim != 1:
        raise InputError("edge weights are not single numbers", "Give one weight for each edge")
    return weights


def joined_ends(
    first: Ends,
    second: Ends,
    weights: FloatArray,
    given: tuple[Label, ...] | None,
    *,
    symmetrize: bool,
) -> tuple[tuple[Label, ...], sparse.csr_array]:
    """Labels and symmetric matrix of a list of edges; unknown or repeated ones are an error."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        found, codes = distinct_codes(np.column_stack([first, second]).ravel())
    else:
        flat = [plain_label(end) for pair in zip(first, second, strict=True) for end in pair]
        seen = {label: i for i, label in enumerate(dict.fromkeys(flat))}
        found, codes = list(seen), np.fromiter(map(seen.__getitem__, flat), np.intp, len(flat))
    labels = given if given is not None else tuple(found)
    at_least_one_node(len(labels))
    position = {label: i for i, label in enumerate(labels)}
    unknown = [label for label in found if label not in position]
    if unknown:
        raise InputError(
            f"the argument nodes lacks {len(unknown)} nodes of the edges: {listing(unknown)}",
            "Add them to nodes or remove these edges",
        )
    index = np.array([position[label] for label in found], dtype=np.intp)[codes].reshape(-1, 2)
    n, (rows, columns) = len(labels), index.T
    _, where, counts = np.unique(rows * n + columns, return_index=True, return_counts=True)
    repeated = where[counts > 1]
    if repeated.size:
        pairs = [(labels[rows[i]], labels[columns[i]]) for i in repeated]
        count = "1 edge is" if repeated.size == 1 else f"{repeated.size} edges are"
        raise InputError(
            f"{count} given more than once: {listing(pairs)}",
            "Merge them into one edge with one weight",
        )
    # Weights are checked in `undirected`, so NaN and negative ones are kept up to there.
    matrix = sparse.csr_array((weights, (rows, columns)), shape=(n, n))
    return labels, undirected(matrix, labels, symmetrize=symmetrize, one_sided=True)


def coordinates_of(coordinates: Mapping[Any, Any], nodes: Sequence[Label]) -> list[Any]:
    """Coordinates of the nodes, in order; missing ones are an error."""
    by_label = dict(zip(as_labels(coordinates), coordinates.values(), strict=True))
    missing = [node for node in nodes if node not in by_label]
    if missing:
        raise InputError(
            f"{len(missing)} nodes have no coordinates: {listing(missing)}",
            "Add them or leave these nodes out",
        )
    return [by_label[node] for node in nodes]


def coordinate_array(coordinates: Any, labels: tuple[Label, ...] | None, metric: str) -> FloatArray:
    """Check coordinates and return them as an array of shape (n_nodes, n_dimensions)."""
    points = as_numeric(coordinates, "the array of coordinates").copy()
    if points.ndim != 2 or points.shape[1] < 1:
        raise InputError(
            f"the coordinates have shape {points.shape}", "Pass shape (n_nodes, n_dimensions)"
        )
    if labels is not None and len(labels) != len(points):
        raise InputError(
            f"{len(labels)} node labels for {len(points)} points", "Give one label for each point"
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
    space = _on_sphere(points) if metric == "haversine" else _unit_scale(points)
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


def _unit_scale(points: FloatArray) -> FloatArray:
    """Shift and scale to about one, so that squared distances neither vanish nor overflow."""
    shifted = points - points.min(axis=0)
    return np.asarray(shifted / (shifted.max() or 1.0))


def _on_sphere(degrees: FloatArray) -> FloatArray:
    latitude, longitude = np.radians(degrees).T
    return np.column_stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )
