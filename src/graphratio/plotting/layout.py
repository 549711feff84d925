"""Positions of the nodes: their coordinates, or a deterministic drawing of the graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.plotting.insets import Box, Inset, frame_of, place_insets
from graphratio.plotting.outlines import CREDIT

# Shortest paths are computed from this many nodes; more make no visible difference.
N_PIVOTS = 50
# Each node repels this many of its nearest others.
N_REPELLED = 30
N_STEPS = 60


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the nodes, shape (n_nodes, 2); `caption` says where they come from.

    - `kind`: "globe", "plane" or "drawing".
    - `aspect`: length of one unit of y on the screen in units of x.
    - `edges`, shape (n_drawn, 2): pairs of node positions that a line joins.
    - `frame`: the part of the plane to show.
    - `insets`: boxes in the frame with nodes that are far from all others.
    """

    positions: FloatArray
    kind: str
    aspect: float
    edges: IntArray
    caption: str
    frame: Box
    insets: tuple[Inset, ...] = ()

    @classmethod
    def on_globe(
        cls, positions: FloatArray, aspect: float, edges: IntArray, caption: str
    ) -> Layout:
        """A map on which nodes that are far from all others have boxes of their own."""
        frame, insets = place_insets(positions, aspect)
        if insets:
            positions, box_of = positions.copy(), np.zeros(len(positions), dtype=np.intp)
            for number, inset in enumerate(insets, start=1):
                box_of[inset.nodes] = number
                positions[inset.nodes] = inset.moved(positions[inset.nodes])
            edges = edges[box_of[edges[:, 0]] == box_of[edges[:, 1]]]
            n_far = int((box_of > 0).sum())
            far = "One place far away is" if n_far == 1 else f"{n_far} places far away are"
            caption += f" {far} drawn in a box, without edges to the others."
        return cls(positions, "globe", aspect, edges, caption, frame, insets)


def node_layout(graph: Graph) -> Layout:
    """Place the nodes of a graph."""
    upper = sparse.triu(graph.adjacency, k=1).tocoo()
    edges = np.column_stack([upper.row, upper.col])
    if graph.coordinates is None:
        caption = (
            "The positions come from the graph alone: nodes with few steps between them are "
            "close. Directions and distances have no other meaning."
            if graph.n_edges
            else "There are neither coordinates nor edges: the nodes are in the order given."
        )
        positions = draw(graph)
        return Layout(positions, "drawing", 1.0, edges, caption, frame_of(positions))
    coordinates: FloatArray = np.asarray(graph.coordinates, dtype=np.float64)
    if graph.metric == "haversine":
        return _on_the_globe(coordinates, edges)
    n_features = coordinates.shape[1]
    if n_features == 1:
        coordinates = np.column_stack([coordinates, np.zeros(len(coordinates))])
        caption = "One coordinate, along a line."
    elif n_features == 2:
        caption = "The coordinates as given."
    else:
        centred = coordinates - coordinates.mean(axis=0)
        coordinates = _oriented(centred, np.linalg.svd(centred, full_matrices=False)[2][:2])
        caption = (
            f"The {n_features} coordinates are flattened to the two directions in which they vary "
            "most."
        )
    return Layout(coordinates, "plane", 1.0, edges, caption, frame_of(coordinates))


def _on_the_globe(coordinates: FloatArray, edges: IntArray) -> Layout:
    latitude, longitude = coordinates[:, 0], _unrolled(coordinates[:, 1])
    # A degree of longitude is shorter than one of latitude, except at the equator.
    shrink = max(0.2, math.cos(math.radians(float(np.mean(latitude)))))
    around = np.abs(longitude[edges[:, 0]] - longitude[edges[:, 1]]) > 180
    caption = CREDIT
    if around.any():
        caption += " Edges that run around the back of the map are not drawn."
        edges = edges[~around]
    positions = np.column_stack([longitude, latitude])
    return Layout.on_globe(positions, 1 / shrink, edges, caption)


def _unrolled(longitude: FloatArray) -> FloatArray:
    """Cut the globe in the widest gap between nodes."""
    ordered = np.sort(longitude)
    gaps = np.diff(ordered)
    seam = ordered[0] + 360 - ordered[-1]
    if not gaps.size or gaps.max() <= 1.5 * seam:
        return longitude
    cut = ordered[int(np.argmax(gaps))]
    return np.where(longitude <= cut, longitude + 360, longitude)


def draw(graph: Graph) -> FloatArray:
    """Compute positions from the graph alone, shape (n_nodes, 2); the same in every run.

    Every component is placed by its shortest paths and then relaxed by forces. The components
    are set side by side, the largest first. Isolated nodes come last, in one block.
    """
    xy = np.zeros((graph.n_nodes, 2))
    sizes = np.bincount(graph.components)
    pieces: list[tuple[IntArray, FloatArray]] = []
    for component in np.argsort(-sizes, kind="stable"):
        if sizes[component] > 1:
            members = np.flatnonzero(graph.components == component)
            pieces.append((members, _draw_connected(graph.adjacency[members][:, members])))
    single = np.flatnonzero(graph.isolated_mask)
    if single.size:
        columns = math.ceil(math.sqrt(1.6 * single.size))
        order = np.arange(single.size)
        pieces.append((single, np.column_stack([order % columns, -(order // columns)]) * 1.0))
    # Rows as wide as the widest piece or the root of the total area.
    boxes = [np.ptp(piece, axis=0) + 2.0 for _, piece in pieces]
    width = max(max(box[0] for box in boxes), 1.3 * math.sqrt(sum(box.prod() for box in boxes)))
    left = top = height = 0.0
    for (own, piece), box in zip(pieces, boxes, strict=True):
        if left > 0 and left + box[0] > width:
            left, top, height = 0.0, top - height, 0.0
        corner = np.array([piece[:, 0].min(), piece[:, 1].max()])
        xy[own] = piece - corner + [left, top]
        left, height = left + box[0], max(height, box[1])
    return xy


def _draw_connected(adjacency: sparse.csr_array) -> FloatArray:
    """Place a connected graph so that edges have length about one."""
    n = adjacency.shape[0]
    if n == 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])
    # Older SciPy finds shortest paths with indices of 32 bits only.
    places = (part.astype(np.int32) for part in (adjacency.indices, adjacency.indptr))
    steps = sparse.csr_array((np.ones(adjacency.nnz), *places), (n, n))
    # Classical scaling on the distances to the pivots.
    squares = _pivot_distances(steps) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    xy = _oriented(centred, np.linalg.svd(centred, full_matrices=False)[2][:2])
    spread = xy.std(axis=0)
    xy = xy / np.where(spread > 0, spread, 1.0) * math.sqrt(n) * np.array([0.4, 0.3])
    return _relaxed(xy, steps)


def _pivot_distances(steps: sparse.csr_array) -> FloatArray:
    """Steps from every node to pivots that are far apart, shape (n, n_pivots)."""
    n = steps.shape[0]
    pivot = int(np.argmax(np.diff(steps.indptr)))
    columns: list[FloatArray] = []
    nearest = np.full(n, np.inf)
    for _ in range(min(N_PIVOTS, n)):
        hops = csgraph.dijkstra(steps, indices=pivot, unweighted=True)
        columns.append(hops)
        nearest = np.minimum(nearest, hops)
        pivot = int(np.argmax(nearest))
    return np.column_stack(columns)


def _relaxed(xy: FloatArray, steps: sparse.csr_array) -> FloatArray:
    """Let edges pull and near nodes push, in shrinking steps."""
    n = len(xy)
    # Nodes at the same place would never separate; a spiral offsets them deterministically.
    angle = np.arange(n) * 2.399963
    xy = xy + 0.2 * np.column_stack([np.cos(angle), np.sin(angle)])
    ends = steps.tocoo()
    degree = np.maximum(np.diff(steps.indptr), 1)[:, None]
    k = min(N_REPELLED, n - 1)
    for step in range(N_STEPS):
        near = cKDTree(xy).query(xy, k=k + 1)[1][:, 1:]
        apart = xy[:, None] - xy[near]
        distance = np.maximum(np.linalg.norm(apart, axis=2, keepdims=True), 0.05)
        push = (apart / distance**2).sum(axis=1)
        pull = np.zeros_like(xy)
        along = xy[ends.col] - xy[ends.row]
        np.add.at(pull, ends.row, along * np.linalg.norm(along, axis=1, keepdims=True))
        move = push + pull / np.sqrt(degree)
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        limit = 0.8 * (1 - step / N_STEPS)
        xy = xy + move / length * np.minimum(length, limit)
    return xy


def _oriented(centred: FloatArray, directions: FloatArray) -> FloatArray:
    """Project, and fix the signs so that the drawing does not flip between machines."""
    xy = centred @ directions.T
    if xy.shape[1] == 1:
        xy = np.column_stack([xy[:, 0], np.zeros(len(xy))])
    largest = np.argmax(np.abs(np.round(xy, 6)), axis=0)
    signs = np.sign(xy[largest, [0, 1]])
    return np.asarray(xy * np.where(signs == 0, 1.0, signs))
