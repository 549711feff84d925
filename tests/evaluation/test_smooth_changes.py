"""Changes of means with the help of neighbours."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.evaluation import smooth_changes


def ring(n_nodes):
    return gr.Graph.from_edges([(i, (i + 1) % n_nodes) for i in range(n_nodes)])


def drawn(truth, n=6, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    reference, target = spread * rng.normal(size=(2, len(truth), n))
    return list(reference), list(target + np.asarray(truth)[:, np.newaxis])


def error(change, truth):
    return float(np.mean((change[:, 0] - truth) ** 2))


def test_neighbours_that_change_alike_help():
    truth = 2 * np.sin(2 * np.pi * np.arange(60) / 60)
    errors = [
        [error(part, truth) for part in (found.own, found.estimate)]
        for found in (gr.mean_changes(drawn(truth, seed=seed), ring(60)) for seed in range(5))
    ]
    own, smooth = np.mean(errors, axis=0)
    assert smooth < 0.35 * own


def test_a_graph_that_does_not_help_does_no_harm():
    ratios = []
    for seed in range(8):
        truth = np.random.default_rng(seed + 50).normal(scale=2.0, size=60)
        found = gr.mean_changes(drawn(truth, seed=seed), ring(60))
        ratios.append(error(found.estimate, truth) / error(found.own, truth))
    # Shrinking towards the common level still helps a little.
    assert np.mean(ratios) < 1.0
    assert max(ratios) < 1.15


def test_many_observations_speak_for_themselves():
    truth = np.random.default_rng(1).normal(scale=2.0, size=30)
    found = gr.mean_changes(drawn(truth, n=2000), ring(30))
    np.testing.assert_allclose(found.estimate, found.own, atol=0.02)


def test_without_edges_every_node_has_its_own_change():
    found = gr.mean_changes(drawn(np.zeros(5)))
    np.testing.assert_array_equal(found.estimate, found.own)


def test_units_and_order_of_nodes_do_not_matter():
    truth = np.linspace(-2, 2, 12)
    samples = gr.NodeSamples.from_arrays(*drawn(truth))
    found = gr.mean_changes(samples, ring(12))
    large = gr.mean_changes(drawn(1e6 * truth, spread=1e6), ring(12))
    np.testing.assert_allclose(large.estimate, 1e6 * found.estimate, rtol=1e-3, atol=1e3)
    turned = gr.mean_changes(samples.subset(nodes=list(range(11, -1, -1))), ring(12))
    assert turned.nodes == tuple(range(12))
    np.testing.assert_allclose(turned.estimate, found.estimate)


def test_a_node_without_a_sample_takes_the_change_of_its_neighbours():
    reference, target = drawn(np.full(20, 2.0), n=40)
    target[7] = np.empty(0)
    found = gr.mean_changes((reference, target), ring(20))
    assert np.isnan(found.own[7, 0])
    assert found.estimate[7, 0] == pytest.approx(2.0, abs=0.4)


def test_constant_features_and_equal_changes_are_no_fault():
    samples = ([np.zeros((4, 2))] * 5, [np.ones((4, 2))] * 5)
    np.testing.assert_array_equal(gr.mean_changes(samples, ring(5)).estimate, 1.0)


def test_large_graphs_take_patches_and_no_factors(monkeypatch):
    truth = 2 * np.sin(2 * np.pi * np.arange(300) / 300)
    samples = drawn(truth)
    whole = gr.mean_changes(samples, ring(300)).estimate
    monkeypatch.setattr(smooth_changes, "MOST_FACTORED", 10)
    np.testing.assert_allclose(gr.mean_changes(samples, ring(300)).estimate, whole, atol=1e-5)
    monkeypatch.setattr(smooth_changes, "LARGEST_EIGENBASIS", 100)
    part = gr.mean_changes(samples, ring(300)).estimate
    assert error(part, truth) < 2 * error(whole, truth)


def test_a_few_noisy_nodes_do_not_change_the_sign_of_the_others():
    truth = np.repeat([2.0, -2.0], 20)
    rng = np.random.default_rng(0)
    spread = np.ones(40)
    spread[[3, 17, 30]] = 100.0
    reference, target = rng.normal(size=(2, 40, 25)) * spread[:, np.newaxis]
    found = gr.mean_changes((list(reference), list(target + truth[:, np.newaxis])), ring(40))
    quiet = spread == 1
    assert (np.sign(found.estimate[quiet, 0]) == np.sign(truth[quiet])).all()
    own, smooth = (
        np.abs(part[quiet, 0] - truth[quiet]).mean() for part in (found.own, found.estimate)
    )
    assert smooth < own


def test_nodes_of_different_scale_are_compared_in_their_own_units():
    rng = np.random.default_rng(1)
    scale = np.exp(rng.normal(0, 1.5, 60))
    field = 1.5 * np.sin(2 * np.pi * np.arange(60) / 60)
    errors = []
    for _ in range(4):
        reference, target = rng.normal(size=(2, 60, 8))
        target = target + field[:, np.newaxis]
        samples = tuple(list(part * scale[:, np.newaxis]) for part in (reference, target))
        found = gr.mean_changes(samples, ring(60))
        errors.append([np.abs(x[:, 0] / scale - field).mean() for x in (found.own, found.estimate)])
    own, smooth = np.mean(errors, axis=0)
    assert smooth < 0.65 * own


def test_tiny_units_are_no_fault():
    samples = drawn(1e-150 * np.arange(6), spread=1e-150)
    assert np.isfinite(gr.mean_changes(samples, ring(6)).estimate).all()


def test_without_noise_a_missing_sample_takes_the_common_level():
    reference = [np.zeros(3)] * 4
    target = [np.ones(3), np.ones(3), np.ones(3), np.empty(0)]
    found = gr.mean_changes((reference, target), ring(4))
    np.testing.assert_array_equal(found.estimate[:, 0], 1.0)


def test_nodes_with_few_observations_learn_from_those_with_many():
    truth = 2 * np.sin(2 * np.pi * np.arange(60) / 60)
    rng = np.random.default_rng(2)
    sizes = np.where(np.arange(60) % 2, 300, 3)
    reference = [rng.normal(size=n) for n in sizes]
    target = [shift + rng.normal(size=n) for n, shift in zip(sizes, truth, strict=True)]
    found = gr.mean_changes((reference, target), ring(60))
    few = sizes == 3
    own, smooth = (np.abs(part[few, 0] - truth[few]).mean() for part in (found.own, found.estimate))
    assert smooth < 0.4 * own


def test_nodes_that_only_one_without_observations_joins():
    rng = np.random.default_rng(0)
    parts = {f"s{i}": rng.normal(size=4) for i in range(4)}
    moved = {name: values + 1 for name, values in parts.items()}
    graph = gr.Graph.from_edges([(name, "hub") for name in parts])
    empty = {"hub": np.empty((0, 1))}
    found = gr.mean_changes(({**parts, **empty}, {**moved, **empty}), graph)
    assert np.isfinite(found.estimate).all()
    assert found.estimate[graph.position("hub"), 0] == pytest.approx(1.0)


def test_an_exception_among_its_neighbours_keeps_most_of_its_own_change():
    """One node of a quiet network fell by 1.5; with 40 observations that is nearly seven errors."""
    missed = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        graph = gr.Graph.from_coordinates(rng.random((48, 2)), k=5)
        reference, target = rng.normal(size=(2, 48, 40))
        target[17] -= 1.5
        found = gr.mean_changes((list(reference), list(target)), graph)
        missed.append(found.estimate[17, 0] - found.own[17, 0])
        others = np.delete(np.arange(48), 17)
        assert np.square(found.estimate[others]).mean() < np.square(found.own[others]).mean()
    # Towards the neighbours, by less than two standard errors, which are 0.22.
    assert 0 < np.mean(missed) < 0.4
