"""The correlation between neighbouring nodes: its estimate and what chance can produce."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.data.node_correlation import cross_correlation

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(9)])


def samples_of(values, n_reference):
    return gr.NodeSamples.from_arrays(list(values[:, :n_reference]), list(values[:, n_reference:]))


def test_correlation_between_nodes_is_free_of_bias():
    """Of small independent samples it is 0 on average, not what chance alone gives."""
    rng = np.random.default_rng(0)
    above, squares = 0, []
    for _ in range(300):
        values = rng.normal(size=(10, 16))
        found = cross_correlation(samples_of(values, 8), PATH, rng)
        above += found.value > found.noise
        squares.append(found.value**2)
    # Three standard deviations of a skewed law: about 1 %.
    assert above <= 9
    assert np.mean(squares) < 0.03
    same = np.tile(rng.normal(size=16), (10, 1))
    # Perfect correlation less the 1 / 14 that 16 independent pairs would show.
    found = cross_correlation(samples_of(same, 8), PATH, rng)
    assert found.value**2 == pytest.approx(13 / 14)


def test_the_noise_of_a_correlation_is_three_standard_deviations():
    """Of the mean squared correlation of independent nodes, over many data sets."""
    rng = np.random.default_rng(0)
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(20)])
    values, noise = [], 0.0
    for _ in range(150):
        side = rng.normal(size=(2, 21, 40))
        samples = gr.NodeSamples.from_arrays(*(list(part) for part in side))
        found = cross_correlation(samples, graph, rng)
        values.append(found.value**2)
        noise = found.noise**2
    # Negative estimates count as zero, so the upper half of the law tells the spread.
    spread = np.sqrt(np.mean(np.sort(values)[-75:] ** 2))
    assert noise == pytest.approx(3 * spread, rel=0.25)


def test_correlated_nodes_need_not_be_neighbours():
    """The leaves of a star move together, its hub does not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 80))
    x[1:] = np.sqrt(0.7) * rng.normal(size=80) + np.sqrt(0.3) * x[1:]
    star = gr.Graph.from_edges([(0, v) for v in range(1, 12)])
    samples = gr.NodeSamples.from_arrays(
        list(x[:, :40]), list(x[:, 40:]), time=(range(40), range(40, 80))
    )
    found = gr.two_sample_test(samples, star, random_state=0)
    assert found.correlation.value > 0.5
    assert found.cross_fitted


def test_constant_nodes_are_not_correlated():
    """The rounding of their mean is the same at all of them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10, 60))
    values[:5] = 0.1
    samples = samples_of(values, 30)
    assert np.ptp(samples.reference(0) - samples.reference(0).mean()) == 0
    assert samples.reference(0).mean() != 0.1
    found = cross_correlation(samples, PATH, rng)
    assert not found.is_high
    assert found.value < 0.2
