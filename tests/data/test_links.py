"""What became of edges: compared by label position, relative to the typical one."""

import numpy as np

from graphratio.data.graph import Graph
from graphratio.data.links import Links


def test_edges_that_vanished_kept_nothing():
    given = Graph.from_edges([("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 4.0), ("c", "d", 1.0)])
    learned = Graph.from_edges([("a", "b", 4.0), ("a", "c", 8.0), ("c", "d", 2.0)])
    links = Links.compare(given, Graph.from_adjacency(learned.adjacency, nodes=given.nodes))
    ends = list(zip(links.rows, links.columns, strict=True))
    kept = dict(zip(ends, links.kept, strict=True))
    assert kept == {(0, 1): 1.0, (1, 2): 0.0, (0, 2): 1.0, (2, 3): 1.0}
    assert [ends[e] for e in links.cut()] == [(1, 2)]
    assert not links.as_given


def test_graph_without_edges():
    links = Links.compare(Graph.empty(3), Graph.empty(3))
    assert links.kept.size == 0
    assert links.cut().size == 0
    assert links.as_given


def test_a_common_factor_does_not_count():
    given = Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    tripled = Graph.from_adjacency(3 * given.adjacency)
    np.testing.assert_allclose(Links.compare(given, tripled).kept, 1.0)


def test_weak_edges_are_cut_the_weakest_first():
    links = Links(np.arange(3), np.arange(1, 4), np.array([1.0, 0.05, 0.01]))
    assert links.cut().tolist() == [2, 1]
