"""The divergence on held-out folds, from the losses of a selection."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import graphratio as gr
from graphratio.selection.cross_validation import crossed_divergences


def test_the_candidate_of_a_fold_is_chosen_on_the_others():
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(7, 4, 5))
    losses[:, 2, 1] = np.nan
    found = crossed_divergences(losses)
    mean = np.nanmean(losses, axis=2)
    picked = [
        losses[np.argmin(np.delete(mean, fold, axis=1).mean(axis=1)), fold] for fold in range(4)
    ]
    assert_allclose(found, -np.nanmean(picked, axis=0) - 0.5)


def test_a_fold_without_losses_counts_nowhere():
    losses = np.random.default_rng(0).normal(size=(3, 4, 2))
    losses[:, 1] = np.nan
    assert_allclose(crossed_divergences(losses), crossed_divergences(np.delete(losses, 1, axis=1)))


@pytest.mark.slow
@pytest.mark.parametrize("make", [gr.GraphRatio, lambda **seed: gr.GRULSIF(prior_ratio=1, **seed)])
def test_it_is_not_too_high_where_the_divergence_of_the_fit_is(make):
    """Ten observations per sample: in-sample divergences of quiet nodes are too high."""
    fitted, held_out, above = [], [], []
    for seed in range(6):
        scene = gr.datasets.make_scenario("Ia", n_nodes=40, n=10, random_state=seed)
        model = make(random_state=0).fit(scene.samples, scene.graph)
        quiet = ~scene.changed
        fitted.append(model.divergence_[quiet].mean())
        held_out.append(model.divergence_held_out_[quiet].mean())
        above.append((model.divergence_held_out_ - scene.true_divergence(alpha=0.1))[~quiet].mean())
    assert np.mean(fitted) > 0.01
    assert np.mean(held_out) < 0.0
    assert np.mean(above) < 0.0


def test_where_it_stands(tmp_path):
    scene = gr.datasets.make_scenario("Ia", n_nodes=12, n=20, random_state=0)
    model = gr.GRULSIF(random_state=0).fit(scene.samples, scene.graph)
    frame = model.to_frame()
    assert list(frame.columns).index("divergence_held_out") == 4
    assert_allclose(frame["divergence_held_out"], model.divergence_held_out_)
    model.save(tmp_path / "model.graphratio")
    again = gr.load(tmp_path / "model.graphratio")
    assert_allclose(again.divergence_held_out_, model.divergence_held_out_)
    fixed = gr.GRULSIF(bandwidth=1.0, graph_penalty=1.0, ridge=0.1).fit(scene.samples, scene.graph)
    assert fixed.divergence_held_out_ is None
    assert "divergence_held_out" not in fixed.to_frame()


def test_nodes_outside_a_selection_on_a_part_have_none():
    rng = np.random.default_rng(0)
    data = tuple(list(side) for side in rng.normal(size=(2, 40, 8)))
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(39)])
    model = gr.GRULSIF(selection_nodes=20, max_atoms=6, cv=2, random_state=0).fit(data, graph)
    assert np.isfinite(model.divergence_held_out_).sum() == model.n_selected_on_


def test_overlapping_folds_do_not_choose():
    losses = np.random.default_rng(0).normal(size=(3, 4, 5))
    picked = [
        losses[np.argmin(losses[:, kept].mean(axis=(1, 2))), fold]
        for fold, kept in enumerate(([2, 3], [3], [0], [0, 1]))
    ]
    assert_allclose(crossed_divergences(losses, run=2), -np.mean(picked, axis=0) - 0.5)
    assert np.isnan(crossed_divergences(losses[:, :2], run=2)).all()
