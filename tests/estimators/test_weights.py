"""Importance weights as a result: what they hold, and when they are doubtful."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import graphratio as gr
from graphratio.estimators.weights import weights_from_ratios
from graphratio.exceptions import InputError, OverlapWarning

SAMPLES = gr.NodeSamples.from_arrays(
    {"a": np.zeros(4), "b": np.zeros(2), "c": np.empty(0)},
    {"a": np.zeros(2), "b": np.empty(0), "c": np.zeros(1)},
)
# Reference and target of a, then of b, then of c.
RATIOS = np.array([1.0, 3.0, -1.0, 20.0, 1.0, 6.0, 2.0, 2.0, 1.0])


def make(relative=True, alpha=0.1):
    return weights_from_ratios(RATIOS, SAMPLES, alpha, relative)


def test_weights_by_node_and_in_a_row():
    weights = make()
    assert_allclose(weights["a"], np.array([1, 3, 0, 10]) / 3.5)
    assert_allclose(weights["b"], [1, 1])
    assert weights["c"].shape == (0,)
    assert list(weights) == ["a", "b", "c"] == list(weights.weights)
    assert_array_equal(np.asarray(weights), np.concatenate(list(weights.values())))
    assert_array_equal(np.asarray(weights), weights.sample_weight)
    with pytest.raises(InputError, match="'x'"):
        weights["x"]
    assert "x" not in weights


def test_plain_ratio_is_bounded_by_the_sample():
    plain = make(relative=False)["a"]
    by_hand = np.array([0.9 / 0.9, 0.9 * 3 / 0.7, 0, 4.0])
    assert_allclose(plain, by_hand / by_hand.mean())


def test_diagnostics():
    weights = make()
    w = np.array([1, 3, 0, 10])
    assert_allclose(weights.effective_sample_size, [w.sum() ** 2 / (w @ w), 2, np.nan])
    assert_allclose(weights.clipped_share, [0.5, 0, np.nan])
    # The target is ten times as dense as the reference from r = 10 / 1.9 on.
    assert_allclose(weights.uncovered_share, [0.5, np.nan, 0])
    assert_array_equal(weights.is_doubtful, [True, False, False])
    table = weights.to_frame()
    assert list(table["node"]) == ["a", "b", "c"]
    assert_allclose(table["effective_sample_size"], weights.effective_sample_size)


def test_text_and_html():
    weights = make()
    assert "doubtful at 'a'" in repr(weights)
    html = weights._repr_html_()
    assert html.index("<td") < html.index(">a<") < html.index(">b<")


def test_goes_into_scikit_learn():
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 30, 1)), rng.normal(0.5, 1, size=(2, 30, 1))
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.2, ridge=0.02)
    weights = model.fit((reference, target)).importance_weights((reference, target))
    x, y = reference.reshape(-1, 1), rng.normal(size=60)
    given = LinearRegression().fit(x, y, sample_weight=weights)
    by_hand = LinearRegression().fit(x, y, sample_weight=weights.sample_weight)
    assert_array_equal(given.coef_, by_hand.coef_)
    RandomForestRegressor(n_estimators=2).fit(reference[0], y[:30], sample_weight=weights[0])


def test_overlap_warning_names_the_worst_nodes():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(3, 50, 1))
    target = rng.normal(size=(3, 50, 1)) + np.array([0.0, 8.0, 0.2])[:, None, None]
    graph = gr.Graph.empty(["same", "far", "near"])
    model = gr.RULSIF(random_state=0).fit((reference, target), graph)
    with pytest.warns(OverlapWarning, match="at 1 node, worst first: 'far'. Use relative=True"):
        weights = model.importance_weights((reference, target))
    assert_array_equal(weights.is_doubtful, [False, True, False])
    near = reference + np.array([0.0, 0.5, 0.2])[:, None, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gr.RULSIF(random_state=0).fit((reference, near)).importance_weights((reference, near))
