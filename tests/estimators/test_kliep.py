"""KLIEP as an estimator: normalisation, selection, divergences, degenerate samples."""

import numpy as np
import pytest
from sklearn.base import clone

import graphratio as gr
from graphratio.estimators.notes import unscored_notes
from graphratio.exceptions import ConvergenceWarning, InputError

RNG = np.random.default_rng


def ragged(seed=0, n_nodes=5, d=2, low=6, high=40):
    rng = RNG(seed)
    sizes = rng.integers(low, high, size=(n_nodes, 2))
    reference = [rng.normal(size=(n, d)) for n, _ in sizes]
    target = [rng.normal(0.4, 1, size=(n, d)) for _, n in sizes]
    return gr.NodeSamples.from_arrays(reference, target)


@pytest.fixture(scope="module")
def fitted():
    samples = ragged()
    return gr.KLIEP(random_state=0).fit(samples), samples


def test_mean_one_under_the_reference_and_optimal(fitted):
    model, samples = fitted
    assert model.solution_.converged
    assert model.solution_.residual < 1e-6
    assert (model.coef_ >= 0).all()
    for v in samples.nodes:
        assert model.predict(samples.reference(v), node=v).mean() == pytest.approx(1, abs=1e-10)


def test_divergence_is_the_mean_log_ratio_of_the_target(fitted):
    model, samples = fitted
    expected = [np.log(model.predict(samples.target(v), node=v)).mean() for v in samples.nodes]
    np.testing.assert_allclose(model.divergence_, expected, atol=1e-10)
    np.testing.assert_allclose(model.divergence(samples), expected, atol=1e-10)
    assert model.score(samples) == pytest.approx(np.mean(expected))
    assert model.divergence_name_ == "KL"
    assert "KL divergence" in repr(model)


def test_table_of_scores_has_every_fold_and_the_choice_is_the_best(fitted):
    model, _ = fitted
    table = model.cv_results_
    assert len(table["node"]) == 5 * 20
    folds = np.stack([table[f"fold_{r}_score"] for r in range(5)], axis=1)
    np.testing.assert_allclose(folds.mean(axis=1), table["mean_score"])
    scores = table["mean_score"].reshape(5, 20)
    for v in range(5):
        chosen = (table["bandwidth"].reshape(5, 20)[v] == model.bandwidth_[v]) & (
            table["ridge"].reshape(5, 20)[v] == model.ridge_[v]
        )
        assert scores[v][chosen][0] >= scores[v].max() - 1e-5 * abs(scores[v].max())


def test_known_divergence_is_approached():
    rng = RNG(1)
    reference, target = rng.normal(size=800), rng.normal(1, 1, size=900)
    model = gr.KLIEP(random_state=0).fit((reference, target))
    assert model.divergence_[0] == pytest.approx(0.5, abs=0.12)


def test_identical_samples_have_no_divergence():
    x = RNG(0).normal(size=(4, 60, 2))
    model = gr.KLIEP(random_state=0).fit((x, x))
    # Jensen: the mean of log f is at most the log of the mean of f, which is one.
    assert model.divergence_.max() < 1e-9
    assert model.divergence_.min() > -0.05


@pytest.mark.parametrize("sizes", [(100, 1000), (1000, 100)])
def test_identical_laws_of_unequal_sizes(sizes):
    rng = RNG(3)
    reference = rng.normal(size=(2, sizes[0], 1))
    target = rng.normal(size=(2, sizes[1], 1))
    model = gr.KLIEP(random_state=0, n_centers=30).fit((reference, target))
    assert np.abs(model.divergence_).max() < 0.15


def test_nodes_fitted_together_equal_nodes_fitted_apart():
    samples = ragged(2)
    together = gr.KLIEP(bandwidth=1.0, ridge=1e-3).fit(samples)
    for v in samples.nodes:
        alone = gr.KLIEP(bandwidth=1.0, ridge=1e-3).fit((samples.reference(v), samples.target(v)))
        assert alone.divergence_[0] == pytest.approx(together.divergence_[v], abs=1e-6)


def test_fewer_observations_than_folds():
    samples = gr.NodeSamples.from_arrays([[0.0, 1.0, 2.0], [0.5]], [[0.0, 1.5, 3.0], [1.0]])
    model = gr.KLIEP(random_state=0).fit(samples)
    table = model.cv_results_
    scores = table["mean_score"].reshape(2, -1)
    assert np.isfinite(scores[0]).all()
    assert np.isnan(scores[1]).all()
    assert model.ridge_[1] == 10
    assert np.isfinite(model.divergence_).all()
    (note,) = unscored_notes(model.cv_results_, model.nodes_)
    assert note.endswith("at nodes 1")
    assert note in model.notes_


def test_target_far_from_its_centres_does_not_break_the_fit():
    rng = RNG(0)
    target = np.append(rng.normal(size=50), 1e3)
    model = gr.KLIEP(n_centers=5, random_state=0).fit((rng.normal(size=50), target))
    assert np.isfinite(model.divergence_).all()
    assert model.solution_.converged


def test_reference_out_of_reach_is_an_error():
    with pytest.raises(InputError, match="larger bandwidth"):
        gr.KLIEP(random_state=0).fit((np.arange(5.0), np.arange(5.0) + 1e4))


def test_params_clone_seed_and_files(tmp_path, fitted):
    model, samples = fitted
    again = clone(model).fit(samples)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.get_params() == model.get_params()
    model.save(tmp_path / "model")
    read = gr.load(tmp_path / "model")
    assert isinstance(read, gr.KLIEP)
    np.testing.assert_array_equal(read.divergence(samples), model.divergence_)
    assert read.solution_.history == model.solution_.history
    np.testing.assert_array_equal(read.cv_results_["rank"], model.cv_results_["rank"])


def test_too_few_iterations_warn_with_a_remedy():
    rng = RNG(0)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        gr.KLIEP(bandwidth=1.0, ridge=1e-5, max_iter=2).fit(
            (rng.normal(size=20), rng.normal(size=20))
        )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"cv": 1}, "cv"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"bandwidth": "wide"}, "bandwidth"),
    ],
)
def test_wrong_parameters_are_named(parameters, match):
    with pytest.raises(InputError, match=match):
        gr.KLIEP(**parameters).fit(([0.0, 1.0], [1.0, 2.0]))
