"""How many independent pieces a result rests on, and what it says where they are too few."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.evaluation.pieces import FEWEST_BLOCKS, IndependentPieces

MODEL = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.1, ridge=0.1)
RING = gr.Graph.from_edges([(i, (i + 1) % 6) for i in range(6)])


def days(n_days, per_day=8, shift=0.0, seed=0, n_nodes=6):
    """Hours of successive days with a common level, kept together as days."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=(2, 1, n_days)).repeat(per_day, axis=2)
    reference, target = level + rng.normal(size=(2, n_nodes, n_days * per_day))
    hours = np.datetime64("2024-05-01") + np.arange(n_days * per_day) * np.timedelta64(
        24 // per_day, "h"
    )
    times = (hours, hours + np.timedelta64(100, "D"))
    return gr.NodeSamples.from_arrays(list(reference), list(target + shift), time=times, block="1D")


def answers(samples):
    """One result of every kind."""
    options = {"random_state": 0}
    return {
        "how large the divergences are": gr.divergence_bounds(samples, RING, MODEL, **options),
        "whether a graph helps": gr.compare_graphs(samples, RING, MODEL, **options),
        "how uncertain the ratio is": gr.expected_ratio_interval(
            samples, RING, MODEL, x=[0.0, 1.0], node=2, **options
        ),
    }


@pytest.mark.parametrize("n_days", [1, 2, 3])
def test_few_days_cannot_say(n_days):
    for question, found in answers(days(n_days, shift=3.0)).items():
        assert found.answerable is False
        assert not found.answerable_nodes.any()
        assert (found.n_pieces == n_days).all()
        needed = {1: "3 days", 2: "2 days", 3: "1 day"}[n_days]
        for text in (repr(found), found._repr_html_()):
            assert f"These data cannot say {question}" in text
            assert f"You need about {needed} more in each sample" in text


def test_enough_days_answer():
    for found in answers(days(FEWEST_BLOCKS, shift=3.0)).values():
        assert found.answerable is True
        assert found.answerable_nodes.all()
        assert "cannot say" not in repr(found)
        assert found.blocks.words() == "whole days"


def test_nothing_is_judged_where_the_data_cannot_say():
    found = answers(days(3, shift=3.0))
    bounds, compared, interval = found.values()
    assert not bounds.changed.any()
    assert np.isnan(bounds.fitted_divergence_interval).all()
    assert (compared.effect, compared.best) == ("not assessed", None)
    assert compared.neighbors == ["not assessed"] * 6
    assert (compared.helped(), compared.hurt()) == ([], [])
    assert np.isnan(interval.expected_ratio_low).all()
    assert np.isfinite(interval.ratio).all()


def test_single_nodes_with_few_blocks_are_left_out_of_a_comparison():
    whole = days(6)
    day = whole.blocks.number % 6
    short = whole.subset(observations=(whole.node_index > 1) | (day < 3))
    found = gr.compare_graphs(short, RING, MODEL, random_state=0)
    assert found.answerable_nodes.tolist() == [False] * 2 + [True] * 4
    assert found.neighbors[:2] == ["not assessed"] * 2
    apart = found.losses["graph"].means.mean - found.losses["without a graph"].means.mean
    assert found.between("graph", "without a graph").mean == pytest.approx(apart[2:].mean())


def test_an_estimator_that_is_fitted_again_counts_blocks_too():
    model = gr.RULSIF(bandwidth=1.0, ridge=0.1)
    for n_days, answered in ((3, False), (5, True)):
        found = gr.expected_ratio_interval(
            days(n_days), None, model, x=[0.0], node=0, random_state=0
        )
        assert found.answerable is answered
        assert np.isfinite(found.expected_ratio_low).all() == answered


def test_without_blocks_single_observations_count():
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        [rng.normal(size=20), [0.3]], [rng.normal(size=20), rng.normal(size=20)]
    )
    pieces = IndependentPieces.of(samples)
    assert pieces.counts.tolist() == [[20, 20], [1, 20]]
    assert pieces.enough.tolist() == [True, False]
    # The interval of a node rests on its neighbours too.
    graph = gr.Graph.from_edges([(0, 1)])
    found = gr.expected_ratio_interval(samples, graph, MODEL, x=[0.0], node=1)
    assert found.answerable
    assert np.isfinite(found.expected_ratio_low).all()


def test_a_node_that_remembers_longer_than_a_block_cannot_be_judged():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 20, 400))
    for t in range(1, 400):
        x[:, 1:, t] += 0.3 * x[:, 1:, t - 1]
        x[:, 0, t] = 0.97 * x[:, 0, t - 1] + 0.24 * x[:, 0, t]
    times = (np.arange(400), np.arange(400) + 1000)
    samples = gr.NodeSamples.from_arrays(list(x[0]), list(x[1]), time=times)
    pieces = IndependentPieces.of(samples)
    assert pieces.enough.tolist() == [False] + [True] * 19
    assert "longer than a block" in IndependentPieces.of(samples.subset([0])).cannot_say("it")


def test_the_error_over_blocks_counts_what_nodes_share():
    samples = days(12, seed=3)
    pieces = IndependentPieces.of(samples)
    rng = np.random.default_rng(1)
    shared = np.repeat(rng.normal(size=(1, 2, 12)), 6, axis=0)
    error, freedom = pieces.error_over_blocks(shared.ravel())
    expected = np.sqrt(sum(shared[0, side].var(ddof=1) / 12 for side in (0, 1)))
    assert (error, freedom) == (pytest.approx(expected), 11)
    own = IndependentPieces.of(
        gr.NodeSamples.from_arrays([[0.0] * 8] * 2, [[0.0] * 8] * 2, block=2)
    )
    assert own.error_over_blocks(np.arange(16.0)) == (0.0, 1)
