"""What the neighbours predict for a node, learned without its labels.

With alpha_v = n'_v / (n_v + n'_v) the mixture is the pooled sample, A_v does not change under
permutations, and the node's coefficients are linear in b_v:

    theta_v(pi) = (A_v + C_v)^{-1} (b_v(pi) + C_v w_v)

where w_v is the prediction of the rest of the graph for the node and C_v says how firmly it holds.
For the joint fit both follow from eliminating the other nodes. The test is valid for any w_v and
C_v that do not depend on the labels of node v. Here the penalties do not depend on any label of
its group, w_v is the fit without the observations of v and a few more nodes of the group, and C_v
comes from the pooled samples.

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
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.bases import basis_of
from graphratio.solvers.path import solve_path
from graphratio.testing.groups import group_parts
from graphratio.testing.permutations import PermutationPlan
from graphratio.testing.permuted_means import Columns
from graphratio.testing.pooled import PooledFeatures

# The prediction of the neighbours only gives a direction, so this accuracy is plenty.
_TOLERANCE = 1e-4
_ITERATIONS = 200

# Passes over the graph after which conductances have settled.
_SWEEPS = 3


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
        graph = plan.graph
        conductance = np.zeros(features.second.shape[:2])
        for group in np.unique(groups[nodes]) if graph.n_edges else ():
            members = groups == group
            conductance[members] = conductances(features.second, graph, *penalties[group])[members]
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


def conductances(second: FloatArray, graph: Graph, lam: float, rho: float) -> FloatArray:
    """How firmly the rest of the graph holds each node, shape (n_nodes, m).

    The penalised problem is a network of springs. A node is held by its own ridge and, through
    an edge of strength lam W, by its neighbour, which is held by its data and by its own
    neighbours. Springs in a row add their compliances, springs side by side their strengths.
    On a tree with diagonal A, after as many sweeps as the tree is deep, this eliminates the
    other nodes exactly, except that it counts the way back over the same edge.
    """
    n_nodes = graph.n_nodes
    data = np.einsum("vmm->vm", second)
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
