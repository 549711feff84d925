"""Null hypothesis "nothing changed anywhere".

The labels of all nodes are permuted at once, independently or by shared time stamps, and the
joint fit is repeated for each permutation. The second moments are pooled, so all permutations
share one system matrix and are its right-hand sides. The penalties are fixed beforehand: a
selection on the labelled data would have to be repeated for each permutation too.

Statistics of different nodes have different laws. Each is centred and scaled by its mean and
standard deviation over the observed and all permuted data sets. The largest over nodes is then
ranked among the permutations.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.bases import basis_of
from graphratio.solvers.path import solve_many
from graphratio.testing.joint_statistics import (
    JOINT_NAMES,
    JOINT_SHARES,
    JOINT_SHARES_ALONE,
    combine,
    combined_count,
    exceedances,
    node_statistics,
)
from graphratio.testing.node_null import NodeTests
from graphratio.testing.permutations import PermutationPlan, Units, UnitSums, chunks, random_labels
from graphratio.testing.pooled import PooledFeatures

# A smaller relative spread of a statistic is rounding error.
_ROUNDING = 1e-7

_TOLERANCE = 1e-3
_ITERATIONS = 100


def permute_all_nodes(
    features: PooledFeatures,
    plan: PermutationPlan,
    penalties: tuple[float, float],
    joint: bool,
    bar: ProgressBar,
) -> tuple[NodeTests, FloatArray]:
    """Test all nodes at once; with `joint` the units of one time stamp move together.

    Returns the tests of every node against its own permuted values. Also returns, shape (n_nodes,),
    the share of data sets that have a value as extreme as this node's at some node. The smallest of
    these shares belongs to the global test.
    """
    units, n_nodes = plan.units, plan.graph.n_nodes
    sums = UnitSums.of(units, plan.pooled, features.psi)
    statistics = np.empty((len(JOINT_NAMES), n_nodes, plan.n_permutations + 1))
    draw = label_source(plan, joint)
    fit = _Refit(features, plan, penalties)
    width = int(units.node.size + n_nodes * features.psi.shape[1])
    observed = plan.observed[np.newaxis]
    statistics[:, :, :1] = fit.statistics(node_first_moments(sums, units, observed, n_nodes))
    for part in chunks(plan.n_permutations, width, least=16):
        size = part.stop - part.start
        b = node_first_moments(sums, units, draw.next(size), n_nodes)
        statistics[:, :, part.start + 1 : part.stop + 1] = fit.statistics(b)
        bar.advance(size)
    return _compare(statistics, plan.pooled.complete, alone=not plan.graph.n_edges)


def _compare(
    statistics: FloatArray, complete: BoolArray, *, alone: bool
) -> tuple[NodeTests, FloatArray]:
    n_sets = statistics.shape[2]
    outcome = NodeTests.blank(statistics.shape[1], len(statistics))
    nodes = np.flatnonzero(complete)
    counts = exceedances(statistics)
    scaled = _one_scale(statistics)
    outcome.scores[:, nodes] = scaled[:, nodes, 0]
    outcome.p_values[:, nodes] = counts[:, nodes, 0] / n_sets
    outcome.p_value[nodes] = [combined_count(counts[:, v], alone=alone) / n_sets for v in nodes]
    outcome.n_permutations[nodes] = n_sets - 1
    scaled[:, ~complete] = -np.inf
    largest = scaled.max(axis=1)
    everywhere = exceedances(largest)
    smallest, _ = combine(everywhere, alone=alone)
    shares = JOINT_SHARES_ALONE if alone else JOINT_SHARES
    used = shares > 0
    against = np.full(len(complete), n_sets)
    for node in nodes:
        own = (largest[used] >= scaled[used, node, :1]).sum(axis=1) / shares[used]
        against[node] = np.count_nonzero(smallest <= own.min())
    return outcome, against / n_sets


def _one_scale(statistics: FloatArray) -> FloatArray:
    """Centre and scale every statistic of every node over the data sets."""
    # Roots of the quadratic ones: otherwise their tails differ with their degrees of freedom.
    rooted = np.sign(statistics) * np.sqrt(np.abs(statistics))
    rooted[JOINT_NAMES.index("predicted")] = statistics[JOINT_NAMES.index("predicted")]
    spread = rooted.std(axis=2, keepdims=True)
    centred = rooted - rooted.mean(axis=2, keepdims=True)
    # A statistic that no permutation changes must not be scaled up to its rounding error.
    varies = spread > _ROUNDING * np.abs(rooted).max(axis=2, keepdims=True)
    scaled = np.where(varies, centred, 0.0) / np.where(varies, spread, 1.0)
    # Rounded, so that equal splits of small samples stay tied.
    return np.asarray(np.round(scaled, 8))


class _Refit:
    """The joint fit as a function of the first moments."""

    def __init__(
        self, features: PooledFeatures, plan: PermutationPlan, penalties: tuple[float, float]
    ) -> None:
        graph, self.known = plan.graph, plan.pooled.complete
        self.second = features.second * self.known[:, np.newaxis, np.newaxis]
        self.laplacian = graph.laplacian
        self.penalties = penalties
        self.basis = basis_of(graph) if graph.n_edges else None
        degrees = np.maximum(graph.degrees, np.finfo(float).tiny)
        self.neighbours = sparse.diags_array(1.0 / degrees) @ graph.adjacency

    def statistics(self, b: FloatArray) -> FloatArray:
        """Statistics of all nodes, shape (4, n_nodes, n_sets); b is (n_nodes, n_sets, m)."""
        b = b * self.known[:, np.newaxis, np.newaxis]
        moments = Moments(DenseSecond(self.second), b[:, 0], self.known, prior_ratio=1.0)
        objective = GraphObjective.of(moments, self.laplacian, *self.penalties)
        theta = solve_many(objective, self.basis, b, _TOLERANCE, _ITERATIONS)
        flat = theta.reshape(len(theta), -1)
        witness = np.asarray(self.neighbours @ flat).reshape(theta.shape)
        return node_statistics(theta, b, self.second, witness)


def node_first_moments(
    sums: UnitSums, units: Units, labels: FloatArray, n_nodes: int
) -> FloatArray:
    """First moments of all nodes, shape (n_nodes, n_sets, m); labels are (n_sets, n_units)."""
    total = units.counts(n_nodes)[0]
    starts = np.concatenate([[0], np.cumsum(total)[:-1]])
    b = np.zeros((n_nodes, len(labels), sums.sums.shape[1]))
    # Nodes with the same number of units together.
    for size in np.unique(total[total > 0]):
        nodes = np.flatnonzero(total == size)
        own = starts[nodes, np.newaxis] + np.arange(size)
        own_labels = np.ascontiguousarray(labels[:, own].transpose(1, 0, 2))
        b[nodes] = sums.first_moments(own_labels, own, nodes)
    return b


def label_source(plan: PermutationPlan, joint: bool) -> _JointLabels | _NodeLabels:
    """Random labels of all units; with `joint` those of one time stamp together."""
    if joint:
        return _JointLabels(plan.units, plan.rng)
    return _NodeLabels(plan.units, plan.graph.n_nodes, plan.rng)


class _NodeLabels:
    """Labels of all units, every node permuted by itself."""

    def __init__(self, units: Units, n_nodes: int, rng: np.random.Generator) -> None:
        self.n_units, self.rng = units.node.size, rng
        total, target = units.counts(n_nodes)
        starts = np.concatenate([[0], np.cumsum(total)[:-1]])
        shapes, kind = np.unique(np.column_stack([total, target]), axis=0, return_inverse=True)
        self.parts = [
            (starts[kind.ravel() == i], int(size), int(count))
            for i, (size, count) in enumerate(shapes)
            if size > 0
        ]

    def next(self, n_sets: int) -> FloatArray:
        labels = np.empty((n_sets, self.n_units))
        for starts, size, count in self.parts:
            drawn = random_labels(n_sets * starts.size, size, count, self.rng)
            columns = (starts[:, np.newaxis] + np.arange(size)).ravel()
            labels[:, columns] = drawn.reshape(n_sets, -1)
        return labels


class _JointLabels:
    """Labels of all units, those of one time stamp together."""

    def __init__(self, units: Units, rng: np.random.Generator) -> None:
        self.rng = rng
        self.codes, first, self.place = np.unique(
            units.code, return_index=True, return_inverse=True
        )
        self.n_target = int(units.is_target[first].sum())

    def next(self, n_sets: int) -> FloatArray:
        drawn = random_labels(n_sets, self.codes.size, self.n_target, self.rng)
        return drawn[:, self.place].astype(np.float64)
