"""What is learned without labels: the default candidates, and the mixture of a node."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.testing import predictions
from graphratio.testing.pooled import PooledSamples, read_settings


def test_the_mixture_of_a_node_is_its_pooled_sample(monkeypatch):
    seen = []

    def spy(split, *_, **__):
        seen.append(split.alpha.tolist())
        return split_and_select(split, *_, **__)

    split_and_select = predictions.select
    monkeypatch.setattr(predictions, "select", spy)
    rng = np.random.default_rng(0)
    sizes = [(2, 6), (5, 5)]
    reference, target = ([rng.normal(size=pair[side]) for pair in sizes] for side in (0, 1))
    gr.two_sample_test((reference, target), gr.Graph.from_edges([(0, 1)]), random_state=0)
    assert seen == [[0.75, 0.5]] * 2


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_default_candidates_act_the_same_on_any_graph(weight):
    """Per node: whatever the number of nodes and the scale of the edge weights."""
    rng = np.random.default_rng(0)
    graph = gr.Graph.from_edges([(i, i + 1, weight) for i in range(9)])
    samples = gr.NodeSamples.from_arrays(
        list(rng.normal(size=(10, 10))), list(rng.normal(size=(10, 20)))
    )
    found = read_settings(None, PooledSamples.of(samples, rng), graph)
    assert found.candidates.bandwidth == pytest.approx([0.7 * np.median(found.sigma)])
    pull = found.candidates.graph_penalty * graph.mean_degree
    np.testing.assert_allclose(pull, np.repeat([0.1, 0.3, 1, 3], 2))
    np.testing.assert_allclose(found.candidates.ridge, pull * np.tile([0.001, 0.01], 4))
    # Without data to choose on: the middle of each list.
    assert found.middle[1] * graph.mean_degree == pytest.approx(1)
    assert found.middle[2] == pytest.approx(0.01)
    alone = read_settings(None, PooledSamples.of(samples, rng), gr.Graph.empty(10))
    np.testing.assert_allclose(alone.candidates.graph_penalty, [0, 0])
    np.testing.assert_allclose(alone.candidates.ridge, [0.001, 0.01])
