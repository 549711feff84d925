"""The paper's grids of penalties in the library's units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import graphratio as gr
from graphratio._utils.arrays import grid_partner
from graphratio.exceptions import InputError
from graphratio.selection import grids
from graphratio.selection.grids import (
    APART,
    Candidates,
    apart,
    candidates_of,
    paper_gammas,
    penalty_pairs,
    selection_size,
)

LAMBDAS = [1e-3, 1e-2, 0.1, 1, 10]
GAMMAS = np.array([1e-5, 1e-3, 0.1, 1])


def uneven(scale=1.0):
    """A tree of six nodes with uneven weights, and two isolated nodes."""
    edges = [(0, 1, 0.5), (1, 2, 3.0), (2, 3, 1.0), (1, 4, 7.0), (4, 5, 0.1)]
    return gr.Graph.from_edges([(u, v, scale * w) for u, v, w in edges], nodes=range(8))


def test_the_papers_grid_is_translated():
    """Isolated nodes count in both averages."""
    graph = uneven()
    degree, neighbors = 2 * 11.6 / 8, 2 * 5 / 8
    lam, rho = penalty_pairs(graph)
    assert lam.shape == rho.shape == (20,)
    pairs = [(x * 8 / degree, x * g * 8 / neighbors) for x in LAMBDAS for g in GAMMAS]
    assert_allclose(np.column_stack([lam, rho]), pairs)


def test_equal_weights_of_one_give_the_papers_numbers():
    graph = gr.Graph.from_edges([(v, v + 1) for v in range(9)])
    lam, rho = penalty_pairs(graph)
    lambdas, gammas = np.repeat(LAMBDAS, 4) / graph.mean_degree, np.tile(GAMMAS, 5)
    assert_allclose(lam / 10, lambdas)
    assert_allclose(rho / 10, lambdas * gammas)
    assert_array_equal(paper_gammas(lam, rho, 10), gammas)


def test_beyond_the_largest_selection_nothing_depends_on_the_number_of_nodes(monkeypatch):
    monkeypatch.setattr(grids, "SELECTION_NODES", 30)
    rings = [gr.Graph.from_edges([(v, (v + 1) % n) for v in range(n)]) for n in (30, 50)]
    assert_allclose(penalty_pairs(rings[0]), penalty_pairs(rings[1]))
    assert_allclose(penalty_pairs(gr.Graph.empty(50))[1], 30 * GAMMAS)


def test_ridges_of_a_given_graph_penalty():
    graph = uneven()
    unit = graph.mean_degree / graph.mean_neighbors
    lam, rho = penalty_pairs(graph, graph_penalty=0.7)
    assert_allclose(lam, np.full(4, 0.7))
    assert_allclose(rho, GAMMAS * 0.7 * unit)
    lam, rho = penalty_pairs(graph, graph_penalty=[2.0, 0.7])
    assert_allclose(lam, np.repeat([0.7, 2.0], 4))
    assert_allclose(rho, np.concatenate([GAMMAS * 0.7 * unit, GAMMAS * 2.0 * unit]))


def test_ridges_without_coupling():
    lam, rho = penalty_pairs(uneven(), graph_penalty=0)
    assert_array_equal(lam, np.zeros(4))
    assert_allclose(rho, 8 * GAMMAS)
    for penalty in (None, 0.0, 3.0, [0.1, 1.0]):
        lam, rho = penalty_pairs(gr.Graph.empty(8), graph_penalty=penalty)
        assert_array_equal(lam, np.zeros(4))
        assert_allclose(rho, 8 * GAMMAS)
    assert_allclose(paper_gammas(lam, rho, 8), GAMMAS)
    # Beside coupled candidates: each with ridges of its own.
    lam, rho = penalty_pairs(uneven(), graph_penalty=[0.0, 2.0])
    assert_allclose(rho[lam == 0], 8 * GAMMAS)
    assert_allclose(rho[lam == 2], GAMMAS * 2 * 11.6 / 5)


def test_given_values_are_used_as_they_are():
    lam, rho = penalty_pairs(uneven(), graph_penalty=[3.0, 0.5], ridge=[0.2, 0.1])
    assert_array_equal(lam, [0.5, 0.5, 3.0, 3.0])
    assert_array_equal(rho, [0.1, 0.2, 0.1, 0.2])
    lam, rho = penalty_pairs(uneven(), ridge=0.3)
    assert len(lam) == 5
    assert_array_equal(rho, np.full(5, 0.3))


@pytest.mark.parametrize("scale", [1e-12, 0.3, 1e9])
def test_the_unit_of_the_weights_scales_graph_penalties_and_nothing_else(scale):
    lam, rho = penalty_pairs(uneven())
    scaled, ridges = penalty_pairs(uneven(scale))
    assert_allclose(scaled * scale, lam)
    assert_allclose(ridges, rho)
    _, kept = penalty_pairs(uneven(scale), graph_penalty=0.7 / scale)
    assert_allclose(kept, penalty_pairs(uneven(), graph_penalty=0.7)[1])


@pytest.mark.parametrize("scale", [1e-25, 1e-6, 1e5, 1e25])
def test_the_unit_of_the_weights_changes_no_fit(scale):
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        list(rng.normal(size=(8, 20))), list(rng.normal(size=(8, 20)) + 1)
    )
    one, other = (
        gr.GRULSIF(random_state=0, cv=2, tol=1e-10).fit(samples, graph)
        for graph in (uneven(), uneven(scale))
    )
    assert other.ridge_ == pytest.approx(one.ridge_)
    assert other.graph_penalty_ * scale == pytest.approx(one.graph_penalty_)
    assert_allclose(other.coef_, one.coef_, atol=1e-6)


@pytest.mark.parametrize(
    ("penalties", "message"),
    [
        ({"graph_penalty": -1.0}, "graph_penalty=-1"),
        ({"graph_penalty": float("inf")}, "graph_penalty=inf"),
        ({"ridge": 0.0}, "ridge=0"),
        ({"ridge": []}, "neither a number nor a sequence"),
        ({"graph_penalty": False}, "graph_penalty=False"),
    ],
)
@pytest.mark.parametrize("graph", [uneven(), gr.Graph.empty(8)], ids=["edges", "no edges"])
def test_bad_penalties_are_named(graph, penalties, message):
    with pytest.raises(InputError, match=message):
        penalty_pairs(graph, **penalties)


def test_the_middle_of_the_candidates():
    """The middle ridge is one of those that go with the middle graph penalty."""
    lam, rho = penalty_pairs(uneven())
    found = Candidates(np.array([0.5, 1.0, 2.0]), lam, rho)
    assert found.middle == (1.0, lam[8], rho[10])
    assert len(found) == 60
    own = Candidates(
        np.ones(1), np.array([1.0, 1.0, 1.0, 2.0, 2.0]), np.array([5.0, 6.0, 7.0, 8.0, 9.0])
    )
    assert own.middle == (1.0, 2.0, 9.0)


class TestGridPartner:
    """The column that forms a full grid with another, for notes and heat maps."""

    @staticmethod
    def table(graph, **given):
        lam, rho = penalty_pairs(graph, **given)
        gammas = paper_gammas(lam, rho, graph.n_nodes)
        return {"graph_penalty": lam, "ridge": rho, "gamma": gammas}

    def partner(self, graph, **given):
        return grid_partner(self.table(graph, **given), "graph_penalty", ("ridge", "gamma"))

    def test_ridges_that_follow_the_graph_penalty(self):
        assert self.partner(uneven()) == "gamma"
        assert self.partner(uneven(), graph_penalty=[0.1, 1.0]) == "gamma"

    def test_ridges_that_are_given(self):
        assert self.partner(uneven(), ridge=[0.1, 1.0]) == "ridge"
        assert self.partner(uneven(), graph_penalty=[0.1, 1.0], ridge=0.3) == "ridge"

    def test_one_graph_penalty(self):
        assert self.partner(uneven(), graph_penalty=1.0) == "ridge"
        assert self.partner(gr.Graph.empty(5)) == "ridge"

    def test_every_bandwidth_repeats_the_pairs(self):
        table = {name: np.tile(column, 3) for name, column in self.table(uneven()).items()}
        assert grid_partner(table, "graph_penalty", ("ridge", "gamma")) == "gamma"

    def test_columns_that_are_missing_and_tables_without_a_grid(self):
        table = self.table(uneven())
        del table["gamma"]
        assert grid_partner(table, "graph_penalty", ("ridge", "gamma")) == "ridge"
        ragged = {"a": np.array([1, 1, 2]), "b": np.array([1, 2, 1]), "c": np.array([3, 4, 4])}
        assert grid_partner(ragged, "a", ("b", "c")) == "c"


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_a_graph_penalty_is_judged_in_units_of_the_mean_degree(scale):
    graph = uneven(scale)
    fine = 1e3 / graph.mean_degree
    assert penalty_pairs(graph, fine)[0][0] == pytest.approx(fine)
    for extreme in (1e17, 1e-17):
        with pytest.raises(InputError, match="times the mean degree"):
            penalty_pairs(graph, extreme / graph.mean_degree)


def test_how_many_nodes_a_selection_uses():
    assert selection_size(None, 500) == 500
    assert selection_size(None, 100_000) == 2000
    assert selection_size("all", 100_000) == 100_000
    assert candidates_of([2.0, 1.0], "bandwidth", np.ones(1)).tolist() == [1.0, 2.0]


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8, unique=True).map(sorted))
def test_every_bandwidth_is_close_to_one_that_stays(widths):
    kept = apart(np.array(widths))
    assert set(kept) <= set(widths)
    assert {widths[0], widths[-1]} <= set(kept)
    ratios = np.abs(np.log(np.divide.outer(widths, kept)))
    assert (ratios.min(axis=1) <= np.log(APART) * (1 + 1e-9)).all()
    inner = kept[1:] / kept[:-1]
    assert len(kept) == 2 or (inner >= APART).all()


def test_only_the_graph_ratio_thins_the_bandwidths():
    """With many observations the medians of the nodes are alike."""
    rng = np.random.default_rng(0)
    samples = tuple([rng.normal(size=400) for _ in range(4)] for _ in range(2))
    tried = {}
    for kind in (gr.GraphRatio, gr.GRULSIF):
        model = kind(random_state=0).fit(samples, gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)]))
        tried[kind] = np.unique(model.cv_results_["bandwidth"])
    grid = tried[gr.GRULSIF]
    assert len(grid) == 5
    assert grid[-1] < APART**2 * grid[0]
    assert set(tried[gr.GraphRatio]) & set(grid) == {grid[0], grid[-1]}
