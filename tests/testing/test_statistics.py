"""The scale of statistics, their shares of the level, and their values under permuted labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import graphratio as gr
from graphratio.testing.node_null import TIE
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledSamples
from graphratio.testing.statistics import (
    NAMES,
    NEIGHBOUR_SHARES,
    OWN_SHARES,
    Columns,
    PermutationLaw,
    PermutedMeans,
    combined_evidence,
    shares_of,
)

NEIGHBOURS = [NAMES.index("predicted"), NAMES.index("coupled")]


def law_of_chi_squared(degrees, noncentral=0.0, scale=1.0):
    """The law of the squared norm of a normal vector, turned so that no entry of S is special."""
    turn = stats.ortho_group.rvs(degrees, random_state=0) if degrees > 1 else np.eye(1)
    offset = np.zeros(degrees)
    offset[0] = np.sqrt(noncentral * scale)
    return PermutationLaw.of_squares(scale * turn @ turn.T, turn @ offset)


class TestScores:
    @pytest.mark.parametrize("degrees", [1, 3, 20])
    @pytest.mark.parametrize("noncentral", [0.0, 2.0, 10.0])
    def test_moments_are_those_of_a_chi_squared_law(self, degrees, noncentral):
        found = law_of_chi_squared(degrees, noncentral, scale=3.0)
        mean, variance, skewness = stats.ncx2.stats(degrees, noncentral, moments="mvs")
        assert found.mean == pytest.approx(3 * mean)
        assert found.spread == pytest.approx(3 * np.sqrt(variance))
        assert found.skewness == pytest.approx(skewness)

    @pytest.mark.parametrize("degrees", [1, 3, 20])
    @pytest.mark.parametrize("noncentral", [0.0, 2.0, 10.0])
    def test_scores_are_nearly_standard_normal(self, degrees, noncentral):
        """Tail probabilities are right within 6 % at 1 %, and within a third at 0.1 %."""
        found = law_of_chi_squared(degrees, noncentral, scale=0.5)
        for tail, error in ((1e-2, 0.06), (1e-3, 1 / 3)):
            value = 0.5 * stats.ncx2.isf(tail, degrees, noncentral)
            score = found.scores(np.array(value))
            assert stats.norm.sf(score) == pytest.approx(tail, rel=error)

    def test_unequal_eigenvalues(self):
        """The usual case: a few large directions and many small ones."""
        rng = np.random.default_rng(0)
        widths = 0.7 ** np.arange(12)
        found = PermutationLaw.of_squares(np.diag(widths), np.zeros(12))
        drawn = (rng.normal(size=(200_000, 12)) ** 2) @ widths
        scores = found.scores(drawn)
        for tail in (1e-1, 1e-2, 1e-3):
            assert np.mean(scores > stats.norm.isf(tail)) == pytest.approx(tail, rel=0.3)

    def test_a_mean_is_only_standardised(self):
        found = PermutationLaw.of_mean(np.array(4.0), np.array(1.0))
        np.testing.assert_allclose(found.scores(np.array([1.0, 5.0, -3.0])), [0, 2, -2])

    @pytest.mark.parametrize("skewness", [0.0, 0.019, 0.021, 0.5, 2.8])
    def test_quantile_inverts_scores(self, skewness):
        found = PermutationLaw(np.array(2.0), np.array(3.0), np.array(skewness))
        wanted = np.array([-0.4, 0.0, 1.0, 3.0, 6.0])
        np.testing.assert_allclose(found.scores(found.quantile(wanted)), wanted, atol=1e-9)

    def test_laws_that_are_nearly_symmetric_join_on_to_normal_ones(self):
        """No jump where the transformation begins."""
        values = np.linspace(-1, 4, 11)
        below, above = (
            PermutationLaw(np.array(0.0), np.array(1.0), np.array(s)).scores(values)
            for s in (0.0199, 0.0201)
        )
        np.testing.assert_allclose(below, above, atol=0.06)

    @pytest.mark.parametrize("mean", [0.0, 1e-12, 5.0])
    def test_a_statistic_that_never_changes_has_score_zero(self, mean):
        """Its rounding error is not scaled up."""
        found = PermutationLaw.of_moments(
            np.array(mean), np.array((1e-9 * mean) ** 2), np.array(1e-40)
        )
        values = mean + 1e-9 * mean * np.array([-1.0, 0.0, 1.0])
        np.testing.assert_array_equal(found.scores(values), 0.0)

    def test_single_precision_is_kept(self):
        found = PermutationLaw(*(np.full((1, 1, 2), x, dtype=np.float32) for x in (1, 2, 0.5)))
        assert found.scores(np.ones((3, 4, 2), dtype=np.float32)).dtype == np.float32


class TestShares:
    def test_they_sum_to_one(self):
        np.testing.assert_allclose(shares_of(np.linspace(0, 3, 50)).sum(axis=1), 1.0)
        assert NEIGHBOUR_SHARES.sum() == pytest.approx(1)
        assert OWN_SHARES.sum() == pytest.approx(1)

    def test_neighbours_get_more_the_stronger_their_prediction(self):
        trust = shares_of(np.array([1e-9, 0.4, 0.5, 0.65, 0.8, 0.9, 5.0]))[:, NEIGHBOURS].sum(1)
        np.testing.assert_allclose(trust[[0, 1, 3, 5, 6]], [0.05, 0.05, 0.475, 0.9, 0.9])
        assert (np.diff(trust)[1:5] > 0.1).all()

    def test_neighbours_without_a_prediction_get_nothing(self):
        found = shares_of(np.zeros(2))
        assert (found[:, NEIGHBOURS] == 0).all()
        np.testing.assert_allclose(found, [OWN_SHARES] * 2)

    def test_the_sources_do_not_mix(self):
        """A statistic either needs neighbours or does not."""
        assert (NEIGHBOUR_SHARES * OWN_SHARES == 0).all()
        assert np.flatnonzero(NEIGHBOUR_SHARES).tolist() == NEIGHBOURS


class TestCombinedEvidence:
    def test_it_is_minus_the_log_of_the_smallest_p_value_over_share(self):
        rng = np.random.default_rng(0)
        scores = rng.normal(1.0, 1.5, size=(500, 5))
        shares = shares_of(np.array([0.6]))
        found = combined_evidence(scores, np.log(shares))
        expected = -np.log((stats.norm.sf(scores) / shares).min(axis=1))
        some = expected > 0
        assert some.sum() > 300
        np.testing.assert_allclose(found[some], expected[some], atol=0.06)
        # The order agrees up to pairs that are closer than the formula is exact.
        order = np.argsort(found[some])
        assert (np.diff(expected[some][order]) > -0.1).all()

    def test_the_tail_is_right_within_six_per_cent(self):
        scores = np.linspace(0, 12, 100)[:, np.newaxis]
        found = combined_evidence(scores, np.zeros(1))
        np.testing.assert_allclose(found, -stats.norm.logsf(scores[:, 0]), atol=0.06)

    def test_larger_scores_are_never_less_evidence(self):
        """Also far below zero, where scores only mean that nothing is extreme."""
        scores = np.linspace(-5, 8, 1301)[:, np.newaxis]
        steps = np.diff(combined_evidence(scores, np.zeros(1)))
        assert (steps >= 0).all()
        assert (steps[scores[:-1, 0] > -0.4] > 0).all()

    def test_statistics_without_a_share_do_not_count(self):
        with np.errstate(divide="ignore"):
            shares = np.log([0.0, 1.0])
        first, second = combined_evidence(np.array([[9.0, 1.0], [-9.0, 1.0]]), shares)
        assert first == second

    def test_a_share_of_a_tenth_costs_a_factor_of_ten(self):
        whole, tenth = (combined_evidence(np.array([[3.0]]), np.log([s])) for s in (1.0, 0.1))
        assert whole - tenth == pytest.approx(np.log(10))


SHARES = np.array([0.5, 0.3, 0.2])


def made(sizes=(14, 17), n_nodes=3, seed=0, block=None, blocks=None):
    """A plan, the columns of three statistics, and the statistics ready to be permuted."""
    rng = np.random.default_rng(seed)
    sides = [list(rng.normal(size=(n_nodes, n, 1))) for n in sizes]
    samples = gr.NodeSamples.from_arrays(*sides, block=block)
    pooled = PooledSamples.of(samples, rng)
    units = Units.of(pooled, rng, samples.blocks if blocks is None else blocks(samples))
    plan = PermutationPlan(pooled, gr.Graph.empty(n_nodes), units, 9, rng)
    nodes = np.arange(n_nodes)
    n_rows = sum(sizes)
    parts = [
        Columns(rng.normal(size=(n_nodes, n_rows, 1)), linear=True),
        Columns(rng.normal(size=(n_nodes, n_rows, 4)), rng.normal(size=(n_nodes, 4)) / 5),
        Columns(rng.exponential(size=(n_nodes, n_rows, 2))),
    ]
    for part in parts:
        part.values[:] -= part.values.mean(axis=1, keepdims=True)
    parts = [part.scaled() for part in parts]
    means = PermutedMeans.of(plan, nodes, parts, np.tile(SHARES, (n_nodes, 1)))
    return plan, parts, means


def uneven(samples):
    """Blocks of 1 to 4 rows; the last two rows of every sample keep their label."""
    place = np.arange(samples.n_observations) - samples.offsets[samples.segments]
    sizes = samples.sizes.ravel()[samples.segments]
    number = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])[np.minimum(place, 9)] + 10 * (
        samples.is_target
    )
    number = number + 4 * (place >= 10)
    return replace(samples.blocks, number=number, whole=place < sizes - 2)


def splits(plan, count):
    return np.concatenate(list(plan.shared_splits(0, count)))


CASES = {
    "single observations": {},
    "blocks": {"block": 2, "sizes": (12, 16)},
    "blocks with a rest": {"block": 3, "sizes": (13, 17)},
    "uneven blocks": {"blocks": uneven},
}


def by_loop(plan, parts, node, label):
    """Values of the statistics for the labels of the units of one node, row by row."""
    rows = plan.rows(np.array([node]))[0]
    unit = plan.units.of_row[rows]
    inside = np.where(
        unit >= 0, label[np.maximum(unit - plan.first_unit[node], 0)], plan.pooled.is_target[rows]
    )
    values = []
    for part in parts:
        mean = part.values[node][inside.astype(bool)].mean(axis=0)
        if part.offset is not None:
            mean = mean + part.offset[node]
        values.append(mean[0] if part.linear else mean @ mean)
    return np.array(values)


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_a_loop_over_rows(case):
    plan, parts, means = made(**CASES[case])
    assert (means.sizes is not None) == (case == "uneven blocks")
    assert (plan.units.of_row < 0).any() == (case in ("blocks with a rest", "uneven blocks"))
    labels = np.vstack([splits(plan, 12), means.labels[:1]])
    evidence, scores = means.evaluate(labels)
    for node in range(3):
        for i, label in enumerate(labels):
            law = PermutationLaw(
                means.law.mean[node], means.law.spread[node], means.law.skewness[node]
            )
            expected = law.scores(by_loop(plan, parts, node, label))[0]
            np.testing.assert_allclose(scores[node, i], expected, atol=2e-5)
            together = combined_evidence(expected, np.log(SHARES))
            assert evidence[node, i] == pytest.approx(together, abs=TIE / 2)


def test_labels_may_differ_from_node_to_node():
    plan, _, means = made()
    shared = splits(plan, 5)
    own = np.stack([shared, shared[::-1], ~shared[[0, 0, 1, 1, 2]]])
    evidence, scores = means.evaluate(own)
    for node in range(3):
        alone = means.part(slice(node, node + 1)).evaluate(own[node])
        np.testing.assert_allclose(evidence[node], alone[0][0], atol=TIE / 2)
        np.testing.assert_allclose(scores[node], alone[1][0], atol=2e-5)
    np.testing.assert_allclose(means.evaluate(shared)[0][0], evidence[0], atol=TIE / 2)


@pytest.mark.parametrize("case", CASES)
def test_observed_labels_are_those_of_the_data(case):
    plan, parts, means = made(**CASES[case])
    evidence, scores = means.observed()
    assert evidence.shape == (3,)
    for node in range(3):
        rows = plan.rows(np.array([node]))[0]
        inside = plan.pooled.is_target[rows]
        mean = parts[0].values[node][inside].mean()
        spread, expected = means.law.spread[node, 0, 0], means.law.mean[node, 0, 0]
        assert scores[node, 0] == pytest.approx((mean - expected) / spread, abs=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_moments_are_those_of_many_permutations(case):
    """Exact for a mean of equal units; for squared norms up to what normal means would have."""
    plan, parts, means = made(**CASES[case], n_nodes=1)
    labels = splits(plan, 4000)
    values = np.array([by_loop(plan, parts, 0, label) for label in labels])
    law = means.law
    error = values.std(axis=0) / np.sqrt(len(values))
    slack = 0.02 if case == "uneven blocks" else 0.0
    np.testing.assert_array_less(
        np.abs(values.mean(axis=0) - law.mean[0, 0]),
        4.5 * error + slack * np.abs(law.mean[0, 0]) + slack * values.std(axis=0),
    )
    spread = values.std(axis=0)
    assert spread[0] == pytest.approx(law.spread[0, 0, 0], rel=0.05 + 3 * slack)
    np.testing.assert_allclose(spread, law.spread[0, 0], rtol=0.3)


def test_statistics_that_are_not_ready_do_not_count():
    """A share of zero: the evidence ignores a statistic, however large."""
    plan, parts, _ = made()
    nodes = np.arange(3)
    without = PermutedMeans.of(plan, nodes, parts, np.tile([0.0, 0.6, 0.4], (3, 1)))
    rest = PermutedMeans.of(plan, nodes, parts[1:], np.tile([0.6, 0.4], (3, 1)))
    labels = splits(plan, 20)
    np.testing.assert_allclose(without.evaluate(labels)[0], rest.evaluate(labels)[0], atol=1e-5)


def test_equal_data_sets_are_tied_in_single_precision():
    """Exchanged samples of equal size, and equal splits in any company, count as ties."""
    plan, _, means = made(sizes=(15, 15))
    labels = splits(plan, 200)
    quadratic = [1, 2]
    first, second = (means.evaluate(x)[1][:, :, quadratic] for x in (labels, ~labels))
    # The offset has a sign, so that only the statistic without one is symmetric.
    np.testing.assert_allclose(first[:, :, 1], second[:, :, 1], atol=TIE / 5)
    assert np.abs(first[:, :, 0] - second[:, :, 0]).max() > 0.1
    together, _ = means.evaluate(labels)
    for i in range(0, 200, 37):
        alone, _ = means.evaluate(labels[i : i + 1])
        np.testing.assert_allclose(alone[:, 0], together[:, i], atol=TIE / 5)


def test_how_many_nodes_are_evaluated_at_once():
    _, _, means = made()
    assert means.step(10) == 1_000_000 // (10 * 7)
    assert means.step(10_000_000) == 1


@pytest.mark.parametrize("scale", [1e-45, 1e45])
def test_no_scale_overflows_in_single_precision(scale):
    rng = np.random.default_rng(0)
    reference, target = scale * rng.normal(size=(2, 5, 20))
    found = gr.two_sample_test((list(reference), list(target)), random_state=0)
    plain = gr.two_sample_test((list(reference / scale), list(target / scale)), random_state=0)
    np.testing.assert_allclose(found.p_value, plain.p_value, atol=0.02)


def test_a_target_of_another_size_is_as_variable_as_the_observed_one():
    """Where whole times move, a node that lacks some has more target units or fewer."""
    _, _, means = made(sizes=(10, 10), n_nodes=2)
    own = means.part(slice(0, 1))
    rng = np.random.default_rng(1)
    spread = {}
    for k in (4, 10, 16):
        labels = np.array([rng.permutation(np.arange(20) < k) for _ in range(4000)])
        _, scores = own.evaluate(labels[np.newaxis])
        spread[k] = scores[0, :, 0].std()
    assert spread[4] == pytest.approx(spread[10], rel=0.1)
    assert spread[16] == pytest.approx(spread[10], rel=0.1)
    nothing = np.zeros((1, 1, 20), dtype=bool)
    assert own.evaluate(nothing)[1][0, 0, 2] < 0
