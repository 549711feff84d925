"""What is learned without labels: the default candidates, and the mixture of a node."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm, rankdata

import graphratio as gr
from graphratio.testing import pooled, predictions
from graphratio.testing.pooled import (
    LANDMARKS,
    OWN_BANDWIDTH,
    WHITENING_RIDGE,
    OwnColumns,
    PooledSamples,
    read_settings,
)


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


def energy_distance(x, y):
    """With all pairs, also of an observation with itself."""
    return 2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean()


def squared_mean(columns, labels):
    return np.sum(columns[labels].mean(axis=0) ** 2)


def node(n, n_features, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)), rng.permutation(n) < n // 3


@pytest.fixture
def whole(monkeypatch):
    """No component is left out."""
    monkeypatch.setattr(pooled, "_FLOOR", 1e-12)
    monkeypatch.setattr(pooled, "COMPONENTS", 1000)


class TestEnergy:
    @pytest.mark.parametrize(("n", "n_features"), [(5, 1), (30, 1), (40, 3), (LANDMARKS, 2)])
    @pytest.mark.usefixtures("whole")
    def test_it_is_the_energy_distance(self, n, n_features):
        """The target minus both samples is a share n / (n + m) of the difference of means."""
        x, target = node(n, n_features)
        found = squared_mean(OwnColumns.of(x[np.newaxis]).energy[0], target)
        share = (~target).mean()
        expected = 0.5 * share**2 * energy_distance(x[~target], x[target])
        assert found == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("n_features", [1, 2, 5])
    def test_few_components_hold_most_of_it(self, n_features):
        """The components that are left out hold noise only."""
        x, target = node(80, n_features)
        x[target] += 0.8
        found = squared_mean(OwnColumns.of(x[np.newaxis]).energy[0], target)
        share = (~target).mean()
        expected = 0.5 * share**2 * energy_distance(x[~target], x[target])
        assert 0.97 * expected <= found <= expected * (1 + 1e-9)

    def test_more_observations_than_landmarks(self):
        """An approximation from the first ones; the rest is placed among them."""
        x, target = node(4 * LANDMARKS, 2)
        x[target] += 0.8
        own = OwnColumns.of(x[np.newaxis])
        share = (~target).mean()
        expected = 0.5 * share**2 * energy_distance(x[~target], x[target])
        assert squared_mean(own.energy[0], target) == pytest.approx(expected, rel=0.03)
        for columns in (own.energy, own.shape, own.spread):
            assert columns.shape[:2] == (1, len(x))
            np.testing.assert_allclose(columns.mean(axis=1), 0, atol=1e-12)


class TestShape:
    @pytest.mark.usefixtures("whole")
    def test_it_is_the_divergence_of_a_ridge_regression(self):
        """max over theta of b'theta - theta'(A + rho)theta / 2, then b'theta - theta'A theta / 2.

        In terms of the centred kernel matrix K, with b = phi'c and A = phi'phi / n.
        """
        x, target = node(30, 2)
        n = len(x)
        apart = cdist(x, x)
        sigma = OWN_BANDWIDTH * np.median(apart[apart > 0])
        centre = np.eye(n) - 1 / n
        gram = centre @ np.exp(-0.5 * (apart / sigma) ** 2) @ centre
        c = target / target.sum() - 1 / n
        inverse = np.linalg.inv(gram / n + WHITENING_RIDGE * np.eye(n))
        gain = c @ gram @ inverse @ c
        fitted = c @ gram @ inverse @ (gram / n) @ inverse @ c
        found = squared_mean(OwnColumns.of(x[np.newaxis]).shape[0], target)
        assert found == pytest.approx(gain - 0.5 * fitted, rel=1e-6)

    def test_the_bandwidth_follows_the_scale_of_the_node(self):
        x, target = node(40, 2)
        both = OwnColumns.of(np.stack([x, 1000 * x]))
        first, second = (squared_mean(both.shape[i], target) for i in (0, 1))
        assert first == pytest.approx(second, rel=1e-9)


class TestSpread:
    def test_they_are_the_squared_normal_scores_of_distances(self):
        """Those of Klotz, for distances from the median in units of the quartiles."""
        x, _ = node(25, 1)
        away = np.abs(x[:, 0] - np.median(x))
        scores = norm.ppf(0.5 + 0.5 * rankdata(away) / 26) ** 2
        found = OwnColumns.of(x[np.newaxis]).spread[0, :, 0]
        np.testing.assert_allclose(found, scores - scores.mean(), atol=1e-12)

    def test_units_and_origin_of_features_do_not_matter(self):
        x, _ = node(31, 3)
        moved = x * [1e-3, 1.0, 1e4] + [5.0, -2.0, 1e3]
        first, second = OwnColumns.of(np.stack([x, moved])).spread
        np.testing.assert_allclose(first, second, atol=1e-9)

    def test_equal_distances_share_their_rank(self):
        x = np.array([-1.0, 1.0, -2.0, 2.0, -3.0, 3.0, 0.0])
        found = OwnColumns.of(x[np.newaxis, :, np.newaxis]).spread[0, :, 0]
        np.testing.assert_allclose(found[0:6:2], found[1:6:2])
        assert found[6] < found[0] < found[2] < found[4]

    def test_distances_that_differ_by_rounding_are_equal(self):
        x = np.array([0.1, 0.5, 0.3, 0.2, 0.4])
        assert abs(x[0] - 0.3) != abs(x[1] - 0.3)
        found = OwnColumns.of(x[np.newaxis, :, np.newaxis]).spread[0, :, 0]
        assert found[0] == found[1]
        assert found[3] == found[4]

    def test_one_observation_far_away_counts_as_the_largest_rank(self):
        x, _ = node(31, 1)
        extreme = x.copy()
        extreme[np.argmax(np.abs(x - np.median(x)))] *= 1e9
        first, second = OwnColumns.of(np.stack([x, extreme])).spread
        np.testing.assert_allclose(first, second)

    def test_quartiles_that_coincide(self):
        """Most observations are zero: the standard deviation is the unit."""
        x = np.zeros((1, 20, 2))
        x[0, :3, 0] = [1.0, -2.0, 4.0]
        x[0, :, 1] = np.arange(20)
        found = OwnColumns.of(x).spread
        assert np.isfinite(found).all()
        assert found[0, 2] > found[0, 1] > found[0, 0]


def statistics_of(x, labels):
    own = OwnColumns.of(x[np.newaxis])
    return np.array([squared_mean(c[0], labels) for c in (own.energy, own.shape, own.spread)])


@pytest.mark.parametrize("n", [11, 60])
def test_the_order_of_observations_does_not_matter(n):
    x, target = node(n, 2)
    order = np.random.default_rng(1).permutation(n)
    np.testing.assert_allclose(
        statistics_of(x, target), statistics_of(x[order], target[order]), rtol=1e-8
    )


def test_nodes_do_not_influence_each_other():
    """Whatever is computed with them: constant, wide, shifted nodes."""
    x, target = node(40, 2)
    among = np.stack([np.zeros_like(x), x, 1e6 * x[::-1] + 1, np.round(x)])
    own = OwnColumns.of(among)
    found = [squared_mean(c[1], target) for c in (own.energy, own.shape, own.spread)]
    np.testing.assert_allclose(found, statistics_of(x, target), rtol=1e-8)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_a_constant_node_shows_nothing(value):
    found = statistics_of(np.full((15, 2), value), np.arange(15) < 6)
    np.testing.assert_allclose(found, 0, atol=1e-20)


def test_duplicates_are_alike():
    """Two values only, as for a binary feature: equal observations have equal columns."""
    x = (np.arange(40) % 4 == 0).astype(float)[:, np.newaxis]
    own = OwnColumns.of(x[np.newaxis])
    for columns in (own.energy[0], own.shape[0], own.spread[0]):
        assert np.isfinite(columns).all()
        for some in (x[:, 0] == 0, x[:, 0] == 1):
            np.testing.assert_allclose(columns[some], columns[some][:1].repeat(some.sum(), 0))
    assert statistics_of(x, x[:, 0] == 1)[0] > 0.1


def test_a_single_observation():
    own = OwnColumns.of(np.ones((2, 1, 3)))
    for columns in (own.energy, own.shape, own.spread):
        np.testing.assert_array_equal(columns, 0)
