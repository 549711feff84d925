"""The study of graphs: its networks, a small version of it, and its page."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="module")
def graphs():
    sys.path.insert(0, str(STUDIES))
    try:
        import graphs

        return graphs
    finally:
        sys.path.remove(str(STUDIES))


def test_networks_have_the_stated_correlations(graphs):
    for n_isolated in (0, 10):
        samples, named = graphs.drawn_network(3, 12, n_isolated, n_nodes=80)
        shift = np.array(
            [samples.target(v).mean() - samples.reference(v).mean() for v in range(80)]
        )
        spread = np.array([samples.reference(v).std() for v in range(80)])
        # The shift in units of each node, with the noise of means of twelve.
        own = shift / spread
        found = {
            name: graphs.edge_correlation(*graphs.edges_of(graph).T, own)
            for name, graph in named.items()
        }
        assert found["right"] > 0.4 > found["weak"] > -0.1
        assert abs(found["random"]) < 0.3
        lonely = [int((graph.n_neighbors == 0).sum()) for graph in named.values()]
        assert min(lonely) >= n_isolated
    degrees = [graph.n_neighbors for graph in graphs.drawn_network(3, 12, 0, 80)[1].values()]
    np.testing.assert_array_equal(degrees[0], degrees[1])
    np.testing.assert_array_equal(degrees[0], degrees[2])


@pytest.mark.slow
def test_a_small_version(graphs):
    """The right graph is named, a random one and one of two equals are not."""
    rows = {row[0]: row for row in graphs.judged(11, 48, 0, n_nodes=60)}
    assert rows["right"][4] == "right"
    assert rows["alone"][4] == ""
    assert rows["equal"][4] == ""


def test_the_page_states_what_is_stored(graphs):
    import graphs_page

    tables = {}
    for part, path in graphs.TABLES.items():
        with path.open(newline="") as stream:
            tables[part] = list(csv.DictReader(stream))
    assert graphs_page.study_text(tables) in graphs_page.PAGE.read_text()
    named = [row["best"] == "right" for row in tables["power"] if row["case"] == "right"]
    assert np.mean(named) >= 0.8
    worth = tables["worth"]
    assert np.mean([float(row["low"]) > 1.3 for row in worth]) >= 0.8
