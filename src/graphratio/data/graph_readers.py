"""Ways to build a graph: from matrices, edges, places, and graphs of other libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_choice, check_integer
from graphratio._utils.typing import FloatArray, Label
from graphratio.data import frames, geography
from graphratio.data import graph_input as read
from graphratio.data.validation import as_labels


class GraphReaders(ABC):
    """The constructors of `Graph`."""

    @classmethod
    @abstractmethod
    def _of(
        cls,
        nodes: tuple[Label, ...],
        matrix: sparse.csr_array,
        *,
        labelled: bool = True,
        coordinates: FloatArray | None = None,
        metric: str | None = None,
    ) -> Self:
        """Freeze a checked matrix."""

    @classmethod
    def from_adjacency(
        cls, adjacency: Any, nodes: Iterable[Label] | None = None, *, symmetrize: bool = False
    ) -> Self:
        """Build a graph from a matrix of weights.

        Parameters
        ----------
        adjacency : array or sparse matrix of shape (n_nodes, n_nodes), or a square data frame
            Non-negative weights, zero where there is no edge. The index of a pandas frame gives
            the labels, unless it just counts the rows. A diagonal of ones, as in a matrix of
            similarities, is left out with a warning.
        nodes : iterable of labels, optional
            Default 0 .. n_nodes - 1.
        symmetrize : bool, default False
            Accept a directed graph; the larger of the two weights of a pair is taken.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.from_adjacency([[0, 1], [1, 0]])
        Graph(n_nodes=2, n_edges=1)
        """
        matrix, own_labels = read.square_matrix(adjacency)
        given = nodes if nodes is not None else own_labels
        labels = as_labels(given) if given is not None else tuple(range(matrix.shape[0]))
        if len(labels) != matrix.shape[0]:
            raise InputError(
                f"{len(labels)} node labels for an adjacency of shape {matrix.shape}",
                "Give one label for each row",
            )
        matrix = read.undirected(matrix, labels, symmetrize=symmetrize)
        return cls._of(labels, matrix, labelled=given is not None)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        nodes: Iterable[Label] | None = None,
        *,
        symmetrize: bool = False,
    ) -> Self:
        """Build a graph from a list or a table of edges.

        Parameters
        ----------
        edges : data frame, or sequence of (end, end) or (end, end, weight)
            If an edge is given in both directions, the larger weight counts, with a warning if
            the two differ.
        source, target : str, optional
            Columns of the two ends in a frame; default the first two.
        weight : str, optional
            Column of the weights in a frame; default the column "weight" if there is one,
            otherwise all weights are 1.
        nodes : iterable of labels, optional
            All nodes, in order; default the ends in order of appearance. Needed for nodes
            without edges.
        symmetrize : bool, default False
            Do not warn of edges whose two directions have different weights.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.from_edges([("a", "b", 2.0), ("b", "c", 0.5)]).degrees
        array([2. , 2.5, 0.5])
        """
        found = read.edge_list(edges, source, target, weight)
        given = as_labels(nodes) if nodes is not None else None
        labels, matrix = read.joined_ends(*found, given, symmetrize=symmetrize)
        return cls._of(labels, matrix)

    @classmethod
    def from_networkx(
        cls, graph: Any, weight: str | None = "weight", *, symmetrize: bool = False
    ) -> Self:
        """Build a graph from a networkx graph, in the order of its nodes.

        Parameters
        ----------
        graph : networkx.Graph
        weight : str or None, default "weight"
            Edge attribute with the weight; edges without it weigh 1.
        symmetrize : bool, default False
            Accept a DiGraph; the larger of the two weights of a pair is taken.

        Examples
        --------
        >>> import graphratio as gr
        >>> import networkx as nx
        >>> gr.Graph.from_networkx(nx.path_graph(3))
        Graph(n_nodes=3, n_edges=2)
        """
        found = read.networkx_edges(graph, weight, symmetrize=symmetrize)
        given = as_labels(graph.nodes)
        labels, matrix = read.joined_ends(*found, given, symmetrize=symmetrize)
        return cls._of(labels, matrix)

    @classmethod
    def from_libpysal(cls, weights: Any, *, symmetrize: bool = True) -> Self:
        """Build a graph from spatial weights of libpysal.

        Parameters
        ----------
        weights : libpysal.graph.Graph or libpysal.weights.W
            Its labels become those of the nodes, in the same order.
        symmetrize : bool, default True
            Take the larger of the two weights of a pair. Weights of nearest neighbours and
            weights whose rows sum to 1 differ in the two directions.

        Examples
        --------
        >>> import graphratio as gr
        >>> from libpysal.graph import Graph
        >>> w = Graph.from_dicts({"a": ["b"], "b": ["a", "c"], "c": ["b"]})
        >>> gr.Graph.from_libpysal(w)
        Graph(n_nodes=3, n_edges=2)
        """
        matrix, nodes = geography.libpysal_matrix(weights)
        labels = as_labels(nodes)
        checked, _ = read.square_matrix(matrix)
        return cls._of(labels, read.undirected(checked, labels, symmetrize=symmetrize))

    @classmethod
    def from_geodataframe(
        cls,
        frame: Any,
        kind: str = "contiguity",
        *,
        node: str | None = None,
        k: int = 5,
        distance: float | None = None,
    ) -> Self:
        """Join the places of a GeoDataFrame that touch, or are near to each other.

        Parameters
        ----------
        frame : geopandas.GeoDataFrame
            One row per node: polygons, or points.
        kind : {"contiguity", "knn", "distance"}
            "contiguity" joins polygons that share a point of their borders. "knn" joins every
            place to its k nearest ones (an edge if either end chose the other), measured between
            points inside them, on the globe if the frame has a coordinate reference system.
            "distance" joins centroids within `distance`.
        node : str, optional
            Column of the labels; default the index.
        k : int, default 5
            Number of nearest neighbours.
        distance : float, optional
            Largest distance in the units of the coordinate reference system, for "distance".

        Examples
        --------
        >>> import geopandas as gpd
        >>> import graphratio as gr
        >>> from shapely import box
        >>> squares = gpd.GeoDataFrame(
        ...     {"name": ["a", "b", "c"]}, geometry=[box(i, 0, i + 1, 1) for i in range(3)])
        >>> gr.Graph.from_geodataframe(squares, node="name")
        Graph(n_nodes=3, n_edges=2)
        """
        check_choice(kind, "kind", ("contiguity", "knn", "distance"))
        places = geography.Places.of(frame, node)
        k = check_integer(k, "k", low=1)
        if kind == "knn":
            return cls.from_coordinates(
                places.points, nodes=places.nodes, k=k, metric=places.metric
            )
        matrix = places.touching() if kind == "contiguity" else places.within(distance)
        return cls._of(
            places.nodes, matrix, coordinates=read_only(places.points), metric=places.metric
        )

    @classmethod
    def from_coordinates(
        cls,
        coordinates: Any,
        nodes: Iterable[Label] | None = None,
        k: int = 5,
        metric: str = "euclidean",
    ) -> Self:
        """Join every node to its k nearest ones (an edge if either end chose the other).

        Parameters
        ----------
        coordinates : array of shape (n_nodes, n_dimensions), frame, or dict of label to point
            The index of a pandas frame gives the labels, unless it just counts the rows.
        nodes : iterable of labels, optional
            Default 0 .. n_nodes - 1, or the keys of the dict.
        k : int, default 5
        metric : {"euclidean", "haversine"}
            "haversine" is the great-circle distance; coordinates are then (latitude,
            longitude) in degrees.

        Examples
        --------
        >>> import graphratio as gr
        >>> cities = {"Lisbon": (38.7, -9.1), "Madrid": (40.4, -3.7), "Paris": (48.9, 2.4)}
        >>> gr.Graph.from_coordinates(cities, k=1, metric="haversine")
        Graph(n_nodes=3, n_edges=2)
        """
        if isinstance(coordinates, Mapping):
            nodes = as_labels(coordinates if nodes is None else nodes)
            coordinates = read.coordinates_of(coordinates, nodes)
        elif nodes is None:
            nodes = frames.row_labels(coordinates)
        metric = check_choice(metric, "metric", ("euclidean", "haversine"))
        labels = as_labels(nodes) if nodes is not None else None
        points = read.coordinate_array(coordinates, labels, metric)
        neighbours = check_integer(k, "k", low=1)
        if neighbours >= len(points):
            raise InputError(
                f"k={k} neighbours cannot be found among {len(points)} nodes",
                f"Choose k of at most {len(points) - 1}"
                if len(points) > 1
                else "Use Graph.empty for a single node",
            )
        matrix = read.nearest_neighbours(points, neighbours, metric)
        return cls._of(
            labels if labels is not None else tuple(range(len(points))),
            matrix,
            labelled=labels is not None,
            coordinates=read_only(points),
            metric=metric,
        )

    @classmethod
    def empty(cls, nodes: Iterable[Label] | int) -> Self:
        """Build a graph without edges from labels, or from a number of nodes.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.empty(["a", "b"])
        Graph(n_nodes=2, n_edges=0, n_components=2, isolated: 'a', 'b')
        """
        if isinstance(nodes, int | np.integer):
            labels: tuple[Label, ...] = tuple(range(check_integer(nodes, "nodes", low=1)))
            labelled = False
        else:
            labels, labelled = as_labels(nodes), True
        n = read.at_least_one_node(len(labels))
        return cls._of(labels, sparse.csr_array((n, n)), labelled=labelled)
