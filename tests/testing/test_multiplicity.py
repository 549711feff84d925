"""Corrections and bounds, against other implementations and by simulation."""

from itertools import chain, combinations

import numpy as np
import pytest

from graphratio.exceptions import InputError
from graphratio.testing.multiplicity import (
    MOST_BY_DEFAULT,
    Resolution,
    adjust,
    changed_at_least,
    enough_permutations,
    strictest_threshold,
)

METHODS = {"fwer": "holm", "fdr": "fdr_bh", "fdr-by": "fdr_by"}


@pytest.mark.parametrize("correction", METHODS)
def test_corrections_agree_with_statsmodels(correction):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(0).uniform(size=40) ** 3
    p_values[5] = p_values[6]
    expected = multitest.multipletests(p_values, method=METHODS[correction])[1]
    np.testing.assert_allclose(adjust(p_values, correction), expected)


def test_no_correction_changes_nothing():
    p_values = np.array([0.2, 0.01])
    assert adjust(p_values, None).tolist() == [0.2, 0.01]


@pytest.mark.parametrize("correction", [*METHODS, None])
def test_threshold_of_a_single_changed_node(correction):
    threshold = strictest_threshold(20, 0.05, correction)
    p_values = np.ones(20)
    p_values[3] = threshold
    assert adjust(p_values, correction)[3] == pytest.approx(0.05)


def by_brute_force(p_values, members, level, local):
    """Closed testing over all subsets: the members minus the largest set not rejected."""
    n = len(p_values)
    sets = [frozenset(s) for k in range(1, n + 1) for s in combinations(range(n), k)]
    kept = {s for s in sets if not local(np.sort(p_values[list(s)]), level)}
    rejected = {s for s in sets if not any(t >= s for t in kept)}
    chosen = np.flatnonzero(members)
    inside = chain.from_iterable(combinations(chosen, k) for k in range(1, len(chosen) + 1))
    unrejected = [len(s) for s in inside if frozenset(s) not in rejected]
    return len(chosen) - max(unrejected, default=0)


LOCAL = {
    "any": lambda p, level: p[0] * len(p) <= level,
    "positive": lambda p, level: (p * len(p) <= level * np.arange(1, len(p) + 1)).any(),
}


@pytest.mark.parametrize("dependence", LOCAL)
def test_bounds_are_those_of_closed_testing(dependence):
    rng = np.random.default_rng(0)
    bounds = []
    for _ in range(60):
        p_values = np.where(rng.random(7) < 0.6, rng.uniform(0, 0.05, 7), rng.random(7))
        members = rng.random(7) < 0.6
        bound = changed_at_least(p_values, members, 0.1, dependence)
        assert bound == by_brute_force(p_values, members, 0.1, LOCAL[dependence])
        bounds.append(bound)
    assert len(set(bounds)) > 3


@pytest.mark.parametrize("dependence", LOCAL)
def test_bounds_hold_for_regions_chosen_by_looking(dependence):
    """Take the smallest p-values as the region: the bound may fail in 10 % of all cases."""
    rng = np.random.default_rng(1)
    changed = np.arange(30) < 10
    failures, found = 0, 0
    for _ in range(1000):
        p_values = rng.random(30)
        p_values[changed] **= 6
        members = np.zeros(30, dtype=bool)
        members[np.argsort(p_values)[: rng.integers(1, 20)]] = True
        bound = changed_at_least(p_values, members, 0.1, dependence)
        failures += bound > np.count_nonzero(members & changed)
        found += bound
    # Three standard deviations above 100.
    assert failures <= 128
    assert found > 2000


class TestPermutations:
    @pytest.mark.parametrize(
        ("n_tests", "correction", "count"),
        [(1, None, 999), (1, "fwer", 999), (10, "fwer", 1999), (100, "fwer", 19_999)],
    )
    def test_ten_times_what_the_correction_needs_by_default(self, n_tests, correction, count):
        found = enough_permutations(None, n_tests, 0.05, correction)
        assert (found.n_permutations, found.extrapolates) == (count, False)
        if correction is not None and n_tests > 1:
            assert (count + 1) * found.strictest == pytest.approx(10)

    def test_beyond_the_most_a_tail_is_fitted(self):
        assert not enough_permutations(None, 1000, 0.05, "fwer").extrapolates
        found = enough_permutations(None, 1001, 0.05, "fwer")
        assert (found.n_permutations, found.extrapolates) == (MOST_BY_DEFAULT, True)
        assert not enough_permutations(None, 10_000, 0.05, None).extrapolates
        by = enough_permutations(None, 200, 0.05, "fdr-by")
        assert by.extrapolates
        assert by.strictest == pytest.approx(0.05 / 200 / np.sum(1 / np.arange(1, 201)))

    def test_a_given_number_is_kept_and_never_extrapolated(self):
        found = enough_permutations(300_000, 10_000, 0.05, "fwer")
        assert (found.n_permutations, found.extrapolates) == (300_000, False)

    def test_too_few_name_what_is_needed(self):
        with pytest.raises(InputError, match="at least 199 permutations, better 1,999"):
            enough_permutations(198, 10, 0.05, "fwer")
        assert enough_permutations(199, 10, 0.05, "fwer").n_permutations == 199
        with pytest.raises(InputError, match="n_permutations=0"):
            enough_permutations(0, 1, 0.05, None)

    def test_no_node_to_test_counts_as_one(self):
        assert enough_permutations(None, 0, 0.05, "fwer").n_tests == 1

    def test_a_tail_settles_a_node_that_is_ten_times_below_the_threshold(self):
        found = enough_permutations(None, 2000, 0.05, "fwer")
        assert found.clear == pytest.approx(0.05 / 2000 / 10)

    @pytest.mark.parametrize("correction", ["fdr", "fdr-by"])
    def test_nodes_that_are_left_support_each_other(self, correction):
        """k of them are compared with k times the threshold, and 100 must be below it."""
        found = Resolution(199_999, 200, 0.05, correction, extrapolates=False)
        enough = next(k for k in range(1, 10**5) if found.reached(1999, k, 100))
        assert (enough - 1) * found.strictest * 2000 < 100 <= enough * found.strictest * 2000 + 1e-9
        assert found.reached(19_999, int(np.ceil(enough / 10)), 100)
        assert not found.reached(1999, 0, 100)

    def test_the_next_look_comes_when_the_nodes_that_are_left_will_do(self):
        """140 nodes need 2,858 permutations, and 1.25 times as many leave a reserve."""
        found = Resolution(7999, 200, 0.05, "fdr", extrapolates=False)
        look = found.next_look(7999, 140, 100)
        assert look == 3571
        assert found.reached(look, 112, 100)
        assert not found.reached(look, 111, 100)
        assert found.next_look(7999, 40, 100) == 7999

    @pytest.mark.parametrize("correction", ["fwer", None])
    def test_no_support_without_a_false_discovery_rate(self, correction):
        found = Resolution(199_999, 20, 0.05, correction, extrapolates=False)
        assert not found.reached(10**9, 20, 100)
        assert found.next_look(19_999, 20, 100) == 19_999
