"""GraphRatio: what it finds, what it protects from, how it is used."""

import numpy as np
import pytest
from sklearn.base import clone

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.exceptions import InputError
from graphratio.selection import held_out_data
from graphratio.selection.search import Axis, Trial, decades, search

# Left out by `make quick`.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fitted():
    scenario = make_scenario("Ib", n_nodes=60, n=50, random_state=1)
    return scenario, gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)


def test_far_more_accurate_than_the_plain_fit(fitted):
    scenario, model = fitted
    plain = gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)
    errors = [
        scenario.mean_squared_error(m.predict, 0.1, 1000, random_state=0).mean()
        for m in (model, plain)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_profiles_and_coordinates_make_up_the_ratios(fitted):
    scenario, model = fitted
    x = scenario.samples.values[:20]
    np.testing.assert_allclose(model.coordinates_ @ model.profiles_.T, model.coef_, atol=1e-10)
    np.testing.assert_allclose(
        1 + model.profile_values(x) @ model.coordinates_.T, model.predict(x, clip=False)
    )
    # Unit mean square over the data of all nodes, so that divergences are half squared lengths.
    weights = np.where(scenario.samples.is_target, 0.1, 0.9) / 50 / 60
    values = model.profile_values(scenario.samples.values)
    moment = values.T @ (values * weights[:, np.newaxis])
    np.testing.assert_allclose(moment, np.eye(model.n_profiles_), atol=1e-6)
    assert f"{model.n_profiles_} profiles of change shared by all nodes" in repr(model)


def test_learned_graph_cuts_links_between_groups(fitted):
    scenario, model = fitted
    given, learned = scenario.graph.adjacency, model.graph_learned_.adjacency
    across = scenario.groups[:, np.newaxis] != scenario.groups
    changed = across & (scenario.changed[:, np.newaxis] | scenario.changed)
    kept = learned.toarray()[given.toarray() > 0]
    crossing = changed[given.toarray() > 0]
    assert kept[crossing].mean() < 0.1 * kept[~crossing].mean()
    cut = model.cut_links()
    assert cut
    assert all(scenario.groups[u] != scenario.groups[v] for u, v in cut)


def test_same_seed_same_model_and_clone(fitted):
    scenario, model = fitted
    again = clone(model).fit(scenario.samples, scenario.graph)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.get_params() == model.get_params()


def test_save_and_load(fitted, tmp_path):
    scenario, model = fitted
    model.save(tmp_path / "model")
    restored = gr.load(tmp_path / "model")
    for name in ("coef_", "profiles_", "coordinates_"):
        np.testing.assert_array_equal(getattr(restored, name), getattr(model, name))
    x = scenario.samples.values[:5]
    np.testing.assert_array_equal(restored.profile_values(x), model.profile_values(x))
    assert restored.cut_links() == model.cut_links()


def test_damaged_profiles_are_refused(fitted, tmp_path):
    _, model = fitted
    broken = clone(model)
    broken.__dict__.update(model.__dict__)
    broken.coordinates_ = model.coordinates_[:-1]
    broken.save(tmp_path / "model")
    with pytest.raises(gr.exceptions.FileFormatError, match="coordinates_"):
        gr.load(tmp_path / "model")


def test_results_list_every_candidate_and_rank_the_choice_first(fitted):
    _, model = fitted
    results = model.cv_results_
    best = int(np.argmin(results["rank"]))
    chosen = ("bandwidth", "graph_penalty", "ridge", "n_profiles", "n_rounds")
    assert all(results[name][best] == getattr(model, f"{name}_") for name in chosen)
    folds = np.array([results[f"fold_{r}_score"] for r in range(5)])
    np.testing.assert_allclose(folds.mean(axis=0), results["mean_score"])


def test_random_graph_is_not_believed():
    scenario = make_scenario("IIb", n_nodes=60, n=50, random_state=4)
    rng = np.random.default_rng(0)
    shuffled = scenario.graph.adjacency[rng.permutation(60)][:, rng.permutation(60)]
    shuffled = gr.Graph.from_adjacency(shuffled.maximum(shuffled.T) - _diagonal(shuffled))
    fresh = (
        [scenario.sample_reference(v, 200, rng) for v in range(60)],
        [scenario.sample_target(v, 200, rng) for v in range(60)],
    )
    losses = [
        -gr.GraphRatio(random_state=0).fit(scenario.samples, graph).score(fresh)
        for graph in (shuffled, gr.Graph.empty(60))
    ]
    assert losses[0] <= losses[1] + 0.01


def _diagonal(matrix):
    from scipy import sparse

    return sparse.diags_array(matrix.maximum(matrix.T).diagonal())


def test_held_out_data_do_not_enter_what_is_learned(monkeypatch):
    """Profiles and weights of a fold must not change with its held-out observations."""
    from graphratio.selection import held_out_data

    seen = []
    original = held_out_data.first_profiles

    def spy(problem, n_profiles, *, smooth):
        seen.append(problem.moments.first.copy())
        return original(problem, n_profiles, smooth=smooth)

    monkeypatch.setattr(held_out_data, "first_profiles", spy)
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 6, 20, 1))
    settings = {"n_profiles": 1, "bandwidth": 1.0, "ridge": 1e-3, "adaptive": False}
    atoms = np.linspace(-2, 2, 6)[:, np.newaxis]
    model = gr.GraphRatio(dictionary=atoms, random_state=0, **settings)
    model.fit((list(reference), list(target)))
    samples = gr.NodeSamples.from_arrays(list(reference), list(target))
    from graphratio._utils.parameters import as_generator
    from graphratio.moments.folds import assign_folds

    folds = assign_folds(samples, 5, as_generator(0))
    moved = samples.values.copy()
    moved[folds == 0] += 0.5
    first = list(seen)
    seen.clear()
    pieces = np.split(moved, samples.offsets[1:-1])
    model.fit((pieces[0::2], pieces[1::2]))
    # The map to principal directions uses all points, so compare what does not depend on it.
    norms = [[float(np.linalg.norm(m)) for m in run] for run in (first, seen)]
    assert norms[0][0] == pytest.approx(norms[1][0], rel=1e-3)
    assert norms[0][1] != pytest.approx(norms[1][1], rel=1e-3)


def test_unlike_nodes_get_ratios_of_their_own():
    rng = np.random.default_rng(3)
    centres = np.linspace(-8, 8, 24)
    reference = [c + rng.normal(size=60) for c in centres]
    target = [c + rng.normal(size=60) * rng.uniform(0.4, 1.6) for c in centres]
    model = gr.GraphRatio(random_state=0).fit((reference, target))
    assert model.n_profiles_ >= 4


def test_given_settings_are_used_without_a_search():
    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    penalty = 3.0 / scenario.graph.mean_degree
    given = {"n_profiles": 2, "bandwidth": 1.0, "graph_penalty": penalty, "ridge": 1e-3}
    model = gr.GraphRatio(**given, n_rounds=2, adaptive=False)
    model.fit(scenario.samples, scenario.graph)
    assert model.cv_results_ is None
    assert (model.n_profiles_, model.n_rounds_) == (2, 2)
    assert (model.graph_penalty_, model.ridge_) == pytest.approx((penalty, 1e-3))
    assert np.all(np.diff(model.solution_.history) <= 0)
    assert model.graph_learned_ is model.graph_


def test_given_settings_of_a_plain_fit_are_used_without_a_search():
    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    given = {"bandwidth": 1.0, "graph_penalty": 0.5, "ridge": 1e-3, "random_state": 0}
    model = gr.GraphRatio(**given, n_profiles=0, n_rounds=2)
    model.fit(scenario.samples, scenario.graph)
    assert model.cv_results_ is None
    assert model.divergence_held_out_ is None
    assert (model.shared_, model.n_rounds_) == (False, 0)
    # Rounds to be chosen ask for a selection, which finds the same.
    chosen = gr.GraphRatio(**given, n_profiles=0).fit(scenario.samples, scenario.graph)
    assert chosen.cv_results_ is not None
    np.testing.assert_array_equal(model.coef_, chosen.coef_)
    plain = gr.GRULSIF(**given, prior_ratio=1.0).fit(scenario.samples, scenario.graph)
    np.testing.assert_allclose(model.divergence_, plain.divergence_, rtol=1e-4)


def test_strong_graph_gives_consensus_and_none_gives_single_nodes():
    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    given = {"n_profiles": 2, "bandwidth": 1.0, "ridge": 1e-3, "n_rounds": 0, "adaptive": False}
    strong = gr.GraphRatio(graph_penalty=1e7 / scenario.graph.mean_degree, **given)
    strong.fit(scenario.samples, scenario.graph)
    for component in range(scenario.graph.n_components):
        members = strong.coordinates_[scenario.graph.components == component]
        np.testing.assert_allclose(members, members[:1].repeat(len(members), 0), atol=1e-3)
    off = gr.GraphRatio(graph_penalty=0.0, **given).fit(scenario.samples, scenario.graph)
    alone = gr.GraphRatio(**given).fit(scenario.samples)
    np.testing.assert_allclose(off.coef_, alone.coef_)


def test_nodes_without_observations_borrow():
    scenario = make_scenario("Ia", n_nodes=40, n=50, random_state=0)
    reference = [scenario.samples.reference(v) for v in range(40)]
    target = [scenario.samples.target(v) for v in range(40)]
    lacking = int(np.flatnonzero(scenario.groups == "C4")[0])
    target[lacking] = np.zeros((0, 1))
    model = gr.GraphRatio(random_state=0).fit((reference, target), scenario.graph)
    other = int(np.flatnonzero(scenario.groups == "C4")[1])
    assert np.isnan(model.divergence_[lacking])
    assert model.predict([2.0], node=lacking)[0] > 1.5
    assert model.predict([2.0], node=other)[0] > 1.5


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"n_profiles": -1}, "n_profiles"),
        ({"n_profiles": [1, 2.5]}, "n_profiles"),
        ({"n_rounds": -1}, "n_rounds"),
        ({"graph_penalty": -1.0}, "graph_penalty"),
        ({"ridge": 0.0}, "ridge"),
        ({"cv": 1}, "cv"),
    ],
)
def test_bad_parameters_are_named(parameters, named):
    with pytest.raises(InputError, match=named):
        gr.GraphRatio(**parameters, adaptive=False).fit(([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]))


def test_single_node_and_constant_data():
    model = gr.GraphRatio(random_state=0).fit(([0.0] * 12, [0.0] * 12))
    assert np.isfinite(model.predict([0.0, 1.0], node=0)).all()


@pytest.mark.parametrize("seed", [0, 7, 8, 30, 31, 40])
def test_very_few_observations(seed):
    """Where profiles depend on each other, and folds lack nodes: finite results all the same."""
    rng = np.random.default_rng(seed)
    n_nodes, n_features = rng.integers(2, 5), rng.integers(1, 4)
    sizes = rng.integers(1, 5, size=(2, n_nodes))
    reference, target = ([rng.normal(size=(n, n_features)) for n in side] for side in sizes)
    for graph in (gr.Graph.empty(n_nodes), path_graph(n_nodes)):
        model = gr.GraphRatio(random_state=0).fit((reference, target), graph)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.divergence_).all()


def path_graph(n_nodes):
    return gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)], nodes=range(n_nodes))


def test_parameters_are_kept_as_given():
    model = gr.GraphRatio(0.2, random_state=7, n_profiles=1, adaptive=False)
    assert (model.alpha, model.random_state, model.n_profiles) == (0.2, 7, 1)
    assert not model.adaptive
    assert gr.GraphRatio().adaptive


def test_search_goes_on_while_it_gets_better_and_stops_at_the_end():
    axis = decades(-4, 4, start=1.0)

    def falling(point, n_folds):
        return Trial(np.full((1, 2, 3), float(point[0])))

    best, tried = search([axis], falling)
    assert best == (0,)
    assert len(tried) < len(axis.values)


def test_search_is_reluctant_where_told():
    axis = Axis(np.arange(3.0), start=0, reluctance=(0.0, 1.0))
    noisy = {0: [0.0, 0.0, 0.0], 1: [-1.0, 0.9, 0.0], 2: [-1.0, -1.0, -1.0]}
    best, _ = search([axis], lambda point, n_folds: Trial(np.array([[noisy[point[0]]]])))
    assert best == (0,)


def test_folds_without_a_node_are_left_out_of_means():
    losses = np.array([[[1.0, np.nan], [3.0, 5.0], [np.nan, np.nan]]])
    trial = Trial(losses)
    assert trial.loss == pytest.approx((1.0 + 4.0) / 2)
    np.testing.assert_allclose(trial.node_losses, [2.0, 5.0])


def test_no_shared_profiles_is_the_joint_fit_on_independent_grids():
    scenario = make_scenario("Ia", n_nodes=20, n=40, random_state=1)
    penalties = np.array([1.0, 10.0]) / scenario.graph.mean_degree
    model = gr.GraphRatio(n_profiles=0, graph_penalty=penalties, ridge=1e-3, adaptive=False)
    model.set_params(random_state=0).fit(scenario.samples, scenario.graph)
    plain = gr.GRULSIF(
        prior_ratio=1.0,
        bandwidth=model.bandwidth_,
        graph_penalty=model.graph_penalty_,
        ridge=1e-3,
        tol=1e-10,
    ).fit(scenario.samples, scenario.graph)
    x = scenario.samples.values[:50]
    np.testing.assert_allclose(model.predict(x), plain.predict(x), atol=1e-3)
    assert set(model.cv_results_["n_profiles"]) == {0}
    np.testing.assert_allclose(np.unique(model.cv_results_["graph_penalty"]), penalties)


def test_graph_that_is_switched_off_is_not_used():
    scenario = make_scenario("Ia", n_nodes=20, n=40, random_state=1)
    given = {"n_profiles": 0, "graph_penalty": 0.0, "ridge": 1e-2, "bandwidth": 1.0}
    given["adaptive"] = False
    off = gr.GraphRatio(**given).fit(scenario.samples, scenario.graph)
    alone = gr.GraphRatio(**given).fit(scenario.samples)
    np.testing.assert_allclose(off.coef_, alone.coef_)
    assert off.graph_ is scenario.graph
    assert off.cut_links() == []


def test_progress_reaches_its_end(capsys):
    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    gr.GraphRatio(progress=True, adaptive=False, random_state=0).fit(
        scenario.samples, scenario.graph
    )
    assert "model selection: 50/50" in capsys.readouterr().err


def test_sizes_with_borrowed_are_those_of_the_learned_graph():
    scenario = make_scenario("Ia", n_nodes=40, n=50, random_state=1)
    given = {"n_profiles": 2, "bandwidth": 1.0, "ridge": 1e-3, "n_rounds": 2}
    model = gr.GraphRatio(graph_penalty=10.0 / scenario.graph.mean_degree, **given)
    model.fit(scenario.samples, scenario.graph)
    table = model.borrowed(0)
    inside = scenario.groups[table["node"].to_numpy()] == scenario.groups[0]
    assert table["share"][inside].sum() > 0.95
    assert (model.sizes_with_borrowed() > 50).all()
    off = gr.GraphRatio(graph_penalty=0.0, adaptive=False, **given)
    off.fit(scenario.samples, scenario.graph)
    np.testing.assert_allclose(off.sizes_with_borrowed(), 50.0)


def test_intervals_for_profiles(fitted):
    scenario, model = fitted
    points = scenario.samples.values[:2]
    band = gr.expected_ratio_interval(
        scenario.samples, estimator=model, x=points, node=0, random_state=0
    )
    np.testing.assert_array_equal(band.ratio, model.predict(points, node=0, clip=False))
    assert (band.expected_ratio_low < band.ratio).all()
    assert (band.ratio < band.expected_ratio_high).all()


def test_folds_that_do_not_fit_into_memory_are_made_again(monkeypatch):
    scenario = make_scenario("Ia", n_nodes=12, n=30, random_state=0)
    given = {"random_state": 0, "bandwidth": [0.8, 1.0], "ridge": 1e-3}
    kept = gr.GraphRatio(**given).fit(scenario.samples, scenario.graph)
    monkeypatch.setattr(held_out_data, "LARGEST_KEPT", 0)
    again = gr.GraphRatio(**given).fit(scenario.samples, scenario.graph)
    np.testing.assert_array_equal(kept.coef_, again.coef_)


@pytest.mark.parametrize(("spread", "limit"), [(0.5, 0.04), (1.0, 0.02)])
def test_a_single_pair_of_samples_has_enough_atoms_for_a_shape(spread, limit):
    """The paper's filter would keep two, and miss a change of spread altogether."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(4):
        pair = gr.NodeSamples.from_arrays(rng.normal(size=250), rng.normal(0, spread, size=250))
        model = gr.GraphRatio(random_state=0).fit(pair)
        x = rng.normal(size=(1000, 1))
        density_ratio = np.exp((1 - 1 / spread**2) * x[:, 0] ** 2 / 2) / spread
        truth = density_ratio / (0.9 + 0.1 * density_ratio)
        errors.append(np.mean(np.square(model.predict(x, node=0) - truth)))
        assert 10 <= model.n_atoms_ <= 60
    assert np.mean(errors) < limit
