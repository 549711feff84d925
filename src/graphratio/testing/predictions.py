"""What the neighbours predict for a node, learned without its labels.

With alpha_v = n'_v / (n_v + n'_v) the mixture is the pooled sample, A_v does not change under
permutations, and the node's coefficients are linear in b_v:

    theta_v(pi) = (A_v + C_v)^{-1} (b_v(pi) + C_v w_v)

where w_v is the prediction of the rest of the graph for the node and C_v says how firmly it holds.
For the joint fit both follow from eliminating the other nodes. The test is valid for any w_v and
C_v that do not depend on the labels of node v. Nodes are split into groups. If the penalties were
selected on the labelled data of the tested node, the selection would favour those that make it look
changed, so the penalties of a group are selected without any of its observations. w_v is the fit
without the observations of v and a few more nodes of the group, and C_v comes from the pooled
samples.

Symbols
-------
A, b        moments of the pooled features, see `pooled`
w           prediction for a node from the other nodes
C           conductance from a node to the data of the others, diagonal in the features
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.moments.folds import divide
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.selection.cross_validation import Coupling, Split, precision_for, select
from graphratio.selection.patches import choose_patches
from graphratio.solvers.bases import basis_of
from graphratio.solvers.path import solve_path
from graphratio.testing.permutations import PermutationPlan
from graphratio.testing.pooled import POOLED_FLOOR, PooledFeatures, RatioSettings, pooled_features
from graphratio.testing.statistics import Columns

# Bandwidth, graph penalty and ridge of every group of nodes.
Penalties = list[tuple[float, float, float]]

N_GROUPS = 5

# Parts of a group: up to so many nodes the neighbours' prediction is cheap enough to compute once
# for every part. In larger graphs hardly any neighbour is in the same group.
N_PARTS = 4
_MOST_IN_PARTS = 2000

# Penalties of larger graphs are selected on patches with about this many nodes.
MOST_SELECTED_ON = 1000

# Rounds of swaps that move neighbours into different groups.
_ROUNDS = 60

# The prediction of the neighbours only gives a direction, so this accuracy is plenty.
_TOLERANCE = 1e-4
_ITERATIONS = 200

# Passes over the graph after which conductances have settled.
_SWEEPS = 3


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
) -> Penalties:
    """Bandwidth, graph penalty and ridge of every group.

    All groups share the features of a single bandwidth, which know the observations of a group but
    not their labels.
    """
    n_groups = int(groups.max()) + 1
    if len(settings.candidates) == 1:
        return [settings.middle] * n_groups
    if graph.n_nodes > MOST_SELECTED_ON:
        chosen_nodes = choose_patches(graph, MOST_SELECTED_ON, samples.complete, rng)
        labels = [graph.nodes[v] for v in chosen_nodes]
        samples, graph = samples.subset(labels), graph.subset(labels)
        groups = groups[chosen_nodes]
    # The share of the target in the pooled sample of every node.
    alpha = samples.n_target / np.maximum(samples.n_reference + samples.n_target, 1)
    coupling, dtype = Coupling(graph), precision_for([graph])
    shared = None
    if settings.candidates.bandwidth.size == 1:
        # Sorted by value, so that rounding does not depend on the labels either.
        order = np.lexsort((*samples.values.T, samples.node_index))
        width = float(settings.candidates.bandwidth[0])
        mapped, psi = pooled_features(samples, order, settings.kernel, dictionary, width, dtype)
        shared = mapped, psi[np.argsort(order)]
    chosen = []
    for group in range(n_groups):
        rows = groups[samples.node_index] != group
        left = samples.subset(observations=rows)
        if not left.complete.any():
            # No other group has a node with both samples.
            chosen.append(settings.middle)
            continue
        division = divide(left, settings.n_folds, rng)
        split = Split(
            known=None if shared is None else (shared[0], shared[1][rows]),
            floor=POOLED_FLOOR,
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


@dataclass(frozen=True, eq=False)
class Predictions:
    """The neighbours' predictions for all nodes, with the features of one bandwidth.

    `witness` and `conductance`, w and C, have shape (n_nodes, m); both are zero at nodes without
    an informed neighbour.
    """

    features: PooledFeatures
    witness: FloatArray
    conductance: FloatArray

    @classmethod
    def of(
        cls,
        nodes: IntArray,
        features: PooledFeatures,
        plan: PermutationPlan,
        groups: IntArray,
        penalties: FloatArray,
        first: FloatArray,
    ) -> Predictions:
        """Compute everything that does not depend on the labels of the tested nodes.

        `penalties` has shape (n_groups, 2): graph penalty and ridge of every group. `first` has
        the first moments b from which to predict, shape (n_nodes, m).
        """
        data = np.einsum("vmm->vm", features.second)
        conductance = group_conductances(data, plan.graph, groups, penalties, nodes)
        witness = predicted_ratios(nodes, features, plan, groups, penalties, first)
        return cls(features, witness, conductance)

    def columns(self, nodes: IntArray, rows: IntArray) -> tuple[Columns, Columns]:
        """The two statistics that neighbours help; `rows`, shape (n_nodes, n_rows), are pooled."""
        psi, w = self.features.psi[rows], self.witness[nodes]
        held = self.conductance[nodes]
        system = self.features.second[nodes] + held[:, :, np.newaxis] * np.eye(psi.shape[2])
        # Where nothing is predicted the ratio is not coupled; any regular matrix will do.
        system[~w.any(axis=1)] = np.eye(psi.shape[2])
        inverse = np.linalg.inv(system)
        predicted = Columns(psi @ w[:, :, np.newaxis], linear=True)
        pull = np.einsum("vij,vj->vi", inverse, held * w)
        return predicted, Columns(psi @ inverse, pull)

    def strength(self, nodes: IntArray, plan: PermutationPlan) -> FloatArray:
        """Strength that every prediction would have if it were right, shape (n_nodes,).

        The standard deviation of w over the pooled sample, times what the sizes contribute. A
        right prediction shifts the statistic by so many of its standard deviations.
        """
        samples = plan.pooled.samples
        score = np.einsum("im,im->i", self.features.psi, self.witness[samples.node_index])
        size = np.maximum(plan.pooled.sizes, 1)
        # Expected under permutations of the units, which differ in size.
        units, target = plan.units.counts(len(size))
        count = size * target / np.maximum(units, 1)
        square = np.bincount(samples.node_index, score**2, minlength=len(size)) / size
        ratio = count * size / np.maximum(size - count, 1)
        return np.asarray(np.sqrt(square * ratio)[nodes])


def predicted_ratios(
    nodes: IntArray,
    features: PooledFeatures,
    plan: PermutationPlan,
    groups: IntArray,
    penalties: FloatArray,
    first: FloatArray,
) -> FloatArray:
    """The prediction w of the other nodes for every node, shape (n_nodes, m); see `Predictions`."""
    witness = np.zeros(features.second.shape[:2])
    if not plan.graph.n_edges:
        return witness
    basis = basis_of(plan.graph)
    for part in group_parts(groups, nodes):
        known = plan.pooled.complete.copy()
        known[part] = False
        moments = Moments(
            DenseSecond(features.second * known[:, np.newaxis, np.newaxis]),
            first * known[:, np.newaxis],
            known,
            prior_ratio=1.0,
        )
        objective = GraphObjective.of(moments, plan.graph.laplacian, *penalties[groups[part[0]]])
        theta = solve_path(objective, basis, _TOLERANCE, _ITERATIONS).theta
        witness[part] = theta[part, 0]
    return witness


def group_conductances(
    data: FloatArray, graph: Graph, groups: IntArray, penalties: FloatArray, nodes: IntArray
) -> FloatArray:
    """Conductances, shape (n_nodes, m), with the penalties of each group that has some nodes."""
    found = np.zeros_like(data)
    for group in np.unique(groups[nodes]) if graph.n_edges else ():
        members = groups == group
        found[members] = conductances(data, graph, *penalties[group])[members]
    return found


def conductances(data: FloatArray, graph: Graph, lam: float, rho: float) -> FloatArray:
    """How firmly the rest of the graph holds each node, shape (n_nodes, m).

    `data`, shape (n_nodes, m), are the diagonals of A.

    The penalised problem is a network of springs. A node is held by its own ridge and, through
    an edge of strength lam W, by its neighbour, which is held by its data and by its own
    neighbours. Springs in a row add their compliances, springs side by side their strengths.
    On a tree with diagonal A, after as many sweeps as the tree is deep, this eliminates the
    other nodes exactly, except that it counts the way back over the same edge.
    """
    n_nodes = graph.n_nodes
    held = np.full_like(data, rho)
    weights = lam * graph.adjacency.data[:, np.newaxis]
    neighbour, pointer = graph.adjacency.indices, graph.adjacency.indptr
    total = sparse.csr_array(
        (np.ones(neighbour.size), np.arange(neighbour.size), pointer),
        shape=(n_nodes, neighbour.size),
    )
    for _ in range(_SWEEPS):
        there = (data + held)[neighbour]
        held = rho + total @ (weights * there / (weights + there))
    return np.asarray(held)
