"""The statistics, their shares of the level, and how observed values are ranked."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.testing import groups
from graphratio.testing.global_null import _compare, _one_scale
from graphratio.testing.node_correlation import cross_correlation
from graphratio.testing.node_null import NodeTests
from graphratio.testing.pooled import PooledSamples, read_settings
from graphratio.testing.statistics import (
    NAMES,
    combine,
    combined_count,
    exceedances,
    node_statistics,
)

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(9)])


@pytest.mark.parametrize("each", [False, True])
def test_statistics_are_what_they_are_called(each):
    """Term by term, with one prediction for all permutations or one for each."""
    rng = np.random.default_rng(0)
    theta, b, w = rng.normal(size=(3, 4, 3))
    root = rng.normal(size=(3, 3))
    second = root @ root.T
    witness = w if each else w[0][:, np.newaxis]
    found = dict(zip(NAMES, node_statistics(theta, b, second, witness), strict=True))
    for i in range(4):
        seen = w[i] if each else w[0]
        # The divergence E_q g - 1/2 E g^2 of g = f - 1, over the pooled sample.
        gain = theta[i] @ b[i] - 0.5 * theta[i] @ second @ theta[i]
        assert found["divergence"][i] == pytest.approx(gain)
        assert found["norm"][i] == pytest.approx(np.sum(theta[i] ** 2))
        assert found["witness"][i] == pytest.approx(np.sum(b[i] * seen))
        assert found["mmd"][i] == pytest.approx(np.sum(b[i] ** 2))


def test_every_statistic_gets_its_share_of_the_level():
    """Of the data sets that are rejected at 5 %, so many are by each of independent statistics."""
    n_sets = 20_000
    ranks = exceedances(np.random.default_rng(0).normal(size=(4, n_sets)))
    smallest, _ = combine(ranks)
    rejected = smallest <= np.quantile(smallest, 0.05)
    by = np.argmin(ranks[:, rejected] / np.array([[0.1], [0.2], [0.65], [0.05]]), axis=0)
    share = np.bincount(by, minlength=4) / rejected.sum()
    np.testing.assert_allclose(share, [0.1, 0.2, 0.65, 0.05], atol=0.03)
    # A p-value counts divided by its share: the 13 % of one are the 1 % of another.
    assert smallest.min() == pytest.approx(1 / 0.65)


def test_ties_are_decided_by_the_sum_of_ranks_and_then_count_as_extreme():
    """Rank 1 of a share of 0.1 is worth as much as rank 2 of a share of 0.2."""
    first, second = [1, 9, 20, 20], [9, 2, 20, 20]
    assert combined_count(np.transpose([first, second])) == 1
    assert combined_count(np.transpose([second, first])) == 2
    assert combined_count(np.transpose([first, first])) == 2


def test_p_values_of_a_look_are_rounded_up():
    """29 permutations of 199: the ranks of 30 data sets in units of 1 / 200."""
    statistics = np.random.default_rng(1).normal(size=(4, 30))
    outcome = NodeTests.blank(1, 199)
    exact = outcome.record(0, statistics, 199, 1.0, alone=False)
    ranks = exceedances(statistics)[:, 0] / 30
    for p_value, rank in ((outcome.combined[0] / 200, exact), *zip(
        outcome.counts[:, 0] / 200, ranks, strict=True
    )):  # fmt: skip
        assert rank <= p_value < rank + 1 / 200
    assert (ranks * 200 % 1 > 0).any()


def test_the_largest_over_nodes_is_a_valid_test_of_the_whole_graph():
    """Exchangeable data sets: any rank of the observed one is as likely as any other."""
    rng = np.random.default_rng(0)
    complete = np.array([True, True, True, False])
    ranks = []
    for _ in range(2000):
        statistics = rng.exponential(size=(4, 4, 20)) * [[[1.0], [10.0], [0.1], [1e6]]]
        _, against = _compare(statistics, complete, alone=False)
        assert against[3] == 20
        ranks.append(against[complete].min())
    share = np.cumsum(np.bincount(ranks, minlength=21)[1:]) / 2000
    levels = np.arange(1, 21) / 20
    # Ties of the shares make it cautious, never too keen.
    assert (share <= levels + 4 * np.sqrt(levels * (1 - levels) / 2000)).all()
    assert (share >= levels - 0.05 - 4 * np.sqrt(levels * (1 - levels) / 2000)).all()


def test_data_sets_that_are_as_extreme_count_against_a_node():
    """The observed set leads by the divergence, another one just as much by the norm.

    Of a share of 0.1 the first rank is worth as much as the second of a share of 0.2.
    """
    statistics = np.tile(np.arange(20.0, 0, -1), (4, 1, 1))
    # Observed first: divergence rank 1, all else last.
    statistics[1:, 0, 0] = 0.1
    # The norm: another set leads whose divergence is low, and one is second.
    statistics[0, 0, 1:] = np.roll(statistics[0, 0, 1:], 10)
    statistics[2:] = 1.0
    _, against = _compare(statistics, np.array([True]), alone=False)
    # Sets 1 and 2 have the ranks 1 and 2 by the norm.
    assert against[0] == 3


def test_quadratic_statistics_are_compared_by_their_roots():
    """Squares of a law and the law itself come to the same scale; the witness has a sign."""
    z = np.random.default_rng(0).exponential(size=(1, 50))
    scaled = _one_scale(np.stack([z**2, 9 * z**2, -z, z**2 / 7]))
    standard = (z - z.mean()) / z.std()
    for name, row in zip(NAMES, scaled, strict=True):
        np.testing.assert_allclose(row, -standard if name == "witness" else standard, atol=1e-7)


def samples_of(values, n_reference):
    return gr.NodeSamples.from_arrays(list(values[:, :n_reference]), list(values[:, n_reference:]))


def test_correlation_between_nodes_is_free_of_bias():
    """Of small independent samples it is 0 on average, not what chance alone gives."""
    rng = np.random.default_rng(0)
    above, squares = 0, []
    for _ in range(300):
        values = rng.normal(size=(10, 16))
        found = cross_correlation(samples_of(values, 8), PATH, rng)
        above += found.value > found.noise
        squares.append(found.value**2)
    # Three standard deviations of a skewed law: about 1 %.
    assert above <= 9
    assert np.mean(squares) < 0.03
    same = np.tile(rng.normal(size=16), (10, 1))
    # Perfect correlation less the 1 / 14 that 16 independent pairs would show.
    found = cross_correlation(samples_of(same, 8), PATH, rng)
    assert found.value**2 == pytest.approx(13 / 14)


def test_the_mixture_of_a_node_is_its_pooled_sample(monkeypatch):
    seen = []

    def spy(split, *_, **__):
        seen.append(split.alpha.tolist())
        return split_and_select(split, *_, **__)

    split_and_select = groups.select
    monkeypatch.setattr(groups, "select", spy)
    rng = np.random.default_rng(0)
    sizes = [(2, 6), (5, 5)]
    reference, target = ([rng.normal(size=pair[side]) for pair in sizes] for side in (0, 1))
    gr.two_sample_test((reference, target), gr.Graph.from_edges([(0, 1)]), random_state=0)
    assert seen == [[0.75, 0.5]] * 2


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_default_candidates_act_the_same_on_any_graph(weight):
    """Per node: whatever the number of nodes and the scale of the edge weights."""
    rng = np.random.default_rng(0)
    graph = gr.Graph.from_edges([(i, i + 1, weight) for i in range(9)])
    samples = samples_of(rng.normal(size=(10, 30)), 10)
    found = read_settings(None, PooledSamples.of(samples, rng), graph)
    assert found.candidates.bandwidth == pytest.approx([0.7 * np.median(found.sigma)])
    pull = found.candidates.graph_penalty * graph.mean_degree
    np.testing.assert_allclose(pull, np.repeat([0.1, 0.3, 1, 3], 2))
    np.testing.assert_allclose(found.candidates.ridge, pull * np.tile([0.001, 0.01], 4))
    # Without data to choose on: the middle of each list.
    assert found.middle[1] * graph.mean_degree == pytest.approx(1)
    assert found.middle[2] == pytest.approx(0.01)
    alone = read_settings(None, PooledSamples.of(samples, rng), gr.Graph.empty(10))
    np.testing.assert_allclose(alone.candidates.graph_penalty, [0, 0])
    np.testing.assert_allclose(alone.candidates.ridge, [0.001, 0.01])
