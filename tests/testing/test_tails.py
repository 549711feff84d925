"""P-values from a fitted tail: rather too large, but not by orders of magnitude."""

import numpy as np
import pytest

import graphratio as gr
from graphratio._utils.progress import ProgressBar
from graphratio.testing import node_null
from graphratio.testing.multiplicity import Resolution
from graphratio.testing.node_null import NodeTests, node_evidence, permute_each_node
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledSamples
from graphratio.testing.tails import TOP_VALUES, tail_p_values

# Laws of the evidence: the value that is exceeded with a given probability.
LAWS = {
    "exponential": lambda tail: -np.log(tail),
    # The largest of three, each with a third of the level.
    "largest of three": lambda tail: -np.log(1 - (1 - tail) ** (1 / 3)) - np.log(3),
    # A tail that falls faster than it should, as with few splits.
    "light": lambda tail: -np.log(tail) - 0.02 * np.log(tail) ** 2 / 2,
}


def largest_of(law, n_permutations, n_sets, rng):
    """The top values of data sets whose tail probabilities are uniform."""
    tails = np.sort(rng.random((n_sets, n_permutations)), axis=1)[:, :TOP_VALUES]
    return LAWS[law](tails)


@pytest.mark.parametrize("law", LAWS)
def test_the_fitted_tail_is_conservative_and_within_a_factor_of_thirty(law):
    rng = np.random.default_rng(0)
    top = largest_of(law, 19_999, 100, rng)
    for tail in (1e-4, 1e-5, 1e-6):
        evidence = np.full(100, LAWS[law](tail))
        found = tail_p_values(evidence, top, 19_999)
        assert np.mean(found >= tail) >= 0.95
        assert found.max() <= 30 * tail


def test_the_order_of_the_top_values_does_not_matter():
    rng = np.random.default_rng(0)
    top = rng.exponential(size=(3, TOP_VALUES))
    evidence = np.full(3, 12.0)
    np.testing.assert_allclose(
        tail_p_values(evidence, top, 9999), tail_p_values(evidence, top[:, ::-1], 9999)
    )


def test_the_tail_begins_at_the_smallest_top_value():
    top = np.random.default_rng(0).exponential(size=(1, TOP_VALUES)) + 4
    for evidence in (top.min(axis=1), np.zeros(1)):
        assert tail_p_values(evidence, top, 9999) == pytest.approx((TOP_VALUES + 1) / 10_000)


def test_the_rate_is_never_above_one_and_two_standard_errors_below_the_estimate():
    evidence = np.array([10.0])
    cautious = 1 - 2 / np.sqrt(TOP_VALUES)
    for scale, rate in ((0.1, 1.0), (2.0, 0.5)):
        steps = np.linspace(0, 2, TOP_VALUES)[np.newaxis]
        found = tail_p_values(evidence, scale * steps, 19_999)
        assert found == pytest.approx((TOP_VALUES + 1) / 20_000 * np.exp(-10 * cautious * rate))


def test_equal_top_values_give_no_division_by_zero():
    """A node with few splits: its evidence has a largest value, reached again and again."""
    found = tail_p_values(np.array([3.0, 5.0]), np.full((2, TOP_VALUES), 3.0), 19_999)
    assert found[0] == pytest.approx((TOP_VALUES + 1) / 20_000)
    assert 0 < found[1] < found[0]


@pytest.fixture(scope="module")
def permuted():
    """Evidence of 150,000 permutations of five lone nodes with 12 to 40 observations."""
    rng = np.random.default_rng(1)
    sizes = [12, 16, 20, 30, 40]
    sides = [[rng.standard_t(4, size=(n, 1)) for n in sizes] for _ in range(2)]
    samples = gr.NodeSamples.from_arrays(*sides)
    pooled = PooledSamples.of(samples, rng)
    units = Units.of(pooled, rng, samples.blocks)
    plan = PermutationPlan(pooled, gr.Graph.empty(5), units, 150_000, rng)
    make = node_evidence(plan, None)
    found = np.empty((5, plan.n_permutations), dtype=np.float32)
    for node in range(5):
        means = make(np.array([node]))
        parts = [means.evaluate(x)[0][0] for x in plan.shared_splits(node, plan.n_permutations)]
        found[node] = np.concatenate(parts)
    return found


def test_the_tail_of_real_nodes_is_conservative_against_brute_force(permuted):
    """Fitted to 10,000 permutations, compared with 140,000 others at 1 / 1,000 to 1 / 14,000."""
    first, rest = permuted[:, :10_000], np.sort(permuted[:, 10_000:], axis=1)
    top = np.sort(first, axis=1)[:, -TOP_VALUES:]
    for count in (10, 30, 140):
        found = tail_p_values(rest[:, -count].astype(float), top, 10_000)
        true = count / rest.shape[1]
        # The brute-force count has a standard error of its square root.
        assert (found >= true * (1 - 2 / np.sqrt(count))).all()
        assert (found <= 30 * true).all()


def test_the_tail_is_fitted_to_the_permutations_of_all_looks(monkeypatch):
    """So that its top values are among as many as it divides by."""
    rng = np.random.default_rng(0)
    side = rng.normal(size=(2, 1, 30))
    side[1] += 2.5
    samples = gr.NodeSamples.from_arrays(list(side[0]), list(side[1]))
    pooled = PooledSamples.of(samples, rng)
    plan = PermutationPlan(
        pooled, gr.Graph.empty(1), Units.of(pooled, rng, samples.blocks), 19_999, rng
    )
    found = []
    original = node_null.PermutedMeans.evaluate

    def evaluate(self, labels):
        values = original(self, labels)
        found.append(values[0])
        return values

    def tail(evidence, top, n_permutations):
        seen = np.concatenate([part for part in found if part.shape[1] > 1], axis=1)
        assert seen.shape[1] == n_permutations == 19_999
        np.testing.assert_array_equal(np.sort(top[0]), np.sort(seen[0])[-TOP_VALUES:])
        return np.array([1e-7])

    monkeypatch.setattr(node_null.PermutedMeans, "evaluate", evaluate)
    monkeypatch.setattr(node_null, "tail_p_values", tail)
    outcome = NodeTests.blank(1, 3)
    permute_each_node(
        outcome,
        np.array([0]),
        node_evidence(plan, None),
        plan,
        Resolution(19_999, 1, 1e-5, "fwer", extrapolates=True),
        ProgressBar(1, "", enabled=False),
    )
    assert outcome.extrapolated.all()
    assert outcome.p_value == 1e-7
