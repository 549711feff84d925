"""Groups of nodes that are tested together, with penalties learned from the other groups.

If the penalties were selected on the labelled data of the tested node, the selection would favour
those that make it look changed. The penalties of a group are therefore selected without any of
its observations.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.moments.folds import divide
from graphratio.selection.cross_validation import Coupling, Split, precision_for, select
from graphratio.selection.patches import choose_patches
from graphratio.testing.pooled import RatioSettings

N_GROUPS = 5

# Parts of a group: up to so many nodes the neighbours' prediction is cheap enough to compute once
# for every part. In larger graphs hardly any neighbour is in the same group.
N_PARTS = 4
_MOST_IN_PARTS = 2000

# Penalties of larger graphs are selected on patches with about this many nodes.
_MOST_SELECTED_ON = 1000

# Rounds of swaps that move neighbours into different groups.
_ROUNDS = 60


def node_groups(graph: Graph, rng: np.random.Generator) -> IntArray:
    """Split the nodes into groups of equal size with few edges inside, shape (n_nodes,).

    A node learns from the other groups, so its neighbours should be in them. The groups start
    at random; then random pairs of nodes swap groups where that leaves fewer edges inside.

    Examples
    --------
    >>> path = Graph.from_edges([(i, i + 1) for i in range(9)])
    >>> groups = node_groups(path, np.random.default_rng(0))
    >>> np.bincount(groups), int((groups[1:] == groups[:-1]).sum())
    (array([2, 2, 2, 2, 2]), 0)
    """
    n_nodes = graph.n_nodes
    count = min(N_GROUPS, n_nodes)
    groups = np.empty(n_nodes, dtype=np.intp)
    groups[rng.permutation(n_nodes)] = np.arange(n_nodes) % count
    if not graph.n_edges:
        return groups
    joined = graph.adjacency.astype(bool).astype(float)
    half = n_nodes // 2
    for _ in range(_ROUNDS):
        inside = joined @ np.eye(count)[groups]
        shuffled = rng.permutation(n_nodes)
        u, v = shuffled[:half], shuffled[half : 2 * half]
        gain = inside[u, groups[u]] + inside[v, groups[v]]
        gain -= inside[u, groups[v]] + inside[v, groups[u]]
        # Not all at once, since swaps that help alone can undo each other.
        swap = (gain > 0) & (rng.random(half) < 0.5)
        u, v = u[swap], v[swap]
        groups[u], groups[v] = groups[v], groups[u]
    return groups


def group_parts(groups: IntArray, nodes: IntArray) -> list[IntArray]:
    """Split the given nodes of every group into parts, each with nodes of one group only.

    Examples
    --------
    >>> [part.tolist() for part in group_parts(np.array([0, 1, 0, 1, 0]), np.array([0, 1, 2, 4]))]
    [[0], [2], [4], [1]]
    """
    own = (nodes[groups[nodes] == group] for group in np.unique(groups[nodes]))
    count = N_PARTS if groups.size <= _MOST_IN_PARTS else 1
    return [part for members in own for part in np.array_split(members, min(count, members.size))]


def selected_penalties(
    samples: NodeSamples,
    graph: Graph,
    groups: IntArray,
    settings: RatioSettings,
    dictionary: FloatArray,
    rng: np.random.Generator,
) -> list[tuple[float, float, float]]:
    """Bandwidth, graph penalty and ridge of every group."""
    n_groups = int(groups.max()) + 1
    if len(settings.candidates) == 1:
        return [settings.middle] * n_groups
    if graph.n_nodes > _MOST_SELECTED_ON:
        chosen_nodes = choose_patches(graph, _MOST_SELECTED_ON, samples.complete, rng)
        labels = [graph.nodes[v] for v in chosen_nodes]
        samples, graph = samples.subset(labels), graph.subset(labels)
        groups = groups[chosen_nodes]
    # The share of the target in the pooled sample of every node.
    alpha = samples.n_target / np.maximum(samples.n_reference + samples.n_target, 1)
    coupling, dtype = Coupling(graph), precision_for([graph])
    chosen = []
    for group in range(n_groups):
        left = samples.subset(observations=groups[samples.node_index] != group)
        if not left.complete.any():
            # No other group has a node with both samples.
            chosen.append(settings.middle)
            continue
        division = divide(left, settings.n_folds, rng)
        split = Split(
            samples=left,
            folds=division.folds,
            n_folds=division.n_folds,
            kernel=settings.kernel,
            dictionary=dictionary,
            alpha=alpha,
            prior_ratio=1.0,
            dtype=dtype,
        )
        found = select(split, coupling, settings.candidates)
        chosen.append((found.bandwidth, found.graph_penalty, found.ridge))
    return chosen
