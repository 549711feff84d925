"""Split the nodes of a graph into partitions, and plan their exchange.

The built-in method is recursive bisection of the reverse Cuthill-McKee order, in which neighbours
are close. METIS finds smaller boundaries if the package pymetis is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from graphratio._utils.errors import InputError, listing
from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import FloatArray, IntArray, Label
from graphratio.data.graph import Graph

METHODS = ("bisection", "metis")


@dataclass(frozen=True, eq=False)
class Partitioning:
    """Which partition each node is in.

    Attributes
    ----------
    owner : ndarray of shape (n_nodes,)
        Number of the partition of every node, in the order of the graph.
    n_partitions : int
    method : {"bisection", "metis", "given"}
    n_edges, n_cut, n_boundary : int
        Edges of the graph, those that join different partitions, and rows that travel in an
        exchange: pairs of a node and another partition next to it.
    """

    owner: IntArray
    n_partitions: int
    method: str
    n_edges: int
    n_cut: int
    n_boundary: int

    @property
    def edge_cut(self) -> float:
        """Share of the edges that join different partitions."""
        return self.n_cut / self.n_edges if self.n_edges else 0.0

    def members(self, partition: int) -> IntArray:
        """Positions of the nodes of a partition, increasing."""
        return np.flatnonzero(self.owner == partition)

    def describe(self) -> str:
        """Describe the partitioning in one line."""
        noun = "partition" if self.n_partitions == 1 else "partitions"
        return (
            f"{self.n_partitions} {noun} ({self.method}), edge cut {self.n_cut} of "
            f"{self.n_edges} ({self.edge_cut:.1%}), {self.n_boundary} boundary rows"
        )


def partition_graph(
    graph: Graph, partitions: int | Sequence[Iterable[Label]], method: str = "bisection"
) -> Partitioning:
    """Split the nodes of a graph.

    Parameters
    ----------
    graph : Graph
    partitions : int, or sequence of collections of labels
        Number of partitions, or the nodes of each, such as those whose data are in one place.
    method : {"bisection", "metis"}
        How to split when a number is given.

    Returns
    -------
    Partitioning

    Examples
    --------
    >>> from graphratio import Graph
    >>> from graphratio.distributed import partition_graph
    >>> path = Graph.from_edges([(i, i + 1) for i in range(7)])
    >>> partition_graph(path, 2).describe()
    '2 partitions (bisection), edge cut 1 of 7 (14.3%), 2 boundary rows'
    >>> partition_graph(path, [[0, 1, 2, 3, 4], [5, 6, 7]]).owner
    array([0, 0, 0, 0, 0, 1, 1, 1])
    """
    check_choice(method, "partitioner", METHODS)
    if isinstance(partitions, int | np.integer) and not isinstance(partitions, bool):
        count = int(partitions)
        if not 1 <= count <= graph.n_nodes:
            raise InputError(
                f"{count} partitions cannot be made of {graph.n_nodes} nodes",
                f"Choose a number from 1 to {graph.n_nodes}",
            )
        owner = _metis(graph, count) if method == "metis" else _bisect(graph, count)
    else:
        owner, count = _given(graph, partitions)
        method = "given"
    entries = graph.adjacency.tocoo()
    crossing = owner[entries.row] != owner[entries.col]
    pairs = entries.row[crossing].astype(np.int64) * count + owner[entries.col[crossing]]
    n_cut, n_boundary = int(np.count_nonzero(crossing)) // 2, int(np.unique(pairs).size)
    return Partitioning(owner, count, method, graph.n_edges, n_cut, n_boundary)


def _given(graph: Graph, partitions: Any) -> tuple[IntArray, int]:
    try:
        groups = [list(group) for group in partitions]
    except TypeError:
        raise InputError(
            f"partitions={partitions!r} is neither a number nor a list of lists of nodes",
            "Pass the number of partitions, or the labels of the nodes of each",
        ) from None
    owner = np.full(graph.n_nodes, -1, dtype=np.intp)
    for number, group in enumerate(groups):
        if not group:
            raise InputError(f"partition {number} has no nodes", "Leave it out")
        positions = np.array([graph.position(label) for label in group], dtype=np.intp)
        twice = [graph.nodes[i] for i in positions[owner[positions] >= 0]]
        if twice or np.unique(positions).size < positions.size:
            raise InputError(
                f"nodes in more than one partition, or twice in one: {listing(twice or group)}",
                "Put every node into exactly one partition",
            )
        owner[positions] = number
    missing = [graph.nodes[i] for i in np.flatnonzero(owner < 0)]
    if missing:
        raise InputError(
            f"nodes in no partition: {listing(missing)}",
            "Put every node of the graph into exactly one partition",
        )
    return owner, len(groups)


def _bisect(graph: Graph, count: int) -> IntArray:
    owner = np.zeros(graph.n_nodes, dtype=np.intp)
    # Parts still to be split: nodes, first number, how many partitions they become.
    waiting = [(np.arange(graph.n_nodes), 0, count)]
    while waiting:
        nodes, first, parts = waiting.pop()
        if parts == 1:
            owner[nodes] = first
            continue
        inside = sparse.csr_array(graph.adjacency[nodes][:, nodes])
        order = nodes[reverse_cuthill_mckee(sparse.csr_matrix(inside), symmetric_mode=True)]
        left = parts // 2
        middle = round(nodes.size * left / parts)
        waiting.append((np.sort(order[:middle]), first, left))
        waiting.append((np.sort(order[middle:]), first + left, parts - left))
    return owner


def _metis(graph: Graph, count: int) -> IntArray:
    pymetis = import_optional("pymetis", "metis", "partitioning with METIS")
    edges = pymetis.CSRAdjacency(graph.adjacency.indptr, graph.adjacency.indices)
    _, owner = pymetis.part_graph(count, adjacency=edges)
    owner = np.asarray(owner, dtype=np.intp)
    # METIS can leave a part of a tiny graph empty.
    used, owner = np.unique(owner, return_inverse=True)
    if used.size < count:
        raise InputError(
            f"METIS made {used.size} partitions instead of {count}",
            'Ask for fewer, or use partitioner="bisection"',
        )
    return np.asarray(owner)


@dataclass(frozen=True, eq=False)
class PartitionPlan:
    """The part of the graph that a partition knows: its own rows and their neighbours.

    `nodes` are increasing positions in the graph. `inner` is the Laplacian at them, with full
    degrees; `outer`, shape (n_own, n_halo), has the weights of the edges to the `halo`, the
    neighbours outside by owner and position. `sends` are own rows that another partition needs,
    `receives` the places of its rows in the halo; `modes` and `halo_modes` the low modes of the
    graph at these nodes.
    """

    index: int
    nodes: IntArray
    labels: list[Label]
    n_nodes: int
    inner: sparse.csr_array
    outer: sparse.csr_array
    sends: dict[int, IntArray]
    receives: dict[int, slice]
    halo: IntArray
    modes: FloatArray
    halo_modes: FloatArray

    def into_halo(self, halo: FloatArray, inbox: dict[int, FloatArray]) -> None:
        """Write received rows into a halo."""
        for sender, values in inbox.items():
            halo[self.receives[sender]] = values


def make_plans(graph: Graph, partitioning: Partitioning, modes: FloatArray) -> list[PartitionPlan]:
    """Cut the graph along a partitioning; `modes` has shape (n_nodes, k)."""
    owner = partitioning.owner
    rows = [partitioning.members(p) for p in range(partitioning.n_partitions)]
    halos = []
    for p, own in enumerate(rows):
        touched = np.unique(graph.adjacency[own].indices)
        outside = touched[owner[touched] != p]
        halos.append(outside[np.lexsort((outside, owner[outside]))])
    plans = []
    for p, (own, halo) in enumerate(zip(rows, halos, strict=True)):
        senders, first, counts = np.unique(owner[halo], return_index=True, return_counts=True)
        receives = {
            int(q): slice(int(a), int(a + n))
            for q, a, n in zip(senders, first, counts, strict=True)
        }
        # The graph is undirected, so partitions that send rows here also need rows from here.
        sends = {q: np.searchsorted(own, halos[q][owner[halos[q]] == p]) for q in receives}
        plans.append(
            PartitionPlan(
                index=p,
                nodes=own,
                labels=[graph.nodes[i] for i in own],
                n_nodes=graph.n_nodes,
                inner=sparse.csr_array(graph.laplacian[own][:, own]),
                outer=sparse.csr_array(graph.adjacency[own][:, halo]),
                sends=sends,
                receives=receives,
                halo=halo,
                modes=modes[own],
                halo_modes=modes[halo],
            )
        )
    return plans
