"""The statistics of all nodes permuted at once, their shares, and how they are ranked."""

import numpy as np
import pytest

from graphratio.testing.joint_statistics import (
    JOINT_NAMES,
    JOINT_SHARES,
    JOINT_SHARES_ALONE,
    combine,
    combined_count,
    exceedances,
    node_statistics,
)


@pytest.mark.parametrize("each", [False, True])
def test_statistics_are_what_they_are_called(each):
    """Term by term, with one prediction for all permutations or one for each."""
    rng = np.random.default_rng(0)
    theta, b, w = rng.normal(size=(3, 4, 3))
    root = rng.normal(size=(3, 3))
    second = root @ root.T
    witness = w if each else w[0][:, np.newaxis]
    found = dict(zip(JOINT_NAMES, node_statistics(theta, b, second, witness), strict=True))
    for i in range(4):
        seen = w[i] if each else w[0]
        # The divergence E_q g - 1/2 E g^2 of g = f - 1, over the pooled sample.
        gain = theta[i] @ b[i] - 0.5 * theta[i] @ second @ theta[i]
        assert found["fitted"][i] == pytest.approx(gain)
        assert found["coupled"][i] == pytest.approx(np.sum(theta[i] ** 2))
        assert found["predicted"][i] == pytest.approx(np.sum(b[i] * seen))
        assert found["kernel"][i] == pytest.approx(np.sum(b[i] ** 2))


def test_every_statistic_gets_its_share_of_the_level():
    """Of the data sets that are rejected at 5 %, so many are by each of independent statistics."""
    n_sets = 20_000
    ranks = exceedances(np.random.default_rng(0).normal(size=(4, n_sets)))
    smallest, _ = combine(ranks)
    assert JOINT_SHARES.sum() == pytest.approx(1)
    rejected = smallest <= np.quantile(smallest, 0.05)
    by = np.argmin(ranks[:, rejected] / JOINT_SHARES[:, np.newaxis], axis=0)
    share = np.bincount(by, minlength=4) / rejected.sum()
    np.testing.assert_allclose(share, JOINT_SHARES, atol=0.03)
    # A p-value counts divided by its share: the 13 % of one are the 1 % of another.
    assert smallest.min() == pytest.approx(1 / 0.65)


def test_ties_are_decided_by_the_sum_of_ranks_and_then_count_as_extreme():
    """Rank 1 of a share of 0.1 is worth as much as rank 2 of a share of 0.2."""
    first, second = [1, 9, 20, 20], [9, 2, 20, 20]
    assert combined_count(np.transpose([first, second])) == 1
    assert combined_count(np.transpose([second, first])) == 2
    assert combined_count(np.transpose([first, first])) == 2


def test_ties_are_conservative():
    assert exceedances(np.array([[1.0, 1.0 + 1e-14, 0.5]])).tolist() == [[2, 2, 3]]
    assert exceedances(np.zeros((1, 4))).tolist() == [[4, 4, 4, 4]]


def test_combination_is_a_valid_p_value():
    """Exchangeable statistics: the observed one is anywhere with the same probability."""
    rng = np.random.default_rng(0)
    counts = [combined_count(exceedances(rng.normal(size=(4, 20)))) for _ in range(4000)]
    share = np.bincount(counts, minlength=21)[1:] / 4000
    np.testing.assert_allclose(share, 0.05, atol=5 * np.sqrt(0.05 * 0.95 / 4000))


def test_own_evidence_counts_where_there_are_no_neighbours():
    """The share of the neighbours' prediction is not wasted on nodes without any."""
    counts = np.array([[30, 1], [30, 1], [1000, 1000], [20, 1]])
    # 30 / 0.2 of the norm is smaller than 20 / 0.05 of the distance of means.
    assert combine(counts)[0][0] == 30 / 0.2
    smallest, _ = combine(counts, alone=True)
    np.testing.assert_allclose(smallest, [20 / 0.5, 1 / 0.5])
    assert pytest.approx(1.0) == JOINT_SHARES_ALONE.sum()
    assert JOINT_SHARES_ALONE[JOINT_NAMES.index("predicted")] == 0
