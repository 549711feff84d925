"""RULSIF and ULSIF against their closed forms and against refitting without each pair."""

import numpy as np
import pytest
from sklearn.base import clone

import graphratio as gr
from graphratio.estimators.node_choice import best_per_node, choose_cautiously
from graphratio.estimators.notes import unscored_notes
from graphratio.exceptions import InputError
from graphratio.solvers.least_squares import fold_losses, left_out_losses

RNG = np.random.default_rng


def gaussian(x, centres, bandwidth):
    squares = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squares / (2 * bandwidth**2))


def closed_form(phi_ref, phi_tgt, alpha, penalty):
    n, m = len(phi_ref), len(phi_tgt)
    second = (1 - alpha) / n * phi_ref.T @ phi_ref + alpha / m * phi_tgt.T @ phi_tgt
    return np.linalg.solve(second + penalty * np.eye(second.shape[0]), phi_tgt.mean(axis=0))


def brute_force(phi_ref, phi_tgt, alpha, penalty, nonnegative):
    """Refit without reference i mod n and target i mod n', for every i below the larger."""
    losses = []
    for i in range(max(len(phi_ref), len(phi_tgt))):
        r, t = i % len(phi_ref), i % len(phi_tgt)
        theta = closed_form(np.delete(phi_ref, r, 0), np.delete(phi_tgt, t, 0), alpha, penalty)
        if nonnegative:
            theta = np.maximum(theta, 0)
        fx, fy = phi_ref[r] @ theta, phi_tgt[t] @ theta
        losses.append((1 - alpha) / 2 * fx**2 + alpha / 2 * fy**2 - fy)
    return np.mean(losses)


def ragged(seed=0, n_nodes=7, d=2, low=3, high=60):
    rng = RNG(seed)
    sizes = rng.integers(low, high, size=(n_nodes, 2))
    reference = [rng.normal(size=(n, d)) for n, _ in sizes]
    target = [rng.normal(0.3, 1, size=(n, d)) for _, n in sizes]
    return gr.NodeSamples.from_arrays(reference, target)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.7])
@pytest.mark.parametrize(("n_ref", "n_tgt"), [(9, 9), (6, 13), (14, 5), (2, 2), (2, 7)])
def test_leave_one_out_equals_refitting(n_ref, n_tgt, alpha, nonnegative):
    rng = RNG(n_ref + 100 * n_tgt)
    x, y = rng.normal(size=(n_ref, 2)), rng.normal(0.5, 1, size=(n_tgt, 2))
    phi_ref, phi_tgt = gaussian(x, y[:5], 1.3), gaussian(y, y[:5], 1.3)
    penalties = np.array([1e-5, 1e-3, 0.1, 10.0])
    losses = left_out_losses(
        phi_ref[None],
        phi_tgt[None],
        np.array([[n_ref, n_tgt]]),
        alpha,
        penalties,
        nonnegative=nonnegative,
    )
    expected = [brute_force(phi_ref, phi_tgt, alpha, g, nonnegative) for g in penalties]
    assert losses.shape[1] == max(n_ref, n_tgt)
    np.testing.assert_allclose(losses[0].mean(axis=0), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_scores_of_a_fit_on_unequal_nodes_equal_refitting(nonnegative):
    samples = ragged()
    model = gr.RULSIF(
        0.2, n_centers=8, nonnegative=nonnegative, selection="min", random_state=0
    ).fit(samples)
    table = model.cv_results_
    assert len(table["mean_score"]) == 7 * 5 * 4
    for row in range(0, len(table["node"]), 11):
        v = table["node"][row]
        centres = model.centers_[v, : model.n_centers_[v]]
        phi = [
            gaussian(x, centres, table["bandwidth"][row])
            for x in (samples.reference(v), samples.target(v))
        ]
        expected = brute_force(*phi, 0.2, table["ridge"][row], nonnegative)
        assert table["mean_score"][row] == pytest.approx(-expected, abs=1e-8, rel=1e-8)
    scores = table["mean_score"].reshape(7, 20)
    best = table["rank"].reshape(7, 20) == 1
    np.testing.assert_array_equal(scores[best], scores.max(axis=1))
    np.testing.assert_array_equal(model.ridge_, table["ridge"].reshape(7, 20)[best])


def cautious_by_hand(losses, n_min):
    """The rule for one node, losses of shape (n_widths, n_penalties, n_pairs)."""
    mean = losses.mean(axis=2)
    best = losses[np.unravel_index(mean.argmin(), mean.shape)]
    weights = np.zeros(mean.shape)
    for w, p in np.ndindex(*mean.shape):
        difference = losses[w, p] - best
        error = difference.std(ddof=1) / np.sqrt(n_min)
        weights[w, p] = np.exp(-0.5 * (difference.mean() / error) ** 2) if difference.any() else 1
    share = weights.sum(axis=0) / weights.sum()
    penalty = max(p for p in range(len(share)) if share[p:].sum() >= 0.5)
    here = losses[:, penalty]
    difference = here - here[here.mean(axis=1).argmin()]
    allowed = 2 * difference.std(axis=1, ddof=1) / np.sqrt(n_min)
    return np.flatnonzero(difference.mean(axis=1) <= allowed).max(), penalty


def test_cautious_selection_follows_its_definition():
    samples = ragged(8, n_nodes=12, low=4)
    model = gr.RULSIF(0.2, n_centers=8, random_state=0).fit(samples)
    least = gr.RULSIF(0.2, n_centers=8, selection="min", random_state=0).fit(samples)
    widths = model.cv_results_["bandwidth"].reshape(12, 5, 4)[:, :, 0]
    penalties = np.array([1e-5, 1e-3, 0.1, 10.0])
    for v in samples.nodes:
        centres = model.centers_[v, : model.n_centers_[v]]
        x, y = samples.reference(v), samples.target(v)
        losses = [
            left_out_losses(
                gaussian(x, centres, width)[None],
                gaussian(y, centres, width)[None],
                np.array([[len(x), len(y)]]),
                0.2,
                penalties,
            )[0].T
            for width in widths[v]
        ]
        width, penalty = cautious_by_hand(np.array(losses), min(len(x), len(y)))
        assert model.ridge_[v] == penalties[penalty]
        assert model.bandwidth_[v] == widths[v, width]
    for name in ("mean_score", "rank"):
        np.testing.assert_array_equal(model.cv_results_[name], least.cv_results_[name])
    assert not np.array_equal(model.ridge_, least.ridge_)


def test_ties_go_to_the_stronger_penalty_and_the_wider_kernel():
    losses = np.tile(RNG(0).normal(size=30), (1, 3, 4, 1))
    sizes = np.array([[30, 30]])
    assert best_per_node(-losses.mean(axis=3)) == (2, 3)
    # All alike: the upper of the two middle penalties.
    assert choose_cautiously(losses, sizes) == (2, 2)
    losses[:, :, 2:] += 5.0  # constant differences have no error at all
    losses[:, 1:] += 5.0
    assert choose_cautiously(losses, sizes) == (0, 1)


def test_one_clearly_best_candidate_is_taken_by_both_rules():
    losses = 5 + 0.1 * RNG(0).normal(size=(3, 5, 4, 40))
    best = [(0, 0), (4, 3), (2, 1)]
    for node, (width, penalty) in enumerate(best):
        losses[node, width, penalty] -= 3
    expected = np.transpose(best)
    sizes = np.full((3, 2), 40)
    np.testing.assert_array_equal(best_per_node(-losses.mean(axis=3)), expected)
    np.testing.assert_array_equal(choose_cautiously(losses, sizes), expected)


def test_padding_after_the_pairs_of_a_node_changes_nothing():
    losses = RNG(0).normal(size=(6, 5, 4, 20))
    sizes = np.tile([20, 13], (6, 1))
    padded = np.concatenate([losses, np.zeros((6, 5, 4, 7))], axis=3)
    np.testing.assert_array_equal(
        choose_cautiously(padded, sizes), choose_cautiously(losses, sizes)
    )


def test_nonnegative_takes_the_minimum_unless_told_otherwise():
    samples = ragged(9)
    fits = {
        selection: gr.RULSIF(nonnegative=True, selection=selection).fit(samples)
        for selection in (None, "min", "cautious")
    }
    np.testing.assert_array_equal(fits[None].coef_, fits["min"].coef_)
    assert not np.array_equal(fits[None].coef_, fits["cautious"].coef_)


@pytest.mark.parametrize("name", ["Ia", "IIb"])
def test_cautious_selection_has_the_smaller_error_on_few_observations(name):
    scenario = gr.datasets.make_scenario(name, n_nodes=60, n=50, random_state=0)
    errors = [
        scenario.mean_squared_error(
            gr.RULSIF(selection=selection, random_state=0).fit(scenario.samples).predict,
            0.1,
            n_points=500,
            random_state=1,
        ).mean()
        for selection in ("cautious", "min")
    ]
    assert errors[0] < 0.8 * errors[1]


def test_duplicates_and_constant_samples_have_finite_scores():
    reference = [np.repeat([0.0, 1.0], 10), np.zeros(6)]
    target = [np.repeat([0.0, 1.0, 2.0], 5), np.zeros(4)]
    model = gr.RULSIF().fit((reference, target))
    assert np.isfinite(model.cv_results_["mean_score"]).all()
    assert np.isfinite(model.divergence_).all()


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_fit_is_the_closed_form_of_every_node(alpha, nonnegative):
    samples = ragged(1)
    model = gr.RULSIF(alpha, bandwidth=0.9, ridge=0.02, n_centers=10, nonnegative=nonnegative).fit(
        samples
    )
    assert model.cv_results_ is None
    assert model.solution_.converged
    assert model.solution_.residual < 1e-10
    grid = RNG(5).normal(size=(11, 2))
    for v in samples.nodes:
        x, y = samples.reference(v), samples.target(v)
        centres = model.centers_[v, : model.n_centers_[v]]
        theta = closed_form(gaussian(x, centres, 0.9), gaussian(y, centres, 0.9), alpha, 0.02)
        theta = np.maximum(theta, 0) if nonnegative else theta
        np.testing.assert_allclose(model.coef_[v, : len(theta)], theta, atol=1e-10)
        assert (model.coef_[v, len(theta) :] == 0).all()
        np.testing.assert_allclose(
            model.predict(grid, node=v, clip=False), gaussian(grid, centres, 0.9) @ theta, atol=1e-9
        )
        fx, fy = gaussian(x, centres, 0.9) @ theta, gaussian(y, centres, 0.9) @ theta
        loss = (1 - alpha) / 2 * (fx**2).mean() + alpha / 2 * (fy**2).mean() - fy.mean()
        assert model.divergence_[v] == pytest.approx(-loss - 0.5, abs=1e-9)
    everywhere = model.predict(grid)
    assert everywhere.shape == (11, 7)
    np.testing.assert_allclose(everywhere[:, 3], model.predict(grid, node=3), atol=1e-12)


def test_laplacian_kernel_is_supported():
    rng = RNG(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(15, 2))
    model = gr.RULSIF(kernel="laplacian", bandwidth=1.5, ridge=0.1).fit((x, y))
    phi = [np.exp(-np.abs(a[:, None] - y[None]).sum(axis=2) / 1.5) for a in (x, y)]
    np.testing.assert_allclose(model.coef_[0], closed_form(*phi, 0.1, 0.1), atol=1e-10)


def test_many_features_take_the_same_values():
    rng = RNG(0)
    x, y = rng.normal(size=(30, 20)), rng.normal(size=(25, 20))
    model = gr.RULSIF(bandwidth=4.0, ridge=0.1).fit((x, y))
    phi = [gaussian(a, y, 4.0) for a in (x, y)]
    np.testing.assert_allclose(model.coef_[0], closed_form(*phi, 0.1, 0.1), atol=1e-9)


def test_ulsif_is_rulsif_at_alpha_zero():
    samples = ragged(2)
    plain = gr.ULSIF(n_centers=9, random_state=3).fit(samples)
    relative = gr.RULSIF(0.0, n_centers=9, random_state=3).fit(samples)
    np.testing.assert_array_equal(plain.coef_, relative.coef_)
    np.testing.assert_array_equal(plain.divergence_, relative.divergence_)
    assert plain.divergence_name_ == "Pearson"
    assert "alpha" not in plain.get_params()


def test_centres_are_distinct_target_observations():
    samples = ragged(3, high=40)
    model = gr.RULSIF(bandwidth=1.0, ridge=1.0, n_centers=12, random_state=0).fit(samples)
    np.testing.assert_array_equal(model.n_centers_, np.minimum(12, samples.n_target))
    for v in samples.nodes:
        centres = model.centers_[v, : model.n_centers_[v]]
        distances = np.abs(centres[:, None] - samples.target(v)[None]).sum(axis=2)
        nearest = distances.argmin(axis=1)
        assert (distances.min(axis=1) == 0).all()
        assert len(set(nearest.tolist())) == len(nearest)


def test_default_number_of_centres_and_grid():
    rng = RNG(0)
    target = rng.normal(size=130)
    model = gr.RULSIF(random_state=0).fit((rng.normal(size=40), target))
    assert model.n_centers_.tolist() == [100]
    pairs = np.abs(target[:, None] - target[None, :])[np.triu_indices(130, 1)]
    expected = np.median(pairs) * np.array([0.6, 0.8, 1.0, 1.2, 1.4])
    np.testing.assert_allclose(np.unique(model.cv_results_["bandwidth"]), expected, rtol=1e-12)
    assert np.unique(model.cv_results_["ridge"]).tolist() == [1e-5, 1e-3, 0.1, 10.0]


def test_nodes_fitted_together_equal_nodes_fitted_apart():
    samples = ragged(4, low=2)
    together = gr.RULSIF().fit(samples)
    for v in samples.nodes:
        alone = gr.RULSIF().fit((samples.reference(v), samples.target(v)))
        assert alone.bandwidth_[0] == pytest.approx(together.bandwidth_[v])
        assert alone.ridge_[0] == together.ridge_[v]
        np.testing.assert_allclose(
            alone.coef_[0], together.coef_[v, : alone.coef_.shape[1]], rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("sizes", [(100, 1000), (1000, 100)])
@pytest.mark.parametrize("estimator", [gr.RULSIF(random_state=0), gr.ULSIF(random_state=0)])
def test_identical_laws_of_unequal_sizes_have_divergence_near_zero(sizes, estimator):
    rng = RNG(0)
    nodes = 15
    model = clone(estimator).fit(
        (rng.normal(size=(nodes, sizes[0], 1)), rng.normal(size=(nodes, sizes[1], 1)))
    )
    assert np.abs(np.median(model.divergence_)) < 0.05
    assert model.divergence_.min() > -0.1


def test_a_single_observation_falls_back_with_a_note():
    model = gr.RULSIF().fit(
        ({"a": [1.0], "b": [0.0, 1.0, 2.0]}, {"a": [0.0, 2.0], "b": [0.0, 1.0]})
    )
    assert model.ridge_[0] == 10
    assert model.bandwidth_[0] == pytest.approx(2.0)
    assert np.isfinite(model.divergence_).all()
    (note,) = unscored_notes(model.cv_results_, model.nodes_)
    assert note.endswith("at nodes 'a'")
    assert note in model.notes_
    scores = model.cv_results_["mean_score"].reshape(2, -1)
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[1]).all()


def test_order_of_nodes_follows_the_graph_and_shows_in_the_table():
    rng = RNG(0)
    reference = {v: rng.normal(size=20) for v in "abc"}
    target = {v: rng.normal(size=25) + (v == "b") for v in "abc"}
    graph = gr.Graph.from_edges([("b", "c")], nodes=["c", "b", "a"])
    model = gr.RULSIF().fit(gr.NodeSamples.from_arrays(reference, target), graph)
    frame = model.to_frame()
    assert frame["node"].tolist() == ["c", "b", "a"]
    assert frame["degree"].tolist() == [1, 1, 0]
    assert {"bandwidth", "ridge"} <= set(frame.columns)
    assert "Pearson" in repr(model)


def test_params_clone_and_seed():
    model = gr.RULSIF(0.2, bandwidth=[1.0, 2.0], ridge=0.1, n_centers=5, random_state=1)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    samples = ragged(5)
    np.testing.assert_array_equal(model.fit(samples).coef_, copy.fit(samples).coef_)
    assert set(np.unique(model.bandwidth_)) <= {1.0, 2.0}
    other = clone(model).set_params(random_state=2).fit(samples)
    assert not np.array_equal(other.centers_, model.centers_)


@pytest.mark.parametrize("kind", [gr.RULSIF, gr.ULSIF])
def test_save_and_load(tmp_path, kind):
    samples = ragged(6)
    model = kind(random_state=0).fit(samples)
    model.save(tmp_path / "model")
    read = gr.load(tmp_path / "model")
    x = RNG(0).normal(size=(6, 2))
    np.testing.assert_array_equal(read.predict(x), model.predict(x))
    np.testing.assert_array_equal(read.divergence(samples), model.divergence_)
    assert read.cv_results_["node"].tolist() == model.cv_results_["node"].tolist()
    assert read.solution_.residual == model.solution_.residual


def test_predictions_are_clipped_and_score_is_minus_the_loss():
    rng = RNG(0)
    pair = (rng.normal(size=50), rng.normal(3, 0.3, size=50))
    model = gr.RULSIF(0.1, bandwidth=0.3, ridge=1e-6).fit(pair)
    x = np.linspace(-5, 8, 200)
    assert model.predict(x).min() >= 0
    assert model.predict(x).max() <= 10
    assert model.score(pair) == pytest.approx(model.divergence_[0] + 0.5)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"alpha": 1.0}, "alpha"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"ridge": [0.1, 0.0]}, "ridge"),
        ({"n_centers": 0}, "n_centers"),
        ({"kernel": "gauss"}, "kernel"),
        ({"nonnegative": "yes"}, "nonnegative"),
        ({"selection": "one_se"}, "selection"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_wrong_parameters_are_named(parameters, match):
    with pytest.raises(InputError, match=match):
        gr.RULSIF(**parameters).fit(([0.0, 1.0], [1.0, 2.0]))


def test_a_node_without_a_sample_is_an_error():
    with pytest.raises(InputError, match="'b'"):
        gr.RULSIF().fit(({"a": [0.0, 1.0], "b": [1.0]}, {"a": [0.0, 1.0]}))


@pytest.mark.parametrize("nonnegative", [False, True])
def test_losses_of_folds_equal_refitting(nonnegative):
    rng = RNG(3)
    phi = [np.exp(-rng.exponential(size=(2, n, 4))) for n in (9, 12)]
    folds = [rng.integers(3, size=part.shape[:2]) for part in phi]
    # The last rows of the second node are padding, and its fold 2 has no target.
    for part, fold in zip(phi, folds, strict=True):
        part[1, -2:], fold[1, -2:] = 0, -1
        fold[:, :3] = [0, 1, 2]
    folds[1][1][folds[1][1] == 2] = 0
    ridges = np.array([0.01, 1.0])
    found = fold_losses(
        tuple(phi), tuple(folds), [[0], [1], [2]], 0.1, ridges, nonnegative=nonnegative
    )
    assert np.isnan(found[1, :, 2]).all()
    for node, fold in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        (x, y), (of_x, of_y) = [part[node] for part in phi], [part[node] for part in folds]
        for place, ridge in enumerate(ridges):
            kept = x[(of_x >= 0) & (of_x != fold)], y[(of_y >= 0) & (of_y != fold)]
            theta = closed_form(*kept, 0.1, ridge)
            theta = np.maximum(theta, 0) if nonnegative else theta
            fx, fy = x[of_x == fold] @ theta, y[of_y == fold] @ theta
            expected = 0.45 * np.mean(fx**2) + 0.05 * np.mean(fy**2) - np.mean(fy)
            np.testing.assert_allclose(found[node, place, fold], expected, rtol=1e-9)


def with_day_effects(seed, n_days):
    """Twelve observations a day that share a level; the target is a little higher."""
    rng = RNG(seed)
    days = [rng.normal(size=(6, n_days)).repeat(12, axis=1) + shift for shift in (0.0, 0.7)]
    return [list(level + 0.5 * rng.normal(size=level.shape)) for level in days]


@pytest.mark.parametrize("estimator", [gr.RULSIF, gr.ULSIF])
def test_whole_blocks_are_left_out(estimator):
    hours = np.arange(120)
    gains = []
    for seed in range(3):
        data = with_day_effects(seed, 10)
        fresh = gr.NodeSamples.from_arrays(*with_day_effects(50 + seed, 200))
        blocked = gr.NodeSamples.from_arrays(*data, time=(hours, hours + 1000), block=12)
        single = estimator(random_state=0).fit(gr.NodeSamples.from_arrays(*data))
        days = estimator(random_state=0).fit(blocked)
        gains.append(days.divergence(fresh).mean() - single.divergence(fresh).mean())
    # Neighbours of a left-out observation recommend far too weak penalties.
    assert np.mean(gains) > 0.03
    scores = np.array([days.cv_results_[f"fold_{fold}_score"] for fold in range(10)])
    np.testing.assert_allclose(scores.mean(axis=0), days.cv_results_["mean_score"])
    assert "fold_10_score" not in days.cv_results_
    least = estimator(random_state=0, selection="min").fit(blocked)
    best = least.cv_results_["mean_score"][least.cv_results_["rank"] == 1]
    assert (best >= least.cv_results_["mean_score"].reshape(6, -1).max(axis=1)).all()


def test_times_without_dependence_leave_single_observations_out():
    x, y = RNG(0).normal(size=(2, 3, 40))
    times = (np.arange(40), np.arange(100, 140))
    plain = gr.RULSIF(random_state=0).fit(gr.NodeSamples.from_arrays(list(x), list(y)))
    timed = gr.NodeSamples.from_arrays(list(x), list(y), time=times)
    assert not timed.blocks.exist
    np.testing.assert_array_equal(gr.RULSIF(random_state=0).fit(timed).coef_, plain.coef_)
