"""Where to draw the nodes of a graph: on their map, or where its edges suggest."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio.graph import Graph
from graphratio.typing import FloatArray, IntArray

# Landmarks whose distances span the first drawing, and averaging steps over neighbours.
_LANDMARKS = 12
_SMOOTHING_STEPS = 30

# Pairs of nodes that the forces look at in total, which bounds their time; beyond the largest
# size the first drawing stays as it is, since all pairs of a step are held in memory.
_FORCE_PAIRS = 4e7
_MOST_STEPS = 120
_LARGEST_FORCES = 4000


def node_positions(graph: Graph) -> FloatArray:
    """Where to draw every node, shape (n_nodes, 2), x to the right and y upwards.

    Coordinates in the plane are taken as they are. Of (latitude, longitude) the longitude
    becomes x, unwrapped so that the seam of the map is in the widest gap between nodes; it may
    exceed 180 then. Without two-dimensional coordinates, each connected component is drawn from
    its shortest paths and relaxed by forces, components side by side, nodes without edges in
    rows below. The same graph is always drawn the same.

    Examples
    --------
    >>> import graphratio as gr
    >>> fiji = {"Suva": (-18.1, 178.4), "Taveuni": (-16.9, -179.9), "Nadi": (-17.8, 177.4)}
    >>> node_positions(gr.Graph.from_coordinates(fiji, k=1, metric="haversine")).round(1)
    array([[178.4, -18.1],
           [180.1, -16.9],
           [177.4, -17.8]])
    """
    if graph.coordinates is None or graph.coordinates.shape[1] != 2:
        return _drawn_by_edges(graph)
    if graph.metric == "haversine":
        latitude, longitude = graph.coordinates.T
        return np.column_stack([_unwrapped(longitude), latitude])
    return np.array(graph.coordinates)


def _unwrapped(longitude: FloatArray) -> FloatArray:
    """Longitudes as one run of at most 360 degrees that starts after the widest gap."""
    round_trip = longitude % 360
    around = np.unique(round_trip)
    gaps = np.diff(np.append(around, around[0] + 360))
    first = around[(np.argmax(gaps) + 1) % len(around)]
    run = first + (round_trip - first) % 360
    # By whole turns, so that the map is where people look for it.
    middle = (run.min() + run.max()) / 2
    return np.asarray(run - 360 * np.round(middle / 360))


def _drawn_by_edges(graph: Graph) -> FloatArray:
    positions = np.zeros((graph.n_nodes, 2))
    counts = np.bincount(graph.components)
    # Large components first; of equal ones, that of the earlier node.
    joined = [c for c in np.argsort(-counts, kind="stable") if counts[c] > 1]
    right = 0.0
    for component in joined:
        members = np.flatnonzero(graph.components == component)
        drawn = _component(graph.adjacency[members][:, members])
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        positions[members] = drawn - [low[0] - right, (low[1] + high[1]) / 2]
        right += high[0] - low[0] + 2.0
    alone = np.flatnonzero(graph.isolated_mask)
    if alone.size:
        width = max(right - 2.0, np.sqrt(alone.size))
        below = positions[:, 1].min() - 2.0
        positions[alone] = _rows(alone.size, width) + np.array([0.0, below])
    return positions


def _rows(count: int, width: float) -> FloatArray:
    """Points in rows downwards, one unit apart, about as wide as asked."""
    per_row = max(1, int(width) + 1)
    down, across = np.divmod(np.arange(count), per_row)
    return np.column_stack([across, -down]).astype(np.float64)


def _component(adjacency: sparse.csr_array) -> FloatArray:
    """Drawing of a connected graph in which an edge is about one unit long."""
    n = adjacency.shape[0]
    if n == 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])
    first = _spread(_smoothed(adjacency, _landmark_distances(adjacency)))
    steps = min(_MOST_STEPS, int(_FORCE_PAIRS / n**2)) if n <= _LARGEST_FORCES else 0
    return _upright(_relaxed(adjacency, first, steps))


def _landmark_distances(adjacency: sparse.csr_array) -> FloatArray:
    """Hops to landmarks that are far from each other, shape (n, n_landmarks).

    Each landmark is the node farthest from those before it; the first one is the node that is
    farthest from the first node.
    """
    n = adjacency.shape[0]

    def hops_from(node: int) -> FloatArray:
        hops = csgraph.dijkstra(adjacency, directed=False, indices=node, unweighted=True)
        return np.asarray(hops)

    landmark = int(np.argmax(hops_from(0)))
    columns: list[FloatArray] = []
    nearest = np.full(n, np.inf)
    for _ in range(min(_LANDMARKS, n)):
        columns.append(hops_from(landmark))
        nearest = np.minimum(nearest, columns[-1])
        landmark = int(np.argmax(nearest))
    return np.column_stack(columns)


def _smoothed(adjacency: sparse.csr_array, vectors: FloatArray) -> FloatArray:
    """Average over neighbours again and again, and keep the two main directions.

    Groups that hardly touch each other are told apart by this, as by the lowest eigenvectors of
    the Laplacian, which the averages approach; a few steps cannot fail to converge.
    """
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    share = degrees / degrees.sum()
    for _ in range(_SMOOTHING_STEPS):
        vectors = (vectors + (adjacency @ vectors) / degrees[:, np.newaxis]) / 2
        vectors = vectors - share @ vectors
        vectors, _ = np.linalg.qr(vectors)
    centred = vectors - vectors.mean(axis=0)
    # Centring costs one dimension where there are as many landmarks as nodes.
    basis = np.linalg.svd(centred, full_matrices=False)[0][:, : len(centred) - 1]
    # The directions that change least along edges.
    laplacian = basis.T @ (degrees[:, np.newaxis] * basis - adjacency @ basis)
    _, rotation = np.linalg.eigh(laplacian)
    return np.asarray((basis @ rotation)[:, :2])


def _spread(points: FloatArray) -> FloatArray:
    """Scale to about one unit of area per node, and part nodes that would coincide."""
    n = len(points)
    scaled = points / np.maximum(points.std(axis=0), 1e-12) * np.sqrt(n) / 3
    # A sunflower of small radius: deterministic, and no two of its points are the same.
    angle = np.arange(n) * np.pi * (3 - np.sqrt(5))
    radius = 0.3 * np.sqrt((np.arange(n) + 0.5) / n)
    return np.asarray(
        scaled + radius[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    )


def _relaxed(adjacency: sparse.csr_array, points: FloatArray, steps: int) -> FloatArray:
    """Springs along edges, repulsion between all pairs, with steps that shrink to zero."""
    rows, columns = sparse.triu(adjacency).nonzero()
    # Dense graphs would be pulled into one spot.
    stiffness = min(1.0, 4.0 / (2 * len(rows) / len(points)))
    for step in range(steps):
        difference = points[:, np.newaxis, :] - points[np.newaxis, :, :]
        squares = np.einsum("ijk,ijk->ij", difference, difference) + 1e-6
        force = np.einsum("ijk,ij->ik", difference, 1 / squares)
        along = points[rows] - points[columns]
        pull = stiffness * along * np.linalg.norm(along, axis=1)[:, np.newaxis]
        np.add.at(force, rows, -pull)
        np.add.at(force, columns, pull)
        length = np.linalg.norm(force, axis=1, keepdims=True)
        largest = 0.1 * np.sqrt(len(points)) * (1 - step / steps)
        points = points + force * np.minimum(1.0, largest / np.maximum(length, 1e-12))
    return points


def _upright(points: FloatArray) -> FloatArray:
    """Turn the longest direction to the horizontal, the first node to the upper left."""
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    signs = np.where(turned[0] * [-1, 1] < 0, -1.0, 1.0)
    return np.asarray(turned * signs)


def drawn_edges(graph: Graph, positions: FloatArray) -> IntArray:
    """Ends of the edges that can be drawn as straight lines, shape (n_edges, 2).

    On a map of the globe an edge across the seam would run through the whole picture; it is
    left out.

    Examples
    --------
    >>> import graphratio as gr
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    >>> drawn_edges(graph, node_positions(graph))
    array([[0, 1],
           [1, 2]])
    """
    ends = np.column_stack(sparse.triu(graph.adjacency).nonzero())
    if graph.metric != "haversine":
        return ends
    apart = np.abs(np.diff(positions[ends][:, :, 0], axis=1)).ravel()
    return np.asarray(ends[apart <= 180])
