"""What a graph is worth, and where neighbours change alike."""

from functools import cache

import numpy as np
import pytest

import graphratio as gr
from graphratio.evaluation.recipe import Recipe
from graphratio.evaluation.regions import regions_of
from graphratio.evaluation.where import Agreement
from graphratio.evaluation.worth import Worth, _Curves, _Subsets, subset_sizes, worth_of

MODEL = gr.GRULSIF(
    prior_ratio=1.0, bandwidth=1.5, graph_penalty=[0.01, 0.1, 1.0], ridge=[0.01, 0.1, 1.0]
)


def blocks_of_nodes(n_nodes=48, size=8, n=8, seed=0):
    """Cliques whose nodes change alike, and a graph of as many random edges."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_nodes) // size
    shift = np.array([-1.8, 1.8, 0.0])[group % 3]
    reference = rng.normal(size=(n_nodes, n))
    target = rng.normal(size=(n_nodes, n)) + shift[:, np.newaxis]
    right = gr.Graph.from_adjacency((group[:, None] == group[None]) & ~np.eye(n_nodes, dtype=bool))
    order = rng.permutation(n_nodes)
    wrong = gr.Graph.from_adjacency(right.adjacency[order][:, order])
    return gr.NodeSamples.from_arrays(list(reference), list(target)), right, wrong


@cache
def worth_on(seed):
    samples, right, wrong = blocks_of_nodes(seed=seed)
    rng = np.random.default_rng(1)
    recipe = Recipe.of(MODEL, samples, rng)
    return worth_of(recipe, {"right": right, "wrong": wrong}, 0.05, rng)


@pytest.fixture(scope="module")
def measured():
    return worth_on(20)


def test_a_right_graph_replaces_observations_and_a_wrong_one_does_not():
    draws = [worth_on(seed) for seed in range(20, 23)]
    right, wrong = ([found[name] for found in draws] for name in ("right", "wrong"))
    assert sum(own.low > 1.3 for own in right) >= 3
    assert np.mean([own.estimate for own in right]) > 2
    assert sum(own.low == 1 for own in wrong) >= 3
    assert np.mean([own.estimate for own in wrong]) < 1.5


def test_curves_and_intervals(measured):
    right, wrong = measured["right"], measured["wrong"]
    for one in measured.values():
        assert one.low <= one.estimate <= one.high
        # Subsets of two up to all but a fold.
        assert (one.sizes[0], one.sizes[-1], one.n) == (2, 7, 8)
    # With the graph, losses are lower at every size.
    assert (right.joined < right.alone).all()
    np.testing.assert_array_equal(right.alone, wrong.alone)


def test_the_worth_of_nodes_is_that_of_their_region():
    """Nodes of half of the network change alike with their neighbours, the others do not."""
    samples, right, wrong = blocks_of_nodes(n_nodes=96, seed=2)
    first = np.arange(96) < 48
    matrix = np.where(
        np.outer(first, first), right.adjacency.toarray(), wrong.adjacency.toarray()
    ) * (np.equal.outer(first, first))
    # A node without neighbours.
    matrix[95] = matrix[:, 95] = 0
    rng = np.random.default_rng(1)
    recipe = Recipe.of(MODEL, samples, rng)
    found = worth_of(recipe, {"half": gr.Graph.from_adjacency(matrix)}, 0.05, rng)["half"]
    estimate, low, high = found.at_nodes
    assert np.isnan(found.at_nodes[:, 95]).all()
    known = np.isfinite(estimate)
    assert (low[known] <= estimate[known]).all()
    assert (estimate[known] <= high[known]).all()
    # NaN stands for an interval from 1 to infinity.
    assert np.nanmean(low[first]) > np.nanmean(np.where(known, low, 1.0)[~first])
    spans = found.span_at_nodes
    assert (spans[95], [span != "" for span in spans]) == ("", known.tolist())


def test_each_subset_decides_whether_it_uses_the_graph():
    joined = _Curves(np.full((2, 3, 2), 1.0), np.array([[0.1, 0.2], [0.3, 0.4]]))
    alone = _Curves(np.full((2, 3, 2), 5.0), np.array([[0.0, 0.2], [0.5, 0.3]]))
    found = joined.or_better(alone)
    np.testing.assert_array_equal(found.losses[:, 0], [[5.0, 1.0], [1.0, 5.0]])
    np.testing.assert_array_equal(found.losses, np.repeat(found.losses[:, :1], 3, axis=1))
    np.testing.assert_array_equal(found.scores, [[0.0, 0.2], [0.3, 0.3]])


def test_samples_of_very_different_size_give_the_same_share():
    """Every other node has a tenth of the observations."""
    rng = np.random.default_rng(0)
    group = np.arange(48) // 8
    shift = np.array([-1.8, 1.8, 0.0])[group % 3]
    sizes = np.where(np.arange(48) % 2, 6, 60)
    reference = [rng.normal(size=n) for n in sizes]
    target = [rng.normal(mean, size=n) for mean, n in zip(shift, sizes, strict=True)]
    graph = gr.Graph.from_adjacency((group[:, None] == group[None]) & ~np.eye(48, dtype=bool))
    samples = gr.NodeSamples.from_arrays(reference, target)
    recipe = Recipe.of(MODEL, samples, rng)
    found = worth_of(recipe, {"graph": graph}, 0.05, rng)["graph"]
    assert found.low > 1.3
    np.testing.assert_array_equal(subset_sizes(np.array([48, 5]), 0.5), [24, 2])


def test_the_worth_in_words(measured):
    assert "of each node alone: the graph is worth" in measured["right"].in_words
    assert measured["wrong"].in_words.startswith(
        "The number of observations that the graph replaces is not clear: 1."
    )
    curve = np.linspace(0.0, -1.0, 4)
    whole = Worth(4.0, 2.5, np.inf, 8, np.array([2.0, 3, 5, 7]), curve - 1, curve, 0.05)
    assert whole.open_above
    # Where the estimate is open, the lower end is what can be said.
    assert whole.span == "at least 2.5"
    assert whole.fewer == 8 / 2.5


def test_a_graph_that_is_ahead_to_the_end_is_worth_more_than_one():
    """Both curves are continued to n: joined stays below, so it reaches alone at n before n."""
    subsets = _Subsets(None, None, None, None, np.array([10.0, 20.0, 40.0, 80.0]), 100.0, 80.0)
    alone = -np.log(subsets.sizes)
    gain = subsets._still_to_gain(alone)
    assert gain == pytest.approx(-np.log(100 / 80))
    for lead, worth in ((0.0, 1.0), (0.1, np.exp(0.1))):
        ahead = (alone - lead) - alone[-1] - gain
        found = subsets._worth_at(np.append(ahead, ahead[-1] + gain))
        assert found == pytest.approx(worth)


def make_subsets(sizes, n):
    return _Subsets(None, None, None, None, np.array(sizes), n, n)


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        ([0.0, 0.0, 0.0, 0.0], 1.0),
        ([1.0, 0.0, -1.0], 4.0),
        ([3.0, 1.0, -1.0], 16 / np.sqrt(4 * 16)),
        ([-0.1, -1.0, -2.0], np.inf),
        ([2.0, 1.0, 0.5], 1.0),
        # What is noise: the curve rises again, and the worth is that of the first crossing.
        ([1.0, -1.0, 0.5], 16 / np.sqrt(2 * 4)),
    ],
)
def test_the_worth_is_where_the_curve_falls_to_zero(ahead, expected):
    found = make_subsets([2.0, 4.0, 16.0], 16.0)._worth_at(np.array(ahead))
    assert found == pytest.approx(expected)


def test_the_loss_alone_is_continued_to_all_observations():
    """Half of the last doubling is still to come from 8 to 8 sqrt(2) observations."""
    subsets = _Subsets(None, None, None, None, np.array([2.0, 4, 8]), 8 * np.sqrt(2), 8.0)
    assert subsets._still_to_gain(np.array([0.0, -0.1, -0.3])) == pytest.approx(-0.1)
    assert subsets._still_to_gain(np.array([0.0, -0.1, 0.1])) == 0


def test_regions_are_connected_and_cover_all_nodes():
    grid = [(i, i + 1) for i in range(99) if i % 10 < 9] + [(i, i + 10) for i in range(90)]
    graph = gr.Graph.from_edges(grid, nodes=range(101))
    region = regions_of(graph, 10)
    for number in np.unique(region):
        nodes = np.flatnonzero(region == number)
        assert graph.subset([graph.nodes[i] for i in nodes]).components.max() == 0
        assert nodes.tolist() == [100] or 5 <= len(nodes) <= 20


def test_agreement_where_neighbours_change_alike():
    """A path whose first half changes in long stretches and whose second half is noise."""
    rng = np.random.default_rng(0)
    n_nodes = 200
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)], nodes=range(n_nodes))
    stretches = np.sign(np.sin((np.arange(n_nodes) + 0.5) / 8))
    points = np.where(np.arange(n_nodes) < 100, stretches, rng.normal(size=n_nodes))
    known = np.arange(n_nodes) != 3
    found = Agreement.of(graph, points[:, np.newaxis], known, 0.05, np.random.default_rng(0))
    assert np.isnan(found.at_nodes[3])
    words = np.array(found.effect_at_nodes())
    assert words[3] == "not assessed"
    first, second = np.arange(n_nodes) < 100, np.arange(n_nodes) >= 100
    assert (words[first & known] == "alike").mean() > 0.9
    assert (words[second] == "alike").mean() < 0.2
    assert (words[second] == "not alike").mean() > 0.3
    # Brute force at one node.
    unit = np.square(points[known]).mean()
    assert found.at_nodes[50] == pytest.approx(points[50] * (points[49] + points[51]) / 2 / unit)


def right_in_one_half(seed, n_nodes, n=40):
    """Changes in stripes; in the right half of the map edges join random nodes of that half."""
    rng = np.random.default_rng(seed)
    places = rng.random((n_nodes, 2))
    shift = 1.5 * np.sign(np.sin(7 * places[:, 0] + 5 * places[:, 1]))
    wrong = np.flatnonzero(places[:, 0] > 0.5)
    matrix = gr.Graph.from_coordinates(places, k=5).adjacency.toarray()
    order = rng.permutation(wrong)
    matrix[np.ix_(wrong, wrong)] = matrix[np.ix_(order, order)]
    reference, target = rng.normal(size=(2, n_nodes, n))
    samples = gr.NodeSamples.from_arrays(list(reference), list(target + shift[:, np.newaxis]))
    return samples, gr.Graph.from_adjacency(matrix), places[:, 0] > 0.5


@cache
def compared_in_halves(seed):
    samples, graph, in_wrong = right_in_one_half(seed, 200)
    # Where neighbours change alike follows from the largest bandwidth alone.
    fixed = gr.GRULSIF(prior_ratio=1.0, bandwidth=4.0, graph_penalty=0.2, ridge=0.02)
    found = gr.compare_graphs(samples, {"half": graph}, fixed, worth=False, random_state=0)
    return samples, graph, in_wrong, found


@pytest.mark.slow
def test_a_graph_that_is_right_in_one_half_says_so():
    shares = []
    for seed in range(30, 35):
        _, _, in_wrong, found = compared_in_halves(seed)
        words = np.array(found.agreement["half"].effect_at_nodes())
        assert found.to_frame()["neighbors_in_region"].tolist() == words.tolist()
        assert "Neighbours change alike in" in found.verdict
        shares.append(
            [(words[part] == word).mean() for part in (~in_wrong, in_wrong)
             for word in ("alike", "not alike")]
        )  # fmt: skip
    alike, not_alike, wrongly_alike, rightly_not = np.mean(shares, axis=0)
    assert alike > 0.7
    assert wrongly_alike < 0.2
    assert not_alike < 0.03
    assert rightly_not > not_alike


@pytest.mark.slow
def test_agreement_and_learned_weights_agree():
    samples, graph, _, found = compared_in_halves(32)
    words = np.array(found.agreement["half"].effect_at_nodes())
    model = gr.GraphRatio(random_state=0).fit(samples, graph)
    rows, columns = np.nonzero(np.triu(graph.adjacency.toarray(), 1))
    kept = model.graph_learned_.adjacency.toarray()[rows, columns]
    alike = (words[rows] == "alike") & (words[columns] == "alike")
    other = (words[rows] != "alike") & (words[columns] != "alike")
    assert kept[alike].mean() > 1.3 * kept[other].mean()
