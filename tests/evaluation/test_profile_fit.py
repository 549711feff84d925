"""The model of comparisons: shared profiles, coordinates joined by a graph."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.evaluation.profile_fit import (
    LONE_RIDGES,
    ProfileFit,
    own_deviations,
    profile_pairs,
    wide_bandwidths,
)
from graphratio.evaluation.recipe import Recipe
from graphratio.evaluation.ways import Ways, compares_profiles


@pytest.fixture(scope="module")
def scenario():
    return make_scenario("Ia", n_nodes=40, n=40, random_state=3)


@pytest.fixture(scope="module")
def moments(scenario):
    recipe = Recipe.of(gr.GraphRatio(), scenario.samples, np.random.default_rng(0))
    everything = np.zeros(scenario.samples.n_observations, dtype=np.intp)
    return recipe.split(everything, 1, np.float64).at(1.5)[1].without()


def test_every_graph_can_choose_what_the_fit_without_one_chooses():
    sizes = np.full((6, 2), 20)
    lam, rho = profile_pairs(sizes, 4.0)
    alone = profile_pairs(sizes, 0.0)
    np.testing.assert_array_equal(lam[: len(LONE_RIDGES)], 0)
    np.testing.assert_array_equal(rho[: len(LONE_RIDGES)], alone[1])
    assert (lam[len(LONE_RIDGES) :] > 0).all()
    # Ridges follow the noise of a mean, 1/20 + 1/20, and penalties the degree.
    np.testing.assert_allclose(alone[1], 0.1 * np.array(LONE_RIDGES))
    np.testing.assert_allclose(profile_pairs(sizes, 8.0)[0], lam / 2)


def test_without_coupling_a_graph_changes_nothing(scenario, moments):
    rho = np.array([0.01, 0.1])
    empty = gr.Graph.empty(scenario.graph.nodes)
    joined = ProfileFit(scenario.graph).solve(moments, np.zeros(2), rho)
    alone = ProfileFit(empty).solve(moments, np.zeros(2), rho)
    np.testing.assert_allclose(joined, alone, atol=1e-10)


def test_coordinates_solve_the_coupled_problem(scenario, moments):
    """Beside what all nodes have in common, against a dense system."""
    from graphratio.evaluation.profile_fit import COMMON_RIDGE, Reduced

    reduced = Reduced.of(moments)
    lam, rho = np.array([0.05]), np.array([0.02])
    theta = ProfileFit(scenario.graph).solve(moments, lam, rho)[:, 0]
    n_nodes, r = reduced.moments.first.shape
    system = np.kron(lam[0] * scenario.graph.laplacian.toarray() + rho[0] * np.eye(n_nodes),
                     np.eye(r))  # fmt: skip
    blocks = reduced.moments.second.dense()
    for v in range(n_nodes):
        system[v * r : (v + 1) * r, v * r : (v + 1) * r] += blocks[v]
    first = reduced.moments.first
    ridge = COMMON_RIDGE * np.eye(r)
    common = np.linalg.solve(blocks.mean(axis=0) + ridge, first.mean(axis=0))
    exact = common + np.linalg.solve(system, (first - blocks @ common).ravel()).reshape(n_nodes, r)
    np.testing.assert_allclose(theta, exact @ reduced.directions.T, atol=2e-3 * np.abs(theta).max())


def test_a_node_without_data_is_predicted_from_its_neighbours_or_from_all(scenario):
    """An isolated node gets what all have in common."""
    samples = scenario.samples
    recipe = Recipe.of(gr.GraphRatio(), samples, np.random.default_rng(0))
    folds = (samples.node_index == 0).astype(np.intp)
    train = recipe.split(folds, 2, np.float64).at(1.5)[1].without(1)
    empty = gr.Graph.empty(scenario.graph.nodes)
    pair = (np.zeros(1), np.array([0.05]))
    alone = ProfileFit(empty).solve(train, *pair)
    joined = ProfileFit(scenario.graph).solve(train, np.array([0.1]), pair[1])
    assert alone[0].any()
    near = scenario.graph.adjacency[[0]].indices
    mean = joined[near].mean(axis=0)
    # Between what all have in common and what its neighbours have.
    assert np.linalg.norm(joined[0] - mean) < np.linalg.norm(alone[0] - mean)


def test_deviations_are_those_of_kinds_of_change(scenario, moments):
    """Nodes of one kind deviate alike, nodes of different kinds do not."""
    points = own_deviations(moments, scenario.samples.sizes)
    kinds = np.where(scenario.changed, scenario.groups, "unchanged")
    same = kinds[:, None] == kinds[None]
    np.fill_diagonal(same, False)
    products = points @ points.T
    assert products[same].mean() > 0.2
    assert products[~same & ~np.eye(40, dtype=bool)].mean() < -0.1


def test_wide_bandwidths():
    np.testing.assert_allclose(wide_bandwidths(np.arange(1.0, 6)), [3, 5, 15])
    np.testing.assert_allclose(wide_bandwidths(np.array([2.0])), [2, 6])


def test_given_hyperparameters_are_those_of_the_estimator(scenario):
    assert compares_profiles(gr.GraphRatio())
    assert not compares_profiles(gr.GraphRatio(ridge=0.1))
    assert not compares_profiles(gr.GRULSIF())
    recipe = Recipe.of(gr.GraphRatio(n_profiles=1), scenario.samples, np.random.default_rng(0))
    assert Ways(recipe).refits
