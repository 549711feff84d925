"""Crowded graphs that fall into clusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from graphratio.data.graph import Graph
from graphratio.solvers.bases import LARGEST_SPECTRUM, basis_of
from graphratio.solvers.clusters import ClusteredMatrix, clusters_of, dense_or_clustered
from graphratio.solvers.node_basis import NodeBasis


def crowded(sizes, inside, between, seed=0):
    """A graph with clusters of the given sizes, nodes in random order."""
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    chance = np.where(cluster[:, None] == cluster, inside, between)
    upper = np.triu(rng.random(chance.shape) < chance, 1).astype(float)
    return Graph.from_adjacency(upper + upper.T), cluster


def same_parts(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("sizes", [(300, 300, 300), (500, 250, 150)])
@pytest.mark.parametrize("between", [0.0, 0.01])
def test_products_are_those_with_the_laplacian(sizes, between):
    graph, cluster = crowded(sizes, 0.5, between)
    basis = basis_of(graph)
    assert isinstance(basis, NodeBasis)
    assert isinstance(basis.laplacian, ClusteredMatrix)
    modes, vectors = basis.lowest
    found = clusters_of(modes[: len(sizes)], vectors[:, : len(sizes)], graph.mean_degree)
    assert same_parts(found, cluster)
    x = np.random.default_rng(1).normal(size=(graph.n_nodes, 7))
    assert_allclose(basis.laplacian @ x, graph.laplacian @ x, atol=1e-10)


def test_a_crowd_without_clusters_stays_one_matrix():
    graph, _ = crowded((LARGEST_SPECTRUM + 100,), 0.3, 0.3)
    assert isinstance(basis_of(graph).laplacian, np.ndarray)


def test_clusters_that_are_none_are_not_used():
    graph, cluster = crowded((100, 100), 0.5, 0.5)
    assert isinstance(dense_or_clustered(graph.laplacian, cluster), np.ndarray)


def test_sparse_graphs_stay_sparse():
    n = LARGEST_SPECTRUM + 100
    ring = Graph.from_edges([(v, (v + 1) % n) for v in range(n)])
    assert sparse.issparse(basis_of(ring).laplacian)
