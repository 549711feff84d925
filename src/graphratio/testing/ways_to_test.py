"""Four ways to test: node by node, all nodes at once, at shared times, on halves of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.testing.global_null import permute_all_nodes
from graphratio.testing.halves import HalfTest, check_second_half, first_half
from graphratio.testing.joint_statistics import JOINT_NAMES
from graphratio.testing.multiplicity import (
    Answers,
    Resolution,
    adjust,
    answers,
    enough_permutations,
    fewest_permutations,
    smallest_p_values,
)
from graphratio.testing.node_null import NodeTests, node_evidence, permute_each_node
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples, read_settings
from graphratio.testing.predictions import Penalties, Predictions, node_groups, selected_penalties
from graphratio.testing.result import TwoSampleResult
from graphratio.testing.shared_times import (
    OWN_SHARE_OF_LEVEL,
    cross_fitted,
    permute_times,
    seen_throughout,
)
from graphratio.testing.statistics import NAMES, OWN_SHARES

# The names of the statistics that need no neighbours.
OWN_NAMES = tuple(name for name, share in zip(NAMES, OWN_SHARES, strict=True) if share)

# The only statistic of a test on halves.
HALF_NAMES = ("held-out ratio",)


@dataclass(frozen=True, eq=False)
class TwoSampleQuestion:
    """Aligned samples, and the test to run on them.

    With `shared` a block holds the observations of all nodes at the same times; with `joint` these
    are permuted at all nodes together.
    """

    samples: NodeSamples
    graph: Graph
    estimator: Any
    null: str
    correction: str | None
    level: float
    shared: bool
    joint: bool
    rng: np.random.Generator
    progress: bool

    def plan(self, samples: NodeSamples, resolution: Resolution) -> PermutationPlan:
        """Units of some samples, to be exchanged."""
        pooled = PooledSamples.of(samples, self.rng)
        units = Units.of(pooled, self.rng, samples.blocks)
        # A node without a complete block in both samples has nothing to exchange.
        pieces = units.by_sample(self.graph.n_nodes)
        pooled = replace(pooled, complete=pooled.complete & (pieces > 0).all(axis=1))
        return PermutationPlan(
            pooled,
            self.graph,
            units,
            resolution.n_permutations,
            self.rng,
            lost=samples.blocks.lost if samples.has_blocks else None,
        )

    def resolution(
        self, n_permutations: int | None, samples: NodeSamples, *, corrected: bool = True
    ) -> Resolution:
        """How many permutations to use; `corrected` if they must serve the correction."""
        n_tests = int(samples.complete.sum())
        correction = self.correction if corrected else None
        return enough_permutations(n_permutations, n_tests, self.level, correction)

    def answers(
        self, plan: PermutationPlan, resolution: Resolution, level_share: float = 1.0
    ) -> Answers:
        """Which nodes the data can judge."""
        return answers_at(
            plan.units.by_sample(self.graph.n_nodes, joint=self.null == "global" and self.joint),
            plan.pooled.complete,
            resolution,
            level_share,
            at_once=self.null == "global" and not self.joint,
            long_memory=self.samples.blocks.too_short if self.samples.has_blocks else None,
        )

    def bar(self, steps: int, what: str) -> ProgressBar:
        """A progress bar, if one was asked for."""
        return ProgressBar(steps, what, enabled=self.progress)


def answers_at(
    n_pieces: IntArray,
    tested: BoolArray,
    resolution: Resolution,
    level_share: float = 1.0,
    *,
    at_once: bool = False,
    long_memory: BoolArray | None = None,
) -> Answers:
    """Which nodes data with so many pieces, (n_nodes, 2), can judge; see `answers`."""
    n_tests = max(int(tested.sum()), 1)
    strictest = level_share * replace(resolution, n_tests=n_tests).strictest
    shared = resolution.correction in ("fdr", "fdr-by")
    # If all nodes changed, a false discovery rate allows each the largest threshold.
    most = n_tests * strictest if shared else strictest
    return answers(n_pieces, tested, strictest, most=most, at_once=at_once, long_memory=long_memory)


@dataclass(frozen=True, eq=False)
class TwoSampleOutcome:
    """The answer; `adjusted` has shape (n_nodes,), `overall` is for "nothing changed anywhere".

    `tested`, shape (n_nodes,), marks the nodes that have a p-value of their own.
    """

    tests: NodeTests
    names: tuple[str, ...]
    tested: BoolArray
    adjusted: FloatArray
    overall: float
    answers: Answers
    penalties: Penalties

    def result(self, level: float, **facts: Any) -> TwoSampleResult:
        """The result; `facts` are those of its attributes that the answer does not have."""
        return TwoSampleResult(
            evidence=self.tests.evidence,
            p_value=self.tests.p_value,
            adjusted_p_value=self.adjusted,
            rejected=self.answers.nodes & (self.adjusted <= level),
            global_p_value=self.overall,
            scores=dict(zip(self.names, self.tests.scores, strict=True)),
            p_values=dict(zip(self.names, self.tests.p_values, strict=True)),
            tested=self.tested,
            level=level,
            n_permutations=int(self.tests.n_permutations.max(initial=0)),
            extrapolated=self.tests.extrapolated,
            penalties=tuple(self.penalties),
            answers=self.answers,
            **facts,
        )


def by_halves(test: TwoSampleQuestion, n_permutations: int | None) -> TwoSampleOutcome:
    """Learn the ratio on one half, and permute the labels of the other."""
    learned = first_half(test.samples, test.rng, joint=test.joint)
    tested = test.samples.subset(observations=~learned)
    check_second_half(test.samples, tested)
    resolution = test.resolution(n_permutations, tested, corrected=test.null == "node")
    plan = test.plan(tested, resolution)
    complete = plan.pooled.complete
    tests, against = NodeTests.blank(test.graph.n_nodes, 1), None
    if complete.any():
        half = HalfTest.of(test.estimator, test.samples, learned, plan)
        if test.null == "node":
            with test.bar(int(complete.sum()), "nodes") as bar:
                permute_each_node(tests, np.flatnonzero(complete), half.make, plan, resolution, bar)
        else:
            with test.bar(plan.n_permutations, "permutations") as bar:
                tests, against = half.all_nodes(test.joint, bar)
            tests, against = _above_floor(test, plan, tests, against)
    adjusted, overall = over_nodes(tests.p_value, against, complete, test.correction)
    found = test.answers(plan, resolution)
    return TwoSampleOutcome(tests, HALF_NAMES, complete, adjusted, overall, found, [])


def all_at_once(test: TwoSampleQuestion, n_permutations: int | None) -> TwoSampleOutcome:
    """Permute all nodes in every data set: nothing changed anywhere."""
    resolution = test.resolution(n_permutations, test.samples, corrected=False)
    plan = test.plan(test.samples, resolution)
    tests = NodeTests.blank(test.graph.n_nodes, len(JOINT_NAMES))
    against, penalties = None, []
    if plan.pooled.complete.any():
        settings = read_settings(test.estimator, plan.pooled, test.graph)
        dictionary = settings.atoms(plan.pooled, test.rng)
        penalties = [settings.middle]
        features = PooledFeatures.of(plan.pooled, settings.kernel, dictionary, settings.middle[0])
        with test.bar(plan.n_permutations, "permutations") as bar:
            tests, against = permute_all_nodes(features, plan, settings.middle[1:], test.joint, bar)
        tests, against = _above_floor(test, plan, tests, against)
    tested = plan.pooled.complete
    adjusted, overall = over_nodes(tests.p_value, against, tested, test.correction)
    found = test.answers(plan, resolution)
    return TwoSampleOutcome(tests, JOINT_NAMES, tested, adjusted, overall, found, penalties)


def _above_floor(
    test: TwoSampleQuestion, plan: PermutationPlan, tests: NodeTests, against: FloatArray
) -> tuple[NodeTests, FloatArray]:
    """Raise p-values to one over the number of splits, where all nodes move together.

    Labels that are drawn together for lost variance can lie outside all splits of a few blocks.
    """
    if not test.joint:
        return tests, against
    pieces = plan.units.by_sample(test.graph.n_nodes, joint=True)
    floor = smallest_p_values(pieces)
    return replace(tests, p_value=np.maximum(tests.p_value, floor)), np.maximum(against, floor)


def each_node(test: TwoSampleQuestion, n_permutations: int | None) -> TwoSampleOutcome:
    """Permute one node at a time: this node did not change, whatever the others did."""
    resolution = test.resolution(n_permutations, test.samples)
    plan = test.plan(test.samples, resolution)
    nodes = np.flatnonzero(plan.pooled.complete)
    tests, penalties = NodeTests.blank(test.graph.n_nodes, len(NAMES)), []
    if nodes.size:
        settings = read_settings(test.estimator, plan.pooled, test.graph)
        dictionary = settings.atoms(plan.pooled, test.rng)
        groups = node_groups(test.graph, test.rng)
        with (
            test.bar(nodes.size, "nodes") as bar,
        ):
            penalties = selected_penalties(
                test.samples, test.graph, groups, settings, dictionary, test.rng
            )
            table = np.array(penalties)
            for bandwidth in np.unique(table[groups[nodes], 0]):
                some = nodes[table[groups[nodes], 0] == bandwidth]
                features = PooledFeatures.of(
                    plan.pooled, settings.kernel, dictionary, float(bandwidth)
                )
                first = features.first(plan.pooled)
                predictions = Predictions.of(some, features, plan, groups, table[:, 1:], first)
                make = node_evidence(plan, predictions)
                permute_each_node(tests, some, make, plan, resolution, bar)
    tested = plan.pooled.complete
    adjusted, overall = over_nodes(tests.p_value, None, tested, test.correction)
    found = test.answers(plan, resolution)
    return TwoSampleOutcome(tests, NAMES, tested, adjusted, overall, found, penalties)


def at_shared_times(test: TwoSampleQuestion, n_permutations: int | None) -> TwoSampleOutcome:
    """Test own evidence and the neighbours' prediction separately, since nodes are correlated."""
    own_needs = test.resolution(n_permutations, test.samples, corrected=not test.joint)
    plan = test.plan(test.samples, own_needs)
    nodes = np.flatnonzero(plan.pooled.complete)
    answered = test.answers(plan, own_needs, OWN_SHARE_OF_LEVEL)
    least = fewest_permutations(nodes.size, test.level * (1 - OWN_SHARE_OF_LEVEL), test.correction)
    # Other times exist only where nodes share them.
    predicts = test.shared and bool(test.graph.n_edges) and answered.any
    predicts &= n_permutations is None or n_permutations >= least
    if not predicts:
        answered = test.answers(plan, own_needs)
    tests = NodeTests.blank(test.graph.n_nodes, len(OWN_NAMES))
    adjusted: FloatArray = np.ones(test.graph.n_nodes)
    penalties: Penalties = []
    if nodes.size:
        tests, adjusted = _by_themselves(test, plan, own_needs, n_permutations)
    names = OWN_NAMES
    if predicts:
        other, penalties = _predicted(test, plan, n_permutations)
        from_others, _ = over_nodes(other.p_value, None, plan.pooled.complete, test.correction)
        names = ("predicted", *names)
        own_share, rest = OWN_SHARE_OF_LEVEL, 1 - OWN_SHARE_OF_LEVEL
        adjusted = np.minimum(np.minimum(adjusted / own_share, from_others / rest), 1.0)
        tests = replace(
            tests,
            evidence=np.maximum(tests.evidence, other.evidence),
            p_value=np.minimum(np.minimum(tests.p_value / own_share, other.p_value / rest), 1.0),
            scores=np.vstack([other.scores, tests.scores]),
            p_values=np.vstack([other.p_values, tests.p_values]),
            n_permutations=np.maximum(tests.n_permutations, other.n_permutations),
            extrapolated=tests.extrapolated | other.extrapolated,
        )
    overall = min(1.0, float(adjusted[nodes].min(initial=1.0)))
    if not test.joint:
        overall = min(1.0, float(tests.p_value[nodes].min(initial=1.0)) * max(nodes.size, 1))
    tested = plan.pooled.complete
    return TwoSampleOutcome(tests, names, tested, adjusted, overall, answered, penalties)


def _by_themselves(
    test: TwoSampleQuestion,
    plan: PermutationPlan,
    resolution: Resolution,
    n_permutations: int | None,
) -> tuple[NodeTests, FloatArray]:
    """Test own evidence; for the family-wise error, permute nodes that share times together."""
    complete = plan.pooled.complete
    tests = NodeTests.blank(test.graph.n_nodes, len(OWN_NAMES))
    adjusted: FloatArray = np.ones(test.graph.n_nodes)
    together = seen_throughout(plan) if test.joint else np.zeros_like(complete)
    if together.any():
        with test.bar(plan.n_permutations, "own evidence") as bar:
            tests, adjusted = permute_times(plan, np.flatnonzero(together), bar)
        adjusted = np.minimum(adjusted * complete.sum() / together.sum(), 1.0)
    rest = complete & ~together
    if rest.any():
        if test.joint:
            resolution = test.resolution(n_permutations, test.samples)
            plan = replace(plan, n_permutations=resolution.n_permutations)
        with test.bar(int(rest.sum()), "own evidence") as bar:
            make = node_evidence(plan, None)
            permute_each_node(tests, np.flatnonzero(rest), make, plan, resolution, bar)
        apart, _ = over_nodes(tests.p_value, None, rest, test.correction)
        adjusted[rest] = np.minimum(apart[rest] * complete.sum() / rest.sum(), 1.0)
    return tests, adjusted


def _predicted(
    test: TwoSampleQuestion, plan: PermutationPlan, n_permutations: int | None
) -> tuple[NodeTests, Penalties]:
    """The neighbours' prediction, learned at other times than those at which it is tested."""
    nodes = np.flatnonzero(plan.pooled.complete)
    settings = read_settings(test.estimator, plan.pooled, test.graph)
    dictionary = settings.atoms(plan.pooled, test.rng)
    level = (1 - OWN_SHARE_OF_LEVEL) * test.level
    needs = replace(test, level=level).resolution(n_permutations, test.samples)
    plan = replace(plan, n_permutations=needs.n_permutations)
    groups = node_groups(test.graph, test.rng)
    tests = NodeTests.blank(test.graph.n_nodes, 1)
    with (
        test.bar(nodes.size, "neighbours' predictions") as bar,
    ):
        features = PooledFeatures.of(plan.pooled, settings.kernel, dictionary, settings.middle[0])
        stratified, make = cross_fitted(plan, features, settings.middle[1:], groups)
        permute_each_node(tests, nodes, make, stratified, needs, bar)
    return tests, [settings.middle]


def over_nodes(
    p_value: FloatArray, against: FloatArray | None, tested: BoolArray, correction: str | None
) -> tuple[FloatArray, float]:
    """Adjusted p-values, and the p-value for "nothing changed anywhere".

    For the global null `against` is the share of data sets with a value as extreme as each node's.
    Otherwise the second is the smallest adjusted p-value, so that both agree: Bonferroni's, or
    that of Simes under a false discovery rate.
    """
    adjusted = np.ones_like(p_value)
    if against is not None and correction == "fwer":
        adjusted[tested] = against[tested]
    else:
        adjusted[tested] = adjust(p_value[tested], correction)
    if against is not None:
        return adjusted, float(against[tested].min(initial=1.0))
    if correction is None:
        return adjusted, min(
            1.0, float(p_value[tested].min(initial=1.0)) * max(int(tested.sum()), 1)
        )
    return adjusted, float(adjusted[tested].min(initial=1.0))
