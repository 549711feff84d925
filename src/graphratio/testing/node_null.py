"""Null hypothesis "this node did not change, whatever the others did".

The labels of node v alone are permuted and everything else is held fixed, so the neighbours may
have changed or not: they only tell the test in which direction to look (`predictions`). The node's
own evidence counts too (`pooled.OwnColumns`). How much each counts depends on how strong the
prediction is, not on the labels of the node (`statistics.shares_of`).

Permutations come in looks. All nodes begin with a few; nodes that are clearly not extreme are
finished, and the others go on with ten times as many, or with fewer where many extreme nodes
support each other (`Resolution.next_look`). P-values that are too small for the number of
permutations come from a fitted tail (`tail_p_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from graphratio._utils.jobs import each, n_tasks
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.testing.multiplicity import Resolution
from graphratio.testing.permutations import PermutationPlan
from graphratio.testing.pooled import OwnColumns
from graphratio.testing.predictions import Predictions
from graphratio.testing.statistics import Columns, PermutedMeans, shares_of

# With many permutations a node is first tested with FIRST_LOOK of them, then with ten times as
# many, and so on, until ENOUGH_EXTREME data sets are as extreme as the observed one.
FIRST_LOOK = 1999
ENOUGH_EXTREME = 100
# A look must save most nodes at least three quarters of the permutations.
WORTH_A_LOOK = 4

_FEW_EXTREME = 10

# Sets of splits that a thread evaluates before the next ones are drawn.
SPLITS_PER_TASK = 4

# The largest permuted values to which the tail is fitted.
TOP_VALUES = 200

# Differences of the evidence below this are rounding; data sets then count as tied.
TIE = 1e-3

# Rows of all nodes whose columns are kept at once.
KEPT_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class NodeTests:
    """Outcome at every node; nodes that cannot be tested have p-value 1.

    `evidence` and `p_value` have shape (n_nodes,), `scores` and `p_values` of the single
    statistics (n_statistics, n_nodes). `n_permutations` says how many each node got, and
    `extrapolated` where a fitted tail gives the p-value.
    """

    evidence: FloatArray
    p_value: FloatArray
    scores: FloatArray
    p_values: FloatArray
    n_permutations: IntArray
    extrapolated: BoolArray

    @classmethod
    def blank(cls, n_nodes: int, n_statistics: int) -> NodeTests:
        """Start with p-value 1 everywhere."""
        return cls(
            np.zeros(n_nodes),
            np.ones(n_nodes),
            np.zeros((n_statistics, n_nodes)),
            np.ones((n_statistics, n_nodes)),
            np.zeros(n_nodes, dtype=np.intp),
            np.zeros(n_nodes, dtype=bool),
        )


Make = Callable[[IntArray], PermutedMeans]


def node_evidence(plan: PermutationPlan, predictions: Predictions | None) -> Make:
    """A function that sets up the statistics of nodes; without `predictions` own evidence only."""
    pooled = plan.pooled
    n_nodes = plan.graph.n_nodes
    strength: FloatArray = np.zeros(n_nodes)
    if predictions is not None:
        strength = predictions.strength(np.arange(n_nodes), plan)

    def make(nodes: IntArray) -> PermutedMeans:
        rows = plan.rows(nodes)
        own = OwnColumns.of(pooled.samples.values[rows])
        statistics = [Columns(own.energy), Columns(own.shape), Columns(own.spread)]
        shares = shares_of(strength[nodes])
        if predictions is None:
            return PermutedMeans.of(plan, nodes, statistics, shares[:, -len(statistics) :])
        helped = predictions.columns(nodes, rows)
        return PermutedMeans.of(plan, nodes, [*helped, *statistics], shares)

    return make


@dataclass(frozen=True, eq=False)
class Counts:
    """How permuted data sets compare with the observed one, at some nodes.

    `evidence`, shape (n_nodes,), and `scores`, shape (n_statistics, n_nodes), are the observed
    ones. `extreme`, shape (n_statistics + 1, n_nodes), counts data sets that reach them, those of
    the evidence first. `top`, shape (n_nodes, at most TOP_VALUES), has the largest permuted
    evidence; no columns where it is not kept.
    """

    evidence: FloatArray
    scores: FloatArray
    extreme: IntArray
    top: FloatArray


def counted(means: PermutedMeans, splits: Iterator[FloatArray], *, keeps: bool) -> Counts:
    """Evaluate all splits at nodes that share them; with `keeps` the largest evidence is kept."""
    evidence, scores = means.observed()
    observed = Observed(means, evidence, scores, keeps)
    extreme = np.zeros((scores.shape[1] + 1, len(evidence)), dtype=np.intp)
    top = no_values(len(evidence), keeps=keeps)
    # A few at a time, since splits take memory.
    while some := list(islice(splits, SPLITS_PER_TASK * n_tasks())):
        parts = [(labels, part) for labels in some for part in observed.parts(labels)]
        for (_, at), found in zip(parts, each(observed.exceeding, parts), strict=True):
            extreme[:, at] += found[0]
            if keeps:
                top[at] = largest(np.concatenate([top[at], found[1]], axis=1))
    return Counts(evidence, scores.T, extreme, top)


# Counts of some nodes under a number of further permutations.
Count = Callable[[IntArray, int], Counts]


def permute_each_node(
    outcome: NodeTests,
    nodes: IntArray,
    make: Make,
    plan: PermutationPlan,
    resolution: Resolution,
    bar: ProgressBar,
) -> None:
    """Test some nodes; results go into `outcome`."""
    kept: tuple[IntArray, PermutedMeans] | None = None

    def count(active: IntArray, n_permutations: int) -> Counts:
        nonlocal kept
        order, found = [], []
        for batch in plan.batches(active, KEPT_ROWS):
            # The nodes that go on are often some of a single batch.
            if kept is not None and np.isin(batch, kept[0]).all():
                means = kept[1].part(np.searchsorted(kept[0], batch))
            else:
                means = make(batch)
            kept = batch, means
            splits = plan.shared_splits(batch[0], n_permutations)
            order.append(batch)
            found.append(counted(means, splits, keeps=resolution.extrapolates))
        return counts_of_batches(active, order, found)

    rank_nodes(outcome, nodes, count, plan.n_permutations, resolution, bar)


def counts_of_batches(nodes: IntArray, order: list[IntArray], parts: list[Counts]) -> Counts:
    """Counts of nodes from those of batches; `order` has the nodes of each, `nodes` increase."""
    place = np.argsort(np.concatenate(order))
    return Counts(
        np.concatenate([part.evidence for part in parts])[place],
        np.concatenate([part.scores for part in parts], axis=1)[:, place],
        np.concatenate([part.extreme for part in parts], axis=1)[:, place],
        np.concatenate([part.top for part in parts])[place],
    )


def rank_nodes(
    outcome: NodeTests,
    nodes: IntArray,
    count: Count,
    n_permutations: int,
    resolution: Resolution,
    bar: ProgressBar,
) -> None:
    """Permute in looks until the p-values of all nodes are final; results go into `outcome`."""
    active, seen, most = nodes, 0, 1.0
    extreme = np.zeros((len(outcome.scores) + 1, len(outcome.p_value)), dtype=np.intp)
    top = no_values(len(outcome.p_value), keeps=resolution.extrapolates)
    looks = _looks(n_permutations)
    while active.size:
        planned = next(look for look in looks if look > seen)
        # All nodes are active before the first look, which says nothing about them.
        look = resolution.next_look(planned, active.size, ENOUGH_EXTREME) if seen else planned
        found = count(active, look - seen)
        outcome.evidence[active], outcome.scores[:, active] = found.evidence, found.scores
        extreme[:, active] += found.extreme
        if resolution.extrapolates:
            top[active] = largest(np.concatenate([top[active], found.top], axis=1))
        counts = (1 + extreme[:, active]) / (look + 1)
        outcome.p_value[active] = np.minimum(counts[0], most)
        outcome.p_values[:, active] = counts[1:]
        outcome.n_permutations[active] = look
        seen, most = look, ENOUGH_EXTREME / (look + 1)
        goes_on = outcome.p_value[active] <= most
        resolved = resolution.reached(look, int(goes_on.sum()), ENOUGH_EXTREME)
        last = resolved or look == looks[-1]
        if resolution.extrapolates and look > FIRST_LOOK and not resolved:
            goes_on &= ~_extrapolate(outcome, active, top, look, resolution, last)
        bar.advance(int(active.size if last else (~goes_on).sum()))
        active = active[goes_on & ~np.bool_(last)]


@dataclass(frozen=True, eq=False)
class Observed:
    """Observed values of some nodes; `keeps` the largest evidence of permuted data sets."""

    means: PermutedMeans
    evidence: FloatArray
    scores: FloatArray
    keeps: bool

    def parts(self, labels: FloatArray) -> list[slice]:
        """Nodes to evaluate at once with some labels."""
        step = self.means.step(len(labels))
        return [slice(begin, begin + step) for begin in range(0, len(self.evidence), step)]

    def exceeding(self, case: tuple[FloatArray, slice]) -> tuple[IntArray, FloatArray]:
        """How often permuted evidence and scores reach the observed ones, and the largest evidence.

        For labels and some nodes. Shapes (n_statistics + 1, n_nodes) and, if it `keeps` the
        largest, (n_nodes, at most TOP_VALUES).
        """
        labels, some = case
        found, single = self.means.part(some).evaluate(labels)
        combined = reached(found, self.evidence[some, np.newaxis]).sum(axis=1)
        alone = reached(single, self.scores[some, np.newaxis]).sum(axis=1).T
        return np.vstack([combined, alone]), largest(found) if self.keeps else found[:, :0]


def reached(values: FloatArray, observed: FloatArray) -> BoolArray:
    """Where permuted values are at least as large as the observed ones, or not a number."""
    return ~(values < observed - TIE)


def tail_p_values(evidence: FloatArray, top: FloatArray, n_permutations: int) -> FloatArray:
    """P-values of observed evidence, shape (n_nodes,), from the `top` values of permutations.

    `top` has shape (n_nodes, TOP_VALUES), in any order. The evidence is about minus the logarithm
    of a p-value, so its law under permutations has a tail that is close to exponential with rate
    one, or falls faster. An exponential law is fitted to the largest permuted values. Its rate is
    lowered by two standard errors, and never assumed to be above one, so that the p-value is
    too large rather than too small.
    """
    start = top.min(axis=1)
    excess = top.mean(axis=1) - start
    rate = 1 / np.maximum(excess, np.finfo(np.float32).tiny)
    rate = np.minimum(rate, 1.0) * (1 - 2 / np.sqrt(TOP_VALUES))
    beyond = np.maximum(evidence - start, 0.0)
    return np.asarray((TOP_VALUES + 1) / (n_permutations + 1) * np.exp(-rate * beyond))


def no_values(n_nodes: int, *, keeps: bool) -> FloatArray:
    """The largest values of no permutation, shape (n_nodes, TOP_VALUES); no columns unless kept."""
    return np.full((n_nodes, TOP_VALUES if keeps else 0), -np.inf, dtype=np.float32)


def largest(values: FloatArray) -> FloatArray:
    """The TOP_VALUES largest values of every row, in any order."""
    if values.shape[1] <= TOP_VALUES:
        return values
    return np.partition(values, values.shape[1] - TOP_VALUES, axis=1)[:, -TOP_VALUES:]


def _extrapolate(
    outcome: NodeTests,
    nodes: IntArray,
    top: FloatArray,
    look: int,
    resolution: Resolution,
    last: bool,
) -> BoolArray:
    """Use a fitted tail where it settles a node, shape (n_nodes,); all nodes at the last look."""
    tail = tail_p_values(outcome.evidence[nodes], top[nodes], look)
    settled = (tail <= resolution.clear) | last
    # With more extreme data sets than these, counting them is more reliable than the tail.
    rare = outcome.p_value[nodes] * (look + 1) <= _FEW_EXTREME
    settled &= rare & (tail < outcome.p_value[nodes])
    outcome.p_value[nodes[settled]] = tail[settled]
    outcome.extrapolated[nodes[settled]] = True
    return settled


def _looks(n_permutations: int) -> list[int]:
    """Numbers of permutations after which to check whether the p-value of a node is final.

    A p-value above the bound of a look is final; any other goes on to the next look and ends at
    or below the bound. For every t, one look decides whether the p-value is at most t, so the
    p-value is as valid as those of the single looks.

    Examples
    --------
    >>> _looks(7_000), _looks(9_999), _looks(200_000)
    ([7000], [1999, 9999], [1999, 19999, 200000])
    """
    looks, look = [], FIRST_LOOK
    while WORTH_A_LOOK * (look + 1) <= n_permutations + 1:
        looks.append(look)
        look = 10 * (look + 1) - 1
    return [*looks, n_permutations]
