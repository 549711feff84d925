"""Selection on a part of a large graph."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.selection.patches import N_PATCHES, choose_patches


def plane(n_nodes=400, seed=0):
    return gr.Graph.from_coordinates(np.random.default_rng(seed).random((n_nodes, 2)), k=5)


def test_patches_are_connected_and_keep_their_degrees():
    graph = plane()
    chosen = choose_patches(graph, 120, np.ones(400, dtype=bool), np.random.default_rng(0))
    part = graph.subset(chosen)
    assert part.n_nodes == 120
    assert part.n_components <= N_PATCHES
    assert part.mean_degree > 0.75 * graph.mean_degree
    alone = np.random.default_rng(0).choice(400, 120, replace=False)
    assert graph.subset(alone).mean_degree < 0.5 * graph.mean_degree


def test_patches_begin_where_they_may_and_move_on_where_a_component_ends():
    pairs = gr.Graph.from_edges([(2 * i, 2 * i + 1) for i in range(50)])
    start = np.arange(100) >= 40
    chosen = choose_patches(pairs, 30, start, np.random.default_rng(0))
    assert len(chosen) == 30
    assert (chosen >= 40).all()
    few = choose_patches(pairs, 30, np.arange(100) < 4, np.random.default_rng(0))
    assert few.tolist() == [0, 1, 2, 3]


def fitted(n_nodes=300, **params):
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, n_nodes, 8, 1))
    target += (np.arange(n_nodes) % 2)[:, None, None]
    model = gr.GRULSIF(bandwidth=1.0, max_atoms=6, cv=2, random_state=0, **params)
    return model.fit((reference, target), plane(n_nodes))


def test_penalties_are_the_same_on_a_part(monkeypatch):
    """They act on a node in the same way whatever the number of nodes."""
    seen = []
    from graphratio.moments.objective import GraphObjective

    plain = GraphObjective.of

    def of(moments, laplacian, lam, rho):
        seen.append((moments.second.shape[0], np.unique(lam), np.unique(rho)))
        return plain(moments, laplacian, lam, rho)

    monkeypatch.setattr(GraphObjective, "of", of)
    model = fitted(selection_nodes=60, graph_penalty=[0.3, 3.0], ridge=[0.03, 0.3])
    n_nodes, lam, rho = seen[0]
    assert n_nodes == 60
    assert_allclose(lam, [0.3, 3.0])
    assert_allclose(rho, [0.03, 0.3])
    assert_allclose(np.unique(model.cv_results_["graph_penalty"]), [0.3, 3.0])
    assert model.graph_penalty_ in (0.3, 3.0)
    assert model.n_selected_on_ == 60
    assert any("selected on 60 of 300 nodes" in note for note in model.notes_)


def test_all_nodes_are_the_default_up_to_the_limit(monkeypatch):
    assert fitted().n_selected_on_ == 300
    monkeypatch.setattr("graphratio.selection.grids.SELECTION_NODES", 100)
    large = fitted()
    assert large.n_selected_on_ == 100
    # The paper's grid at 100 nodes.
    expected = 100 * np.array([1e-3, 1e-2, 0.1, 1, 10]) / large.graph_.mean_degree
    assert_allclose(np.unique(large.cv_results_["graph_penalty"]), expected)
    everything = fitted(selection_nodes="all")
    assert everything.n_selected_on_ == 300
    assert not any("patches" in note for note in everything.notes_)


@pytest.mark.parametrize("value", ["some", 0, 1.5])
def test_bad_selection_nodes(value):
    with pytest.raises(InputError, match="selection_nodes"):
        fitted(selection_nodes=value)
