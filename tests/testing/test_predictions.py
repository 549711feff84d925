"""What the neighbours predict for a node, and how firmly they hold it."""

from dataclasses import replace

import numpy as np
import pytest

import graphratio as gr
from graphratio.features.kernels import get_kernel
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.direct import system_matrix
from graphratio.testing import predictions
from graphratio.testing.node_null import node_evidence
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples
from graphratio.testing.predictions import Predictions, conductances
from graphratio.testing.statistics import shares_of

STAR = gr.Graph.from_edges([(0, 1), (0, 2), (0, 3), (4, 5)], nodes=range(7))
PENALTIES = (0.4, 0.02)


@pytest.fixture(scope="module")
def made():
    """A star, a pair and a lonely node; every node is a group of its own."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 7, 25, 1))
    target[1:4] += 1.0
    samples = gr.NodeSamples.from_arrays(list(reference), list(target[:, :20]))
    pooled = PooledSamples.of(samples, rng)
    plan = PermutationPlan(pooled, STAR, Units.of(pooled, rng, samples.blocks), 9, rng)
    dictionary = np.linspace(-2, 3, 8)[:, np.newaxis]
    features = PooledFeatures.of(pooled, get_kernel("gaussian"), dictionary, 1.0)
    found = Predictions.of(
        np.arange(7),
        features,
        plan,
        np.arange(7),
        np.tile(PENALTIES, (7, 1)),
        features.first(pooled),
    )
    return plan, features, found


def test_the_prediction_is_the_fit_without_the_node(made):
    """Against a dense solve of the joint problem, the node's own moments left out."""
    plan, features, found = made
    first = features.first(plan.pooled)
    for node in (0, 2, 4):
        known = np.arange(7) != node
        moments = Moments(
            DenseSecond(features.second * known[:, np.newaxis, np.newaxis]),
            first * known[:, np.newaxis],
            known,
        )
        matrix = system_matrix(GraphObjective.of(moments, STAR.laplacian, *PENALTIES))
        theta = np.linalg.solve(matrix, (first * known[:, np.newaxis]).ravel()).reshape(7, -1)
        scale = np.abs(theta[node]).max()
        np.testing.assert_allclose(found.witness[node], theta[node], atol=0.01 * scale)


def test_a_lonely_node_has_no_prediction(made):
    plan, _, found = made
    assert (found.witness[6] == 0).all()
    strength = found.strength(np.arange(7), plan)
    assert strength[6] == 0
    assert (strength[:6] > 0).all()
    # The statistics are defined all the same, and never change.
    predicted, coupled = found.columns(np.array([6]), plan.rows(np.array([6])))
    assert (predicted.values == 0).all()
    assert (coupled.offset == 0).all()
    assert np.isfinite(coupled.values).all()


def test_strength_is_the_shift_of_the_statistic_if_the_prediction_is_right(made):
    """E_q w - E w = var w over the pooled sample, in units of the statistic's spread."""
    plan, features, found = made
    rows = plan.rows(np.arange(7))
    for node in range(6):
        score = features.psi[rows[node]] @ found.witness[node]
        # 25 reference and 20 target observations; the finite population without the one half.
        spread = np.sqrt(np.mean(score**2) * 25 / (20 * 45))
        expected = np.mean(score**2) / spread
        assert found.strength(np.array([node]), plan)[0] == pytest.approx(expected)


def test_every_node_has_the_shares_of_its_own_strength(made):
    plan, _, found = made
    nodes = np.array([5, 0, 6, 2])
    means = node_evidence(plan, found)(nodes)
    strength = found.strength(nodes, plan)
    assert len(np.unique(shares_of(strength)[:, 0])) > 1
    np.testing.assert_allclose(np.exp(means.log_shares[:, 0]), shares_of(strength), rtol=1e-5)


def test_columns_give_the_ratio_fitted_with_the_neighbours(made):
    """theta = (A + C)^-1 (b + C w): the mean of the columns plus the offset."""
    plan, features, found = made
    nodes = np.array([0, 3])
    rows = plan.rows(nodes)
    predicted, coupled = found.columns(nodes, rows)
    assert predicted.linear
    assert not coupled.linear
    for i, node in enumerate(nodes):
        target = plan.pooled.is_target[rows[i]]
        b = features.psi[rows[i]][target].mean(axis=0)
        w, held = found.witness[node], found.conductance[node]
        theta = np.linalg.solve(features.second[node] + np.diag(held), b + held * w)
        found_theta = coupled.values[i][target].mean(axis=0) + coupled.offset[i]
        np.testing.assert_allclose(found_theta, theta, rtol=1e-8)
        assert predicted.values[i][target].mean() == pytest.approx(b @ w)


def test_without_edges_nothing_is_predicted(made):
    plan, features, _ = made
    alone = replace(plan, graph=gr.Graph.empty(7))
    first = features.first(plan.pooled)
    table = np.tile(PENALTIES, (7, 1))
    found = Predictions.of(np.arange(7), features, alone, np.arange(7), table, first)
    assert not found.witness.any()
    assert not found.strength(np.arange(7), alone).any()


def test_conductances_on_a_star_equal_the_elimination():
    """The centre of a star, with diagonal second moments: eliminating the leaves is exact."""
    star = gr.Graph.from_edges([(0, v, 0.5 + v) for v in range(1, 5)])
    rng = np.random.default_rng(0)
    data = rng.uniform(0.1, 1, size=(5, 3))
    second = data[:, :, np.newaxis] * np.eye(3)
    lam, rho = 0.1, 0.03
    moments = Moments(DenseSecond(second), np.zeros((5, 3)), np.ones(5, dtype=bool))
    matrix = system_matrix(GraphObjective.of(moments, star.laplacian, lam, rho))
    block = np.linalg.inv(np.linalg.inv(matrix)[:3, :3]) - second[0]
    # One sweep: every leaf is held by its own data and ridge.
    once = swept_conductances(data, star, lam, rho, 1)
    np.testing.assert_allclose(np.diag(block), once[0], rtol=1e-10)
    # Further sweeps count the way back over the same edge: firmer, never softer.
    assert (conductances(data, star, lam, rho)[0] >= once[0]).all()


def swept_conductances(data, graph, lam, rho, sweeps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "_SWEEPS", sweeps)
        return predictions.conductances(data, graph, lam, rho)
