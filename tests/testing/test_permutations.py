"""The permutation engine: units, labels, sums."""

import numpy as np
import pytest

from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.testing.multiplicity import smallest_p_values
from graphratio.testing.permutations import (
    PermutationPlan,
    Units,
    UnitSums,
    random_labels,
)
from graphratio.testing.pooled import PooledSamples

SIZES = [(7, 5), (4, 9), (6, 6)]


def drawn(**options):
    rng = np.random.default_rng(1)
    reference = [rng.normal(size=(n, 2)) for n, _ in SIZES]
    target = [rng.normal(size=(m, 2)) for _, m in SIZES]
    return NodeSamples.from_arrays(reference, target, **options)


@pytest.fixture
def pooled():
    return PooledSamples.of(drawn(), np.random.default_rng(0))


def test_every_split_is_equally_likely():
    labels = random_labels(60_000, 5, 2, np.random.default_rng(0))
    _, counts = np.unique(labels, axis=0, return_counts=True)
    assert len(counts) == 10
    # Six standard deviations of a count of 6,000.
    np.testing.assert_allclose(counts, 6000, atol=6 * np.sqrt(6000 * 0.9))


def test_sums_over_units_are_sums_over_rows(pooled):
    rng = np.random.default_rng(2)
    psi = rng.normal(size=(len(pooled.rows), 3))
    units = Units.of(pooled, rng, drawn(block=2).blocks)
    sums = UnitSums.of(units, pooled, psi)
    plan = PermutationPlan(pooled, Graph.empty(3), units, 20, rng)
    for node in range(3):
        own = plan.first_unit[node] + np.arange(plan.n_units[node])
        labels = np.concatenate(list(plan.shared_splits(node, 20)))
        assert (labels.sum(axis=1) == units.is_target[own].sum()).all()
        b = sums.first_moments(labels.astype(float), own, node)
        of_node = pooled.samples.node_index == node
        for row, label in zip(b, labels, strict=True):
            moved = np.flatnonzero(of_node & (units.of_row >= 0))
            chosen = moved[label[units.of_row[moved] - own[0]]]
            fixed = np.flatnonzero(of_node & (units.of_row < 0) & pooled.is_target)
            expected = psi[np.concatenate([chosen, fixed])].mean(axis=0)
            np.testing.assert_allclose(row, expected, atol=1e-12)


def test_blocks_are_consecutive_observations_of_one_sample(pooled):
    units = Units.of(pooled, np.random.default_rng(0), drawn(block=3).blocks)
    for unit in range(len(units.node)):
        rows = np.sort(pooled.rows[units.of_row == unit])
        assert rows.tolist() == list(range(rows[0], rows[0] + 3))
        assert len(set(pooled.is_target[units.of_row == unit])) == 1
    # 7, 5; 4, 9; 6, 6 observations make 2, 1; 1, 3; 2, 2 blocks, and the rest stays.
    total, target = units.counts(3)
    assert total.tolist() == [3, 4, 4]
    assert target.tolist() == [1, 3, 2]
    assert np.count_nonzero(units.of_row < 0) == 1 + 2 + 1


def test_blocks_follow_the_stamps(pooled):
    # Stamps run backwards, so that blocks begin at the end.
    time = tuple(
        [-np.arange(n) - 100 * v for v, n in enumerate(s)] for s in zip(*SIZES, strict=True)
    )
    units = Units.of(pooled, np.random.default_rng(0), drawn(time=time, block=3).blocks)
    first_node = pooled.samples.node_index == 0
    fixed = pooled.rows[first_node & (units.of_row < 0)]
    # Of the reference rows 0..6 the earliest is left over, of the target rows 7..11 two.
    assert sorted(fixed.tolist()) == [0, 7, 8]


def test_joint_units_share_their_code_over_nodes(pooled):
    samples = pooled.samples
    time = ([range(n) for n, _ in SIZES], [range(100, 100 + m) for _, m in SIZES])
    timed = drawn(time=time, block=None).jointly_blocked()
    _, codes = np.unique(timed.time, return_inverse=True)
    stamps = codes[pooled.rows]
    units = Units.of(pooled, np.random.default_rng(0), timed.blocks)
    for row, unit in enumerate(units.of_row):
        assert units.code[unit] == units.code[units.of_row[0]] or stamps[row] != stamps[0]
        assert units.node[unit] == samples.node_index[row]
    assert len(np.unique(units.code)) == len(np.unique(codes))


def test_smallest_p_value_counts_the_splits(pooled):
    units = Units.of(pooled, np.random.default_rng(0), drawn().blocks)
    found = smallest_p_values(units.by_sample(3))
    # With equally many of both, exchanging the samples gives the same statistics.
    np.testing.assert_allclose(found, [1 / 792, 1 / 715, 2 / 924])


class TestPlan:
    def plan(self, sizes, block=None, stratum=None):
        rng = np.random.default_rng(0)
        sides = [[rng.normal(size=(n[i], 1)) for n in sizes] for i in (0, 1)]
        samples = NodeSamples.from_arrays(*sides, block=block)
        pooled = PooledSamples.of(samples, rng)
        units = Units.of(pooled, rng, samples.blocks)
        if stratum is not None:
            stratum = stratum(units)
        return PermutationPlan(pooled, Graph.empty(len(sizes)), units, 9, rng, stratum)

    def test_batches_hold_nodes_of_equal_shape(self):
        """Sizes, numbers of units and of target units agree; every node is in one batch."""
        plan = self.plan([(6, 4), (4, 6), (6, 4), (7, 4), (6, 4)])
        batches = [batch.tolist() for batch in plan.batches(np.arange(5), 10**6)]
        assert sorted(map(sorted, batches)) == [[0, 2, 4], [1], [3]]
        some = [batch.tolist() for batch in plan.batches(np.array([4, 0, 1]), 10**6)]
        assert sorted(map(sorted, some)) == [[0, 4], [1]]

    def test_batches_are_bounded_by_rows(self):
        plan = self.plan([(6, 4)] * 7)
        assert [len(batch) for batch in plan.batches(np.arange(7), 35)] == [3, 3, 1]
        assert [len(batch) for batch in plan.batches(np.arange(7), 1)] == [1] * 7

    def test_rows_are_those_of_the_node(self):
        plan = self.plan([(6, 4), (3, 3), (6, 4)])
        nodes = np.array([2, 0])
        rows = plan.rows(nodes)
        assert rows.shape == (2, 10)
        for node, own in zip(nodes, rows, strict=True):
            assert (plan.pooled.samples.node_index[own] == node).all()

    def test_splits_keep_the_number_of_target_units_in_every_stratum(self):
        """Two strata of 5 and 5 units; all splits within them are as likely."""

        def halves(units):
            # As many reference as target units in the first; units are ordered by it.
            return np.repeat([0, 1], 5)

        plan = self.plan([(6, 4)], stratum=halves)
        targets = plan.shapes[0, :, 1]
        assert targets.sum() == 4
        labels = np.concatenate(list(plan.shared_splits(0, 4000)))
        assert (labels[:, :5].sum(axis=1) == targets[0]).all()
        assert (labels[:, 5:].sum(axis=1) == targets[1]).all()
        np.testing.assert_allclose(labels.mean(axis=0), np.repeat(targets / 5, 5), atol=0.05)

    def test_units_of_all_target_or_none_stay(self):
        assert random_labels(3, 4, 4, np.random.default_rng(0)).all()
        assert not random_labels(3, 4, 0, np.random.default_rng(0)).any()


@pytest.mark.parametrize("stratified", [False, True])
def test_lost_variance_makes_the_observed_difference_smaller(pooled, stratified):
    rng = np.random.default_rng(3)
    units = Units.of(pooled, rng, drawn().blocks)
    stratum = np.arange(units.node.size) % 2 if stratified else None
    plan = PermutationPlan(
        pooled, Graph.empty(3), units, 20, rng, stratum, lost=np.array([0.19, 0.0, 0.19])
    )
    x = rng.normal(size=units.node.size)
    for node, kept in enumerate([0.9, 1.0, 0.9]):
        for part in range(2 if stratified else 1):
            here = units.node == node
            if stratified:
                here &= stratum == part
            label, target = plan.observed[here], units.is_target[here]
            assert label.sum() == pytest.approx(target.sum())
            expected = target.mean() * x[here].sum()
            difference = target @ x[here] - expected
            assert label @ x[here] - expected == pytest.approx(kept * difference)


def test_blocks_that_lose_nothing_leave_labels_as_they_are(pooled):
    rng = np.random.default_rng(3)
    units = Units.of(pooled, rng, drawn().blocks)
    for lost in (None, np.zeros(3)):
        plan = PermutationPlan(pooled, Graph.empty(3), units, 20, rng, lost=lost)
        np.testing.assert_array_equal(plan.observed, units.is_target)
