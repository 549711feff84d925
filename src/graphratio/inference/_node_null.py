"""Null hypothesis "this node did not change, whatever the others did".

The labels of node v alone are permuted and everything else is held fixed, so the neighbours may
have changed or not: they only tell the test in which direction to look. With
alpha_v = n'_v / (n_v + n'_v) the mixture is the pooled sample, A_v does not change under
permutations, and the node's coefficients are linear in b_v:

    theta_v(pi) = (A_v/N + C_v)^{-1} (b_v(pi)/N + C_v w_v)

where w_v is what the rest of the graph predicts for the node and C_v how firmly. For the joint
fit both follow from eliminating the other nodes. Any w_v and C_v keep the test valid that do
not depend on the labels of node v, and here they do not depend on those of its whole group:
w_v is the fit with the group's observations taken away, C_v comes from the pooled samples.

Symbols
-------
A, b        moments of the pooled features, see `_pooled`
w           prediction for a node from the other groups (witness)
C           conductance from a node to the data of the others, diagonal in the features
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._progress import ProgressBar
from graphratio.graph import Graph
from graphratio.inference._permutations import Units, UnitSums, chunks, node_labels
from graphratio.inference._pooled import PooledFeatures, PooledSamples
from graphratio.inference._statistics import NAMES, combined_count, exceedances, node_statistics
from graphratio.moments import DenseSecond, Moments
from graphratio.objectives import GraphObjective
from graphratio.solvers import basis_of, solve_nodes, solve_path
from graphratio.typing import BoolArray, FloatArray, IntArray

# The prediction of the neighbours is a direction to look in: this accuracy is plenty.
_TOLERANCE = 1e-4
_ITERATIONS = 200

# Passes over the graph in which conductances settle.
_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class NodeTests:
    """Outcome at every node.

    Attributes
    ----------
    statistics : ndarray of shape (4, n_nodes)
        Observed values; zero at nodes that cannot be tested.
    counts : ndarray of shape (4, n_nodes)
        Permuted and observed data sets with a value at least as large, of n_permutations + 1.
    combined : ndarray of shape (n_nodes,)
        The same for the combination.
    """

    statistics: FloatArray
    counts: IntArray
    combined: IntArray

    @classmethod
    def blank(cls, n_nodes: int, n_permutations: int) -> NodeTests:
        """Nodes that cannot be tested: nothing is extreme."""
        shape = (len(NAMES), n_nodes)
        everything = n_permutations + 1
        return cls(np.zeros(shape), np.full(shape, everything), np.full(n_nodes, everything))


def permute_each_node(
    outcome: NodeTests,
    nodes: IntArray,
    features: PooledFeatures,
    pooled: PooledSamples,
    graph: Graph,
    groups: IntArray,
    penalties: FloatArray,
    units: Units,
    n_permutations: int,
    rng: np.random.Generator,
    bar: ProgressBar,
) -> None:
    """Test some nodes, with the features of one bandwidth; results go into `outcome`.

    `penalties` has shape (n_groups, 2): graph and node penalty of every group.
    """
    inverse, pull, witness = _conditional_fits(nodes, features, pooled, graph, groups, penalties)
    sums = UnitSums.of(units, pooled, features.psi)
    place = np.empty(graph.n_nodes, dtype=np.intp)
    place[nodes] = np.arange(len(nodes))
    n_nodes = graph.n_nodes
    for node, own, labels in node_labels(units, nodes, n_permutations, rng):
        i = place[node]
        parts = []
        observed = units.is_target[own][np.newaxis]
        for part in (observed, *(labels[rows] for rows in chunks(n_permutations, own.size))):
            b = sums.first_moments(part.astype(np.float64), own, node)
            theta = (b / n_nodes + pull[i]) @ inverse[i]
            parts.append(
                node_statistics(theta, b, features.second[node], witness[i][:, np.newaxis])
            )
        statistics = np.concatenate(parts, axis=1)
        counts = exceedances(statistics)
        outcome.statistics[:, node] = statistics[:, 0]
        outcome.counts[:, node] = counts[:, 0]
        outcome.combined[node] = combined_count(counts)
        bar.advance()


def _conditional_fits(
    nodes: IntArray,
    features: PooledFeatures,
    pooled: PooledSamples,
    graph: Graph,
    groups: IntArray,
    penalties: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(A/N + C)^{-1}, C w and w of the given nodes, shapes (k, m, m), (k, m) and (k, m)."""
    n_nodes, m, _ = features.second.shape
    first = features.first(pooled)
    witness = np.zeros((n_nodes, m))
    conductance = np.zeros((n_nodes, m))
    for group in np.unique(groups[nodes]):
        lam, gam = penalties[group]
        members = groups == group
        witness[members] = _prediction(features, first, pooled, graph, members, lam, gam)[members]
        conductance[members] = conductances(features.second, graph, lam, gam)[members]
    diagonal = np.einsum("vm,mk->vmk", conductance[nodes], np.eye(m))
    inverse = np.linalg.inv(features.second[nodes] / n_nodes + diagonal)
    return inverse, conductance[nodes] * witness[nodes], witness[nodes]


def _prediction(
    features: PooledFeatures,
    first: FloatArray,
    pooled: PooledSamples,
    graph: Graph,
    masked: BoolArray,
    lam: float,
    gam: float,
) -> FloatArray:
    """Coefficients of all nodes when some have no data, shape (n_nodes, m)."""
    known = pooled.complete & ~masked
    moments = Moments(
        DenseSecond(features.second * known[:, np.newaxis, np.newaxis]),
        first * known[:, np.newaxis],
        known,
        prior_ratio=1.0,
    )
    objective = GraphObjective.of(moments, graph.laplacian, lam, gam)
    if not graph.n_edges:
        return solve_nodes(objective)[:, 0]
    return solve_path(objective, basis_of(graph), _TOLERANCE, _ITERATIONS).theta[:, 0]


def conductances(second: FloatArray, graph: Graph, lam: float, gam: float) -> FloatArray:
    """How firmly the rest of the graph holds each node, shape (n_nodes, m).

    Reading the penalised problem as a network of springs: a node is held by its own ridge and,
    through an edge of strength lam W, by its neighbour, which is held by its data and by its
    own neighbours. Springs in a row add their compliances, springs side by side their
    strengths. On a tree with diagonal A, and after as many sweeps as it is deep, this is the
    exact elimination of the other nodes, apart from the way back over the same edge.
    """
    n_nodes = graph.n_nodes
    data = np.einsum("vmm->vm", second) / n_nodes
    ridge = lam * gam
    held = np.full_like(data, ridge)
    weights = lam * graph.adjacency.data[:, np.newaxis]
    neighbour, pointer = graph.adjacency.indices, graph.adjacency.indptr
    total = sparse.csr_array(
        (np.ones(neighbour.size), np.arange(neighbour.size), pointer),
        shape=(n_nodes, neighbour.size),
    )
    for _ in range(_SWEEPS):
        there = (data + held)[neighbour]
        held = ridge + total @ (weights * there / (weights + there))
    return np.asarray(held)
