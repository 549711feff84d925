"""Sizes with what is borrowed: what an estimate rests on."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.estimators import borrowing
from graphratio.estimators.borrowing import Borrowing


def uneven(n_nodes=24, seed=0, n_target=None):
    """Nodes with their own location, scale and sizes, on two components."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(10, 80, n_nodes)
    reference = [rng.normal(v % 3, 1 + v % 2, size) for v, size in enumerate(sizes)]
    target = [rng.normal(0, 1, size) for size in rng.integers(10, 80, n_nodes)]
    edges = [(i, i + 1) for i in range(n_nodes - 1) if i != 9] + [(0, 5), (12, 20)]
    return (reference, target), gr.Graph.from_edges(edges, nodes=range(n_nodes))


def fitted(samples, graph, graph_penalty=0.24):
    model = gr.GRULSIF(bandwidth=1.5, graph_penalty=graph_penalty, ridge=1e-3 * graph_penalty)
    return model.fit(samples, graph)


def second_moments(model, samples):
    """Blocks A_v, and the covariance of the features pooled over nodes."""
    data = model._align(samples)
    psi = model.features_(data.values)
    blocks = []
    for v in range(data.n_nodes):
        x, y = (psi[(data.node_index == v) & (data.is_target == side)] for side in (False, True))
        blocks.append(0.9 * x.T @ x / len(x) + 0.1 * y.T @ y / len(y))
    blocks = np.array(blocks)
    return blocks, blocks.mean(axis=0) - np.outer(psi.mean(axis=0), psi.mean(axis=0))


def dense_sizes(model, samples):
    """The definition from the features on, with the inverse of every direction's system formed."""
    lap, n_nodes = model.graph_.laplacian.toarray(), len(model.nodes_)
    lam, rho = model.graph_penalty_, model.ridge_
    blocks, covariance = second_moments(model, samples)
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1][:8], vectors[:, ::-1][:, :8]
    shares = np.cumsum(values) / np.trace(covariance)
    used = min(int((shares < 0.9).sum()) + 1, 8)
    eps = 1e-3 * np.trace(covariance)
    worth = np.zeros((n_nodes, n_nodes))
    for j in range(used):
        earth = []
        for block in blocks:
            among = vectors.T @ block @ vectors + eps * np.eye(vectors.shape[1])
            rest = np.delete(np.arange(len(among)), j)
            known = among[j, rest] @ np.linalg.solve(among[np.ix_(rest, rest)], among[rest, j])
            earth.append(among[j, j] - known - eps + rho)
        inverse = np.linalg.inv(np.diag(earth) + lam * lap)
        worth += values[j] / values[:used].sum() * inverse / np.diag(inverse)[:, np.newaxis]
    return worth, worth @ model.sizes_


def test_against_dense_computation():
    samples, graph = uneven()
    model = fitted(samples, graph)
    worth, sizes = dense_sizes(model, samples)
    np.testing.assert_allclose(model.sizes_with_borrowed(), sizes, rtol=1e-6)
    table = model.borrowed(3)
    np.testing.assert_allclose(table["worth"], worth[3, list(table["node"])], rtol=1e-5)
    np.testing.assert_allclose(table["n_reference"].sum(), sizes[3, 0], rtol=1e-3)
    assert table.set_index("node").loc[3, "worth"] == pytest.approx(1.0)
    assert table["share"].is_monotonic_decreasing
    assert set(table["node"]) <= set(range(10))


def test_between_own_sample_and_component_and_growing_with_the_penalty():
    samples, graph = uneven()
    previous = None
    for penalty in [2.4e-5, 2.4e-3, 0.24, 24.0, 2400.0]:
        sizes = fitted(samples, graph, penalty).sizes_with_borrowed()
        model_sizes = np.column_stack([[len(part) for part in side] for side in samples])
        totals = np.array([model_sizes[graph.components == c].sum(axis=0) for c in range(2)])
        assert (sizes >= model_sizes).all()
        assert (sizes <= totals[graph.components]).all()
        if previous is not None:
            assert (sizes >= previous - 1e-9).all()
        previous = sizes
    # With a very strong penalty a component acts as one node.
    np.testing.assert_allclose(sizes, totals[graph.components], rtol=0.1)


@pytest.mark.parametrize("kind", [gr.GRULSIF, gr.Pool])
def test_without_edges_only_the_own_sample(kind):
    samples, graph = uneven()
    own = np.column_stack([[len(part) for part in side] for side in samples])
    model = kind(bandwidth=1.5, ridge=0.024).fit(samples, None if kind is gr.GRULSIF else graph)
    np.testing.assert_array_equal(model.sizes_with_borrowed(), own)
    np.testing.assert_allclose(model.to_frame()["borrowed_share"], 0.0)


def coupled_sizes(model, samples):
    """The same directions and weights, from the inverse of the whole system of the fit."""
    blocks, covariance = second_moments(model, samples)
    n_nodes, m = blocks.shape[:2]
    lap = model.graph_.laplacian.toarray()
    penalty = model.graph_penalty_ * lap + model.ridge_ * np.eye(n_nodes)
    system = np.kron(penalty, np.eye(m))
    for v in range(n_nodes):
        system[v * m : (v + 1) * m, v * m : (v + 1) * m] += blocks[v]
    inverse = np.linalg.inv(system).reshape(n_nodes, m, n_nodes, m)
    vectors = np.linalg.eigh(covariance)[1]
    worth = np.zeros((n_nodes, n_nodes))
    for weight, c in zip(model.direction_weights_, vectors.T[::-1], strict=False):
        along = np.einsum("vaub,a,b->vu", inverse, c, c)
        worth += weight * along / np.diag(along)[:, np.newaxis]
    return worth @ model.sizes_


@pytest.mark.parametrize("name", ["Ia", "Ib", "IIa", "IIb"])
def test_near_the_coupled_operator(name):
    """What is left out, directions that talk to each other between nodes, matters little."""
    scenario = make_scenario(name, n_nodes=40, n=50, random_state=1)
    for penalty in (0.4, 4.0):
        model = gr.GRULSIF(
            prior_ratio=1.0,
            bandwidth=2.0,
            graph_penalty=penalty,
            ridge=1e-3 * penalty,
            max_atoms=12,
        ).fit(scenario.samples, scenario.graph)
        coupled, ours = coupled_sizes(model, scenario.samples), model.sizes_with_borrowed()
        assert np.corrcoef(coupled[:, 0], ours[:, 0])[0, 1] > 0.9
        assert 0.7 < (ours / coupled).min() <= (ours / coupled).max() < 1.2


def test_random_projections_agree_with_the_inverse(monkeypatch):
    rng = np.random.default_rng(0)
    graph = gr.Graph.from_coordinates(rng.uniform(size=(300, 2)), k=5)
    directions = (np.array([0.7, 0.3]), rng.uniform(0.1, 1, (300, 2)))
    sizes = rng.integers(20, 60, (300, 2))
    exact, near = Borrowing(directions, graph, 0.3, 3e-4, sizes).all_nodes()
    monkeypatch.setattr(borrowing, "LARGEST_INVERSE", 10)
    rough, rough_near = Borrowing(directions, graph, 0.3, 3e-4, sizes).all_nodes()
    relative = rough / exact - 1
    assert np.abs(relative).max() < 0.25
    assert np.abs(relative).mean() < 0.06
    assert (rough >= sizes).all()
    np.testing.assert_allclose(rough_near.toarray(), near.toarray(), atol=0.25)


def test_a_node_without_a_sample_borrows_everything():
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        {"a": rng.normal(size=30), "b": rng.normal(size=40), "c": rng.normal(size=9)},
        {"a": rng.normal(size=30), "b": rng.normal(size=40)},
    )
    graph = gr.Graph.from_edges([("a", "b"), ("b", "c")])
    table = fitted(samples, graph, 0.03).to_frame().set_index("node")
    assert table.loc["c", "borrowed_share"] == 1.0
    assert 0 < table.loc["c", "n_target_with_borrowed"] <= 70


def test_kept_in_files(tmp_path):
    samples, graph = uneven()
    model = fitted(samples, graph)
    model.save(tmp_path / "model.grz")
    again = gr.load(tmp_path / "model.grz")
    np.testing.assert_array_equal(again.sizes_with_borrowed(), model.sizes_with_borrowed())


def test_a_node_without_data_beside_a_single_observation():
    reference = {"a": [[1.5, 1.4]], "b": np.empty((0, 2))}
    target = {"a": [[4.5, 2.6]], "b": np.empty((0, 2))}
    graph = gr.Graph.from_edges([("a", "b", 0.25)])
    model = gr.GraphRatio(random_state=0).fit((reference, target), graph)
    np.testing.assert_array_equal(model.direction_moments_[1], 0.0)
    assert np.isfinite(model.sizes_with_borrowed()).all()


def test_hubs_of_large_graphs_cost_no_more_than_their_edges():
    """Only neighbours are looked at beyond 800 nodes: pairs with a common hub are too many."""
    rng = np.random.default_rng(0)
    n_nodes = 900
    star = gr.Graph.from_edges([(0, v) for v in range(1, n_nodes)])
    data = (list(rng.normal(size=(n_nodes, 4))), list(rng.normal(size=(n_nodes, 4))))
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.9, ridge=0.09, max_atoms=5)
    _, worth = model.fit(data, star)._borrowing.all_nodes()
    assert worth.nnz == 2 * star.n_edges
