"""The scale on which statistics are compared, their shares of the level, their combination."""

import numpy as np
import pytest
from scipy import stats

from graphratio.testing.statistics import (
    NAMES,
    NEIGHBOUR_SHARES,
    OWN_SHARES,
    PermutationLaw,
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
