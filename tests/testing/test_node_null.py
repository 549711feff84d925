"""How many permutations a node gets, and which nodes cannot become significant."""

import numpy as np
import pytest

import graphratio as gr
from graphratio._utils.progress import ProgressBar
from graphratio.testing import node_null
from graphratio.testing.node_correlation import cross_correlation
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples

FIRST, ALL = node_null.FIRST_LOOK, 10 * (node_null.FIRST_LOOK + 1) - 1
BOUND = node_null.ENOUGH_EXTREME / (FIRST + 1)


@pytest.mark.parametrize(
    ("p_value", "looks"), [(1.01 * BOUND, [FIRST]), (BOUND, [FIRST, ALL]), (0.0, [FIRST, ALL])]
)
def test_a_node_goes_on_until_enough_data_sets_are_as_extreme(monkeypatch, p_value, looks):
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(*(list(side) for side in rng.normal(size=(2, 1, 12))))
    graph = gr.Graph.empty(1)
    pooled = PooledSamples.of(samples, rng)
    plan = PermutationPlan(pooled, graph, Units.of(pooled, rng, samples.blocks), ALL, rng)
    features = PooledFeatures(rng.normal(size=(24, 2)), np.eye(2)[np.newaxis])
    seen, most = [], []

    def record(self, node, statistics, n_permutations, limit, *, alone):
        seen.append(statistics.shape[1] - 1)
        most.append(limit)
        return p_value

    monkeypatch.setattr(node_null.NodeTests, "record", record)
    node_null.permute_each_node(
        node_null.NodeTests.blank(1, ALL),
        np.array([0]),
        features,
        plan,
        np.array([0]),
        np.array([[0.0, 0.1]]),
        ProgressBar(1, "", enabled=False),
    )
    assert seen == looks
    # A node that goes on ends at or below the bound of the look before.
    assert most == [1.0, BOUND][: len(looks)]


def test_a_node_whose_smallest_p_value_is_the_threshold_can_be_rejected():
    """Four against four have 70 splits, and exchanged samples tie: two of them are enough."""
    data = ([np.arange(4.0)], [np.arange(10.0, 14.0)])
    for level, hopeless in ((2 / 70, False), (2 / 71, True)):
        found = gr.two_sample_test(
            data, correction=None, level=level, n_permutations=999, random_state=0
        )
        assert found.answerable_nodes[0] != hopeless


def test_the_noise_of_a_correlation_is_three_standard_deviations():
    """Of the mean squared correlation of independent nodes, over many data sets."""
    rng = np.random.default_rng(0)
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(20)])
    values, noise = [], 0.0
    for _ in range(300):
        side = rng.normal(size=(2, 21, 40))
        samples = gr.NodeSamples.from_arrays(*(list(part) for part in side))
        found = cross_correlation(samples, graph, rng)
        values.append(found.value**2)
        noise = found.noise**2
    # Negative estimates count as zero, so the upper half of the law tells the spread.
    spread = np.sqrt(np.mean(np.sort(values)[-150:] ** 2))
    assert noise == pytest.approx(3 * spread, rel=0.25)
