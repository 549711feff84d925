"""Partitions of a graph: complete, balanced, and consistent with each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.problems import GRAPHS, graph

import graphratio as gr
from graphratio.distributed import partition_graph
from graphratio.distributed.conjugate import coarse_modes
from graphratio.distributed.partition import make_plans
from graphratio.distributed.protocol import ordered_sum
from graphratio.exceptions import InputError


def grid(side):
    place = np.arange(side * side).reshape(side, side)
    edges = np.vstack(
        [
            np.column_stack([place[:, :-1].ravel(), place[:, 1:].ravel()]),
            np.column_stack([place[:-1].ravel(), place[1:].ravel()]),
        ]
    )
    return gr.Graph.from_edges([tuple(edge) for edge in edges.tolist()])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("method", ["bisection", "metis"])
def test_parts_are_balanced_and_the_cut_is_counted(count, method):
    lattice = grid(12)
    found = partition_graph(lattice, count, method)
    sizes = np.bincount(found.owner)
    assert len(sizes) == count == found.n_partitions
    assert sizes.max() <= 1.1 * sizes.min() + 1
    dense = lattice.adjacency.toarray() > 0
    crossing = dense & (found.owner[:, None] != found.owner)
    assert found.n_cut == crossing.sum() // 2
    rows = {(u, int(found.owner[v])) for u, v in zip(*np.nonzero(crossing), strict=True)}
    assert found.n_boundary == len(rows)


def test_the_boundary_is_small():
    """Of a grid in halves a line is cut; of random halves, half of all edges."""
    lattice = grid(20)
    assert partition_graph(lattice, 2).n_cut <= 2 * 20
    assert partition_graph(lattice, 8).edge_cut <= 0.2
    assert partition_graph(lattice, 8, "metis").n_cut <= partition_graph(lattice, 8).n_cut


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("count", [1, 2, 4, 6])
def test_plans_put_the_laplacian_together(name, count):
    whole = graph(name)
    _, vectors = coarse_modes(whole)
    plans = make_plans(whole, partition_graph(whole, count), vectors)
    x = np.random.default_rng(0).normal(size=(whole.n_nodes, 3))
    product = np.empty_like(x)
    for plan in plans:
        halo = np.zeros((len(plan.halo), 3))
        inbox = {q: x[plans[q].nodes][plans[q].sends[plan.index]] for q in plan.receives}
        plan.into_halo(halo, inbox)
        assert_array_equal(halo, x[plan.halo])
        product[plan.nodes] = plan.inner @ x[plan.nodes] - plan.outer @ halo
        assert_array_equal(plan.halo_modes, vectors[plan.halo])
    assert_allclose(product, whole.laplacian @ x, atol=1e-12)
    assert_array_equal(np.sort(np.concatenate([plan.nodes for plan in plans])), range(6))


class TestGivenPartitions:
    def test_as_given(self):
        path = gr.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
        found = partition_graph(path, [{"c", "a"}, ("b", "d")])
        assert_array_equal(found.owner, [0, 1, 0, 1])
        assert found.describe() == "2 partitions (given), edge cut 3 of 3 (100.0%), 4 boundary rows"

    @pytest.mark.parametrize(
        ("partitions", "message"),
        [
            ([["a", "b"]], "in no partition: 'c'"),
            ([["a", "b"], ["b", "c"]], "more than one partition, or twice in one: 'b'"),
            ([["a", "b", "c", "c"]], "twice"),
            ([["a", "b", "c"], []], "partition 1 has no nodes"),
            ([["a", "b", "c", "x"]], "'x'"),
            (0, "0 partitions"),
            (4, "4 partitions cannot be made of 3 nodes"),
            (2.5, "neither a number nor a list"),
        ],
    )
    def test_mistakes_are_named(self, partitions, message):
        path = gr.Graph.from_edges([("a", "b"), ("b", "c")])
        with pytest.raises(InputError, match=message):
            partition_graph(path, partitions)

    def test_unknown_method(self):
        with pytest.raises(InputError, match="partitioner"):
            partition_graph(grid(3), 2, "random")


def test_values_of_partitions_are_added_entry_by_entry():
    number, array = ordered_sum([(1.0, np.ones(2)), (2.0, np.ones(2))])
    assert number == 3.0
    assert_array_equal(array, [2.0, 2.0])
    assert ordered_sum([None, None]) is None
