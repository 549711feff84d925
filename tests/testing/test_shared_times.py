"""Correlated nodes at shared times: exact family-wise error, predictions from other times."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import graphratio as gr
from graphratio._utils.progress import ProgressBar
from graphratio.features.kernels import get_kernel
from graphratio.testing.node_null import TIE
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples
from graphratio.testing.shared_times import N_TIME_FOLDS, cross_fitted, permute_times, step_down

RING = gr.Graph.from_edges([(i, (i + 1) % 10) for i in range(10)])


def correlated(seed, sizes=(20, 20), *, factor=0.5, timed=True, shift=0.0, changed=()):
    """Ten nodes with a common factor; a few observations may be missing at the end."""
    rng = np.random.default_rng(seed)
    sides = []
    for n in sizes:
        common = np.sqrt(factor) * rng.normal(size=n)
        sides.append(common + np.sqrt(1 - factor) * rng.normal(size=(10, n)))
    sides[1][list(changed)] += shift
    sides = [list(side) for side in sides]
    times = (np.arange(sizes[0]), np.arange(100, 100 + sizes[1]))
    return gr.NodeSamples.from_arrays(*sides, time=times if timed else None)


def ragged(seed, **options):
    """Sizes differ by up to three, and times are matched by position."""
    rng = np.random.default_rng(1000 + seed)
    samples = correlated(seed, (22, 22), timed=False, **options)
    sides = [
        [samples.reference(v)[: rng.integers(19, 23)] for v in range(10)],
        [samples.target(v)[: rng.integers(19, 23)] for v in range(10)],
    ]
    return gr.NodeSamples.from_arrays(*sides)


def planned(samples, graph=RING, n_permutations=99, seed=0):
    rng = np.random.default_rng(seed)
    samples = samples.exchangeable().jointly_blocked()
    pooled = PooledSamples.of(samples, rng)
    units = Units.of(pooled, rng, samples.blocks)
    return PermutationPlan(pooled, graph, units, n_permutations, rng)


class TestStepDown:
    def by_loop(self, evidence):
        """Westfall and Young, step by step from the most extreme node down."""
        order = np.argsort(-evidence[:, 0])
        adjusted, so_far = np.empty(len(evidence)), 0.0
        for place, node in enumerate(order):
            rest = evidence[order[place:]]
            share = np.mean([one.max() >= evidence[node, 0] - TIE for one in rest.T])
            so_far = max(so_far, share)
            adjusted[node] = so_far
        return adjusted

    @pytest.mark.parametrize("seed", range(5))
    def test_it_is_the_procedure_of_westfall_and_young(self, seed):
        rng = np.random.default_rng(seed)
        evidence = rng.normal(size=(8, 60)) + rng.normal(size=60)
        evidence[:3, 0] += [1.0, 2.0, 3.0]
        np.testing.assert_allclose(step_down(evidence), self.by_loop(evidence))

    def test_no_node_is_smaller_than_one_with_more_evidence(self):
        """The second would be 1 of 4 by itself, but the first has 2 of 4."""
        evidence = np.array([[3.0, 3.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]])
        assert step_down(evidence).tolist() == [0.5, 0.5]

    def test_nodes_that_are_more_extreme_do_not_count(self):
        evidence = np.array([[9.0, 5.0, 5.0, 5.0], [2.0, 0.0, 0.0, 1.0]])
        assert step_down(evidence).tolist() == [0.25, 0.25]

    def test_rounding_counts_as_a_tie(self):
        assert step_down(np.array([[1.0, 1.0 - TIE / 2, 0.0, 0.0]])).tolist() == [0.5]


class TestPermuteTimes:
    def test_what_nodes_observed_at_one_time_moves_together(self):
        """Nodes that are copies have the same evidence in every data set."""
        rng = np.random.default_rng(0)
        sides = [np.tile(rng.normal(size=(1, n)), (10, 1)) for n in (12, 9)]
        times = (np.arange(12), np.arange(50, 59))
        samples = gr.NodeSamples.from_arrays(*(list(side) for side in sides), time=times)
        outcome, adjusted = permute_times(
            planned(samples), np.arange(samples.n_nodes), ProgressBar(1, "", enabled=False)
        )
        # So the largest of all nodes is each node itself.
        np.testing.assert_allclose(adjusted, outcome.p_value)
        assert len(np.unique(outcome.p_value)) == 1
        assert (outcome.n_permutations == 99).all()
        counts = 100 * outcome.p_values
        np.testing.assert_allclose(counts, counts.round(), atol=1e-9)

    def test_each_node_has_the_p_value_of_its_own_permutations(self):
        """Shared permutations are permutations of every node."""
        samples = correlated(0, shift=0.7, changed=(0, 5))
        outcome, adjusted = permute_times(
            planned(samples, n_permutations=1999),
            np.arange(10),
            ProgressBar(1, "", enabled=False),
        )
        apart = gr.two_sample_test(
            gr.NodeSamples.from_arrays(
                [samples.reference(v) for v in range(10)], [samples.target(v) for v in range(10)]
            ),
            gr.Graph.empty(10),
            correction=None,
            n_permutations=1999,
            random_state=1,
        )
        for name, row in zip(("energy", "shape", "spread"), outcome.p_values, strict=True):
            spread = np.sqrt(2 * apart.p_values[name] / 2000)
            assert (np.abs(row - apart.p_values[name]) <= 5 * spread).all()
        assert (adjusted >= outcome.p_value - 1e-12).all()


class TestCrossFitting:
    def made(self, samples, change=None, seed=0):
        plan = planned(samples, seed=seed)
        dictionary = np.linspace(-2, 2, 8)[:, np.newaxis]
        features = PooledFeatures.of(plan.pooled, get_kernel("gaussian"), dictionary, 1.0)
        state = plan.rng.bit_generator.state
        stratified, make = cross_fitted(plan, features, (0.3, 0.02), np.arange(10) % 5)
        if change is None:
            return stratified, make
        plan.rng.bit_generator.state = state
        psi = change(stratified, features.psi.copy())
        return cross_fitted(plan, replace(features, psi=psi), (0.3, 0.02), np.arange(10) % 5)

    def test_times_are_in_one_fold_at_all_nodes_and_folds_are_even(self):
        stratified, _ = self.made(correlated(0, (20, 15)))
        units, fold = stratified.units, stratified.stratum
        for code in np.unique(units.code):
            assert len(set(fold[units.code == code])) == 1
        # 4 of 20 reference times and 3 of 15 target times in each of five folds.
        assert stratified.shapes.shape == (10, N_TIME_FOLDS, 2)
        assert (stratified.shapes == [4, 3]).all()

    def test_labels_are_exchanged_within_folds_only(self):
        stratified, _ = self.made(correlated(0, (20, 15)))
        labels = np.concatenate(list(stratified.shared_splits(3, 200)))
        own = stratified.first_unit[3] + np.arange(stratified.n_units[3])
        fold = stratified.stratum[own]
        assert (np.diff(fold) >= 0).all()
        for i in range(N_TIME_FOLDS):
            assert (labels[:, fold == i].sum(axis=1) == 3).all()
        assert len(np.unique(labels, axis=0)) > 190

    def test_rows_keep_their_time_and_sample(self):
        samples = correlated(0, (20, 15))
        before, (after, _) = planned(samples), self.made(samples)
        for plan in (before, after):
            rows = np.arange(350)
            unit = plan.units.of_row[rows]
            np.testing.assert_array_equal(plan.units.is_target[unit], plan.pooled.is_target)
            np.testing.assert_array_equal(plan.units.node[unit], plan.pooled.samples.node_index)
        np.testing.assert_array_equal(
            before.units.code[before.units.of_row], after.units.code[after.units.of_row]
        )

    @pytest.mark.parametrize("fold", range(N_TIME_FOLDS))
    def test_the_prediction_for_a_fold_ignores_the_times_of_the_fold(self, fold):
        """Other nodes change inside the fold: the scores there stay, elsewhere they change."""
        samples = correlated(0)

        def change(plan, psi):
            inside = plan.stratum[plan.units.of_row] == fold
            others = plan.pooled.samples.node_index != 4
            psi[inside & others] += np.random.default_rng(1).normal(size=psi[inside & others].shape)
            return psi

        stratified, make = self.made(samples)
        _, changed = self.made(samples, change)
        node = np.array([4])
        before, after = make(node).sums[0, :, 0], changed(node).sums[0, :, 0]
        own = stratified.first_unit[4] + np.arange(40)
        inside = stratified.stratum[own] == fold
        # The statistic has a unit of its own, which the other folds set too.
        before, after = (x / np.linalg.norm(x[inside]) for x in (before, after))
        np.testing.assert_allclose(before[inside], after[inside], rtol=1e-5)
        assert np.median(np.abs(after / before - 1)[~inside]) > 0.01

    def test_the_prediction_ignores_the_node_itself(self):
        """Its own observations at other times, too."""
        samples = correlated(0)

        def change(plan, psi):
            own = plan.pooled.samples.node_index == 4
            away = own & (plan.stratum[plan.units.of_row] != 2)
            psi[away] += np.random.default_rng(1).normal(size=psi[away].shape)
            return psi

        stratified, make = self.made(samples)
        _, changed = self.made(samples, change)
        inside = stratified.stratum[stratified.first_unit[4] + np.arange(40)] == 2
        node = np.array([4])
        before, after = make(node).sums[0, inside, 0], changed(node).sums[0, inside, 0]
        before, after = (x / np.linalg.norm(x) for x in (before, after))
        np.testing.assert_allclose(before, after, rtol=1e-5)


DATA = {
    "with times": correlated,
    "without times": lambda seed: correlated(seed, timed=False),
    "with sizes that differ": ragged,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["with times", "with sizes that differ"])
def test_false_alarms_of_a_common_factor_are_those_of_the_level(case):
    """A strong one: predictions from the tested times would raise an alarm in every other set."""
    alarms, n_sets = 0, 30
    for seed in range(n_sets):
        found = gr.two_sample_test(
            DATA[case](seed, factor=0.95), RING, level=0.1, n_permutations=399, random_state=seed
        )
        alarms += found.n_rejected > 0
    # The chance that a valid test fails here is 0.5 %.
    assert alarms <= binom.isf(0.005, n_sets, 0.1)


def test_positions_that_stand_for_times_give_the_same_answer():
    """So that false alarms without times are those with times."""
    for seed in range(4):
        with_times, without = (
            gr.two_sample_test(DATA[case](seed), RING, n_permutations=399, random_state=seed)
            for case in ("with times", "without times")
        )
        np.testing.assert_array_equal(with_times.adjusted_p_value, without.adjusted_p_value)
        for name, p_values in with_times.p_values.items():
            np.testing.assert_array_equal(p_values, without.p_values[name])


def test_the_common_factor_is_noticed_in_every_case():
    for case, draw in DATA.items():
        found = gr.two_sample_test(draw(3), RING, n_permutations=399, random_state=0)
        assert found.cross_fitted, case
        assert found.joint
        assert set(found.p_values) == {"predicted", "energy", "shape", "spread"}
        assert found.correlation.by_stamp == (case == "with times")


def bimodal(seed):
    """Every node has two modes in the target, with the mean and the spread of before."""
    rng = np.random.default_rng(seed)
    sides = np.sqrt(0.7) * rng.normal(size=(2, 1, 40)) + np.sqrt(0.3) * rng.normal(size=(2, 10, 40))
    sides[1] = 0.55 * sides[1] + 0.85 * rng.choice([-1.0, 1.0], size=(10, 40))
    times = (np.arange(40), np.arange(100, 140))
    return gr.NodeSamples.from_arrays(*(list(side) for side in sides), time=times)


def test_both_sources_have_half_of_the_level():
    """The p-value of a node is twice that of the source which shows more."""
    found = gr.two_sample_test(bimodal(0), RING, n_permutations=399, random_state=0)
    predicted = found.p_values["predicted"]
    np.testing.assert_array_less(found.p_value, np.minimum(2 * predicted, 1) + 1e-12)
    # An even number of 400 data sets.
    halves = 200 * found.p_value
    np.testing.assert_allclose(halves, halves.round(), atol=1e-9)
    decides = np.isclose(found.p_value, 2 * predicted)
    assert decides.any()
    assert found.global_p_value == pytest.approx(found.adjusted_p_value.min())
    # What could have been found, too, has to pass half of the level.
    assert found.n_rejected == 0
    assert found.threshold == pytest.approx(0.05 / 10 / 2)
    single = gr.two_sample_test(
        bimodal(0), RING, correction=None, n_permutations=399, random_state=0
    )
    np.testing.assert_allclose(single.adjusted_p_value, single.p_value)


def test_without_neighbours_own_evidence_has_the_whole_level():
    found = gr.two_sample_test(bimodal(0), gr.Graph.empty(10), n_permutations=399, random_state=0)
    assert found.cross_fitted
    assert found.threshold == pytest.approx(0.05 / (10 - found.n_rejected))


@pytest.mark.slow
def test_neighbours_help_at_shared_times_too():
    """All nodes change their shape alike: found more often than by own evidence alone."""
    helped = alone = 0
    options = {"correction": None, "n_permutations": 399, "random_state": 0}
    for seed in range(16):
        samples = bimodal(seed)
        found = gr.two_sample_test(samples, RING, **options)
        assert found.cross_fitted
        helped += found.n_rejected
        alone += gr.two_sample_test(samples, gr.Graph.empty(10), **options).n_rejected
    assert helped > 1.3 * alone


class TestOddSharedData:
    """Positions, blocks and gaps of correlated nodes."""

    def test_blocks_are_kept_where_positions_stand_for_times(self):
        samples = correlated(0, (40, 40), timed=False)
        blocked = gr.NodeSamples.from_arrays(
            [samples.reference(v) for v in range(10)],
            [samples.target(v) for v in range(10)],
            block=5,
        )
        found = gr.two_sample_test(blocked, RING, random_state=0)
        assert found.cross_fitted
        assert found.blocks.length == 5
        assert (found.answers.n_pieces == 8).all()
        assert found.samples.time is None

    def test_rows_sorted_by_value_are_no_correlation(self):
        rng = np.random.default_rng(0)
        sides = np.sort(rng.normal(size=(2, 10, 30)), axis=2)
        found = gr.two_sample_test(tuple(list(side) for side in sides), RING, random_state=0)
        assert found.correlation is None
        assert not found.cross_fitted

    def test_a_node_that_lacks_most_times_does_not_hide_the_others(self):
        found = 0
        for seed in range(12):
            samples = correlated(seed, (40, 40), shift=1.2, changed=(0,))
            kept = np.ones(samples.n_observations, dtype=bool)
            few = np.flatnonzero((samples.node_index == 5) & samples.is_target)
            kept[few[3:]] = False
            result = gr.two_sample_test(samples.subset(observations=kept), RING, random_state=seed)
            assert result.joint
            assert result.answers.n_pieces[5].tolist() == [40, 3]
            found += result.rejected[0]
        assert found >= 8

    def test_neighbours_are_not_used_where_times_are_in_both_samples(self):
        rng = np.random.default_rng(0)
        common = rng.normal(size=120)
        reference, target, times = [], [], ([], [])
        for v in range(10):
            at = np.arange(50) + v % 3, np.arange(50) + 45 + v % 3
            for side, when, place in zip((reference, target), at, (0, 1), strict=True):
                side.append(common[when] + 0.7 * rng.normal(size=50))
                times[place].append(when)
        samples = gr.NodeSamples.from_arrays(reference, target, time=times, block=None)
        found = gr.two_sample_test(samples, RING, random_state=0)
        assert found.cross_fitted
        assert not found.joint
        assert "predicted" not in found.p_values
        assert any("neighbours were not used" in note for note in found.notes)

    def test_too_few_permutations_for_the_prediction_leave_own_evidence(self):
        found = gr.two_sample_test(correlated(0), RING, n_permutations=199, random_state=0)
        assert found.cross_fitted
        assert "predicted" not in found.p_values

    def test_a_false_discovery_rate_permutes_nodes_by_themselves(self):
        found = gr.two_sample_test(correlated(0), RING, correction="fdr", random_state=0)
        assert found.cross_fitted
        assert not found.joint
        assert "predicted" in found.p_values
