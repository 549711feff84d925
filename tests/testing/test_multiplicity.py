"""Corrections and bounds, against other implementations and by simulation."""

from itertools import chain, combinations

import numpy as np
import pytest

from graphratio.testing.multiplicity import adjust, changed_at_least, strictest_threshold

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
