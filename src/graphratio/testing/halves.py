"""The test with any estimator: learn its ratio on one half of the data, test it on the other.

An estimator whose ratio is not linear in the labels cannot follow their permutations. So every
sample is split at random into two halves, in whole blocks if there are any. The estimator is
fitted on the first halves of all nodes. Given those, the labels in the second half of an unchanged
node are exchangeable, whatever the neighbours did and however the ratio was fitted. The statistic
of a node is the mean of its fitted ratio over the target minus that over both samples. It is large
if the target is denser where the ratio is large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.refits import refit
from graphratio.moments.node_moments import segment_indicator
from graphratio.testing.global_null import label_source, node_first_moments
from graphratio.testing.joint_statistics import exceedances
from graphratio.testing.node_null import NodeTests
from graphratio.testing.permutations import PermutationPlan, UnitSums, chunks, no_complete_block
from graphratio.testing.pooled import Draws
from graphratio.testing.statistics import Columns, PermutedMeans


def first_half(samples: NodeSamples, rng: Draws, *, joint: bool) -> BoolArray:
    """True for the observations to learn from, shape (n_observations,).

    Half of the blocks of every sample, rounded down; with `joint` the same blocks at all nodes.
    A rest too short for a block is used to learn.
    """
    blocks = samples.blocks
    kept = blocks.whole
    group = samples.is_target.astype(np.intp) if joint else samples.segments
    width = int(blocks.number.max(initial=0)) + 1
    unit_code = group[kept] * width + blocks.number[kept]
    _, first, unit = np.unique(unit_code, return_index=True, return_inverse=True)
    group = group[np.flatnonzero(kept)[first]]
    order = np.lexsort((rng.random(len(group)), group))
    count = np.bincount(group)
    rank = np.empty(len(group), dtype=np.intp)
    rank[order] = np.arange(len(group)) - (np.cumsum(count) - count)[group[order]]
    learned = np.ones(samples.n_observations, dtype=bool)
    learned[kept] = (rank < count[group] // 2)[unit]
    return learned


def check_second_half(samples: NodeSamples, tested: NodeSamples) -> None:
    """Refuse blocks of a length that leaves nothing to test at some node."""
    lost = np.flatnonzero(samples.complete & ~tested.complete)
    if lost.size:
        raise no_complete_block(samples.blocks, "a sample", [samples.nodes[v] for v in lost])


@dataclass(frozen=True, eq=False)
class HalfTest:
    """The second halves, ready to be permuted; `ratios` at the pooled rows, centred per node."""

    plan: PermutationPlan
    ratios: FloatArray

    @classmethod
    def of(
        cls,
        estimator: NodeRatioEstimator,
        samples: NodeSamples,
        learned: BoolArray,
        plan: PermutationPlan,
    ) -> HalfTest:
        """Fit on the observations in `learned`; the plan is about the others."""
        points = plan.pooled.samples
        train = samples.subset(observations=learned)
        fitted = refit(estimator, train, plan.graph)
        return cls.from_ratios(plan, fitted.at_nodes(points.values, points.node_index))

    @classmethod
    def from_ratios(cls, plan: PermutationPlan, ratios: FloatArray) -> HalfTest:
        """From the fitted ratios of the pooled rows, shape (n_observations,)."""
        pooled = plan.pooled
        means = segment_indicator(pooled.sizes, ratios.dtype) @ ratios
        centred = ratios - (means / np.maximum(pooled.sizes, 1))[pooled.samples.node_index]
        return cls(plan, centred)

    def make(self, nodes: IntArray) -> PermutedMeans:
        """The statistic of some nodes, as a function of their labels."""
        column = Columns(self.ratios[self.plan.rows(nodes)][:, :, np.newaxis], linear=True)
        return PermutedMeans.of(self.plan, nodes, [column], np.ones((len(nodes), 1)))

    def all_nodes(self, joint: bool, bar: ProgressBar) -> tuple[NodeTests, FloatArray]:
        """All nodes permuted at once: tests of nodes, and each against the largest of all."""
        plan, n_nodes = self.plan, self.plan.graph.n_nodes
        sums = UnitSums.of(plan.units, plan.pooled, self.ratios[:, np.newaxis])
        draw = label_source(plan, joint)
        observed = plan.observed[np.newaxis]
        parts = [node_first_moments(sums, plan.units, observed, n_nodes)]
        for part in chunks(plan.n_permutations, plan.units.node.size, least=16):
            labels = draw.next(part.stop - part.start)
            parts.append(node_first_moments(sums, plan.units, labels, n_nodes))
            bar.advance(part.stop - part.start)
        values = np.concatenate(parts, axis=1)[:, :, 0]
        spread = values.std(axis=1, keepdims=True)
        scaled = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
        # Rounded, so that equal splits of small samples stay tied.
        scaled = np.round(scaled, 8)
        scaled[~plan.pooled.complete] = -np.inf
        complete = plan.pooled.complete
        outcome = NodeTests.blank(n_nodes, 1)
        outcome.scores[0, complete] = scaled[complete, 0]
        outcome.p_value[complete] = exceedances(values)[complete, 0] / values.shape[1]
        outcome.p_values[0] = outcome.p_value
        outcome.n_permutations[complete] = plan.n_permutations
        return outcome, (scaled.max(axis=0) >= scaled[:, :1]).mean(axis=1)
