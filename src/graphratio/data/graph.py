"""The graph: nodes and edges in one sparse symmetric form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio._utils.arrays import NotAnArray, read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.html import graph_html
from graphratio._utils.parameters import check_choice, check_integer
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data import graph_input as read
from graphratio.data.validation import as_labels, find_label


@dataclass(frozen=True, eq=False, repr=False)
class Graph(NotAnArray):
    """An undirected graph with non-negative weights and labelled nodes.

    Build one with `from_adjacency`, `from_edges`, `from_networkx`, `from_coordinates` or
    `empty`; all of them check the input once and keep it in the same form.

    Attributes
    ----------
    nodes : tuple of labels, length n_nodes
        Everything computed on the graph follows this order.
    adjacency : scipy.sparse.csr_array, shape (n_nodes, n_nodes)
        Symmetric weights, no self-loops, no stored zeros.
    labelled : bool
        False where the labels are just 0 .. n_nodes - 1 because none were given.
    coordinates : ndarray of shape (n_nodes, n_dimensions) or None
        Positions of the nodes, if the graph was built from coordinates.
    metric : str or None
        The metric of the coordinates.

    Examples
    --------
    >>> import graphratio as gr
    >>> graph = gr.Graph.from_edges([("a", "b"), ("b", "c")], nodes=["a", "b", "c", "d"])
    >>> graph
    Graph(n_nodes=4, n_edges=2, n_components=2, isolated: 'd')
    >>> graph.degrees
    array([1., 2., 1., 0.])
    """

    nodes: tuple[Label, ...]
    adjacency: sparse.csr_array
    labelled: bool = True
    coordinates: FloatArray | None = field(default=None)
    metric: str | None = None

    @classmethod
    def from_adjacency(
        cls, adjacency: Any, nodes: Iterable[Label] | None = None, *, symmetrize: bool = False
    ) -> Graph:
        """Build a graph from a matrix of weights.

        Parameters
        ----------
        adjacency : array or sparse matrix of shape (n_nodes, n_nodes), or a square data frame
            Non-negative weights, zero where there is no edge. The index of a pandas frame gives
            the labels, unless it just counts the rows.
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
        return cls(labels, _frozen(matrix), labelled=given is not None)

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
    ) -> Graph:
        """Build a graph from a list or a table of edges.

        Parameters
        ----------
        edges : data frame, or sequence of (end, end) or (end, end, weight)
            Each undirected edge once.
        source, target : str, optional
            Columns of the two ends in a frame; default the first two.
        weight : str, optional
            Column of the weights in a frame; default the column "weight" if there is one,
            otherwise all weights are 1.
        nodes : iterable of labels, optional
            All nodes, in order; default the ends in order of appearance. Needed for nodes
            without edges.
        symmetrize : bool, default False
            Accept edges given in both directions; the larger weight is taken.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.from_edges([("a", "b", 2.0), ("b", "c", 0.5)]).degrees
        array([2. , 2.5, 0.5])
        """
        found = read.edge_list(edges, source, target, weight)
        given = as_labels(nodes) if nodes is not None else None
        labels, matrix = read.joined_ends(*found, given, symmetrize=symmetrize)
        return cls(labels, _frozen(matrix))

    @classmethod
    def from_networkx(
        cls, graph: Any, weight: str | None = "weight", *, symmetrize: bool = False
    ) -> Graph:
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
        return cls(labels, _frozen(matrix))

    @classmethod
    def from_coordinates(
        cls,
        coordinates: Any,
        nodes: Iterable[Label] | None = None,
        k: int = 5,
        metric: str = "euclidean",
    ) -> Graph:
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
        return cls(
            labels if labels is not None else tuple(range(len(points))),
            _frozen(matrix),
            labelled=labels is not None,
            coordinates=read_only(points),
            metric=metric,
        )

    @classmethod
    def empty(cls, nodes: Iterable[Label] | int) -> Graph:
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
        return cls(labels, _frozen(sparse.csr_array((n, n))), labelled=labelled)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.adjacency.nnz // 2)

    @cached_property
    def degrees(self) -> FloatArray:
        """Sum of the weights at each node, shape (n_nodes,)."""
        degrees: FloatArray = np.asarray(self.adjacency.sum(axis=1), dtype=np.float64)
        return read_only(degrees.ravel())

    @property
    def mean_degree(self) -> float:
        """Average of the degrees over all nodes: the unit of the graph penalty."""
        return float(np.mean(self.degrees))

    def same_as(self, other: Graph) -> bool:
        """Whether another graph has the same nodes in the same order, and the same weights."""
        return self.nodes == other.nodes and not (self.adjacency != other.adjacency).nnz

    @property
    def mean_neighbors(self) -> float:
        """Average number of edges at a node."""
        return 2 * self.n_edges / self.n_nodes

    @cached_property
    def n_neighbors(self) -> IntArray:
        """Number of edges at each node, shape (n_nodes,)."""
        return read_only(np.diff(self.adjacency.indptr))

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """Degrees minus adjacency, sparse, shape (n_nodes, n_nodes)."""
        return _frozen(sparse.csr_array(sparse.diags_array(self.degrees) - self.adjacency))

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenvectors of the Laplacian, shapes (n_nodes,), (n_nodes, n_nodes).

        Dense, so for graphs of up to a few thousand nodes. Computed once: all fits, folds,
        permutations and windows on the graph share it.
        """
        values, vectors = np.linalg.eigh(self.laplacian.toarray())
        return read_only(np.maximum(values, 0.0)), read_only(vectors)

    @cached_property
    def components(self) -> IntArray:
        """Number of the connected component of each node, shape (n_nodes,)."""
        _, members = csgraph.connected_components(self.adjacency, directed=False)
        return read_only(members)

    @property
    def n_components(self) -> int:
        """Number of connected components; an isolated node is one."""
        return int(self.components.max()) + 1

    @property
    def isolated_mask(self) -> BoolArray:
        """True at nodes without edges, shape (n_nodes,)."""
        return np.asarray(self.n_neighbors == 0)

    @property
    def isolated(self) -> tuple[Label, ...]:
        """Labels of the nodes without edges."""
        return tuple(self.nodes[i] for i in np.flatnonzero(self.isolated_mask))

    @cached_property
    def _positions(self) -> dict[Label, int]:
        return {label: position for position, label in enumerate(self.nodes)}

    def position(self, node: Label) -> int:
        """Position of a node in the order of the graph.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.empty(["a", "b"]).position("b")
        1
        """
        return find_label(self._positions, node)

    def subset(self, nodes: Iterable[Label]) -> Graph:
        """Return the graph among some of its nodes, in the order given.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.from_edges([("a", "b"), ("b", "c")]).subset(["b", "a"])
        Graph(n_nodes=2, n_edges=1)
        """
        labels = as_labels(nodes)
        read.at_least_one_node(len(labels))
        kept = np.array([self.position(label) for label in labels], dtype=np.intp)
        adjacency = self.adjacency[kept][:, kept]
        adjacency.sort_indices()
        places = None if self.coordinates is None else read_only(self.coordinates[kept])
        return Graph(labels, _frozen(adjacency), coordinates=places, metric=self.metric)

    def __repr__(self) -> str:
        parts = [f"n_nodes={self.n_nodes}", f"n_edges={self.n_edges}"]
        if self.n_components > 1:
            parts.append(f"n_components={self.n_components}")
        if self.isolated:
            parts.append(f"isolated: {listing(self.isolated)}")
        return f"Graph({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return graph_html(self)


def _frozen(matrix: sparse.csr_array) -> sparse.csr_array:
    if matrix.nnz <= np.iinfo(np.int32).max:
        # Older SciPy widens indices, and its shortest paths then fail.
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        read_only(array)
    return matrix
