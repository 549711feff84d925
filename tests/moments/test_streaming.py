"""Large problems: features in blocks, moments in single precision, answers in double."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import graphratio as gr
from graphratio._utils.arrays import node_ranges
from graphratio.data.samples import NodeSamples
from graphratio.exceptions import InputError
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import assign_folds
from graphratio.moments.memory import FitPlan, StreamedData, parse_memory, plan_fit
from graphratio.moments.node_moments import node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.selection.cross_validation import Coupling, Split, select
from graphratio.selection.grids import Candidates
from graphratio.solvers.path import solve, solve_streamed


def fixed(n_nodes=40, **others):
    """The paper's lambda 1e-3 and gamma 1e-2."""
    penalty = 1e-3 * n_nodes
    return {"bandwidth": 1.0, "graph_penalty": penalty, "ridge": 1e-2 * penalty, **others}


def ragged_problem(n_nodes=40, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 12, size=(n_nodes, 2))
    sizes[3, 0] = 0
    samples = NodeSamples.from_arrays(
        [rng.normal(size=(n, 2)) for n in sizes[:, 0]],
        [rng.normal(0.5, 1, size=(n, 2)) for n in sizes[:, 1]],
    )
    graph = gr.Graph.from_coordinates(rng.random((n_nodes, 2)), k=3)
    return samples, graph, sizes


def streamed(samples, sizes, n_atoms=8, prior=1.0):
    features = NystromMap.build(get_kernel("gaussian"), samples.values[:n_atoms], 1.0)
    return StreamedData(features, samples, sizes, 0.2, prior)


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_moments_in_blocks_are_the_moments(factored, single, monkeypatch):
    monkeypatch.setattr("graphratio.moments.memory.STREAM_ROWS", 50)
    samples, _, sizes = ragged_problem()
    data = streamed(samples, sizes)
    plain = node_moments(data.features(samples.values), sizes, 0.2, 1.0)
    found = data.moments(FitPlan(True, factored, single, 0))
    assert found.second.dtype == np.float64
    tolerance = 1e-6 if single else 1e-13
    assert_allclose(found.second.dense(), plain.second.dense(), atol=tolerance)
    assert_allclose(found.second.mean(), plain.second.mean(), atol=tolerance)
    assert_allclose(found.first, plain.first, atol=1e-13)
    assert (found.complete == plain.complete).all()
    theta = np.random.default_rng(1).normal(size=(40, 3, 8))
    assert_allclose(found.second.apply(theta), plain.second.apply(theta), atol=20 * tolerance)
    assert_allclose(found.second.quadratic(theta), plain.second.quadratic(theta), atol=1e-4)


def test_the_mean_from_a_part_of_the_rows_is_close(monkeypatch):
    samples, _, sizes = ragged_problem(n_nodes=400)
    data = streamed(samples, sizes)
    second = data.moments(FitPlan(True, True, False, 0)).second
    exact = second.mean()
    assert_allclose(second.mean(rough=True), exact, atol=1e-13)
    monkeypatch.setattr("graphratio.moments.second_moments.ROUGH_ROWS", 1500)
    rough = second.mean(rough=True)
    assert 0 < np.linalg.norm(rough - exact) < 0.1 * np.linalg.norm(exact)


def test_many_observations_rotate_the_features_and_change_no_estimate(monkeypatch):
    samples, graph, _ = ragged_problem()
    plain = gr.GRULSIF(**fixed(max_atoms=10, tol=1e-10)).fit(samples, graph)
    monkeypatch.setattr("graphratio.estimators.dictionary_based._MANY_OBSERVATIONS", 0)
    rotated = gr.GRULSIF(**fixed(max_atoms=10, tol=1e-10)).fit(samples, graph)
    assert np.abs(rotated.coef_ - plain.coef_).max() > 1e-3
    x = np.random.default_rng(1).normal(size=(20, 2))
    assert_allclose(rotated.predict(x, clip=False), plain.predict(x, clip=False), atol=1e-7)


def test_second_pass_gives_exact_products_and_fitted_values(monkeypatch):
    monkeypatch.setattr("graphratio.moments.memory.STREAM_ROWS", 50)
    samples, _, sizes = ragged_problem()
    data = streamed(samples, sizes)
    theta = np.random.default_rng(1).normal(size=(40, 8))
    product, fitted = data.apply(theta)
    psi = data.features(samples.values)
    plain = node_moments(psi, sizes, 0.2)
    assert_allclose(product, plain.second.apply(theta[:, None])[:, 0], atol=1e-13)
    assert_allclose(fitted, (psi * theta[samples.node_index]).sum(axis=1), atol=1e-12)


def test_single_precision_moments_still_give_the_answer_in_double():
    """The penalties are so weak that single precision alone would be visibly off."""
    samples, graph, sizes = ragged_problem()
    data = streamed(samples, sizes, n_atoms=20)
    exact = node_moments(data.features(samples.values), sizes, 0.2, 1.0)
    rough = data.moments(FitPlan(True, False, True, 0))
    assert rough.second.compact
    penalties = (4e-5, 4e-8)
    truth = GraphObjective.of(exact, graph.laplacian, *penalties)
    objective = GraphObjective.of(rough, graph.laplacian, *penalties)
    unchecked = solve(objective, graph, "pcg", 1e-9, 500)
    assert truth.residual(unchecked.theta)[0] > 1e-8
    solution, _ = solve_streamed(objective, data, graph, "pcg", 1e-9, 2000)
    assert solution.converged
    assert truth.residual(solution.theta)[0] <= 1e-9 * (1 + 1e-3)
    assert solution.residual == pytest.approx(float(truth.residual(solution.theta)[0]), rel=1e-2)


def test_a_large_fit_agrees_with_the_plain_path(monkeypatch):
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 1200, 15, 2))
    graph = gr.Graph.from_coordinates(rng.random((1200, 2)), k=5)
    settings = fixed(1200, max_atoms=20, tol=1e-8)
    plain = gr.GRULSIF(**settings).fit((reference, target), graph)
    monkeypatch.setattr("graphratio.moments.memory.KEEP_ALL", 0)
    monkeypatch.setattr("graphratio.moments.memory.KEEP_DOUBLE", 0)
    large = gr.GRULSIF(**settings).fit((reference, target), graph)
    assert large.solution_.residual <= 1e-8
    scale = np.linalg.norm(plain.coef_)
    assert np.linalg.norm(large.coef_ - plain.coef_) <= 1e-5 * scale
    assert_allclose(large.divergence_, plain.divergence_, atol=1e-6)
    # And both with the eigenbasis of the whole graph, which is for smaller ones.
    monkeypatch.setattr("graphratio.solvers.bases.LARGEST_SPECTRUM", 2000)
    spectral = gr.GRULSIF(**settings).fit((reference, target), graph)
    assert np.linalg.norm(large.coef_ - spectral.coef_) <= 1e-5 * scale


def test_a_cap_is_respected_by_keeping_less_and_refused_when_impossible():
    sizes = np.full((4_000, 2), 50)
    free = plan_fit(sizes, 30, 2, 12_000)
    assert not free.streamed
    streaming = plan_fit(sizes, 30, 2, 12_000, cap=free.n_bytes - 1)
    assert streaming.streamed
    assert streaming.n_bytes < free.n_bytes
    least = plan_fit(sizes, 30, 2, 12_000, cap=streaming.n_bytes - 1)
    assert least.single
    with pytest.raises(InputError, match=r"predicted to take .* GiB, more than .*max_atoms"):
        plan_fit(sizes, 30, 2, 12_000, cap=least.n_bytes - 1)


def test_the_cap_is_checked_before_the_work_starts():
    samples, graph, _ = ragged_problem()
    with pytest.raises(InputError, match="reading the samples is predicted"):
        gr.GRULSIF(max_memory="1MB").fit(samples, graph)
    model = gr.GRULSIF(**fixed(max_atoms=5, max_memory="1GB")).fit(samples, graph)
    assert model.solution_.converged
    folds = assign_folds(samples, 2, np.random.default_rng(0))
    with pytest.raises(InputError, match="the selection is predicted to take"):
        select(
            Split(
                samples=samples,
                folds=folds,
                n_folds=2,
                kernel=get_kernel("gaussian"),
                dictionary=samples.values[:10],
                alpha=0.1,
                prior_ratio=0.0,
                dtype=np.float32,
            ),
            Coupling(graph),
            Candidates(np.ones(1), np.full(2, 40.0), np.array([4.0, 40.0])),
            max_memory=10**6,
        )


@pytest.mark.parametrize("text", ["much", "4 TiB of it", "", "1.2.3GB", True, 0, -5, 2.5])
def test_amounts_that_cannot_be_read(text):
    with pytest.raises(InputError, match="max_memory"):
        parse_memory(text)


def test_ranges_of_nodes_cover_all_of_them_once():
    sizes = np.random.default_rng(0).integers(0, 9, size=(50, 2))
    ranges = node_ranges(sizes, 20)
    assert [v for part in ranges for v in range(part.start, part.stop)] == list(range(50))
    assert max(sizes[part].sum() for part in ranges) <= 20 + 16


def test_the_prediction_bounds_what_is_allocated():
    """Traced allocations of a fit that streams, beside what was predicted for it."""
    import tracemalloc

    from graphratio.moments import memory

    rng = np.random.default_rng(0)
    n_nodes = 3000
    reference, target = rng.normal(size=(2, n_nodes, 20, 2))
    graph = gr.Graph.from_coordinates(rng.random((n_nodes, 2)), k=5)
    sizes = np.full((n_nodes, 2), 20)
    plans = [plan_fit(sizes, 40, 2, graph.n_edges)]
    cap = plans[0].n_bytes - 1
    model = gr.GRULSIF(**fixed(n_nodes, max_atoms=40, max_memory=cap))
    tracemalloc.start()
    model.fit((reference, target), graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    predicted = plan_fit(sizes, model.n_components_, 2, graph.n_edges, cap).n_bytes
    assert peak <= predicted
    assert predicted - memory.FIXED <= 6 * peak
