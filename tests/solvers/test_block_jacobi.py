"""Inverses at nodes whose second moments have few rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from graphratio.data.graph import Graph
from graphratio.moments.second_moments import DenseSecond, FactoredSecond
from graphratio.solvers.preconditioners.block_jacobi import (
    SMALLEST_SHARE,
    NodeInverses,
    RowInverses,
    node_inverses,
)

N, M = 6, 40


@pytest.fixture
def second():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(N, 5, M)).astype(np.float32)
    # A row of zeros fills up a node with fewer rows, and rows may be the same.
    psi[2, 3:] = 0
    psi[3, 1] = psi[3, 0]
    halves = np.arange(N).reshape(2, -1)
    return FactoredSecond(N, [(own, psi[own], np.ones((3, 5), np.float32)) for own in halves])


def test_they_are_the_inverses_of_the_blocks(second):
    ridge = np.array([[0.1, 1.0, 30.0]]) * np.arange(1, N + 1)[:, np.newaxis]
    x = np.random.default_rng(1).normal(size=(N, 3, M)).astype(np.float32)
    found = RowInverses.of(second, ridge)
    systems = second.dense()[:, np.newaxis] + ridge[:, :, np.newaxis, np.newaxis] * np.eye(M)
    expected = np.linalg.solve(systems, x[..., np.newaxis])[..., 0]
    np.testing.assert_allclose(found.apply(x), expected, rtol=1e-3, atol=1e-4)
    some = np.array([True, False, True])
    np.testing.assert_array_equal(found.restrict(some).apply(x[:, some]), found.apply(x)[:, some])


def test_a_tiny_ridge_leaves_them_definite(second):
    found = RowInverses.of(second, np.full((N, 1), 1e-12))
    unit = np.broadcast_to(np.eye(M, dtype=np.float32), (N, M, M))
    inverses = np.concatenate([found.apply(unit[:, [k]]) for k in range(M)], axis=1)
    assert np.linalg.eigvalsh((inverses + inverses.transpose(0, 2, 1)).astype(float)).min() > 0
    largest = np.linalg.eigvalsh(second.dense().astype(float)).max(axis=1)
    np.testing.assert_allclose(found.ridge[:, 0, 0], SMALLEST_SHARE * largest, rtol=1e-3)


@pytest.mark.parametrize(("dense", "kind"), [(False, RowInverses), (True, NodeInverses)])
def test_few_rows_decide(second, dense, kind):
    graph = Graph.from_edges([(i, i + 1) for i in range(N - 1)])
    chosen = DenseSecond(second.dense()) if dense else second
    objective = SimpleNamespace(
        laplacian=graph.laplacian,
        lam=np.array([0.5]),
        rho=np.array([0.1]),
        moments=SimpleNamespace(second=chosen),
    )
    found = node_inverses(objective)
    assert type(found) is kind
    x = np.ones((N, 1, M), np.float32)
    expected = node_inverses(objective, np.float64).apply(x.astype(float))
    np.testing.assert_allclose(found.apply(x), expected, rtol=1e-3, atol=1e-4)


def test_nodes_without_rows_are_divided_by_their_ridge():
    none = FactoredSecond(2, [(np.arange(2), np.empty((2, 0, M), np.float32), np.empty((2, 0)))])
    found = RowInverses.of(none, np.full((2, 1), 4.0))
    np.testing.assert_array_equal(found.apply(np.ones((2, 1, M), np.float32)), 0.25)
