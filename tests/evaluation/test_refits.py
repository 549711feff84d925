"""Any estimator fitted again on parts of the data: held-out ratios, noise, standard errors."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.estimators import dictionary_based
from graphratio.evaluation import bounds, refits
from graphratio.evaluation import recipe as recipe_module
from graphratio.evaluation.ratio_interval import GROUPS, Jackknife, Sandwich
from graphratio.evaluation.recipe import Recipe, repeated_folds
from graphratio.evaluation.refits import fold_ratios, held_out, refit, spread_of_refits
from graphratio.features.nystrom import NystromMap
from graphratio.moments import memory
from graphratio.selection import cross_validation
from graphratio.transfer.shift import shift_p_values

ATOMS = np.linspace(-3, 3, 8)[:, np.newaxis]
FIXED = {"bandwidth": 1.0, "ridge": 0.01, "dictionary": ATOMS}
GRULSIF = gr.GRULSIF(graph_penalty=0.2, prior_ratio=1.0, tol=1e-10, **FIXED)
POOL = gr.Pool(prior_ratio=1.0, **FIXED)
POINTS = np.linspace(-1, 1, 5)[:, np.newaxis]


def draw(sizes, seed=0, nodes=None):
    rng = np.random.default_rng(seed)
    return gr.NodeSamples.from_arrays(
        [rng.normal(size=n) for n, _ in sizes],
        [rng.normal(size=n) + 1 for _, n in sizes],
        nodes=nodes,
    )


class TestRefit:
    """Two pairs of nodes; the training data lack samples at some of them."""

    graph = gr.Graph.from_edges([("a", "b"), ("c", "d")])

    def ratios(self, estimator, sizes, **options):
        """At every node, shape (4, n_points)."""
        train = draw(sizes, nodes=[*"abcd"])
        points, node = np.tile(POINTS, (4, 1)), np.repeat(np.arange(4), 5)
        found = refit(estimator, train, self.graph, **options).at_nodes(points, node)
        return found.reshape(4, 5), train

    def test_are_those_of_a_fit(self):
        found, train = self.ratios(GRULSIF, [(20, 20)] * 4)
        model = gr.GRULSIF(**GRULSIF.get_params()).fit(train, self.graph)
        assert_allclose(found, model.predict(POINTS, clip=False).T, rtol=1e-10)
        assert not hasattr(GRULSIF, "coef_")

    def test_a_component_without_data_has_ratio_one(self):
        sizes = [(20, 20), (20, 20), (20, 0), (0, 20)]
        found, train = self.ratios(GRULSIF, sizes)
        assert_array_equal(found[2:], 1)
        part = gr.GRULSIF(**GRULSIF.get_params())
        part.fit(train.subset(["a", "b"]), self.graph.subset(["a", "b"]))
        assert_allclose(found[:2], part.predict(POINTS, clip=False).T, rtol=1e-10)

    def test_neighbours_say_something(self):
        found, _ = self.ratios(GRULSIF, [(20, 20), (20, 0), (0, 0), (20, 20)])
        assert (np.abs(found - 1).max(axis=1) > 0.05).all()

    @pytest.mark.parametrize(
        "estimator",
        [POOL, gr.GRULSIF(**{**GRULSIF.get_params(), "graph_penalty": 0}), gr.RULSIF()],
        ids=["Pool", "no graph penalty", "RULSIF"],
    )
    def test_estimators_without_coupling_know_nothing_of_incomplete_nodes(self, estimator):
        found, train = self.ratios(estimator, [(20, 20), (20, 0), (0, 20), (20, 20)])
        assert_array_equal(found[[1, 2]], 1)
        model = type(estimator)(**estimator.get_params())
        model.fit(train.subset(["a", "d"]), self.graph.subset(["a", "d"]))
        assert_allclose(found[[0, 3]], model.predict(POINTS, clip=False).T, rtol=1e-10)

    @pytest.mark.parametrize("estimator", [GRULSIF, POOL])
    def test_nothing_known_anywhere(self, estimator):
        found, _ = self.ratios(estimator, [(20, 0), (0, 20), (20, 0), (0, 20)])
        assert_array_equal(found, 1)

    def test_fixed_keeps_what_was_chosen(self):
        """Bandwidth, penalties and dictionary of the fit, on other data."""
        chosen = gr.GRULSIF(bandwidth=[0.5, 1.5], cv=2, random_state=0)
        chosen.fit(draw([(30, 30)] * 4, seed=1, nodes=[*"abcd"]), self.graph)
        found, train = self.ratios(chosen, [(20, 20)] * 4, fixed=True)
        again = gr.GRULSIF(
            bandwidth=chosen.bandwidth_,
            graph_penalty=chosen.graph_penalty_,
            ridge=chosen.ridge_,
            dictionary=chosen.dictionary_,
        ).fit(train, self.graph)
        assert_allclose(found, again.predict(POINTS, clip=False).T, rtol=1e-10)


def test_held_out_takes_the_fit_without_the_fold():
    rng = np.random.default_rng(0)
    table, folds = rng.normal(size=(3, 20)), rng.integers(-1, 3, size=20)
    found = held_out(table, folds)
    for i, fold in enumerate(folds):
        assert found[i] == (1 if fold < 0 else table[fold, i])


def test_a_fold_is_left_out_of_its_fit():
    """Changing its observations changes no ratio there, and a fold of -1 is in every fit."""
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    samples = draw([(12, 15), (14, 12), (13, 13)])
    rng = np.random.default_rng(1)
    (folds,) = repeated_folds(samples, 3, 1, rng)
    folds = np.where(rng.random(len(folds)) < 0.1, -1, folds)
    table = fold_ratios(GRULSIF, samples, graph, folds)
    assert table.shape == (3, samples.n_observations)
    for fold in range(3):
        train = samples.subset(observations=folds != fold)
        model = gr.GRULSIF(**GRULSIF.get_params()).fit(train, graph)
        everywhere = model.predict(samples.values, clip=False)
        own = everywhere[np.arange(len(folds)), samples.node_index]
        assert_allclose(table[fold], own, rtol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_spread_of_refits_is_the_jackknife(alpha):
    """Observation by observation, with the derivative of its term of the loss."""
    samples = draw([(4, 6), (5, 3), (1, 7)])
    rng = np.random.default_rng(0)
    n_folds, n_rows = 4, samples.n_observations
    table, folds = rng.uniform(0.2, 3, size=(n_folds, n_rows)), rng.integers(-1, 4, size=n_rows)
    found = spread_of_refits(table, folds, samples, alpha)
    expected = np.zeros(3)
    for i in range(n_rows):
        node, target = samples.node_index[i], samples.is_target[i]
        f = 1.0 if folds[i] < 0 else table[folds[i], i]
        mean = sum(table[:, i]) / n_folds
        variance = (n_folds - 1) / n_folds * sum((row[i] - mean) ** 2 for row in table)
        # Terms alpha/2 f^2 - f over the target, (1 - alpha)/2 f^2 over the reference.
        slope = alpha * f - 1 if target else (1 - alpha) * f
        count = samples.n_target[node] if target else samples.n_reference[node]
        expected[node] += variance * (slope / count) ** 2
    assert_allclose(found.variance, expected, rtol=1e-12)
    # Tails are those of the normal law: intervals are not shortened.
    assert_allclose(found.lighter_tails(expected), 0, atol=1e-4)
    same = (found + found).averaged(2)
    assert_allclose(same.variance, found.variance)
    assert_allclose(same.directions, found.directions)


def test_fits_that_agree_add_no_noise():
    samples = draw([(5, 5), (6, 4)])
    row = np.random.default_rng(0).uniform(size=20)
    found = spread_of_refits(np.tile(row, (3, 1)), np.arange(20) % 3, samples, 0.1)
    assert_allclose(found.variance, 0, atol=1e-30)


class TestBothWaysOfFittingOnFolds:
    """A quadratic fit has a fast way; fitting it again is the other."""

    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    model = gr.GRULSIF(graph_penalty=0.2, prior_ratio=1.0, tol=1e-10, **FIXED)

    def both(self, *, by_node):
        graph = self.scenario.graph
        data = self.scenario.samples.aligned(graph.nodes)
        rng = np.random.default_rng(0)
        folds = repeated_folds(data, 4, 1, rng, by_node=by_node)
        recipe = Recipe.of(self.model, data, rng)
        fast = recipe.run({"fit": recipe.coupled(graph)}, folds)["fit"].ratios[0]
        table = fold_ratios(self.model, data, graph, folds[0])
        return fast, np.clip(held_out(table, folds[0]), 0, 10)

    @pytest.mark.parametrize("by_node", [False, True])
    def test_agree_to_the_tolerance_of_a_selection(self, by_node):
        fast, generic = self.both(by_node=by_node)
        assert np.ptp(generic) > 1
        assert_allclose(fast, generic, atol=0.02)

    @pytest.mark.parametrize("by_node", [False, True])
    def test_agree_without_the_economies_of_a_selection(self, by_node, monkeypatch):
        monkeypatch.setattr(cross_validation, "SOLVE_TOLERANCE", 1e-11)
        monkeypatch.setattr(cross_validation, "FEATURE_FLOOR", 0.0)
        monkeypatch.setattr(cross_validation, "FOLD_RANK_TOLERANCE", 1e-9)
        monkeypatch.setattr(recipe_module, "precision_for", lambda graphs: np.float64)
        fast, generic = self.both(by_node=by_node)
        assert_allclose(fast, generic, atol=1e-6)


@pytest.fixture(scope="module")
def fitted():
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    samples = draw([(150, 150)] * 4)
    model = gr.GRULSIF(**GRULSIF.get_params()).fit(samples, graph)
    return model, samples.aligned(graph.nodes)


class TestJackknife:
    def error(self, variance, node):
        terms = variance.terms(POINTS, node)
        return np.sqrt(np.square(terms).sum(axis=0))

    @pytest.mark.parametrize("node", [0, 1])
    def test_is_close_to_the_sandwich(self, fitted, node):
        exact = self.error(Sandwich(*fitted), node)
        seeds = range(4)
        errors = [self.error(Jackknife(*fitted, np.random.default_rng(s)), node) for s in seeds]
        for found in (*errors, np.sqrt(np.mean(np.square(errors), axis=0))):
            ratio = found.mean() / exact.mean()
            assert 1 / 1.5 < ratio < 1.5
        # At every point, without the noise of the groups.
        each = np.sqrt(np.mean(np.square(errors), axis=0)) / exact
        assert (each > 1 / 1.5).all()
        assert (each < 1.5).all()

    def test_terms_are_those_of_the_fits_without_a_group(self, fitted):
        model, data = fitted
        jackknife = Jackknife(model, data, np.random.default_rng(0))
        terms = jackknife.terms(POINTS, 2)
        assert terms.shape == (GROUPS, len(POINTS))
        fits = []
        for group in range(GROUPS):
            train = data.subset(observations=jackknife.groups != group)
            again = gr.GRULSIF(**model.get_params()).fit(train, model.graph_)
            fits.append(again.predict(POINTS, node=2, clip=False))
        variance = (GROUPS - 1) / GROUPS * np.square(fits - np.mean(fits, axis=0)).sum(axis=0)
        assert_allclose(np.square(terms).sum(axis=0), variance, rtol=1e-8)
        assert_array_equal(jackknife.freedom(terms), np.full(len(POINTS), GROUPS - 1))

    def test_groups_are_even_parts_of_every_sample(self, fitted):
        jackknife = Jackknife(*fitted, np.random.default_rng(0))
        counts = np.array([np.bincount(part) for part in np.split(jackknife.groups, 8)])
        assert_array_equal(counts, np.full((8, GROUPS), 15))


def test_refits_with_the_same_settings_keep_the_features():
    """With many observations a fit drops directions, which its refits need not find again."""
    scenario = make_scenario("Ia", n=20, n_nodes=20, random_state=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphratio.estimators.dictionary_based._MANY_OBSERVATIONS", 100)
        model = gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)
    half = scenario.samples.subset(observations=np.arange(scenario.samples.n_observations) % 2 == 0)
    again = refit(model, half, scenario.graph, fixed=True).model
    assert again.features_ is model.features_
    free = refit(model, half, scenario.graph).model
    assert free.features_ is not model.features_


@pytest.mark.parametrize(
    "estimator",
    [
        gr.GraphRatio(random_state=0),
        gr.GRULSIF(loss="kl", adaptive=True, random_state=0),
        gr.GRULSIF(random_state=0),
        gr.GRULSIF(adaptive=True, random_state=0),
        gr.Pool(loss="jensen-shannon", random_state=0),
    ],
    ids=repr,
)
def test_refits_share_the_features_of_all_observations(estimator, monkeypatch):
    scenario = make_scenario("Ia", n=20, n_nodes=12, random_state=1)
    samples, graph = scenario.samples, scenario.graph
    model = estimator.fit(samples, graph)
    folds = np.arange(samples.n_observations) % 3
    mapped = []

    def counted(self, x, *args):
        mapped.append(len(x))
        return plain(self, x, *args)

    plain = NystromMap.__call__
    monkeypatch.setattr(NystromMap, "__call__", counted)
    together = fold_ratios(model, samples, graph, folds, fixed=True)
    assert mapped == [samples.n_observations]
    psi = model._rows_to_share(samples)
    copy = refit(model, samples, graph, fixed=True, psi=psi).model
    assert copy._psi_kept is None
    monkeypatch.setattr(dictionary_based, "LARGEST_SHARED", 0)
    assert model._rows_to_share(samples) is None
    assert_allclose(together, fold_ratios(model, samples, graph, folds, fixed=True), rtol=1e-9)


@pytest.mark.parametrize("kept", [2**30, 0], ids=["stored", "streamed"])
@pytest.mark.parametrize("kind", [gr.GRULSIF, gr.RULSIF])
def test_refits_are_not_described(kind, kept, monkeypatch):
    """Only their ratios are used; they can still be printed."""
    monkeypatch.setattr(memory, "KEEP_ALL", kept)
    scenario = make_scenario("Ia", n=20, n_nodes=12, random_state=1)
    model = kind(random_state=0).fit(scenario.samples, scenario.graph)
    copy = refit(model, scenario.samples, scenario.graph, fixed=True).model
    assert_array_equal(copy.predict([0.0, 1.0]), model.predict([0.0, 1.0]))
    assert not hasattr(copy, "divergence_")
    assert repr(copy).startswith(kind.__name__)


def test_refits_within_a_limit_of_memory_share_no_features():
    scenario = make_scenario("Ia", n=20, n_nodes=12, random_state=1)
    model = gr.GRULSIF(max_memory="4GiB", random_state=0).fit(scenario.samples, scenario.graph)
    assert model._rows_to_share(scenario.samples) is None


def test_refits_of_nodes_that_lack_a_sample():
    """Their observations have rows in the shared features as well."""
    scenario = make_scenario("Ia", n=20, n_nodes=12, random_state=1)
    samples, nodes = scenario.samples, scenario.graph.nodes
    graph = gr.Graph.from_edges(list(itertools.pairwise(nodes)), nodes=nodes)
    lacking = np.isin(samples.node_index, (2, 7)) & samples.is_target
    samples = samples.subset(observations=~lacking)
    model = gr.GraphRatio(random_state=0).fit(samples, graph)
    folds = np.arange(samples.n_observations) % 3
    together = fold_ratios(model, samples, graph, folds, fixed=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary_based, "LARGEST_SHARED", 0)
        apart = fold_ratios(model, samples, graph, folds, fixed=True)
    assert_allclose(together, apart, rtol=1e-9)


def test_intervals_of_the_default_estimator():
    """Wider than the point, around the estimate of the fit, and the same for the same seed."""
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    samples = draw([(40, 40)] * 3)
    first, second = (
        gr.expected_ratio_interval(samples, graph, x=POINTS, node=1, random_state=0)
        for _ in range(2)
    )
    assert (first.standard_error > 0).all()
    assert (first.expected_ratio_low < first.ratio).all()
    assert (first.ratio < first.expected_ratio_high).all()
    assert_array_equal(first.expected_ratio_high, second.expected_ratio_high)


def test_raw_samples_are_scaled_as_a_fitted_estimator_was():
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 4, 30, 1)) * 50 + 7
    sides[1, 2:] += 60
    raw = gr.NodeSamples.from_arrays(*sides)
    for make in (gr.RULSIF, gr.GRULSIF):
        fitted = make(random_state=0).fit(raw.standardized())
        one, other = (
            gr.divergence_bounds(data, estimator=fitted, random_state=0).to_frame()
            for data in (raw, raw.standardized())
        )
        np.testing.assert_allclose(one.iloc[:, 1:-1], other.iloc[:, 1:-1])


@pytest.mark.parametrize("make", [gr.RULSIF, lambda **seed: gr.GraphRatio(n_profiles=0, **seed)])
def test_ratios_of_refitted_estimators_stay_in_their_range(monkeypatch, make):
    """Weak penalties on samples that hardly overlap overshoot, and are clipped."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 4, 20))
    data = (list(reference), list(target + 4))
    seen = []

    def spy(samples, alpha, ratios, *rest, **options):
        seen.append(ratios)
        return original(samples, alpha, ratios, *rest, **options)

    original = bounds.bounds_from
    monkeypatch.setattr(bounds, "bounds_from", spy)
    estimator = make(random_state=0).set_params(ridge=1e-6, bandwidth=0.7)
    gr.divergence_bounds(data, estimator=estimator, random_state=0)
    assert seen[0].min() == 0.0
    assert seen[0].max() == pytest.approx(10.0)


def test_evidence_of_a_shift_keeps_the_hyperparameters_of_the_fit(monkeypatch):
    fixed = []
    original = refits.refit

    def spy(*args, **options):
        fixed.append(options["fixed"])
        return original(*args, **options)

    monkeypatch.setattr(refits, "refit", spy)
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(*(list(side) for side in rng.normal(size=(2, 3, 20))))
    model = gr.GRULSIF(random_state=0).fit(samples)
    shift_p_values(model, samples, model.graph_, 4, rng)
    assert fixed == [True] * 4
