"""What a graph is worth, and where neighbours change alike."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.evaluation.recipe import Recipe
from graphratio.evaluation.regions import regions_of
from graphratio.evaluation.where import Agreement
from graphratio.evaluation.worth import Worth, _Subsets, worth_of


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


@pytest.fixture(scope="module")
def measured():
    samples, right, wrong = blocks_of_nodes()
    rng = np.random.default_rng(1)
    recipe = Recipe.of(gr.GRULSIF(prior_ratio=1.0, bandwidth=1.5), samples, rng)
    return worth_of(recipe, {"right": right, "wrong": wrong}, 0.05, rng)


def test_a_right_graph_replaces_observations_and_a_wrong_one_does_not(measured):
    right, wrong = measured["right"], measured["wrong"]
    assert right.low > 1.1
    assert right.estimate > 1.4
    assert wrong.low == 1
    assert wrong.estimate < right.estimate
    for one in measured.values():
        assert one.low <= one.estimate <= one.high
        # Subsets of two up to all but a fold.
        assert (one.sizes[0], one.sizes[-1], one.n) == (2, 7, 8)
    # With the graph, losses are lower at every size.
    assert (right.joined < right.alone).all()
    np.testing.assert_array_equal(right.alone, wrong.alone)


def test_the_worth_in_words(measured):
    assert "of each node alone: the graph is worth" in measured["right"].in_words
    assert measured["wrong"].in_words.startswith(
        "The graph replaces no observations for sure: it is worth 1.0"
    )
    curve = np.linspace(0.0, -1.0, 4)
    whole = Worth(4.0, 2.5, np.inf, 8, np.array([2.0, 3, 5, 7]), curve - 1, curve, 0.05)
    assert whole.open_above
    # Where the estimate is open, the lower end is what can be said.
    assert whole.span == "at least 2.5"
    assert whole.fewer == 8 / 2.5


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


@pytest.mark.slow
def test_a_graph_that_is_right_in_one_half_says_so_and_agrees_with_learned_weights():
    rng = np.random.default_rng(1)
    n_nodes = 120
    places = rng.random((n_nodes, 2))
    right = gr.Graph.from_coordinates(places, k=5)
    shift = 1.5 * np.sign(np.sin(7 * places[:, 0] + 5 * places[:, 1]))
    wrong = np.flatnonzero(places[:, 0] > 0.5)
    matrix = right.adjacency.toarray()
    order = rng.permutation(wrong)
    matrix[np.ix_(wrong, wrong)] = matrix[np.ix_(order, order)]
    graph = gr.Graph.from_adjacency(matrix)
    reference, target = rng.normal(size=(2, n_nodes, 40))
    samples = gr.NodeSamples.from_arrays(list(reference), list(target + shift[:, np.newaxis]))
    found = gr.compare_graphs(samples, {"half": graph}, worth=False, random_state=0)
    words = np.array(found.agreement["half"].effect_at_nodes())
    in_wrong = places[:, 0] > 0.5
    assert (words[~in_wrong] == "alike").mean() > 0.5
    assert (words[in_wrong] == "alike").mean() < 0.15
    assert (words[in_wrong] == "not alike").mean() > 0.5
    assert "Neighbours change alike in" in found.verdict
    table = found.to_frame()
    assert table["neighbors_in_region"].tolist() == words.tolist()
    model = gr.GraphRatio(random_state=0).fit(samples, graph)
    rows, columns = np.nonzero(np.triu(matrix, 1))
    kept = model.graph_learned_.adjacency.toarray()[rows, columns]
    alike = (words[rows] == "alike") & (words[columns] == "alike")
    other = (words[rows] == "not alike") & (words[columns] == "not alike")
    assert kept[alike].mean() > 1.3 * kept[other].mean()
