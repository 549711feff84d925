"""The node test on one partition: its samples, features and moments, and permutations of its nodes.

Objects of this module are attached to a partition, and the driver calls their methods by name. They
take the random numbers of their own observations from the stream that a single process would draw.
Moments, counts and a few numbers per node leave the partition; its observations do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.errors import InputError
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.node_correlation import PairSums, pair_sums
from graphratio.data.samples import NodeSamples
from graphratio.distributed.fold_keys import OwnKeys
from graphratio.distributed.protocol import Mail
from graphratio.distributed.worker import Partition
from graphratio.evaluation.partitioned_bounds import OwnFit, fitted_ratios
from graphratio.features.nystrom import NystromMap, weighted_moment
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import effect_sizes
from graphratio.moments.second_moments import DenseSecond
from graphratio.testing.halves import HalfTest, first_half
from graphratio.testing.node_null import ENOUGH_EXTREME, Make, counted, node_evidence
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples, pooled_weights
from graphratio.testing.predictions import Predictions
from graphratio.testing.sensitivity import detectable_shifts

# A generator of splits, and the own nodes that share them.
Batch = tuple[np.random.Generator, IntArray]


@dataclass(frozen=True, eq=False)
class SecondHalf:
    """Two folds: 0 for the observations to learn from, 1 for those to test on."""

    keys: OwnKeys

    def folds(self, samples: NodeSamples) -> IntArray:
        """Fold of every own observation."""
        return (~first_half(samples, self.keys, joint=False)).astype(np.intp)


class SelectionRows:
    """Own samples with their labels, from which penalties are selected."""

    inbox: Mail
    outbox: Mail

    def __init__(self, partition: Partition) -> None:
        self.partition, self.samples = partition, partition.samples

    def leave_out(self, members: BoolArray) -> None:
        """Take all own observations but those of some nodes."""
        kept = ~members[self.samples.node_index]
        self.partition.take(self.samples.subset(observations=kept))

    def labelled_moment(
        self, features: NystromMap, rows: IntArray | None, dtype: type[np.floating]
    ) -> FloatArray:
        """Second moment in which all nodes count the same, of rows in the order of their values."""
        order = np.lexsort((*self.samples.values.T, self.samples.node_index))
        return self._moment(self.samples, order, features, rows, dtype)

    def _moment(
        self,
        samples: NodeSamples,
        order: IntArray | slice,
        features: NystromMap,
        rows: IntArray | None,
        dtype: type[np.floating],
    ) -> FloatArray:
        weights = pooled_weights(samples.node_index, self.partition.plan.n_nodes)
        chosen = slice(None) if rows is None else rows
        psi = features(samples.values[order][chosen], dtype)
        return weighted_moment(psi, weights[chosen]).astype(np.float64)


class NodeTestRows(SelectionRows):
    """Own nodes, ready to be permuted.

    `pooled` and `units` give the order of observations and of units. With `half`, only the second
    half of the observations is tested.
    """

    make: Make

    def __init__(
        self, partition: Partition, pooled: OwnKeys, units: OwnKeys, half: OwnKeys | None
    ) -> None:
        super().__init__(partition)
        tested = self.samples
        if tested.has_blocks and tested.blocks.exist:
            raise InputError(
                "observations that depend on each other in time cannot be tested with an engine",
                "Test in one process; block=None would treat the observations as independent",
            )
        if half is not None:
            tested = tested.subset(observations=~first_half(tested, half, joint=False))
        self.pooled = PooledSamples.of(tested, pooled)
        own = Units.of(self.pooled, units, tested.blocks)
        # Splits come with a generator of their own.
        unused = np.random.default_rng(0)
        self.plan = PermutationPlan(self.pooled, Graph.empty(partition.plan.labels), own, 0, unused)

    def describe(self) -> tuple[bool, dict[str, PairSums]]:
        """Whether observations have times, and correlations between own nodes."""
        inner = self.partition.plan.inner
        weights = sparse.csr_array(sparse.diags_array(inner.diagonal()) - inner)
        weights.eliminate_zeros()
        graph = Graph.from_adjacency(weights, nodes=self.partition.plan.labels)
        sums = pair_sums(self.samples, graph, np.random.default_rng(0))
        return self.samples.time is not None, sums

    def pool(self) -> None:
        """Take the pooled samples, without labels."""
        self.partition.take(self.pooled.samples)

    def pooled_moment(
        self, features: NystromMap, rows: IntArray | None, dtype: type[np.floating]
    ) -> FloatArray:
        """Second moment in which all nodes count the same, of rows in the pooled order."""
        return self._moment(self.pooled.samples, slice(None), features, rows, dtype)

    def set_features(self, features: NystromMap) -> FloatArray:
        """Compute pooled features; returns the diagonals of A of own nodes, shape (n_own, m)."""
        psi = features(self.pooled.samples.values)
        self.features = PooledFeatures.from_rows(self.pooled, psi)
        self.first = self.features.first(self.pooled)
        return np.array(np.einsum("vmm->vm", self.features.second))

    def hide(self, nodes: IntArray) -> None:
        """Moments to predict some own nodes from: those of all other nodes."""
        known = self.pooled.complete.copy()
        known[nodes] = False
        self.partition.moments = Moments(
            DenseSecond(self.features.second * known[:, np.newaxis, np.newaxis]),
            self.first * known[:, np.newaxis],
            known,
            prior_ratio=1.0,
        )

    def predicted(self, nodes: IntArray) -> FloatArray:
        """The solution at some own nodes, shape (n, m)."""
        return np.asarray(self.partition.conjugate.coefficients()[nodes, 0])

    def predict(self, witness: FloatArray, conductance: FloatArray) -> None:
        """Set up the statistics with the neighbours' predictions, shapes (n_own, m)."""
        self.make = node_evidence(self.plan, Predictions(self.features, witness, conductance))

    def take_ratios(self, fit: OwnFit | None, known: BoolArray) -> None:
        """Set up the statistic of a ratio that was fitted on the first half; 1 where unknown."""
        points = self.pooled.samples
        ratios = np.ones(points.n_observations)
        if fit is not None:
            ratios = np.where(known[points.node_index], fitted_ratios(points, *fit), 1.0)
        self.make = HalfTest.from_ratios(self.plan, ratios).make

    def count(
        self, batches: list[Batch], n_permutations: int, keeps: bool
    ) -> tuple[FloatArray, FloatArray, IntArray, FloatArray] | None:
        """Counts of the nodes of all batches, see `Counts`; None without batches.

        The largest values come only for nodes with so few extreme data sets that they may go on.
        """
        found = []
        for generator, nodes in batches:
            splits = self.plan.shared_splits(int(nodes[0]), n_permutations, generator)
            found.append(counted(self.make(nodes), splits, keeps=keeps))
        if not found:
            return None
        extreme = np.concatenate([part.extreme for part in found], axis=1)
        return (
            np.concatenate([part.evidence for part in found]),
            np.concatenate([part.scores for part in found], axis=1),
            extreme,
            np.concatenate([part.top for part in found])[extreme[0] < ENOUGH_EXTREME],
        )

    def effects(self, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Effect size and detectable shift of own nodes; shifts by the law of own observations."""
        shifts = detectable_shifts(self.samples, self.samples.sizes.astype(float), threshold)
        return effect_sizes(self.samples), shifts
