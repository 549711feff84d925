"""Looks at the permutations of a node, exact counts as p-values, and those of a fitted tail."""

import numpy as np
import pytest

import graphratio as gr
from graphratio._utils.progress import ProgressBar
from graphratio.testing import multiplicity, node_null
from graphratio.testing.multiplicity import Resolution
from graphratio.testing.node_null import (
    TIE,
    TOP_VALUES,
    Counts,
    NodeTests,
    node_evidence,
    permute_each_node,
    rank_nodes,
    tail_p_values,
)
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledSamples

FIRST = node_null.FIRST_LOOK
BOUND = node_null.ENOUGH_EXTREME / (FIRST + 1)


def plan_of(sizes, n_permutations, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    sides = [[rng.normal(i * shift, 1, size=(n[i], 1)) for n in sizes] for i in (0, 1)]
    samples = gr.NodeSamples.from_arrays(*sides)
    pooled = PooledSamples.of(samples, rng)
    units = Units.of(pooled, rng, samples.blocks)
    return PermutationPlan(pooled, gr.Graph.empty(len(sizes)), units, n_permutations, rng)


def asking(n_permutations, correction="fwer", n_tests=1, level=0.05, extrapolates=False):
    return Resolution(n_permutations, n_tests, level, correction, extrapolates)


def bar():
    return ProgressBar(1, "", enabled=False)


class Known:
    """Evidence that is known beforehand: `observed` and a stream of permuted values."""

    def __init__(self, observed, permuted):
        self.values, self.stream, self.used = np.asarray(observed), permuted, 0

    def __call__(self, nodes):
        return self

    def observed(self):
        return self.values, self.values[:, np.newaxis]

    def step(self, n_permutations):
        return len(self.values)

    def part(self, nodes):
        if isinstance(nodes, slice) or len(nodes) == len(self.values):
            return self
        return Known(self.values[nodes], self.stream[nodes, self.used :])

    def evaluate(self, labels):
        found = self.stream[:, self.used : self.used + len(labels)]
        self.used += len(labels)
        return found, found[:, :, np.newaxis]


@pytest.mark.parametrize(
    ("n_extreme", "looks"), [(100, [FIRST]), (99, [FIRST, 10 * FIRST + 9]), (0, [FIRST, 19_999])]
)
def test_a_node_goes_on_until_enough_data_sets_are_as_extreme(n_extreme, looks):
    """100 of 1,999 and the observed one make 101 of 2,000, above the bound of 100."""
    permuted = np.zeros((1, 19_999))
    permuted[:, :n_extreme] = 2.0
    make, outcome = Known([1.0], permuted), NodeTests.blank(1, 1)
    permute_each_node(
        outcome, np.array([0]), make, plan_of([(5, 5)], 19_999), asking(19_999), bar()
    )
    assert make.used == looks[-1] == outcome.n_permutations[0]
    # A count over all looks, the observed data set among them.
    assert outcome.p_value[0] == (n_extreme + 1) / (looks[-1] + 1)


def test_a_node_that_goes_on_ends_at_or_below_the_bound_of_the_look():
    """At first not extreme enough to be finished, later many are: the bound is kept."""
    permuted = np.zeros((1, 19_999))
    permuted[:, FIRST + 1 :] = 2.0
    outcome = NodeTests.blank(1, 1)
    permute_each_node(
        outcome,
        np.array([0]),
        Known([1.0], permuted),
        plan_of([(5, 5)], 19_999),
        asking(19_999),
        bar(),
    )
    assert outcome.p_value[0] == BOUND
    assert outcome.p_values[0, 0] == pytest.approx((19_999 - FIRST) / 20_000)


def test_differences_by_rounding_are_ties():
    permuted = np.zeros((1, 99))
    permuted[0, :5] = 1.0 - TIE / 2
    permuted[0, 5:9] = 1.0 - 2 * TIE
    outcome = NodeTests.blank(1, 1)
    permute_each_node(
        outcome, np.array([0]), Known([1.0], permuted), plan_of([(5, 5)], 99), asking(99), bar()
    )
    assert outcome.p_value[0] == outcome.p_values[0, 0] == 6 / 100


def test_early_looks_keep_the_p_value_valid(monkeypatch):
    """Uniform over ranks whether or not looks are taken: small p-values are no more frequent."""
    monkeypatch.setattr(node_null, "FIRST_LOOK", 19)
    monkeypatch.setattr(node_null, "ENOUGH_EXTREME", 4)
    rng = np.random.default_rng(0)
    plan = plan_of([(5, 5)], 199)
    p_values = []
    for _ in range(1500):
        outcome, make = NodeTests.blank(1, 1), Known(rng.normal(size=1), rng.normal(size=(1, 199)))
        permute_each_node(outcome, np.array([0]), make, plan, asking(199), bar())
        p_values.append(outcome.p_value[0])
    for level in (0.01, 0.05, 0.1, 0.2, 0.3, 0.5):
        rate = np.mean(np.array(p_values) <= level)
        assert abs(rate - level) <= 4 * np.sqrt(level * (1 - level) / 1500)


def brute_force(plan, node, n_permutations, seed):
    """Own evidence of one node, permutation by permutation."""
    rng = np.random.default_rng(seed)
    means = node_evidence(plan, None)(np.array([node]))
    observed = means.observed()[0][0]
    label = means.labels[0]
    drawn = np.array([rng.permutation(label) for _ in range(n_permutations)])
    found = means.evaluate(drawn)[0][0]
    return np.mean(found >= observed - TIE)


def test_p_values_are_the_share_of_permutations_at_nodes_of_different_sizes():
    """Nodes are evaluated in batches of equal size; each must meet its own columns."""
    sizes = [(12, 9), (9, 12), (12, 9), (7, 30), (10, 11)]
    plan = plan_of(sizes, 1999, shift=0.4)
    outcome = NodeTests.blank(5, 3)
    permute_each_node(
        outcome, np.arange(5), node_evidence(plan, None), plan, asking(1999, None), bar()
    )
    for node in range(5):
        p_value = outcome.p_value[node]
        expected = brute_force(plan, node, 2000, seed=node)
        assert p_value == pytest.approx(expected, abs=5 * np.sqrt(p_value / 1000))
        assert p_value * 2000 == pytest.approx(round(p_value * 2000))
    assert (outcome.n_permutations == 1999).all()
    assert len(set(outcome.p_value)) > 3


def test_only_the_given_nodes_are_tested():
    plan = plan_of([(8, 8)] * 4, 99)
    outcome = NodeTests.blank(4, 3)
    permute_each_node(
        outcome, np.array([2]), node_evidence(plan, None), plan, asking(99, None), bar()
    )
    assert outcome.p_value[[0, 1, 3]].tolist() == [1, 1, 1]
    assert outcome.n_permutations.tolist() == [0, 0, 99, 0]
    assert np.flatnonzero(outcome.evidence).tolist() == [2]


def test_a_node_alone_has_the_p_value_of_all_its_splits():
    """Three against four: 35 splits, all seen; the most extreme has p-value 1 / 35."""
    data = ([np.array([0.0, 0.1, 0.3])], [np.array([5.0, 5.2, 6.0, 9.0])])
    found = gr.two_sample_test(data, correction=None, n_permutations=3499, random_state=0)
    assert found.p_value[0] == pytest.approx(1 / 35, abs=5 * np.sqrt(1 / 35 / 3500))


def test_a_node_whose_smallest_p_value_is_the_threshold_can_be_rejected():
    """Four against four have 70 splits, and exchanged samples tie: two of them are enough."""
    data = ([np.arange(4.0)], [np.arange(10.0, 14.0)])
    for level, hopeless in ((2 / 70, False), (2 / 71, True)):
        found = gr.two_sample_test(
            data, correction=None, level=level, n_permutations=999, random_state=0
        )
        assert found.answerable_nodes[0] != hopeless


class Drawn:
    """Counts of nodes with known evidence under fresh permuted values; `asked` notes how many."""

    def __init__(self, observed, rng):
        self.observed, self.rng, self.asked = np.asarray(observed), rng, []

    def __call__(self, nodes, n_permutations):
        self.asked.append((len(nodes), n_permutations))
        own = self.observed[nodes]
        permuted = self.rng.normal(size=(len(nodes), n_permutations))
        extreme = (permuted >= own[:, np.newaxis]).sum(axis=1)
        return Counts(own, own[np.newaxis], np.vstack([extreme, extreme]), permuted[:, :0])


class TestFalseDiscoveryRate:
    def run(self, n_changed, correction="fdr", fades=None):
        """Outcome; of 40 nodes so many are beyond all permuted values, one only at first."""
        observed = np.where(np.arange(40) < n_changed, 9.0, 0.0)
        permuted = np.ones((40, 19_999))
        if fades is not None:
            permuted[fades, FIRST:] = 10.0
        outcome = NodeTests.blank(40, 1)
        permute_each_node(
            outcome,
            np.arange(40),
            lambda nodes: Known(observed[nodes], permuted[nodes]),
            plan_of([(5, 5)] * 40, 19_999),
            asking(19_999, correction, n_tests=40),
            bar(),
        )
        return outcome

    def test_nodes_that_support_each_other_need_fewer_permutations(self):
        """40 changed nodes are compared with 0.05, of which 1,999 permutations are plenty."""
        assert (self.run(40).n_permutations == FIRST).all()
        counts = self.run(39).n_permutations
        assert (counts[:39] == 2564).all()
        assert counts[39] == FIRST

    def test_nodes_that_lose_support_are_looked_at_again(self, monkeypatch):
        """Thirty nodes would do with 2,666 permutations; one of them is not extreme by then."""
        monkeypatch.setattr(multiplicity, "NEXT_LOOK", 1.0)
        found = self.run(30, fades=29)
        assert found.n_permutations[29] == 2666
        assert found.p_value[29] == BOUND
        assert (found.n_permutations[:29] == 2758).all()
        assert (found.p_value[:29] == 1 / 2759).all()

    def test_nodes_that_did_not_change_have_uniform_p_values(self, monkeypatch):
        """Whatever looks the others bring about: three changed nodes, and chance among seven."""
        monkeypatch.setattr(node_null, "FIRST_LOOK", 19)
        monkeypatch.setattr(node_null, "ENOUGH_EXTREME", 4)
        rng = np.random.default_rng(0)
        p_values, looks = [], set()
        for _ in range(1500):
            count = Drawn(np.append(np.full(3, 9.0), rng.normal(size=7)), rng)
            outcome = NodeTests.blank(10, 1)
            question = asking(999, "fdr", n_tests=10)
            rank_nodes(outcome, np.arange(10), count, 999, question, bar())
            p_values.append(outcome.p_value[3:])
            looks |= set(outcome.n_permutations.tolist())
            np.testing.assert_array_equal(outcome.p_value[:3], 1 / (outcome.n_permutations[:3] + 1))
        # Besides those at 19 and 199 there were looks that depend on the data.
        assert {19, 199} < looks
        assert len(looks) > 5
        for level in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
            rate = np.mean(np.array(p_values) <= level)
            error = 4 * np.sqrt(level * (1 - level) / (7 * 1500))
            # P-values are multiples of 1 / 100 or less, unless a first look decides.
            assert level - 0.01 - error <= rate <= level + error

    @pytest.mark.parametrize(("n_permutations", "first"), [(19_999, FIRST), (7_000, 7_000)])
    def test_the_first_look_is_as_planned(self, n_permutations, first):
        """All nodes are active then, though 624 permutations would do if all were changed."""
        count = Drawn(np.full(40, 9.0), np.random.default_rng(0))
        question = asking(n_permutations, "fdr", n_tests=40, level=0.2)
        assert question.next_look(first, 40, node_null.ENOUGH_EXTREME) == 624
        outcome = NodeTests.blank(40, 1)
        rank_nodes(outcome, np.arange(40), count, n_permutations, question, bar())
        assert count.asked == [(40, first)]
        assert (outcome.n_permutations == first).all()

    def test_a_single_node_needs_all(self):
        counts = self.run(1).n_permutations
        assert counts[0] == 19_999
        assert (counts[1:] == FIRST).all()

    def test_the_family_wise_error_gains_nothing(self):
        assert (self.run(40, "fwer").n_permutations == 19_999).all()


class TestExtrapolation:
    def run(self, evidence, n_permutations=19_999, level=1e-4):
        permuted = np.random.default_rng(0).exponential(size=(1, n_permutations))
        outcome = NodeTests.blank(1, 1)
        make = Known([evidence], permuted)
        question = asking(n_permutations, level=level, extrapolates=True)
        permute_each_node(
            outcome, np.array([0]), make, plan_of([(5, 5)], n_permutations), question, bar()
        )
        return outcome, permuted

    def test_the_last_look_takes_the_smaller_p_value(self):
        outcome, _ = self.run(12.0)
        assert outcome.extrapolated[0]
        assert np.exp(-12) <= outcome.p_value[0] <= 30 * np.exp(-12)
        outcome, permuted = self.run(7.0)
        count = 1 + np.count_nonzero(permuted >= 7.0 - TIE)
        assert outcome.p_value[0] <= count / 20_000

    @pytest.mark.parametrize("count", [10, 11, 60])
    def test_many_extreme_data_sets_are_counted(self, count):
        """Up to ten, the observed one among them, the tail may be taken; beyond, counts stay."""
        _, permuted = self.run(5.0)
        evidence = np.sort(permuted[0])[-(count - 1)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node_null, "tail_p_values", lambda *_: np.array([1e-6]))
            outcome, _ = self.run(evidence)
        assert outcome.extrapolated[0] == (count <= 10)
        if count > 10:
            assert outcome.p_value[0] == pytest.approx(count / 20_000)

    def test_a_clear_node_is_settled_before_the_last_look(self):
        clear, _ = self.run(25.0, n_permutations=199_999)
        assert (clear.n_permutations[0], clear.extrapolated[0]) == (19_999, True)
        unclear, _ = self.run(12.0, n_permutations=199_999, level=1e-5)
        assert unclear.n_permutations[0] == 199_999


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
