"""Null hypothesis "this node did not change, whatever the others did".

The labels of node v alone are permuted and everything else is held fixed, so the neighbours may
have changed or not: they only tell the test in which direction to look. With
alpha_v = n'_v / (n_v + n'_v) the mixture is the pooled sample, A_v does not change under
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
w           prediction for a node from the other groups (witness)
C           conductance from a node to the data of the others, diagonal in the features
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.bases import Basis, basis_of
from graphratio.solvers.direct import solve_nodes
from graphratio.solvers.path import solve_path
from graphratio.testing.groups import group_parts
from graphratio.testing.permutations import PermutationPlan, UnitSums, chunks, node_labels
from graphratio.testing.pooled import PooledFeatures
from graphratio.testing.statistics import NAMES, combined_count, exceedances, node_statistics

# The prediction of the neighbours only gives a direction, so this accuracy is plenty.
_TOLERANCE = 1e-4
_ITERATIONS = 200

# With many permutations a node is first tested with FIRST_LOOK of them, then with ten times as
# many, and so on, until ENOUGH_EXTREME data sets are as extreme as the observed one.
FIRST_LOOK = 1999
ENOUGH_EXTREME = 100

# Passes over the graph after which conductances have settled.
_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class NodeTests:
    """Outcome at every node.

    `statistics`, shape (4, n_nodes), are the observed values; zero at nodes that cannot be tested.
    `counts`, shape (4, n_nodes), says how many of the n_permutations + 1 permuted and observed data
    sets have a value at least as large; `combined`, shape (n_nodes,), says it of the combination.
    """

    statistics: FloatArray
    counts: IntArray
    combined: IntArray

    @classmethod
    def blank(cls, n_nodes: int, n_permutations: int) -> NodeTests:
        """Start with p-value 1 everywhere, as at nodes that cannot be tested."""
        shape = (len(NAMES), n_nodes)
        everything = n_permutations + 1
        return cls(np.zeros(shape), np.full(shape, everything), np.full(n_nodes, everything))

    def record(
        self,
        node: int,
        statistics: FloatArray,
        n_permutations: int,
        most: float,
        *,
        alone: bool,
    ) -> float:
        """Rank the observed statistics of a node, shape (4, n_sets), the observed set first.

        A node that is `alone` has no prediction from neighbours. Returns the p-value, capped at
        `most`, before it is rounded up to a multiple of 1 / (n_permutations + 1).
        """
        counts = exceedances(statistics)
        n_sets = statistics.shape[1]
        everything = n_permutations + 1
        combined = min(combined_count(counts, alone=alone), int(most * n_sets))
        self.statistics[:, node] = statistics[:, 0]
        self.counts[:, node] = -(-counts[:, 0] * everything // n_sets)
        self.combined[node] = -(-combined * everything // n_sets)
        return float(combined / n_sets)


def permute_each_node(
    outcome: NodeTests,
    nodes: IntArray,
    features: PooledFeatures,
    plan: PermutationPlan,
    groups: IntArray,
    penalties: FloatArray,
    bar: ProgressBar,
) -> None:
    """Test some nodes, with the features of one bandwidth; results go into `outcome`.

    `penalties` has shape (n_groups, 2): graph penalty and ridge of every group.
    """
    fits = _ConditionalFits.of(nodes, features, plan, groups, penalties)
    units, n_permutations = plan.units, plan.n_permutations
    looks = _looks(n_permutations)
    for node, own, labels in node_labels(units, nodes, n_permutations, plan.rng):
        parts = [fits.statistics(node, own, units.is_target[own][np.newaxis])]
        seen, most = 0, 1.0
        for look in looks:
            rows = chunks(look, own.size, begin=seen)
            parts += [fits.statistics(node, own, labels[part]) for part in rows]
            sets = np.concatenate(parts, axis=1)
            alone = fits.is_alone(node)
            p_value = outcome.record(node, sets, n_permutations, most, alone=alone)
            seen, bound = look, ENOUGH_EXTREME / (look + 1)
            if p_value > bound:
                break
            most = bound
        bar.advance()


def _looks(n_permutations: int) -> list[int]:
    """Numbers of permutations after which to check whether the p-value of a node is final.

    A p-value above the bound of a look is final; any other goes on to the next look and ends at
    or below the bound. For every t, one look decides whether the p-value is at most t, so the
    p-value is as valid as those of the single looks.

    Examples
    --------
    >>> _looks(9_999), _looks(200_000)
    ([9999], [1999, 19999, 200000])
    """
    looks, look = [], FIRST_LOOK
    while (following := 10 * (look + 1) - 1) <= n_permutations:
        looks.append(look)
        look = following
    return [*looks, n_permutations]


@dataclass(frozen=True, eq=False)
class _ConditionalFits:
    """Coefficients of single nodes as functions of their labels, the rest held fixed.

    `place`, shape (n_nodes,), is the position of a node in the other arrays: `inverse`, (A +
    C)^{-1} of shape (k, m, m), and `pull` and `witness`, C w and w of shape (k, m).
    """

    place: IntArray
    inverse: FloatArray
    pull: FloatArray
    witness: FloatArray
    second: FloatArray
    sums: UnitSums

    @classmethod
    def of(
        cls,
        nodes: IntArray,
        features: PooledFeatures,
        plan: PermutationPlan,
        groups: IntArray,
        penalties: FloatArray,
    ) -> _ConditionalFits:
        """Compute everything that does not depend on the labels of the tested node."""
        n_nodes, m, _ = features.second.shape
        graph, first = plan.graph, features.first(plan.pooled)
        witness = np.zeros((n_nodes, m))
        conductance = np.zeros((n_nodes, m))
        for group in np.unique(groups[nodes]):
            members = groups == group
            conductance[members] = conductances(features.second, graph, *penalties[group])[members]
        basis = basis_of(graph) if graph.n_edges else None
        for part in group_parts(groups, nodes):
            known = plan.pooled.complete.copy()
            known[part] = False
            moments = Moments(
                DenseSecond(features.second * known[:, np.newaxis, np.newaxis]),
                first * known[:, np.newaxis],
                known,
                prior_ratio=1.0,
            )
            objective = GraphObjective.of(moments, graph.laplacian, *penalties[groups[part[0]]])
            witness[part] = _solved(objective, basis)[part]
        held, witness = conductance[nodes], witness[nodes]
        system = features.second[nodes] + held[:, :, np.newaxis] * np.eye(m)
        place = np.empty(n_nodes, dtype=np.intp)
        place[nodes] = np.arange(len(nodes))
        sums = UnitSums.of(plan.units, plan.pooled, features.psi)
        inverse = np.linalg.inv(system)
        return cls(place, inverse, held * witness, witness, features.second, sums)

    def is_alone(self, node: int) -> bool:
        """Whether no other node predicts anything about this one."""
        return not self.witness[self.place[node]].any()

    def statistics(self, node: int, own: IntArray, labels: BoolArray) -> FloatArray:
        """Statistics of a node under given labels of its units, shape (4, n_sets)."""
        i = self.place[node]
        b = self.sums.first_moments(labels.astype(np.float64), own, node)
        theta = (b + self.pull[i]) @ self.inverse[i]
        return node_statistics(theta, b, self.second[node], self.witness[i][:, np.newaxis])


def _solved(objective: GraphObjective, basis: Basis | None) -> FloatArray:
    if basis is None:
        return solve_nodes(objective)[:, 0]
    return solve_path(objective, basis, _TOLERANCE, _ITERATIONS).theta[:, 0]


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
