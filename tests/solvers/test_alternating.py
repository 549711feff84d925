"""Alternating minimisation of profiles: every step exact, the objective never rises."""

import numpy as np
import pytest
from scipy import optimize

from graphratio.data.graph import Graph
from graphratio.datasets import make_scenario
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments import second_moments
from graphratio.moments.node_moments import MomentSums, factored_moments, node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.solvers import alternating as core
from graphratio.solvers import profile_problem
from graphratio.solvers.alternating import (
    Profiles,
    first_profiles,
    fit_coordinates,
    fit_profiles,
    objective_value,
    orthonormal,
    rounds,
)
from graphratio.solvers.learned_edges import Edges, adaptive_rounds, with_weights
from graphratio.solvers.profile_problem import ProfileProblem


def build(n_nodes=24, n=30, name="Ib", seed=0, n_atoms=9):
    scenario = make_scenario(name, n_nodes=n_nodes, n=n, random_state=seed)
    values = scenario.samples.values
    atoms = values[np.random.default_rng(seed).permutation(len(values))[:n_atoms]]
    psi = NystromMap.build(get_kernel("gaussian"), atoms, 1.2)(values)
    sizes = np.column_stack([scenario.samples.n_reference, scenario.samples.n_target])
    moments = node_moments(psi, sizes, 0.1, 1.0)
    return scenario, ProfileProblem.of(moments, Edges.of(scenario.graph)), psi, sizes


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("strength", [0.0, 0.3, 4.0])
def test_objective_never_rises(adaptive, strength):
    _, problem, _, _ = build()
    path = rounds(
        problem,
        first_profiles(problem, 2, smooth=True),
        strength,
        1e-3,
        8,
        adaptive=adaptive,
    )
    # The adaptive penalty takes over from the quadratic one in the first round.
    values = [objective_value(problem, fit, strength, 1e-3) for fit in path[adaptive:]]
    assert np.all(np.diff(values) <= 1e-9 * abs(values[0]))
    assert values[-1] < values[0]


@pytest.mark.parametrize("scale", [None, 0.4])
def test_each_step_is_a_minimum_or_a_bound(scale):
    _, problem, _, _ = build()
    lam, ridge = 2.0, 1e-2
    rng = np.random.default_rng(1)
    basis = first_profiles(problem, 2, smooth=True)
    start = Profiles(basis, rng.normal(size=(24, 2)), problem.edges.weights, scale)
    weights = problem.edges.weights
    if scale is not None:
        weights = problem.edges.reweighted(problem.edges.distances(start.coordinates), scale)
    before = objective_value(problem, start, lam, ridge)
    coordinates = fit_coordinates(problem, basis, weights, lam, ridge, start.coordinates)
    middle = objective_value(problem, Profiles(basis, coordinates, weights, scale), lam, ridge)
    assert middle < before
    refitted = fit_profiles(problem, coordinates, weights, lam, ridge)
    after = objective_value(problem, Profiles(refitted, coordinates, weights, scale), lam, ridge)
    assert after <= middle + 1e-9 * abs(middle)


def test_steps_are_the_minima_that_a_general_optimiser_finds():
    _, problem, _, _ = build(n_nodes=8, n_atoms=5)
    lam, ridge, weights = 1.5, 1e-2, problem.edges.weights
    basis = first_profiles(problem, 2, smooth=False)
    coordinates = fit_coordinates(problem, basis, weights, lam, ridge, np.zeros((8, 2)))

    def over_coordinates(flat):
        fit = Profiles(basis, flat.reshape(8, 2), weights, None)
        return objective_value(problem, fit, lam, ridge)

    found = optimize.minimize(over_coordinates, np.zeros(16), tol=1e-12)
    np.testing.assert_allclose(coordinates.ravel(), found.x, atol=1e-4)

    def over_profiles(flat):
        fit = Profiles(flat.reshape(-1, 2), coordinates, weights, None)
        return objective_value(problem, fit, lam, ridge)

    refitted = fit_profiles(problem, coordinates, weights, lam, ridge)
    found = optimize.minimize(over_profiles, basis.ravel(), tol=1e-12)
    assert over_profiles(refitted.ravel()) <= found.fun + 1e-9


def test_orthonormal_profiles_give_the_same_ratios():
    _, problem, _, _ = build()
    rng = np.random.default_rng(0)
    profiles = rng.normal(size=(problem.metric.shape[0], 3))
    coordinates = rng.normal(size=(24, 3))
    turned, moved = orthonormal(problem, profiles, coordinates)
    np.testing.assert_allclose(moved @ turned.T, coordinates @ profiles.T, atol=1e-9)
    np.testing.assert_allclose(turned.T @ problem.metric @ turned, np.eye(3), atol=1e-9)


def test_conjugate_gradients_agree_with_the_dense_solve(monkeypatch):
    _, problem, _, _ = build()
    basis = first_profiles(problem, 2, smooth=True)
    args = (problem, basis, problem.edges.weights, 50.0, 1e-3, np.zeros((24, 2)))
    dense = fit_coordinates(*args)
    monkeypatch.setattr(core, "SMALL_SYSTEM", 0)
    np.testing.assert_allclose(fit_coordinates(*args), dense, atol=1e-6)
    np.testing.assert_allclose(
        np.abs(first_profiles(problem, 1, smooth=True)), np.abs(basis[:, :1]), atol=0.05
    )


def test_dense_and_factored_moments_combine_alike():
    _, _, psi, sizes = build()
    factors = np.random.default_rng(0).normal(size=(3, len(sizes)))
    dense = MomentSums.of(psi, sizes).mixed(0.1, 1.0).second
    factored = factored_moments(psi, sizes, 0.1, 1.0).second
    np.testing.assert_allclose(dense.combinations(factors), factored.combinations(factors))
    each = np.einsum("kv,vmn->kmn", factors, dense.dense())
    np.testing.assert_allclose(dense.combinations(factors), each)
    np.testing.assert_allclose(factored.mean(), dense.mean())


def test_sums_do_not_depend_on_how_many_blocks_are_formed_at_once(monkeypatch):
    _, _, psi, sizes = build()
    moments = factored_moments(psi, sizes, 0.1, 1.0)
    coordinates = np.random.default_rng(0).normal(size=(len(sizes), 2))
    edges = Edges.of(Graph.empty(len(sizes)))
    formed, rhs = ProfileProblem.of(moments, edges).pooled(coordinates)
    monkeypatch.setattr(profile_problem, "LARGEST_BLOCKS", 0)
    for entries in (1, 3 * psi.shape[1] ** 2):
        monkeypatch.setattr(second_moments, "FORMED_ENTRIES", entries)
        sums, again = ProfileProblem.of(moments, edges).pooled(coordinates)
        np.testing.assert_allclose(sums, formed)
        np.testing.assert_array_equal(again, rhs)


def test_adaptive_penalty_is_bounded_by_its_quadratic():
    edges = Edges.of(Graph.from_edges([(0, 1), (1, 2), (0, 2)]))
    rng = np.random.default_rng(0)
    for _ in range(50):
        now, then = rng.exponential(size=(2, 3))
        weights = edges.reweighted(now, 0.7)
        bound = edges.penalty(now, 0.7) + 0.5 * weights @ (then**2 - now**2)
        assert edges.penalty(then, 0.7) <= bound + 1e-12
    path = Edges.of(Graph.from_edges([(0, 1), (1, 2)]))
    alike_and_different = path.reweighted(np.array([0.0, 7.0]), 1.0)
    assert alike_and_different.round(3).tolist() == [3.75, 0.015]


def test_laplacians_and_quadratic_form_agree():
    scenario = make_scenario("Ia", n_nodes=12, n=1, random_state=0)
    edges = Edges.of(scenario.graph)
    scaled = scenario.graph.laplacian.toarray() / scenario.graph.mean_degree
    np.testing.assert_allclose(edges.dense_laplacian(edges.weights), scaled)
    np.testing.assert_allclose(edges.laplacian(edges.weights).toarray(), scaled)
    points = np.random.default_rng(0).normal(size=(12, 2))
    form = edges.quadratic(points, edges.weights)
    np.testing.assert_allclose(form, points.T @ scaled @ points)


def test_adaptive_rounds_of_the_plain_problem_never_raise_its_objective():
    scenario, problem, _, _ = build()
    graph, edges = scenario.graph, problem.edges
    lam, rho = 0.5 / graph.mean_degree, 5e-4 / graph.mean_degree
    path = adaptive_rounds(problem.moments, graph, lam, rho, 5, 1e-8, 1000)

    def value(fit):
        data = GraphObjective.of(problem.moments, Graph.empty(24).laplacian, lam, rho)
        distances = edges.distances(fit.theta)
        adaptive = edges.penalty(distances, path[-1].scale) * graph.mean_degree
        return (float(data.value(fit.theta)[0]) + lam * adaptive) / 24

    values = [value(fit) for fit in path]
    assert np.all(np.diff(values) <= 1e-9)
    assert values[-1] < values[0]


def test_reweighted_graph_keeps_nodes_and_edges():
    graph = make_scenario("Ia", n_nodes=12, n=1, random_state=0).graph
    edges = Edges.of(graph)
    doubled = with_weights(graph, edges, 2 * edges.weights)
    np.testing.assert_allclose(doubled.adjacency.toarray(), 2 * graph.adjacency.toarray())
    assert doubled.nodes == graph.nodes
