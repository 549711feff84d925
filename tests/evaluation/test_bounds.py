"""Lower bounds and intervals of divergences from held-out data."""

import numpy as np
import pytest
from scipy import stats

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.evaluation.bounds import (
    bounds_from,
    fits_with_noise,
)
from graphratio.evaluation.node_means import NodeMeans
from graphratio.evaluation.recipe import Recipe, repeated_folds
from graphratio.evaluation.refit_noise import RefitNoise, refit_noise
from graphratio.evaluation.skewed_means import lower_quantile, upper_quantile
from graphratio.exceptions import InputError
from graphratio.selection import nested

# Left out by `make quick`.
pytestmark = pytest.mark.slow

ALPHA = 0.1
MODEL = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.012, ridge=0.0012)


@pytest.fixture(scope="module")
def draws():
    """Bounds, true divergences and those of the fitted ratios, over a few draws of Ia."""
    rows = []
    for seed in range(6):
        scenario = make_scenario("Ia", n_nodes=40, n=100, random_state=seed)
        rng = np.random.default_rng(seed)
        data = scenario.samples.aligned(scenario.graph.nodes)
        recipe = Recipe.of(MODEL, data, rng)
        found, noise = fits_with_noise(recipe, scenario.graph, repeated_folds(data, 5, 1, rng))
        fitted = np.zeros(40)
        for node in range(40):
            x = scenario.sample_reference(node, 4000, random_state=seed)
            y = scenario.sample_target(node, 4000, random_state=seed + 1)
            for features, theta in found.functions:
                fx, fy = (np.clip(1 + features(z) @ theta[node], 0, 10) for z in (x, y))
                gain = (fy - ALPHA / 2 * fy**2).mean() - (1 - ALPHA) / 2 * (fx**2).mean()
                fitted[node] += (gain - 0.5) / len(found.functions)
        bounds = bounds_from(data, ALPHA, found.ratios, noise, 0.1, simultaneous=False)
        rows.append((scenario, bounds, fitted))
    return rows


def test_lower_bound_holds_and_finds_strong_change(draws):
    holds, above = [], []
    for scenario, bounds, _ in draws:
        true = scenario.true_divergence(ALPHA)
        holds.append(bounds.true_divergence_lower_bound <= true + 1e-12)
        above.append(bounds.changed[scenario.groups == "C4"])
    # 240 nodes: at nominal 90 % fewer than 85 % has a chance below 1 %.
    assert np.mean(holds) >= 0.85
    assert np.mean(above) > 0.5


def test_interval_covers_the_divergence_of_the_fitted_ratios(draws):
    covers = []
    for _, bounds, fitted in draws:
        low, high = bounds.fitted_divergence_interval.T
        covers.append((low <= fitted) & (fitted <= high))
    assert 0.84 <= np.mean(covers) <= 0.96


def test_without_the_noise_of_refitting_intervals_are_too_short():
    """Fits whose every feature is the node's own noise: the spread shows half the variance."""
    rng = np.random.default_rng(0)
    n, m, runs, folds = 40, 5, 400, np.tile(np.arange(5), 16)
    errors, shown, added = [], [], []
    for _ in range(runs):
        psi = rng.normal(size=(2 * n, m))
        segment = np.repeat([0, 1], n)
        terms = np.empty(2 * n)
        extra = 0.0
        for k in range(5):
            held = folds == k
            sign = np.where(segment == 1, 1.0, -1.0)
            train = psi * sign[:, np.newaxis]
            theta = 0.01 * (
                train[~held & (segment == 1)].mean(0) + train[~held & (segment == 0)].mean(0)
            )
            f = 1 + psi @ theta
            terms[held] = np.where(segment == 1, f - ALPHA / 2 * f**2, -(1 - ALPHA) / 2 * f**2)[
                held
            ]
            # theta = G s with G = 1/100 to first order: A + stiffness = 100 (1 - alpha).
            extra += refit_noise(
                psi,
                f,
                segment,
                held,
                np.zeros((1, m, m)),
                np.full((1, m), 100.0 * (1 - ALPHA)),
                ALPHA,
            ).variance[0]
        means = NodeMeans.of(terms, np.array([[n, n]]))
        errors.append(means.mean[0])
        shown.append(means.error[0] ** 2)
        added.append(extra)
    truth = np.var(errors)
    assert np.mean(shown) < 0.7 * truth
    assert 0.8 < (np.mean(shown) + np.mean(added)) / truth < 1.25


def test_simultaneous_bounds_are_lower(draws):
    scenario = draws[0][0]
    options = {"random_state": 0, "graph": scenario.graph, "estimator": MODEL}
    single = gr.divergence_bounds(scenario.samples, **options)
    joint = gr.divergence_bounds(scenario.samples, simultaneous=True, **options)
    assert (joint.true_divergence_lower_bound < single.true_divergence_lower_bound).all()
    assert "all nodes at once" in repr(joint)
    table = single.to_frame()
    assert list(table["node"]) == list(scenario.graph.nodes)
    assert (table["fitted_divergence_low"] < table["fitted_divergence_high"]).all()


def test_degrees_of_freedom():
    """Welch's for normal terms; fewer where a few large terms decide on the variance."""
    rng = np.random.default_rng(0)
    sizes = np.full((400, 2), 40)
    normal = NodeMeans.of(rng.normal(size=sizes.sum()), sizes)
    assert 60 < np.median(normal.freedom) <= 78.1
    runs = rng.standard_t(6, size=sizes.sum())
    heavy = NodeMeans.of(runs, sizes)
    assert np.median(heavy.freedom) < 0.8 * np.median(normal.freedom)
    one = np.zeros(80)
    one[[3, 50]] = 1.0
    assert NodeMeans.of(one, sizes[:1]).freedom[0] < 6
    assert NodeMeans.of(np.zeros(80), sizes[:1]).freedom[0] > 1e5


def test_skewness_lowers_the_bound_and_only_lowers_it():
    freedom = np.full(3, 98.0)
    quantiles = lower_quantile(freedom, np.array([-0.5, 0.0, 0.5]), 0.1)
    assert quantiles[0] > quantiles[1] == quantiles[2] == pytest.approx(stats.t.ppf(0.9, 98))


def test_hall_quantiles_hold_for_means_of_skewed_terms():
    """Means of 30 terms minus an exponential: each end is missed by about its share."""
    terms = -np.random.default_rng(0).exponential(size=(40_000, 30))
    error = terms.std(axis=1, ddof=1) / np.sqrt(30)
    above_truth = (terms.mean(axis=1) + 1) / error
    skewness = np.full(1, -2 / np.sqrt(30))
    freedom = np.full(1, 29.0)
    plain = stats.t.ppf(0.95, 29)
    lower, upper = (f(freedom, skewness, 0.05)[0] for f in (lower_quantile, upper_quantile))
    missed = {"low": (above_truth > lower).mean(), "high": (-above_truth > upper).mean()}
    assert missed["low"] == pytest.approx(0.05, abs=0.01)
    assert (above_truth > plain).mean() > 0.08
    # The upper end is half way between the plain quantile, hardly ever missed, and its share.
    assert (-above_truth > plain).mean() < missed["high"] < 0.05


def test_nested_selection_never_sees_the_fold_it_is_judged_on():
    """Changing the observations of a fold leaves what is chosen for it as it was."""
    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    data = scenario.samples.aligned(scenario.graph.nodes)
    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=[0.5, 1.0])
    recipe = Recipe.of(model, data, np.random.default_rng(0))
    folds = repeated_folds(data, 4, 1, np.random.default_rng(1))
    first = recipe.run({"fit": recipe.coupled(scenario.graph)}, folds)["fit"]
    values = data.values.copy()
    values[first.folds[0] == 2] = np.random.default_rng(2).permuted(
        values[first.folds[0] == 2], axis=0
    )
    changed = Recipe(
        gr.NodeSamples(data.nodes, values, data.n_reference, data.n_target, data.feature_names),
        model,
        recipe.kernel,
        recipe.dictionary,
        recipe.bandwidths,
    )
    second = changed.run({"fit": changed.coupled(scenario.graph)}, folds)["fit"]
    assert first.chosen[2] == second.chosen[2]


def test_intervals_are_shorter_where_few_directions_are_most_of_the_noise():
    """Against a simulation of the quadratic form plus a normal part."""
    rng = np.random.default_rng(0)
    runs, folds = 40_000, 5
    for directions in (1, 2, 4):
        scores = rng.normal(size=(runs, folds, directions))
        total = scores.sum(axis=1)
        form = ((total**2).sum(axis=1) - (scores**2).sum(axis=(1, 2))) / 20
        shown = (((total[:, np.newaxis] - scores) / 4) ** 2).sum(axis=(1, 2)) / 25
        added = directions / 20
        for share in (0.25, 0.5, 1.0):
            linear = added / share - added
            quotient = form + np.sqrt(linear) * rng.normal(size=runs)
            quotient /= np.sqrt(shown + linear + added)
            # Every direction of a fold has variance (added / directions) / folds.
            fourth = np.array([added**2 / directions / folds])
            noise = RefitNoise(np.array([added]), fourth, folds)
            np.testing.assert_allclose(noise.directions, directions)
            lighter = noise.lighter_tails(np.array([added / share]))[0]
            expected = stats.norm.ppf(0.95) - np.quantile(np.abs(quotient), 0.9)
            assert lighter == pytest.approx(expected, abs=0.03)


def test_notebook_table_and_picture(draws):
    import matplotlib as mpl

    mpl.use("agg")
    bounds = draws[0][1]
    highest = bounds.nodes[int(np.argmax(bounds.true_divergence_lower_bound))]
    html = bounds._repr_html_()
    assert f">{highest}<" in html
    assert bounds.outcome in html
    ax = bounds.plot()
    assert f"above 0 ({int(bounds.changed.sum())})" in ax.get_legend().get_texts()[2].get_text()
    mpl.pyplot.close(ax.figure)


def test_bad_input():
    scenario = make_scenario("Ia", n_nodes=8, n=20, random_state=0)
    with pytest.raises(InputError, match="level"):
        gr.divergence_bounds(scenario.samples, estimator=MODEL, level=1.5)
    with pytest.raises(InputError, match="n_folds"):
        gr.divergence_bounds(scenario.samples, estimator=MODEL, n_folds=2)
    with pytest.raises(InputError, match="is not an estimator of this library"):
        gr.divergence_bounds(scenario.samples, estimator=gr.RULSIF)
    with pytest.raises(InputError, match="is not an estimator of this library"):
        gr.divergence_bounds(scenario.samples, scenario.graph, "rulsif")


def test_standardised_samples():
    """With a model fitted on them, with a new one, and before they were standardised."""
    scenario = make_scenario("IIb", n_nodes=10, n=30, random_state=0)
    scaled = scenario.samples.standardized()
    options = {"bandwidth": 1.0, "graph_penalty": 1e-2, "ridge": 1e-3}
    model = gr.GRULSIF(prior_ratio=1.0, **options)
    new = gr.divergence_bounds(scaled, scenario.graph, model, random_state=0)
    fitted = gr.GRULSIF(prior_ratio=1.0, **options).fit(scaled, scenario.graph)
    for samples in (scaled, scenario.samples):
        again = gr.divergence_bounds(samples, estimator=fitted, random_state=0)
        np.testing.assert_allclose(again.fitted_divergence, new.fitted_divergence, atol=1e-4)


def test_same_seed_same_result():
    scenario = make_scenario("Ia", n_nodes=8, n=20, random_state=0)
    first, second = (
        gr.divergence_bounds(scenario.samples, scenario.graph, MODEL, random_state=5)
        for _ in range(2)
    )
    np.testing.assert_array_equal(
        first.true_divergence_lower_bound, second.true_divergence_lower_bound
    )


def test_two_inner_folds_on_many_nodes(monkeypatch):
    """They choose as all inner folds do, where there is little doubt."""
    scenario = make_scenario("Ia", n_nodes=40, n=60, random_state=0)
    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=[0.04, 4000.0])
    data = scenario.samples.aligned(scenario.graph.nodes)
    recipe = Recipe.of(model, data, np.random.default_rng(0))
    fits = {"fit": recipe.coupled(scenario.graph)}
    folds = repeated_folds(data, 5, 1, np.random.default_rng(1))
    every = recipe.run(fits, folds)["fit"]
    monkeypatch.setattr(nested, "MANY_NODES", 10)
    two = recipe.run(fits, folds)["fit"]
    assert [choice[1] for choice in two.chosen] == [choice[1] for choice in every.chosen]


def test_bounds_are_those_of_the_model_that_is_passed():
    """Penalties that are fixed are kept, whatever the graph, and for Pool too."""
    rng = np.random.default_rng(0)
    samples = (list(rng.normal(size=(3, 40))), list(rng.normal(size=(3, 40)) + 1))
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])

    def fitted(model, over):
        return gr.divergence_bounds(samples, over, model, random_state=0).fitted_divergence

    weak, strong = (gr.Pool(ridge=p, prior_ratio=1.0) for p in (3e-6, 3e4))
    assert fitted(weak, graph).max() > 0.1
    np.testing.assert_allclose(fitted(strong, graph), 0, atol=1e-3)
    held = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.03, ridge=3e4)
    np.testing.assert_allclose(fitted(held, gr.Graph.empty(3)), 0, atol=1e-3)
    with pytest.raises(InputError, match=r"list is not a gr\.Graph"):
        fitted(held, [(0, 1)])


@pytest.mark.parametrize(
    "model",
    [
        gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.03, ridge=0.03, adaptive=True),
        gr.RULSIF(bandwidth=1.0, ridge=0.1),
    ],
    ids=["learned edges", "RULSIF"],
)
def test_estimators_that_can_only_be_fitted_again_have_bounds(model):
    rng = np.random.default_rng(0)
    samples = (list(rng.normal(size=(3, 80))), list(rng.normal(size=(3, 80)) + 1.5))
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    bounds = gr.divergence_bounds(samples, graph, model, random_state=0)
    assert bounds.changed.all()
    assert (bounds.true_divergence_lower_bound < bounds.fitted_divergence).all()


def test_no_interval_exceeds_the_largest_divergence():
    rng = np.random.default_rng(0)
    sizes = [2, 40, 40, 40]
    samples = (
        [rng.normal(size=n) for n in sizes],
        [np.concatenate([rng.normal(size=n - 1) + 4, [0.0]]) for n in sizes],
    )
    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=4e-4, ridge=4e-7)
    bounds = gr.divergence_bounds(samples, estimator=model, n_folds=3, random_state=0)
    assert np.nanmax(bounds.fitted_divergence_interval) <= 4.5
