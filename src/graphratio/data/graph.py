"""The graph: nodes and edges in one sparse symmetric form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio._utils.arrays import NotAnArray, read_only
from graphratio._utils.errors import listing
from graphratio._utils.html import graph_html
from graphratio._utils.optional import import_optional
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import graph_input as read
from graphratio.data.graph_readers import GraphReaders
from graphratio.data.validation import as_labels, find_label


@dataclass(frozen=True, eq=False, repr=False)
class Graph(GraphReaders, NotAnArray):
    """An undirected graph with non-negative weights and labelled nodes.

    Build one with `from_adjacency`, `from_edges`, `from_coordinates`, `from_networkx`,
    `from_geodataframe`, `from_libpysal` or `empty`; all of them check the input once and keep it
    in the same form.

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
    def _of(
        cls,
        nodes: tuple[Label, ...],
        matrix: sparse.csr_array,
        *,
        labelled: bool = True,
        coordinates: FloatArray | None = None,
        metric: str | None = None,
    ) -> Graph:
        return cls(nodes, _frozen(matrix), labelled, coordinates, metric)

    def to_networkx(self) -> Any:
        """Return a networkx.Graph with the weights as attribute "weight".

        Coordinates become the attribute "pos" of a node, longitude before latitude, as drawing
        functions expect.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.from_edges([("a", "b", 2.0)]).to_networkx().edges(data="weight")
        EdgeDataView([('a', 'b', 2.0)])
        """
        networkx = import_optional("networkx", "graph", "a networkx graph")
        made = networkx.Graph()
        made.add_nodes_from(self.nodes)
        upper = sparse.triu(self.adjacency).tocoo()
        ends = zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True)
        made.add_weighted_edges_from((self.nodes[u], self.nodes[v], w) for u, v, w in ends)
        if self.coordinates is not None:
            points = self.coordinates[:, ::-1] if self.metric == "haversine" else self.coordinates
            places = dict(zip(self.nodes, map(tuple, points.tolist()), strict=True))
            networkx.set_node_attributes(made, places, "pos")
        return made

    def to_libpysal(self) -> Any:
        """Return a libpysal.graph.Graph with the same labels and weights.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.Graph.from_edges([("a", "b", 2.0)], nodes="b a".split()).to_libpysal()["b"]
        neighbor
        a    2.0
        Name: weight, dtype: float64
        """
        library = import_optional("libpysal.graph", "geo", "a graph of libpysal")
        return library.Graph.from_sparse(self.adjacency, ids=list(self.nodes))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.adjacency.nnz // 2)

    @computed_once
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

    @computed_once
    def n_neighbors(self) -> IntArray:
        """Number of edges at each node, shape (n_nodes,)."""
        return read_only(np.diff(self.adjacency.indptr))

    @computed_once
    def laplacian(self) -> sparse.csr_array:
        """Degrees minus adjacency, sparse, shape (n_nodes, n_nodes)."""
        return _frozen(sparse.csr_array(sparse.diags_array(self.degrees) - self.adjacency))

    @computed_once
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenvectors of the Laplacian, shapes (n_nodes,), (n_nodes, n_nodes).

        Dense, so for graphs of up to a few thousand nodes. Computed once: all fits, folds,
        permutations and windows on the graph share it.
        """
        values, vectors = np.linalg.eigh(self.laplacian.toarray())
        return read_only(np.maximum(values, 0.0)), read_only(vectors)

    @computed_once
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

    @computed_once
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
