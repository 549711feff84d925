"""What hidden observations say about a fit to a few."""

from types import SimpleNamespace

import numpy as np
import pytest

import graphratio as gr
from graphratio.cli.curtain import Curtain
from graphratio.cli.inputs import at_random
from graphratio.evaluation.worth_result import Worth
from graphratio.report.words import fixed


@pytest.fixture(scope="module")
def opened():
    rng = np.random.default_rng(0)
    truth = 1.2 * np.sin(2 * np.pi * np.arange(30) / 30)
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


def test_misjudged_nodes_are_far_off_alone_and_much_closer_with_the_graph(opened):
    curtain, _, samples = opened
    far = 0.75 * np.std(gr.mean_changes(samples).own)
    assert curtain.misjudged
    for _, all_of_them, joined, own in curtain.misjudged:
        assert abs(joined - all_of_them) <= far < abs(own - all_of_them)
        assert abs(joined - all_of_them) <= abs(own - all_of_them) / 2


@pytest.mark.parametrize(("high", "held"), [(np.inf, "inside"), (1.05, "outside")])
@pytest.mark.parametrize("clear", [True, False])
def test_section_lines_and_json_agree(opened, high, held, clear):
    curtain, _, _ = opened
    sizes = np.array([2.0, 8.0])
    worth = Worth(1.04, 1.0, high, 8.0, sizes, sizes, sizes, 0.05)
    said = SimpleNamespace(worth={"graph": worth}, stated_worth={"graph": worth} if clear else {})
    section = curtain.section({}, "mm", "readings", said)
    text = " ".join(curtain.sentences(section))
    content = curtain.as_json()
    # Both what the few say and what the hidden ones say.
    assert f"the 8 readings themselves give {worth.span}" in text
    assert f"The hidden readings give {content['worth']:.1f}, {held} that interval." in text
    assert ("which may only come from what all nodes have in common" in text) is not clear
    gains = [f"{content['held_out_divergence'][way]:.2f}" for way in ("with_graph", "alone")]
    assert list(section.table[1][2:]) == gains
    node, *values = curtain.misjudged[0]
    truth, joined, own = (fixed(value, 0, sign=True) for value in values)
    line = f"at {node}: all readings {truth} mm, with the graph {joined} mm, each alone {own} mm"
    assert line in text
    assert text.endswith("more.") or str(curtain.misjudged[-1][0]) in section.after[-1]
