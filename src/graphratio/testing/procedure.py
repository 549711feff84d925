"""Two-sample tests at every node of a graph."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from graphratio._utils.errors import DataWarning
from graphratio._utils.parameters import as_generator, check_choice, check_real
from graphratio._utils.progress import ProgressBar
from graphratio._utils.threads import suitable_threads
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, RandomState
from graphratio.data.alignment import align, as_graph, as_samples, warn_of_scales
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.contract import check_estimator
from graphratio.testing.answers import answers
from graphratio.testing.global_null import permute_all_nodes
from graphratio.testing.groups import node_groups, selected_penalties
from graphratio.testing.halves import HalfTest, check_second_half, first_half
from graphratio.testing.multiplicity import (
    adjust,
    check_correction,
    enough_permutations,
    strictest_threshold,
)
from graphratio.testing.node_correlation import check_stamps, cross_correlation, mixed_times
from graphratio.testing.node_null import NodeTests, permute_each_node
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples, RatioSettings, read_settings
from graphratio.testing.result import TwoSampleResult
from graphratio.testing.statistics import NAMES
from graphratio.testing.wording import correlation_note

NULLS = ("node", "global")


def two_sample_test(
    samples: Any,
    graph: Graph | None = None,
    estimator: Any = None,
    *,
    null: str = "node",
    correction: str | None = "fwer",
    level: float = 0.05,
    n_permutations: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> TwoSampleResult:
    """Test at every node of a graph whether its two samples have the same law.

    Neighbours help: their ratios tell the test of a node which kind of change to look for. The
    test is valid without their help. Under null="node" the labels reference and target of one
    node are permuted while everything else stays fixed, so the p-value of an unchanged node is
    valid whatever happened around it. The bandwidth, the dictionary, the penalties and the
    neighbours' prediction are learned from pooled samples without labels, or from other nodes.

    Parameters
    ----------
    samples : NodeSamples, or a tuple (reference, target)
        Their `blocks` are permuted as a whole, for observations that depend on each other. With
        null="global" and times, what all nodes observed at one time, or in one block of time, is
        permuted together, so the test stays valid for correlated nodes; every time must then
        belong to one of the two samples.
    graph : Graph
        Aligned with the samples by label. None means no edges.
    estimator : estimator, optional
        Any estimator of the library; its parameters count, never what it was fitted to. GRULSIF
        (not adaptive) and Pool give the kernel, bandwidth, penalties, dictionary and folds.
        Numbers are used as they are; None and sequences stand for candidates to select from.
        Their alpha and prior_ratio are not used: the test compares the target with the pooled
        sample and shrinks towards "no change". All other estimators are fitted on one half of
        every sample, and their ratio is tested on the other half, which costs power. Default: a
        Gaussian kernel of 0.7 times the median distance within nodes, and penalties selected by
        cross-validation.
    null : {"node", "global"}
        "node": this node did not change, whatever the others did. "global": nothing changed
        anywhere; `global_p_value` is the answer. The columns for single nodes are then
        exploratory, since an unchanged node next to changed ones may stand out because of
        them. With "global" nothing is selected: the middle of each list of candidates is used.
    correction : {"fwer", "fdr", "fdr-by"} or None
        Over nodes. "fwer": Holm, for the chance of any false rejection; where nodes are
        correlated, each node against the largest of all nodes in every permutation. "fdr":
        Benjamini-Hochberg, for the expected share of false rejections, "fdr-by":
        Benjamini-Yekutieli, for the same under any dependence. With null="global" "fwer"
        compares each node with the largest of all nodes in every permutation.
    level : float, default 0.05
    n_permutations : int, optional
        Default: enough for the correction, at least 10 N / level with a correction and
        null="node", otherwise 999 or 10 / level. Too few for any rejection is an error.
    random_state : int, numpy Generator, RandomState or None
        Seed of the permutations, the groups and the folds.
    progress : bool, default False

    Returns
    -------
    TwoSampleResult

    Warns
    -----
    DataWarning
        With null="node", if the correlation between neighbouring nodes exceeds 0.2.
        Observations are matched by time, or by position if all nodes have equally many.

    Notes
    -----
    Four statistics are computed on the same permutations: the divergence on the node's own
    samples, the norm of f - 1 in the kernel space, the ratio predicted by the neighbours
    evaluated at the node, and the distance of the two means in the kernel space (MMD). Their
    p-values are divided by their shares (0.1, 0.2, 0.65, 0.05). The smallest quotient is ranked
    among those of the permuted data sets.

    With 19,999 permutations or more, nodes are checked after 1,999, 19,999, ... of them. A node
    is finished as soon as 100 data sets are as extreme as the observed one. Its p-value is
    rounded up to a multiple of 1 / (n_permutations + 1), and is as valid as the others.

    A node with few observations has few distinct splits, and its p-value cannot be smaller
    than one over their number. A note names the nodes that cannot be rejected for this reason.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference = list(rng.normal(size=(8, 40)))
    >>> target = list(rng.normal(size=(8, 40)) + np.repeat([0.0, 1.5], 4)[:, None])
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(7)])
    >>> result = gr.two_sample_test((reference, target), graph, random_state=0)
    >>> result.to_frame()["rejected"].tolist()
    [False, False, False, False, True, True, True, True]
    >>> [(region.nodes, region.changed_at_least) for region in result.regions()]
    [((4, 5, 6, 7), 4)]
    """
    null = check_choice(null, "null", NULLS)
    correction = check_correction(correction)
    level = check_real(level, "level", low=0, high=1)
    rng = as_generator(random_state)
    given = as_samples(samples)
    graph = as_graph(graph, given)
    aligned = align(given, graph).exchangeable()
    warn_of_scales(aligned)
    chosen = None if estimator is None else check_estimator(estimator, rng)
    halves = chosen is not None and not chosen._is_quadratic
    timed = aligned.time is not None
    correlation = cross_correlation(aligned, graph, rng) if null == "node" else None
    correlated = correlation is not None and correlation.is_high
    # At the same times neighbours share their fluctuations, so only own evidence counts.
    alone = correlated and timed and not halves
    if correlated and not alone:
        warnings.warn(correlation_note(correlation)[0], DataWarning, stacklevel=2)
    joint = null == "global" and timed
    if joint:
        check_stamps(aligned)
    # Own evidence of all nodes may be permuted together, which keeps their correlation.
    joint |= alone and not mixed_times(aligned).size
    if joint:
        aligned = aligned.jointly_blocked()
    tested, learned = aligned, np.zeros(aligned.n_observations, dtype=bool)
    if halves:
        learned = first_half(aligned, rng, joint=joint)
        tested = aligned.subset(observations=~learned)
        check_second_half(aligned, tested)
    n_tests = int(tested.complete.sum())
    largest = joint and correction == "fwer"
    needed_for = correction if null == "node" and not largest else None
    count = enough_permutations(n_permutations, n_tests, level, needed_for)
    pooled = PooledSamples.of(tested, rng)
    units = Units.of(pooled, rng, tested.blocks)
    n_pieces = units.by_sample(graph.n_nodes, joint=joint)
    # A node without a complete block in both samples has nothing to exchange.
    pooled = replace(pooled, complete=pooled.complete & (n_pieces > 0).all(axis=1))
    used = Graph.empty(graph.nodes) if alone else graph
    plan = PermutationPlan(pooled, used, units, count, rng)
    penalties: list[tuple[float, float, float]] = []
    if not pooled.complete.any():
        outcome, against = NodeTests.blank(graph.n_nodes, count), None
    elif halves:
        outcome, against = _by_halves(chosen, aligned, learned, plan, null, joint, progress)
    else:
        how = "global" if joint else null
        outcome, against, penalties = _all_at_once(aligned, plan, chosen, how, joint, progress)
    p_value = outcome.combined / (count + 1)
    adjusted, overall = _over_nodes(p_value, against, pooled.complete, correction, count)
    names = ("held-out ratio",) if halves else NAMES
    n_tests = max(int(pooled.complete.sum()), 1)
    strictest = strictest_threshold(n_tests, level, needed_for)
    found = answers(
        n_pieces,
        pooled.complete,
        strictest,
        # If all nodes changed, a false discovery rate allows each the largest threshold.
        most=n_tests * strictest if needed_for in ("fdr", "fdr-by") else strictest,
        at_once=null == "global" and not joint,
        long_memory=aligned.blocks.too_short if aligned.has_blocks else None,
    )
    return TwoSampleResult(
        nodes=aligned.nodes,
        graph=graph,
        statistic=outcome.statistics[0],
        p_value=p_value,
        adjusted_p_value=adjusted,
        rejected=found.nodes & (adjusted <= level),
        global_p_value=overall,
        statistics=dict(zip(names, outcome.statistics, strict=True)),
        p_values=dict(zip(names, outcome.counts / (count + 1), strict=True)),
        tested=pooled.complete,
        null=null,
        correction=correction,
        level=level,
        n_permutations=count,
        penalties=tuple(penalties),
        blocks=aligned.blocks,
        joint=joint,
        halves=halves,
        answers=found,
        alone=alone,
        timed=timed,
        samples=aligned,
        correlation=correlation,
        backend=aligned.backend,
    )


def _by_halves(
    estimator: Any,
    samples: NodeSamples,
    learned: BoolArray,
    plan: PermutationPlan,
    null: str,
    joint: bool,
    progress: bool,
) -> tuple[NodeTests, IntArray | None]:
    """Learn the ratio on one half, and permute the labels of the other."""
    test = HalfTest.of(estimator, samples, learned, plan)
    steps = int(plan.pooled.complete.sum()) if null == "node" else plan.n_permutations
    against = None
    with ProgressBar(steps, "permutations", enabled=progress) as bar:
        if null == "node":
            statistic, counts = test.each_node(bar)
        else:
            statistic, counts, against = test.all_nodes(joint, bar)
    return NodeTests(statistic[np.newaxis], counts[np.newaxis], counts), against


def _all_at_once(
    samples: NodeSamples,
    plan: PermutationPlan,
    estimator: Any,
    null: str,
    joint: bool,
    progress: bool,
) -> tuple[NodeTests, IntArray | None, list[tuple[float, float, float]]]:
    """Use all observations, with a ratio that is linear in their labels."""
    settings = read_settings(estimator, plan.pooled, plan.graph)
    dictionary = settings.atoms(plan.pooled, plan.rng)
    with suitable_threads(samples.n_observations, len(dictionary)):
        if null == "node":
            outcome, penalties = _each_node(samples, plan, settings, dictionary, progress)
            return outcome, None, penalties
        penalties = [settings.middle]
        features = PooledFeatures.of(plan.pooled, settings.kernel, dictionary, penalties[0][0])
        with ProgressBar(plan.n_permutations, "permutations", enabled=progress) as bar:
            outcome, against = permute_all_nodes(features, plan, penalties[0][1:], joint, bar)
        return outcome, against, penalties


def _each_node(
    samples: NodeSamples,
    plan: PermutationPlan,
    settings: RatioSettings,
    dictionary: FloatArray,
    progress: bool,
) -> tuple[NodeTests, list[tuple[float, float, float]]]:
    graph, pooled = plan.graph, plan.pooled
    groups = node_groups(graph, plan.rng)
    chosen = selected_penalties(samples, graph, groups, settings, dictionary, plan.rng)
    table = np.array(chosen)
    outcome = NodeTests.blank(graph.n_nodes, plan.n_permutations)
    testable = np.flatnonzero(pooled.complete)
    with ProgressBar(testable.size, "nodes", enabled=progress) as bar:
        for bandwidth in np.unique(table[:, 0]):
            nodes = testable[table[groups[testable], 0] == bandwidth]
            if not nodes.size:
                continue
            features = PooledFeatures.of(pooled, settings.kernel, dictionary, float(bandwidth))
            permute_each_node(outcome, nodes, features, plan, groups, table[:, 1:], bar)
    return outcome, chosen


def _over_nodes(
    p_value: FloatArray,
    against: IntArray | None,
    tested: BoolArray,
    correction: str | None,
    n_permutations: int,
) -> tuple[FloatArray, float]:
    """Adjusted p-values, and the p-value for "nothing changed anywhere".

    For the global null `against` counts the data sets with a value as extreme as each node's.
    """
    adjusted = np.ones_like(p_value)
    if against is not None and correction == "fwer":
        adjusted[tested] = against[tested] / (n_permutations + 1)
    else:
        adjusted[tested] = adjust(p_value[tested], correction)
    if against is not None:
        return adjusted, float(against[tested].min()) / (n_permutations + 1)
    return adjusted, min(1.0, float(p_value[tested].min(initial=1.0)) * int(tested.sum()))
