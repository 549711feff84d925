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
        graph_penalty=0.12,
        ridge=0.012,
        dictionary=np.linspace(-3, 3, 12)[:, np.newaxis],
    ).fit(scenario.samples, scenario.graph)


def band_of(samples, model, node, x=LINE, **options):
    """The interval of a fitted model, which has its own graph."""
    return gr.expected_ratio_interval(samples, estimator=model, x=x, node=node, **options)


def test_covers_the_expectation_of_the_estimate(scenario, model):
    again, values, errors = gr.GRULSIF(**model.get_params()), [], []
    rng = np.random.default_rng(1)
    for _ in range(80):
        samples = drawn(scenario, 100, rng)
        again.fit(samples, scenario.graph)
        band = band_of(samples, again, 11)
        values.append(again.predict(LINE, node=11, clip=False))
        errors.append(band.standard_error)
    values, errors = np.array(values), np.array(errors)
    np.testing.assert_allclose(errors.mean(0), values.std(0, ddof=1), rtol=0.25)
    inside = np.abs(values - values.mean(0)) <= 1.645 * errors
    assert 0.84 <= inside.mean() <= 0.95


def test_against_a_dense_solve(scenario, model):
    band = band_of(scenario.samples, model, 3)
    data = scenario.samples
    psi = model.features_(data.values)
    n_nodes, m = model.coef_.shape
    coupling = model.graph_penalty_ * scenario.graph.laplacian.toarray()
    system = np.kron(coupling + model.ridge_ * np.eye(n_nodes), np.eye(m))
    scores = []
    for v in range(n_nodes):
        x, y = (psi[(data.node_index == v) & (data.is_target == side)] for side in (False, True))
        block = 0.9 * x.T @ x / len(x) + 0.1 * y.T @ y / len(y)
        system[v * m : (v + 1) * m, v * m : (v + 1) * m] += block
        fx, fy = (1 + part @ model.coef_[v] for part in (x, y))
        parts = (-0.9 * fx[:, np.newaxis] * x, (1 - 0.1 * fy)[:, np.newaxis] * y)
        scores.append(sum(np.cov(part.T) / len(part) for part in parts))
    inverse = np.linalg.inv(system).reshape(n_nodes, m, n_nodes, m)[3]
    at = model.features_(LINE[:, np.newaxis])
    expected = sum(
        np.einsum("pa,ab,bc,dc,pd->p", at, inverse[:, v], scores[v], inverse[:, v], at)
        for v in range(n_nodes)
    )
    np.testing.assert_allclose(band.standard_error, np.sqrt(expected), rtol=1e-4)


def test_simultaneous_is_wider_and_table(scenario, model):
    single = band_of(scenario.samples, model, 11)
    joint = band_of(scenario.samples, model, 11, simultaneous=True, random_state=0)
    assert (joint.expected_ratio_high > single.expected_ratio_high).any()
    assert (joint.expected_ratio_high >= single.expected_ratio_high).all()
    table = single.to_frame()
    assert (table["expected_ratio_low"] <= table["ratio"]).all()
    assert (table["ratio"] <= table["expected_ratio_high"]).all()


def test_notebook_table_and_picture(scenario, model):
    import matplotlib as mpl

    mpl.use("agg")
    band = band_of(scenario.samples, model, 11)
    assert "node 11" in repr(band)
    html = band._repr_html_()
    assert "not the true ratio" in html
    assert f"{band.expected_ratio_high[0]:.3g}" in html
    ax = band.plot()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), band.ratio)
    mpl.pyplot.close(ax.figure)


def test_without_edges(scenario):
    """Every node has its closed form; the others do not matter."""
    options = {"bandwidth": 1.0, "ridge": 0.012, "dictionary": LINE[:, np.newaxis]}
    pool = gr.Pool(**options).fit(scenario.samples)
    empty = gr.GRULSIF(graph_penalty=12.0, **options).fit(scenario.samples)
    first, second = (band_of(scenario.samples, model, 2) for model in (pool, empty))
    np.testing.assert_allclose(first.standard_error, second.standard_error)
    assert (first.standard_error > 0).all()


def test_an_estimator_that_is_not_fitted_is_fitted_first(scenario, model):
    new = gr.GRULSIF(**model.get_params())
    found = gr.expected_ratio_interval(scenario.samples, scenario.graph, new, x=LINE, node=3)
    expected = band_of(scenario.samples, model, 3)
    np.testing.assert_array_equal(found.ratio, expected.ratio)
    np.testing.assert_array_equal(found.standard_error, expected.standard_error)
    assert not hasattr(new, "coef_")


def test_needs_an_estimator(scenario):
    with pytest.raises(InputError, match="is not an estimator of this library"):
        band_of(scenario.samples, scenario.graph, 0)


def test_needs_points(scenario, model):
    with pytest.raises(InputError, match="no points"):
        band_of(scenario.samples, model, 0, np.empty((0, 1)))


def few_observations(n, rng):
    return (list(rng.normal(size=(4, n))), list(rng.normal(size=(4, n)) + 1))


def chain_model(n, rng):
    data = few_observations(n, rng)
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    atoms = np.linspace(-2, 3, 8)[:, np.newaxis]
    model = gr.GRULSIF(
        prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.4, ridge=0.04, dictionary=atoms
    )
    return data, model.fit(data, graph)


def test_few_observations_widen_the_interval():
    """With three observations in a sample most of the nominal 90 % are reached.

    With quantiles of the normal law it would be 10 % less.
    """
    rng = np.random.default_rng(0)
    bands = [band_of(*chain_model(3, rng), 1, [0.0, 1.0, 2.0]) for _ in range(150)]
    expected = np.mean([band.ratio for band in bands], axis=0)
    apart = np.array([np.abs(band.ratio - expected) for band in bands])
    half = np.array([band.expected_ratio_high - band.ratio for band in bands])
    error = np.array([band.standard_error for band in bands])
    covered, normal = (apart <= half).mean(), (apart <= 1.645 * error).mean()
    assert covered > 0.8
    assert covered > normal + 0.05


def test_one_observation_is_not_certainty():
    band = band_of(*chain_model(1, np.random.default_rng(0)), 1, [0.0, 2.0])
    assert (band.expected_ratio_high - band.expected_ratio_low > 0.1).all()


def test_other_samples_are_refused(scenario, model):
    more = drawn(scenario, 101, np.random.default_rng(0))
    fitted = model.fit(drawn(scenario, 100, np.random.default_rng(0)), scenario.graph)
    with pytest.raises(InputError, match=r"100 \+ 100 observations of node 0.*have 101 \+ 101"):
        band_of(more, fitted, 3)


def test_blocks_widen_the_interval():
    """Six near-copies of every observation say as much as one."""
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 3, 30)).repeat(6, axis=2) + 0.01 * rng.normal(size=(2, 3, 180))
    widths = []
    for block in (None, 6):
        samples = gr.NodeSamples.from_arrays(*(list(side) for side in sides), block=block)
        model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1).fit(samples)
        found = gr.expected_ratio_interval(samples, None, model, x=[0.0, 1.0], node=0)
        widths.append(found.expected_ratio_high - found.expected_ratio_low)
    np.testing.assert_allclose(widths[1] / widths[0], np.sqrt(6), rtol=0.15)
