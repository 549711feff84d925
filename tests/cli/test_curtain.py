"""What held-back observations say about a fit to a few of them."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.cli.curtain import Curtain
from graphratio.cli.inputs import at_random


@pytest.fixture(scope="module")
def opened():
    rng = np.random.default_rng(0)
    truth = 2 * np.sin(2 * np.pi * np.arange(30) / 30)
    reference, target = rng.normal(size=(2, 30, 120))
    samples = gr.NodeSamples.from_arrays(list(reference), list(target + truth[:, np.newaxis]))
    graph = gr.Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    chosen = at_random(samples, 8, 1)
    few, hidden = (samples.subset(observations=mask) for mask in (chosen, ~chosen))
    models = tuple(
        gr.GRULSIF(prior_ratio=1.0, random_state=0).fit(few, part)
        for part in (graph, gr.Graph.empty(30))
    )
    return Curtain.open(few, samples, hidden, graph, models), truth, samples


def test_draws_are_of_the_size_asked_for():
    samples = gr.NodeSamples.from_arrays([np.zeros(5), np.zeros(2)], [np.zeros(9), np.zeros(3)])
    chosen = samples.subset(observations=at_random(samples, 3, 0))
    assert chosen.sizes.tolist() == [[3, 3], [2, 3]]
    assert (at_random(samples, 3, 0) == at_random(samples, 3, 0)).all()


def test_a_graph_that_helps_is_closer_to_the_truth(opened):
    curtain, _, _ = opened
    assert curtain.gain[0] > curtain.gain[1]
    assert curtain.rank[0] > curtain.rank[1]
    assert curtain.error[0] < curtain.error[1]
    assert 1.2 < curtain.worth <= 4


def test_misjudged_nodes_are_right_with_the_graph_only(opened):
    curtain, _, samples = opened
    far = 0.75 * np.std(gr.mean_changes(samples).own)
    assert curtain.misjudged
    for _, all_of_them, joined, own in curtain.misjudged:
        assert abs(joined - all_of_them) <= far < abs(own - all_of_them)


def test_sentences_and_json_agree(opened):
    curtain, _, _ = opened
    text = " ".join(curtain.sentences({}, "mm", "readings"))
    content = curtain.as_json()
    assert f"the graph was worth {content['worth']:.1f}" in text
    assert f"{content['held_out_divergence']['alone']:.2f} without" in text
    first = curtain.misjudged[0]
    assert f"{first[0]} alone would have been misjudged: {first[3]:+.0f} mm" in text
