"""Large graphs: hierarchies, cycles, and iteration counts that do not grow with the graph."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from tests.problems import dense_solution, paper_objective

from graphratio.data.graph import Graph
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.node_moments import MomentSums
from graphratio.solvers.bases import NodeBasis, basis_of, mean_field
from graphratio.solvers.path import solve_pcg
from graphratio.solvers.preconditioners.aggregation import build_hierarchy, groups, heavy_edges
from graphratio.solvers.preconditioners.block_multigrid import BlockMultigrid


def grid_graph(side):
    index = np.arange(side * side).reshape(side, side)
    across = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    return Graph.from_edges(np.concatenate([across, down]), nodes=range(side * side))


def plane_graph(n_nodes):
    return Graph.from_coordinates(np.random.default_rng(0).random((n_nodes, 2)), k=5)


def ragged_graph():
    """A grid, a star, a pair and isolated nodes."""
    star = sparse.coo_array((np.ones(20), (np.zeros(20, int), np.arange(1, 21))), shape=(21, 21))
    parts = [grid_graph(12).adjacency, star + star.T, np.array([[0, 1.0], [1, 0]])]
    return Graph.from_adjacency(sparse.block_diag([*parts, np.zeros((5, 5))]))


def plane_moments(n_nodes, *, alike, n=20, m=12, seed=0):
    """Samples in the plane; unless alike, every node has its own location and scale."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_nodes, 2 * n, 2))
    if not alike:
        x = x * np.exp(0.5 * rng.normal(size=(n_nodes, 1, 1))) + 2 * rng.normal(
            size=(n_nodes, 1, 2)
        )
    points = x.reshape(-1, 2)
    atoms = points[rng.choice(len(points), m, replace=False)]
    psi = NystromMap.build(get_kernel("gaussian"), atoms, 1.5)(points)
    return MomentSums.of(psi, np.full((n_nodes, 2), n)).mixed(0.1)


@pytest.mark.parametrize("build", [lambda: grid_graph(40), ragged_graph])
def test_interpolation_keeps_constants_and_leaves_out_isolated_nodes(build):
    graph = build()
    hierarchy = build_hierarchy(graph.laplacian, np.float64)
    sizes = [level.laplacian.shape[0] for level in hierarchy.levels]
    assert sizes == sorted(sizes, reverse=True)
    assert len(hierarchy.laplacian) <= 8
    level = hierarchy.levels[0]
    rows = np.asarray(level.interpolation.sum(axis=1)).ravel()
    assert_allclose(rows, ~graph.isolated_mask, atol=1e-12)
    coarse = level.restriction @ level.laplacian @ level.interpolation
    assert_allclose(np.asarray(coarse.sum(axis=1)).ravel(), 0, atol=1e-12)
    assert level.interpolation.shape[1] < 0.5 * graph.n_nodes


def test_groups_are_connected_and_within_two_steps_of_a_root():
    graph = plane_graph(500)
    heavy = heavy_edges(graph.laplacian, np.random.default_rng(0))
    group = groups(heavy, np.random.default_rng(1))
    assert group.min() == 0
    pair = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert groups(pair, np.random.default_rng(0)).tolist() == [0, 0, -1]
    for members in (np.flatnonzero(group == k) for k in range(group.max() + 1)):
        inside = graph.adjacency[members][:, members]
        count, _ = sparse.csgraph.connected_components(inside)
        assert count == 1
        hops = sparse.csgraph.shortest_path(inside, unweighted=True)
        assert hops.max(axis=1).min() <= 2


def test_dense_graphs_and_hubs_still_shrink_gently():
    """All nodes of a complete graph are neighbours, and yet not one group."""
    complete = Graph.from_adjacency(np.ones((600, 600)) - np.eye(600))
    sizes = [len(level.mass_diagonal) for level in build_hierarchy(complete.laplacian).levels]
    assert 10 < sizes[1] < 200


@pytest.mark.parametrize("entries", [1, 700])
def test_groups_of_columns_do_not_change_a_product_or_a_cycle(entries, monkeypatch):
    monkeypatch.setattr("graphratio.solvers.preconditioners.aggregation.DENSE_LEVEL", 8)
    graph = plane_graph(150)
    moments = plane_moments(150, alike=True, m=5)
    objective = paper_objective(moments, graph, np.array([1e-3, 1.0]), 1e-2)
    basis = NodeBasis.of(graph)
    operators = [mean_field(objective, basis), basis.penalty(objective.lam, objective.rho)]
    x = np.random.default_rng(0).normal(size=(150, 2, 5))
    whole = [operator.apply(x) for operator in operators]
    monkeypatch.setattr("graphratio.solvers.conjugate_gradients.GROUP_ENTRIES", entries)
    for operator, expected in zip(operators, whole, strict=True):
        assert_allclose(operator.apply(x), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_small_levels_are_solved_exactly():
    """On a graph below the size of a dense level the cycle is the mean field itself."""
    graph = plane_graph(150)
    moments = plane_moments(150, alike=True, m=5)
    objective = paper_objective(moments, graph, 1e-3, 1e-2)
    x = np.random.default_rng(0).normal(size=(150, 1, 5))
    spectral = basis_of(graph)
    inverse = mean_field(objective, spectral)
    exact = spectral.to_nodes(inverse.apply(spectral.from_nodes(x)))
    cycle = mean_field(objective, NodeBasis.of(graph)).apply(x)
    assert np.linalg.norm(cycle - exact) <= 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize("kind", ["mean field", "multigrid"])
@pytest.mark.parametrize("lambda_", [1e-4, 1.0])
def test_cycles_are_symmetric_and_positive(kind, lambda_, monkeypatch):
    monkeypatch.setattr("graphratio.solvers.preconditioners.aggregation.DENSE_LEVEL", 8)
    graph = ragged_graph()
    n_nodes, m = graph.n_nodes, 3
    moments = plane_moments(n_nodes, alike=False, m=m)
    objective = paper_objective(moments, graph, lambda_, 1e-2)
    basis = NodeBasis.of(graph)
    if kind == "mean field":
        cycle = mean_field(objective, basis)
    else:
        cycle = BlockMultigrid.of(objective, basis)
    unit = np.eye(n_nodes * m).reshape(n_nodes * m, n_nodes, 1, m)
    matrix = np.array([cycle.apply(column).ravel() for column in unit])
    largest = np.abs(matrix).max()
    assert_allclose(matrix, matrix.T, atol=1e-5 * largest)
    assert np.linalg.eigvalsh(matrix + matrix.T).min() > 0


@pytest.mark.parametrize("lambda_", [1e-6, 1e-3, 1.0])
def test_small_and_isolated_components_get_the_dense_answer(lambda_, monkeypatch):
    monkeypatch.setattr("graphratio.solvers.preconditioners.aggregation.DENSE_LEVEL", 8)
    graph = ragged_graph()
    moments = plane_moments(graph.n_nodes, alike=False, m=4)
    objective = paper_objective(moments, graph, lambda_, 1e-3)
    solution = solve_pcg(objective, NodeBasis.of(graph), 1e-9, 300)
    truth = dense_solution(objective)
    assert np.linalg.norm(solution.theta - truth) <= 1e-5 * np.linalg.norm(truth)


@pytest.mark.parametrize("build", [lambda n: grid_graph(int(n**0.5)), plane_graph])
def test_iterations_do_not_grow_with_the_graph(build):
    """At the corners of the paper's grid of penalties, and where nodes hardly share anything."""
    most = {}
    for n_nodes in (900, 3600):
        graph = build(n_nodes)
        basis = basis_of(graph)
        scale = 1 / graph.mean_degree
        for alike in (True, False):
            moments = plane_moments(graph.n_nodes, alike=alike)
            for gamma in (1e-5, 1.0):
                corners = [(1e-3 * scale, 40), (10 * scale, 40)]
                if not alike:
                    corners.append((0.01 * scale / graph.n_nodes, 60))
                for lambda_, limit in corners:
                    objective = paper_objective(moments, graph, lambda_, gamma)
                    solution = solve_pcg(objective, basis, 1e-6, 300)
                    assert solution.residual <= 1e-6
                    assert solution.n_iter < limit
                    most[n_nodes] = max(most.get(n_nodes, 0), solution.n_iter)
    assert most[3600] <= most[900] + 8


def test_nodes_that_hardly_overlap_are_no_obstacle():
    """Weak penalties and samples far apart, where the mean of the moments means nothing."""
    graph = plane_graph(300)
    rng = np.random.default_rng(0)
    centre = 10 * graph.coordinates[:, :1, np.newaxis] + rng.normal(size=(300, 1, 1))
    points = (centre + 0.1 * rng.normal(size=(300, 40, 1))).reshape(-1, 1)
    features = NystromMap.build(get_kernel("gaussian"), points[::200], 0.1)
    moments = MomentSums.of(features(points), np.full((300, 2), 20)).mixed(0.1)
    objective = paper_objective(moments, graph, 1e-3 / graph.mean_degree, 1e-5)
    basis = basis_of(graph)
    few = solve_pcg(objective, basis, 1e-6, 2000, "multigrid").n_iter
    assert few < 40
    assert solve_pcg(objective, basis, 1e-6, 2000, "kronecker").n_iter > 3 * few
