"""What deserves a look about a fit: sentences from its graph, its samples and its selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from graphratio._utils.arrays import grid_partner
from graphratio._utils.errors import Argument, Words, listing
from graphratio._utils.typing import FloatArray, IntArray, Label
from graphratio.data.graph import Graph


def data_notes(sizes: IntArray, graph: Graph) -> list[Words]:
    """Nodes and components that stand alone, and nodes that lack a sample."""
    notes: list[Words] = []
    if not graph.n_edges and graph.n_nodes > 1:
        notes.append("the graph has no edges: every node is estimated by itself")
    elif graph.n_nodes > 1 and graph.isolated:
        notes.append(f"nodes without edges, estimated on their own: {listing(graph.isolated)}")
    joined = graph.n_components - len(graph.isolated)
    if joined > 1:
        notes.append(f"the graph has {joined} components besides isolated nodes")
    lacking = [graph.nodes[i] for i in np.flatnonzero((sizes == 0).any(axis=1))]
    if lacking:
        notes.append(
            "nodes without reference or target observations borrow their ratio from "
            f"neighbours, and their divergence is undefined (NaN): {listing(lacking)}"
        )
    return notes


def ceiling_notes(near: Sequence[Label], ceiling: float) -> list[Words]:
    """That the divergence can hardly tell some nodes apart."""
    if not near:
        return []
    return [
        f"the divergence cannot exceed {ceiling:.3g}, and is close to that at {listing(near)}; "
        "these nodes are ordered by effect size"
    ]


def part_notes(n_selected_on: int, n_nodes: int) -> list[Words]:
    """That hyperparameters were selected on a part of the graph."""
    if n_selected_on == n_nodes:
        return []
    return [
        (
            f"hyperparameters were selected on {n_selected_on} of {n_nodes} nodes, in connected "
            "patches; set ",
            Argument("selection_nodes"),
            " for more",
        )
    ]


class GridEdge(NamedTuple):
    """A selected hyperparameter with no candidate on one of its sides."""

    name: str
    value: float
    side: Literal["lower", "upper"]
    grid: FloatArray


def grid_edges(results: dict[str, FloatArray] | None) -> list[GridEdge]:
    """Hyperparameters whose choice, of rank 1, is the smallest or largest candidate."""
    if results is None:
        return []
    found = []
    ridge = grid_partner(results, "graph_penalty", ("ridge", "gamma"))
    for name in ("bandwidth", "graph_penalty", ridge):
        grid = np.unique(results[name])
        value = float(results[name][np.argmin(results["rank"])])
        if grid.size > 1 and value in (grid[0], grid[-1]):
            found.append(GridEdge(name, value, "lower" if value == grid[0] else "upper", grid))
    return found


def edge_notes(results: dict[str, FloatArray] | None) -> list[Words]:
    """Where the choice is at the edge of a grid."""
    return [
        f"the selected {edge.name.replace('_', ' ')} {edge.value:.3g} is at the {edge.side} edge "
        f"of its grid {', '.join(f'{item:.3g}' for item in edge.grid)}: other candidates may be "
        "better"
        for edge in grid_edges(results)
    ]


def unscored_nodes(results: dict[str, Any] | None, nodes: Sequence[Label]) -> list[Label]:
    """Nodes at which no candidate could be scored, where every node has a selection of its own."""
    if results is None:
        return []
    unscored = np.isnan(results["mean_score"].reshape(len(nodes), -1)).all(axis=1)
    return [nodes[int(i)] for i in np.flatnonzero(unscored)]


def unscored_notes(results: dict[str, Any] | None, nodes: Sequence[Label]) -> list[Words]:
    """Where hyperparameters could not be compared."""
    unscored = unscored_nodes(results, nodes)
    if not unscored:
        return []
    return [
        "too few observations to compare hyperparameters; the strongest penalty and the middle "
        f"bandwidth are used at nodes {listing(unscored)}"
    ]
