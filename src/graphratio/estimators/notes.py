"""Notes about a fit: sentences on its graph, its samples and its selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphratio._utils.arrays import grid_partner
from graphratio._utils.errors import Argument, Words, listing
from graphratio._utils.typing import FloatArray, IntArray, Label
from graphratio.data.finding import STANDARDIZE_NODES
from graphratio.data.graph import Graph

GRAPH_UNUSED = "the graph was not used: it does not improve the held-out loss"


def data_notes(sizes: IntArray, graph: Graph) -> list[Words]:
    """Name isolated nodes and nodes that lack a sample; count the components."""
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
            f"neighbours, and their divergence is undefined: {listing(lacking)}"
        )
    return notes


def ceiling_notes(near: Sequence[Label], ceiling: float) -> list[Words]:
    """Name nodes that the divergence can hardly tell apart."""
    if not near:
        return []
    return [
        f"the divergence cannot exceed {ceiling:.3g}, and is close to that at {listing(near)}; "
        "these nodes are ordered by effect size"
    ]


def part_notes(n_selected_on: int, n_nodes: int) -> list[Words]:
    """Say on how many nodes the hyperparameters were selected, unless on all."""
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


def edge_notes(results: dict[str, FloatArray] | None) -> list[Words]:
    """Name hyperparameters whose best value is the smallest or the largest candidate."""
    if results is None:
        return []
    notes: list[Words] = []
    ridge = grid_partner(results, "graph_penalty", ("ridge", "gamma"))
    for name in ("bandwidth", "graph_penalty", ridge):
        grid = np.unique(results[name])
        value = float(results[name][np.argmin(results["rank"])])
        if grid.size > 1 and value in (grid[0], grid[-1]):
            side = "lower" if value == grid[0] else "upper"
            notes.append(
                f"the selected {name.replace('_', ' ')} {value:.3g} is at the {side} edge of its "
                f"grid {', '.join(f'{item:.3g}' for item in grid)}: other candidates may be better"
            )
    return notes


def unscored_notes(results: dict[str, Any] | None, nodes: Sequence[Label]) -> list[Words]:
    """Name nodes where no candidate could be scored, if every node has its own selection."""
    if results is None:
        return []
    unscored = np.isnan(results["mean_score"].reshape(len(nodes), -1)).all(axis=1)
    if not unscored.any():
        return []
    return [
        "too few observations to compare hyperparameters; the strongest penalty and the middle "
        f"bandwidth are used at nodes {listing([nodes[int(i)] for i in np.flatnonzero(unscored)])}"
    ]


def levels_note(apart: str) -> Words:
    """What helps where neighbours differ in level or spread; `apart` says how they do."""
    return (
        f"{apart}, so that they share little: standardise each node by itself, ",
        Argument(STANDARDIZE_NODES),
    )
