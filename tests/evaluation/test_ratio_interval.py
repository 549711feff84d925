"""Intervals of the expected ratio."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.exceptions import InputError

LINE = np.linspace(-1.5, 1.5, 5)


def drawn(scenario, n, rng):
    return (
        [scenario.sample_reference(v, n, rng) for v in scenario.graph.nodes],
        [scenario.sample_target(v, n, rng) for v in scenario.graph.nodes],
    )


@pytest.fixture(scope="module")
def scenario():
    return make_scenario("Ia", n_nodes=12, n=100, random_state=0)


@pytest.fixture(scope="module")
def model(scenario):
    return gr.GRULSIF(
        prior_ratio=1.0,
        bandwidth=1.0,
        graph_penalty=0.01,
        node_penalty=0.1,
        dictionary=np.linspace(-3, 3, 12)[:, np.newaxis],
    ).fit(scenario.samples, scenario.graph)


def test_covers_the_expectation_of_the_estimate(scenario, model):
    again, values, errors = gr.GRULSIF(**model.get_params()), [], []
    rng = np.random.default_rng(1)
    for _ in range(80):
        samples = drawn(scenario, 100, rng)
        again.fit(samples, scenario.graph)
        band = gr.expected_ratio_interval(again, samples, LINE, node=11)
        values.append(again.predict(LINE, node=11, clip=False))
        errors.append(band.standard_error)
    values, errors = np.array(values), np.array(errors)
    np.testing.assert_allclose(errors.mean(0), values.std(0, ddof=1), rtol=0.25)
    inside = np.abs(values - values.mean(0)) <= 1.645 * errors
    assert 0.84 <= inside.mean() <= 0.95


def test_against_a_dense_solve(scenario, model):
    band = gr.expected_ratio_interval(model, scenario.samples, LINE, node=3)
    data = scenario.samples
    psi = model.features_(data.values)
    n_nodes, m = model.coef_.shape
    lap = scenario.graph.laplacian.toarray() + model.node_penalty_ * np.eye(n_nodes)
    system = np.kron(model.graph_penalty_ * lap, np.eye(m))
    scores = []
    for v in range(n_nodes):
        x, y = (psi[(data.node_index == v) & (data.is_target == side)] for side in (False, True))
        block = 0.9 * x.T @ x / len(x) + 0.1 * y.T @ y / len(y)
        system[v * m : (v + 1) * m, v * m : (v + 1) * m] += block / n_nodes
        fx, fy = (1 + part @ model.coef_[v] for part in (x, y))
        parts = (-0.9 * fx[:, np.newaxis] * x, (1 - 0.1 * fy)[:, np.newaxis] * y)
        scores.append(sum(np.cov(part.T) / len(part) for part in parts) / n_nodes**2)
    inverse = np.linalg.inv(system).reshape(n_nodes, m, n_nodes, m)[3]
    at = model.features_(LINE[:, np.newaxis])
    expected = sum(
        np.einsum("pa,ab,bc,dc,pd->p", at, inverse[:, v], scores[v], inverse[:, v], at)
        for v in range(n_nodes)
    )
    np.testing.assert_allclose(band.standard_error, np.sqrt(expected), rtol=1e-4)


def test_simultaneous_is_wider_and_table(scenario, model):
    single = gr.expected_ratio_interval(model, scenario.samples, LINE, 11)
    joint = gr.expected_ratio_interval(
        model, scenario.samples, LINE, 11, simultaneous=True, random_state=0
    )
    assert (joint.expected_ratio_high > single.expected_ratio_high).any()
    assert (joint.expected_ratio_high >= single.expected_ratio_high).all()
    table = single.to_frame()
    assert (table["expected_ratio_low"] <= table["ratio"]).all()
    assert (table["ratio"] <= table["expected_ratio_high"]).all()


def test_notebook_table_and_picture(scenario, model):
    import matplotlib as mpl

    mpl.use("agg")
    band = gr.expected_ratio_interval(model, scenario.samples, LINE, 11)
    assert "node 11" in repr(band)
    html = band._repr_html_()
    assert "not the true ratio" in html
    assert f"{band.expected_ratio_high[0]:.3g}" in html
    ax = band.plot()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), band.ratio)
    mpl.pyplot.close(ax.figure)


def test_without_edges(scenario):
    """Every node has its closed form; the others do not matter."""
    options = {"bandwidth": 1.0, "node_penalty": 1e-3, "dictionary": LINE[:, np.newaxis]}
    pool = gr.Pool(**options).fit(scenario.samples)
    empty = gr.GRULSIF(graph_penalty=1.0, **options).fit(scenario.samples)
    first, second = (
        gr.expected_ratio_interval(model, scenario.samples, LINE, 2) for model in (pool, empty)
    )
    np.testing.assert_allclose(first.standard_error, second.standard_error)
    assert (first.standard_error > 0).all()


def test_needs_a_fitted_model(scenario):
    with pytest.raises(InputError, match="fitted GRULSIF or Pool"):
        gr.expected_ratio_interval(gr.GRULSIF(), scenario.samples, LINE, 0)


def test_needs_points(scenario, model):
    with pytest.raises(InputError, match="no points"):
        gr.expected_ratio_interval(model, scenario.samples, np.empty((0, 1)), 0)


def few_observations(n, rng):
    return (list(rng.normal(size=(4, n))), list(rng.normal(size=(4, n)) + 1))


def chain_model(n, rng):
    data = few_observations(n, rng)
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    atoms = np.linspace(-2, 3, 8)[:, np.newaxis]
    model = gr.GRULSIF(
        prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.1, node_penalty=0.1, dictionary=atoms
    )
    return model.fit(data, graph), data


def test_few_observations_widen_the_interval():
    """With three observations in a sample most of the nominal 90 % are reached.

    With quantiles of the normal law it would be 10 % less.
    """
    rng = np.random.default_rng(0)
    bands = [
        gr.expected_ratio_interval(*chain_model(3, rng), [0.0, 1.0, 2.0], 1) for _ in range(150)
    ]
    expected = np.mean([band.ratio for band in bands], axis=0)
    apart = np.array([np.abs(band.ratio - expected) for band in bands])
    half = np.array([band.expected_ratio_high - band.ratio for band in bands])
    error = np.array([band.standard_error for band in bands])
    covered, normal = (apart <= half).mean(), (apart <= 1.645 * error).mean()
    assert covered > 0.8
    assert covered > normal + 0.05


def test_one_observation_is_not_certainty():
    band = gr.expected_ratio_interval(*chain_model(1, np.random.default_rng(0)), [0.0, 2.0], 1)
    assert (band.expected_ratio_high - band.expected_ratio_low > 0.1).all()


def test_other_samples_are_refused(scenario, model):
    more = drawn(scenario, 101, np.random.default_rng(0))
    fitted = model.fit(drawn(scenario, 100, np.random.default_rng(0)), scenario.graph)
    with pytest.raises(InputError, match=r"100 \+ 100 observations of node 0.*have 101 \+ 101"):
        gr.expected_ratio_interval(fitted, more, LINE, 3)
