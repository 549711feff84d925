"""Which graph fits, and did it help."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.evaluation import graph_comparison
from graphratio.evaluation.comparison import GraphComparison, Losses
from graphratio.evaluation.node_means import DISPERSION, Difference
from graphratio.evaluation.recipe import Recipe, repeated_folds
from graphratio.evaluation.verdict import ALONE, LEARNED, SHARED, in_words
from graphratio.evaluation.ways import Ways
from graphratio.exceptions import InputError

MODEL = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0)
# For tests in which the grid does not matter.
FEW = gr.GRULSIF(
    prior_ratio=1.0, bandwidth=1.0, graph_penalty=[0.0, 0.06, 0.6, 6.0], ridge=[0.006, 0.06]
)


@pytest.fixture(scope="module")
def scenario():
    return make_scenario("Ia", n_nodes=60, n=60, random_state=4)


def ring(n_nodes=60, step=17):
    edges = [(i, (i + step) % n_nodes) for i in range(n_nodes)]
    return gr.Graph.from_edges(edges, nodes=range(n_nodes))


@pytest.fixture(scope="module")
def found(scenario):
    graphs = {"clusters": scenario.graph, "ring": ring(), "none": None}
    return gr.compare_graphs(scenario.samples, graphs, estimator=FEW, random_state=0)


def test_names_the_better_graph(found):
    assert found.best == "clusters"
    assert found.ranking == ["clusters", "ring"]
    assert (found.tied, found.effect) == ([], "helped")
    assert "'clusters' fits the data best" in found.verdict
    assert found.between("clusters", "ring").mean < 0


def test_says_no_clear_difference_when_there_is_none(scenario):
    graphs = {"one": ring(step=17), "other": ring(step=13)}
    result = gr.compare_graphs(
        scenario.samples, graphs, estimator=FEW, n_repeats=1, worth=False, random_state=0
    )
    assert result.best is None
    assert result.tied == result.ranking[1:]
    assert "No clear difference between" in result.verdict


def test_a_worse_graph_beside_tied_ones_is_named(scenario):
    graphs = {"one": scenario.graph, "other": scenario.graph, "ring": ring()}
    result = gr.compare_graphs(
        scenario.samples, graphs, estimator=FEW, n_repeats=1, worth=False, random_state=0
    )
    assert result.best is None
    assert result.tied == ["other"]
    assert result.verdict.startswith(
        "No clear difference between 'one' and 'other'; 'one' is clearly better than 'ring'."
    )


def test_too_few_observations_for_the_folds():
    three = ([[0.0, 1.0, 2.0]] * 2, [[1.0, 2.0, 3.0]] * 2)
    with pytest.raises(InputError, match=r"Collect more observations per node, or pass n_folds=3"):
        gr.compare_graphs(three, random_state=0)
    two = ([[0.0, 1.0]] * 2, [[1.0, 2.0]] * 2)
    with pytest.raises(InputError, match=r"Collect more observations per node\.$"):
        gr.compare_graphs(two, n_folds=3, random_state=0)


def test_every_fit_has_losses_with_intervals(found):
    table = found.to_frame()
    for name in (ALONE, SHARED, "clusters", "ring"):
        assert table[f"loss, {name}"].notna().all()
        assert (table[f"half width, {name}"] > 0).all()
    assert set(table["neighbors"]) <= {"helped", "hurt", "unclear"}
    assert found.without_graph == "none"
    gain = table[f"loss, {ALONE}"] - table["loss, clusters"]
    np.testing.assert_allclose(table["gain"], gain, atol=1e-12)
    assert list(table["node"][table["neighbors"] == "helped"]) == found.helped()
    assert list(table["node"][table["neighbors"] == "hurt"]) == found.hurt()
    summary = found.summary().set_index("fit")
    assert summary.loc["clusters", "minus_alone"] < 0
    assert summary.loc[ALONE, "minus_alone"] == 0


def test_held_out_losses_are_those_of_fits_without_the_fold(scenario):
    """With hyperparameters fixed, against the estimator on the same folds."""
    from graphratio.evaluation.node_means import loss_terms
    from graphratio.moments.losses import PEARSON

    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.06, ridge=0.006)
    rng = np.random.default_rng(0)
    recipe = Recipe.of(model, scenario.samples.aligned(scenario.graph.nodes), rng)
    data = recipe.samples
    split = repeated_folds(data, 3, 1, rng)
    part = recipe.run({"fit": recipe.coupled(scenario.graph)}, split)["fit"]
    folds = part.folds[0]
    fitted = gr.GRULSIF(**{**model.get_params(), "dictionary": recipe.dictionary})
    expected = np.empty(data.n_observations)
    for fold in range(3):
        train = [
            [
                data.values[(data.node_index == v) & (data.is_target == side) & (folds != fold)]
                for v in range(data.n_nodes)
            ]
            for side in (False, True)
        ]
        fitted.fit((train[0], train[1]), scenario.graph)
        rows = np.flatnonzero(folds == fold)
        values = fitted.predict(data.values[rows])
        expected[rows] = values[np.arange(len(rows)), data.node_index[rows]]
    np.testing.assert_allclose(part.ratios[0], expected, atol=0.02)
    terms = loss_terms(part.ratios, data.is_target, 0.1)
    sizes = np.column_stack([data.n_reference, data.n_target])
    means = [terms[data.node_index == v] for v in range(data.n_nodes)]
    losses = [part[:60].mean() + part[60:].mean() for part in means]
    np.testing.assert_allclose(losses, PEARSON.of_nodes(part.ratios[0], sizes, 0.1), atol=1e-12)


def test_offers_a_learned_graph_when_there_is_none(scenario):
    result = gr.compare_graphs(scenario.samples, estimator=FEW, n_repeats=1, random_state=0)
    assert set(result.losses) == {ALONE, SHARED, LEARNED}
    assert result.losses[LEARNED].mean < result.losses[ALONE].mean
    graph = result.learned_graph
    assert graph.n_neighbors.min() >= 10
    # Most of its edges join nodes of the same kind of change.
    rows, columns = graph.adjacency.nonzero()
    kinds = np.where(scenario.changed, scenario.groups, "unchanged")
    assert (kinds[rows] == kinds[columns]).mean() > 1.5 * np.mean(
        kinds[:, np.newaxis] == kinds[np.newaxis]
    )
    assert "learned from the data" in result.verdict
    gr.GRULSIF(bandwidth=1.0, graph_penalty=0.6, ridge=0.06).fit(scenario.samples, graph)


@pytest.mark.parametrize(("shift", "effect"), [(-1.0, "helped"), (1.0, "hurt"), (0.0, "unclear")])
def test_the_verdict_follows_from_the_losses(shift, effect):
    """A learned graph whose losses are shifted against those of both other fits."""
    samples = gr.NodeSamples.from_arrays(np.zeros((9, 5, 1)), np.zeros((9, 5, 1)))
    terms = {name: np.random.default_rng(i).normal(size=90) for i, name in enumerate("abc")}
    losses = {
        name: Losses.of(0.1 * part + (shift if name == LEARNED else 0), samples)
        for name, part in zip((ALONE, SHARED, LEARNED), terms.values(), strict=True)
    }
    found = GraphComparison(samples.nodes, losses, {}, 0.05, (), gr.Graph.empty(9))
    judged = {"helped": "better", "hurt": "worse", "unclear": "unclear"}[effect]
    assert (found.effect, found.judged(LEARNED, SHARED)) == (effect, judged)
    assert ("Use it: fit(samples, comparison.learned_graph)." in found.verdict) == (shift < 0)
    assert ("One ratio for all nodes does better." in found.verdict) == (shift > 0)
    assert ("made no clear difference" in found.verdict) == (shift == 0)
    nodes = f"helped at {9 * (shift < 0)} of 9 nodes and hurt at {9 * (shift > 0)}"
    assert f"Neighbours clearly {nodes}" in found.verdict
    short = in_words(found, offer="Ask for it.", where=False)
    assert "Neighbours" not in short
    assert short.endswith(" Ask for it.") == (shift < 0)


@pytest.mark.parametrize(("many", "repeats"), [(1000, 2), (40, 1)])
def test_small_graphs_are_split_twice(scenario, monkeypatch, many, repeats):
    asked = []

    def run(self, fits, folds, **__):
        asked.append(len(folds))
        raise InterruptedError

    monkeypatch.setattr(Recipe, "run", run)
    monkeypatch.setattr(graph_comparison, "MANY_NODES", many)
    with pytest.raises(InterruptedError):
        gr.compare_graphs(scenario.samples, scenario.graph, estimator=MODEL)
    assert asked == [repeats]


def test_a_learned_graph_has_the_grid_of_the_paper(scenario):
    """Divided by its degree of about ten, as graphs that are given have it by theirs."""
    recipe = Recipe.of(MODEL, scenario.samples, np.random.default_rng(0))
    fit = Ways(recipe).learned()
    lambdas = np.unique(fit.candidates.graph_penalty) / 60
    np.testing.assert_allclose(lambdas, [1e-4, 1e-3, 0.01, 0.1, 1])
    gammas = fit.candidates.ridge / fit.candidates.graph_penalty
    np.testing.assert_allclose(gammas, np.tile([1e-5, 1e-3, 0.1, 1], 5))


def test_difference_allows_for_dependence():
    rng = np.random.default_rng(0)
    first = rng.normal(size=50)
    apart = Difference.of(first, np.zeros(50))
    assert apart.error == pytest.approx(DISPERSION * first.std(ddof=1) / np.sqrt(50))
    assert Difference.of(np.array([np.nan, 1.0]), np.zeros(2)).p_value == 1.0


def test_reprs_and_picture(found):
    import matplotlib as mpl

    mpl.use("agg")
    assert "held-out loss" in repr(found)
    html = found._repr_html_()
    assert "fits the data best" in html
    assert html.count("<tr>") + html.count("<tr ") >= 7
    ax = found.plot()
    assert "nodes" in ax.get_xlabel()
    mpl.pyplot.close(ax.figure)


def test_labels_in_another_order_make_no_difference(scenario):
    labels = [f"s{v}" for v in range(60)]
    data = scenario.samples
    samples = gr.NodeSamples.from_arrays(
        {label: data.reference(v) for v, label in enumerate(labels)},
        {label: data.target(v) for v, label in enumerate(labels)},
    )
    graph = gr.Graph.from_adjacency(scenario.graph.adjacency, nodes=labels)
    order = np.random.default_rng(0).permutation(60)
    shuffled = gr.Graph.from_adjacency(
        scenario.graph.adjacency[order][:, order], nodes=[labels[v] for v in order]
    )
    fixed = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.06, ridge=0.006)
    result = gr.compare_graphs(
        samples, {"a": graph, "b": shuffled}, estimator=fixed, n_repeats=1, random_state=0
    )
    assert result.losses["a"].mean == pytest.approx(result.losses["b"].mean, abs=1e-5)
    assert result.best is None


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ({}, "empty mapping"),
        (3, r"int is not a gr\.Graph"),
        ({1: ring(), "1": ring(step=13)}, "same as text"),
        ({"a": 3}, "'a' are not graphs"),
        ({ALONE: None}, "used for other fits"),
        ({"a": ring(60), "b": gr.Graph.empty(59)}, "'b' has other nodes"),
    ],
)
def test_bad_input(scenario, graphs, message):
    with pytest.raises(InputError, match=message):
        gr.compare_graphs(scenario.samples, graphs)


def test_too_little_to_compare(scenario):
    rng = np.random.default_rng(0)
    few = (list(rng.normal(size=(12, 3))), list(rng.normal(size=(12, 3))))
    with pytest.raises(InputError, match="no node has 5 observations"):
        gr.compare_graphs(few, ring(12, 5))
    with pytest.raises(InputError, match="only one node"):
        gr.compare_graphs((rng.normal(size=30), rng.normal(size=30)))
    with pytest.raises(InputError, match="Pool fits every node by itself"):
        gr.compare_graphs(scenario.samples, ring(), estimator=gr.Pool())


def test_samples_without_labels_need_graphs_in_one_order(scenario):
    """Which sample is whose must not depend on which graph comes first."""
    permuted = gr.Graph.from_edges([(i, (i + 17) % 60) for i in range(60)])
    with pytest.raises(InputError, match="'clusters' has its nodes in another order"):
        gr.compare_graphs(scenario.samples, {"ring": permuted, "clusters": scenario.graph})
    with pytest.raises(InputError, match="numbers 0 to 59 in another order, 0, 17, 1"):
        gr.GRULSIF(bandwidth=1.0).fit(scenario.samples, permuted)
    chain = [("a", "b"), ("b", "c")]
    named = [gr.Graph.from_edges(edges) for edges in (chain, chain[::-1])]
    three = (list(np.zeros((3, 9))), list(np.ones((3, 9))))
    with pytest.raises(InputError, match="'y' has its nodes in another order"):
        gr.compare_graphs(three, {"x": named[0], "y": named[1]})
    # With labels either order will do.
    data = scenario.samples
    labelled = gr.NodeSamples.from_arrays(
        [data.reference(v) for v in range(60)], [data.target(v) for v in range(60)], nodes=range(60)
    )
    fixed = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.06, ridge=0.006)
    options = {"estimator": fixed, "n_repeats": 1, "n_folds": 3, "random_state": 0}
    pair = [("ring", permuted), ("clusters", scenario.graph)]
    rankings = [
        gr.compare_graphs(labelled, dict(order), **options).ranking for order in (pair, pair[::-1])
    ]
    assert rankings[0] == rankings[1] == ["clusters", "ring"]


@pytest.fixture(scope="module")
def opposed():
    """Neighbours on a ring move in opposite directions, and a strong penalty holds them."""
    rng = np.random.default_rng(3)
    reference = list(rng.normal(size=(40, 60)))
    target = [rng.normal(size=60) + (3 if v % 2 else -3) for v in range(40)]
    return (reference, target), ring(40, 1)


def test_a_graph_that_hurts_is_not_the_best(opposed):
    data, graph = opposed
    fixed = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=40.0, ridge=0.4)
    options = {"estimator": fixed, "n_repeats": 1, "random_state": 0}
    result = gr.compare_graphs(data, {"bad": graph, "none": None}, learn=True, **options)
    assert (result.best, result.effect) == (None, "hurt")
    assert result.judged(LEARNED, "bad") == "better"
    assert "'bad' hurt" in result.verdict
    assert "'none' is the better choice" in result.verdict
    assert "better still" not in result.verdict
    assert "learned from the data (learned_graph) does clearly better than 'bad'" in result.verdict
    assert gr.compare_graphs(data, graph, **options).best is None


def test_without_a_graph_there_are_no_gains(opposed):
    data, _ = opposed
    result = gr.compare_graphs(data, learn=False, estimator=MODEL, n_repeats=1, random_state=0)
    assert (result.best, result.tied, result.effect) == (None, [], "not assessed")
    assert result.verdict == "There is no graph to compare."
    assert set(result.neighbors) == {"not assessed"}
    with pytest.raises(InputError, match="no graph was compared"):
        result.plot()


def test_nodes_without_enough_data_are_not_assessed(opposed):
    (reference, target), graph = opposed
    short = [reference[0][:1], *reference[1:]]
    result = gr.compare_graphs((short, target), graph, estimator=FEW, n_repeats=1, random_state=0)
    assert result.neighbors[0] == "not assessed"
    assert "of 39 nodes" in result.verdict


def test_candidates_reach_no_coupling_at_every_ridge(scenario):
    """Otherwise the grid would be judged, not the graph."""
    recipe = Recipe.of(MODEL, scenario.samples, np.random.default_rng(0))
    lam, rho = recipe.judged(scenario.graph).candidates.pairs
    alone = recipe.alone([scenario.graph]).candidates
    assert not alone.graph_penalty.any()
    assert set(rho[lam == 0]) == set(alone.ridge) == set(rho)
    paper = recipe.coupled(scenario.graph).candidates.graph_penalty.min()
    np.testing.assert_allclose(np.unique(lam)[:3], [0, paper / 100, paper / 10])
    fixed = Recipe.of(gr.GRULSIF(graph_penalty=2.0), scenario.samples, np.random.default_rng(0))
    assert set(fixed.judged(scenario.graph).candidates.graph_penalty) == {2.0}


def test_a_wrong_graph_cannot_hurt_if_the_penalty_is_free(opposed):
    """Neighbours move in opposite directions, and the fit may do without them."""
    data, graph = opposed
    for model in (gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0), None):
        found = gr.compare_graphs(data, {"bad": graph}, model, worth=False, random_state=0)
        assert (found.best, found.effect) == (None, "unclear")
        assert found.between("bad", ALONE).mean < 0.01


def test_nodes_of_very_different_scale_are_compared_in_their_own_units():
    """A shift by one spread in long stretches of a ring, at nodes of any location and scale."""
    rng = np.random.default_rng(5)
    n_nodes = 40
    shift = np.where(np.arange(n_nodes) // 10 % 2, 1.5, -1.5)
    location, scale = rng.normal(0, 20, (n_nodes, 1)), np.exp(rng.normal(size=(n_nodes, 1)))
    noise = rng.normal(size=(2, n_nodes, 30))
    noise[1] += shift[:, np.newaxis]
    samples = gr.NodeSamples.from_arrays(*map(list, location + scale * noise))
    graphs = {"ring": ring(n_nodes, 1), "other": ring(n_nodes, 11)}
    options = {"worth": False, "random_state": 0}
    found = gr.compare_graphs(samples, graphs, **options)
    assert (found.best, found.units) == ("ring", "own")
    assert "in units of each node's own mean and spread" in found.verdict
    given = gr.compare_graphs(samples, graphs, units="given", **options)
    assert (given.best, given.units) == (None, "given")


def test_the_verdict_names_the_end_of_a_grid(found):
    from dataclasses import replace

    assert found.at_grid_end == ()
    assert "strongest coupling" not in found.verdict
    verdict = replace(found, at_grid_end=("clusters",)).verdict
    assert "With 'clusters' most fits chose the strongest coupling of all candidates" in verdict


def test_nothing_is_claimed_of_a_random_graph_where_all_nodes_change_alike():
    """Each node alone does not know the common change, so that any graph is worth something."""
    rng = np.random.default_rng(3)
    reference, target = rng.normal(size=(2, 40, 8))
    order = rng.permutation(40)
    edges = [(int(order[i]), int(order[(i + 1) % 40])) for i in range(40)]
    graph = gr.Graph.from_edges(edges, nodes=range(40))
    data = (list(reference), list(target + 1.5))
    found = gr.compare_graphs(data, {"random": graph, "none": None}, random_state=0)
    assert found.worth["random"].estimate > 1
    assert (found.best, found.stated_worth) == (None, {})
    assert "worth" not in found.verdict
    assert found.summary()["worth"].isna().all()
    assert found.to_frame()["worth"].isna().all()


@pytest.mark.parametrize("common", [0.0, 0.7])
def test_nodes_that_move_together_do_not_predict_each_other(common):
    """Rows of the same moments, without times; nothing changed, and neighbours share noise."""
    rng = np.random.default_rng(6)
    places = rng.random((60, 2))
    graph = gr.Graph.from_coordinates(places, k=5)
    near = np.exp(-np.square(places[:, None] - places[None]).sum(axis=-1) / 0.02)
    root = np.linalg.cholesky(common * near + (1 - common + 1e-9) * np.eye(60))
    x = root @ rng.normal(size=(60, 80))
    samples = gr.NodeSamples.from_arrays(list(x[:, :40]), list(x[:, 40:]))
    found = gr.compare_graphs(samples, graph, worth=False, random_state=0)
    assert (found.correlation is not None) == (common > 0)
    assert ("Nodes are correlated" in found.verdict) == (common > 0)
    # Neighbours give away the fluctuations of a held-out node.
    assert (found.unseen == {}) == (found.agreement == {}) == (common > 0)
    assert found.best is None
    if common:
        # All nodes have the same positions in one fold, and pieces are shared.
        assert found.blocks.shared
        assert found.pieces.error_over_blocks(found.losses["graph"].terms)[0] > 0


@pytest.mark.slow
def test_all_flights_speak_for_themselves():
    flights = gr.datasets.load_flights()
    found = gr.compare_graphs(
        flights.samples.standardized(), {"near": flights.graph}, worth=False, random_state=0
    )
    assert (found.effect, found.hurt()) == ("unclear", [])
    assert "made no clear difference" in found.verdict
