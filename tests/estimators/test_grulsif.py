"""What GRULSIF and POOL estimate: reductions to known answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.problems import GRAPHS

import graphratio as gr
from graphratio.solvers.path import SOLVERS


def make_data(n_nodes=6, n=25, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=(n_nodes, n, 1))
    target = rng.normal(size=(n_nodes, n + 5, 1)) + shift
    return reference, target


GIVEN = dict(bandwidth=1.0, graph_penalty=0.3, ridge=0.03)
ATOMS = np.linspace(-3, 4, 15)[:, None]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_agree_through_the_public_interface(name, solver):
    graph = gr.Graph.from_adjacency(GRAPHS[name])
    tol = 1e-11 if solver == "cbcgd" else 1e-9
    model = gr.GRULSIF(**GIVEN, dictionary=ATOMS, solver=solver, tol=tol, max_iter=10**6)
    direct = gr.GRULSIF(**GIVEN, dictionary=ATOMS, solver="direct")
    x = np.linspace(-3, 4, 30)
    one = model.fit(make_data(), graph).predict(x, clip=False)
    other = direct.fit(make_data(), graph).predict(x, clip=False)
    assert_allclose(one, other, atol=1e-7)
    assert model.solution_.converged
    assert solver == "auto" or model.solution_.method == solver


@pytest.mark.parametrize(("name", "penalty"), [("edgeless", 6.0), ("path", 0.0)])
def test_no_edges_or_no_graph_penalty_is_pool(name, penalty):
    graph = gr.Graph.from_adjacency(GRAPHS[name])
    pool = gr.Pool(bandwidth=1.0, ridge=0.6).fit(make_data(), graph)
    for solver in SOLVERS:
        model = gr.GRULSIF(
            bandwidth=1.0, graph_penalty=penalty, ridge=0.6, solver=solver, tol=1e-10
        )
        model.fit(make_data(), graph)
        assert_allclose(model.divergence_, pool.divergence_, rtol=1e-7)
        assert model.graph_penalty_ == 0
        assert model.paper_penalties_ == pytest.approx({"lambda": 1.0, "gamma": 0.1})
    assert pool.graph_penalty_ == 0


def test_penalties_in_the_letters_of_the_paper():
    graph = gr.Graph.from_adjacency(GRAPHS["path"])
    model = gr.GRULSIF(**GIVEN).fit(make_data(), graph)
    assert model.paper_penalties_ == pytest.approx({"lambda": 0.05, "gamma": 0.1})


def test_pool_is_its_closed_form():
    reference, target = make_data()
    model = gr.Pool(alpha=0.2, bandwidth=1.0, ridge=0.6, dictionary=ATOMS)
    model.fit((reference, target))
    for v in range(6):
        ref, tgt = model.features_(reference[v]), model.features_(target[v])
        second = 0.8 * ref.T @ ref / len(ref) + 0.2 * tgt.T @ tgt / len(tgt)
        theta = np.linalg.solve(second + 0.6 * np.eye(len(second)), tgt.mean(axis=0))
        assert_allclose(model.coef_[v], theta, atol=1e-10)


def test_pool_keeps_the_graph_for_tables_only():
    graph = gr.Graph.from_adjacency(GRAPHS["star"])
    with_graph = gr.Pool(bandwidth=1.0, ridge=0.6).fit(make_data(), graph)
    without = gr.Pool(bandwidth=1.0, ridge=0.6).fit(make_data())
    assert_allclose(with_graph.divergence_, without.divergence_)
    assert with_graph.to_frame()["degree"].tolist() == [5, 1, 1, 1, 1, 1]


def test_components_fitted_together_equal_components_fitted_apart():
    reference, target = make_data()
    together = gr.GRULSIF(**GIVEN, dictionary=ATOMS, solver="direct")
    together.fit((reference, target), gr.Graph.from_adjacency(GRAPHS["disconnected"]))
    for part in (slice(0, 3), slice(3, 6)):
        # Nothing depends on the number of nodes.
        half = gr.GRULSIF(**GIVEN, dictionary=ATOMS, solver="direct")
        adjacency = GRAPHS["disconnected"][part, part]
        half.fit((reference[part], target[part]), gr.Graph.from_adjacency(adjacency))
        assert_allclose(half.divergence_, together.divergence_[part], atol=1e-9)


def test_strong_graph_penalty_with_a_fixed_ridge_gives_consensus():
    reference, target = make_data(shift=np.arange(6)[:, None, None] / 3)
    ridge = 6e-3
    graph = gr.Graph.from_adjacency(GRAPHS["path"])
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=6e4, ridge=ridge, dictionary=ATOMS).fit(
        (reference, target), graph
    )
    spread = np.abs(model.coef_ - model.coef_.mean(axis=0)).max()
    assert spread < 1e-4 * np.abs(model.coef_).max()
    ref, tgt = (model.features_(x.reshape(-1, 1)) for x in (reference, target))
    second = 0.9 * ref.T @ ref / len(ref) + 0.1 * tgt.T @ tgt / len(tgt)
    consensus = np.linalg.solve(second + ridge * np.eye(len(second)), tgt.mean(axis=0))
    assert_allclose(
        model.predict([0.5], node=0), model.features_(np.array([[0.5]])) @ consensus, rtol=1e-4
    )


def test_shrinking_towards_one_leaves_unchanged_nodes_alone():
    same = np.random.default_rng(0).normal(size=(4, 30, 1))
    graph = gr.Graph.from_adjacency(np.ones((4, 4)) - np.eye(4))
    model = gr.GRULSIF(**GIVEN, prior_ratio=1.0).fit((same, same), graph)
    assert_allclose(model.predict(np.linspace(-2, 2, 9)), 1.0, atol=1e-12)
    assert_allclose(model.divergence_, 0.0, atol=1e-12)
    towards_zero = gr.GRULSIF(**GIVEN).fit((same, same), graph)
    assert towards_zero.predict([4.0]).max() < 0.5


def test_negative_divergences_are_reported_as_they_are():
    reference, target = make_data(n=4)
    model = gr.Pool(bandwidth=1.0, ridge=60.0).fit((reference, target))
    assert (model.divergence_ < 0).all()


def test_a_good_graph_beats_no_graph():
    errors = {}
    scenario = gr.datasets.make_scenario("Ia", n_nodes=40, n=50, random_state=0)
    for kind in (gr.GRULSIF, gr.Pool):
        model = kind(random_state=0).fit(scenario.samples, scenario.graph)
        found = scenario.mean_squared_error(model.predict, 0.1, 2000, random_state=1)
        errors[kind] = found.mean()
    assert errors[gr.GRULSIF] < 0.8 * errors[gr.Pool]


def test_error_falls_with_the_sample_size():
    errors = []
    for n in (25, 100, 400):
        scenario = gr.datasets.make_scenario("Ia", n_nodes=20, n=n, random_state=0)
        model = gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)
        found = scenario.mean_squared_error(model.predict, 0.1, 2000, random_state=1)
        errors.append(found.mean())
    slope = np.polyfit(np.log([25, 100, 400]), np.log(errors), 1)[0]
    assert slope < -0.3


def test_adaptive_edges_lower_the_error_and_are_kept(tmp_path):
    scenario = gr.datasets.make_scenario("Ia", n_nodes=60, n=50, random_state=1)
    plain, adaptive = (
        gr.GRULSIF(random_state=0, prior_ratio=1.0, adaptive=adaptive).fit(
            scenario.samples, scenario.graph
        )
        for adaptive in (False, True)
    )
    errors = [
        scenario.mean_squared_error(model.predict, 0.1, 1000, random_state=0).mean()
        for model in (plain, adaptive)
    ]
    assert errors[1] < 0.9 * errors[0]
    assert plain.graph_learned_ is plain.graph_
    assert adaptive.n_rounds_ >= 1
    across = scenario.groups[:, np.newaxis] != scenario.groups
    edges = scenario.graph.adjacency.toarray() > 0
    learned = adaptive.graph_learned_.adjacency.toarray()
    assert learned[edges & across].mean() < 0.5 * learned[edges & ~across].mean()
    adaptive.save(tmp_path / "model")
    restored = gr.load(tmp_path / "model").graph_learned_
    np.testing.assert_allclose(restored.adjacency.toarray(), learned)
