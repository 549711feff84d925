from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose

import graphratio as gr
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.notes import edge_notes
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import bandwidth_grid, get_kernel, median_bandwidths
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import assign_folds
from graphratio.moments.node_moments import node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.selection import cross_validation
from graphratio.selection.cross_validation import (
    Coupling,
    Split,
    best_candidate,
    precision_for,
    select,
)
from graphratio.selection.grids import GAMMAS, LAMBDAS, Candidates, penalty_pairs
from graphratio.solvers import bases
from graphratio.solvers.bases import LARGEST_SPECTRUM
from graphratio.solvers.path import solve

# Left out by `make quick`.
pytestmark = pytest.mark.slow

KERNEL = get_kernel("gaussian")


@pytest.fixture
def exact(monkeypatch):
    """Selection without its economies."""
    monkeypatch.setattr(cross_validation, "SOLVE_TOLERANCE", 1e-11)
    monkeypatch.setattr(cross_validation, "FEATURE_FLOOR", 0.0)
    monkeypatch.setattr(cross_validation, "FOLD_RANK_TOLERANCE", 1e-9)


def small_problem(sizes=((9, 12), (7, 7), (10, 6), (8, 11)), seed=0):
    rng = np.random.default_rng(seed)
    samples = NodeSamples.from_arrays(
        [rng.normal(size=(n, 1)) for n, _ in sizes],
        [rng.normal(0.5, 1, size=(n, 1)) for _, n in sizes],
    )
    edges = [(v, v + 1) for v in range(len(sizes) - 1)]
    return samples, Graph.from_edges(edges, nodes=range(len(sizes)))


def brute_force(samples, graph, atoms, candidates, folds, n_folds, alpha, prior):
    """The paper's model selection procedure, written down: refit and evaluate, one by one."""
    n_nodes = samples.n_nodes
    laplacian = graph.laplacian.toarray()
    scores = []
    for bandwidth in candidates.bandwidth:
        psi = NystromMap.build(KERNEL, atoms, bandwidth, 1e-9)(samples.values)
        m = psi.shape[1]

        def moments(rows, psi=psi, m=m):
            second, first, both = np.zeros((n_nodes, m, m)), np.zeros((n_nodes, m)), []
            for v in range(n_nodes):
                mine = rows & (samples.node_index == v)
                ref, tgt = psi[mine & ~samples.is_target], psi[mine & samples.is_target]
                both.append(len(ref) > 0 and len(tgt) > 0)
                if both[-1]:
                    second[v] = (1 - alpha) * ref.T @ ref / len(ref)
                    second[v] += alpha * tgt.T @ tgt / len(tgt)
                    mixture = (1 - alpha) * ref.mean(axis=0) + alpha * tgt.mean(axis=0)
                    first[v] = tgt.mean(axis=0) - prior * mixture
            return second, first, np.array(both)

        for lam, rho in zip(*candidates.pairs, strict=True):
            row = []
            for r in range(n_folds):
                second, first, _ = moments(folds != r)
                matrix = np.kron(lam * laplacian + rho * np.eye(n_nodes), np.eye(m))
                for v in range(n_nodes):
                    matrix[v * m : (v + 1) * m, v * m : (v + 1) * m] += second[v]
                theta = np.linalg.solve(matrix, first.ravel()).reshape(n_nodes, m)
                second, first, both = moments(folds == r)
                losses = 0.5 * np.einsum("vi,vij,vj->v", theta, second, theta)
                losses += prior**2 / 2 - prior - (theta * first).sum(axis=1)
                row.append(-losses[both].mean() if both.any() else np.nan)
            scores.append(row)
    return np.array(scores)


@pytest.mark.parametrize("prior", [0.0, 1.0])
@pytest.mark.parametrize("edges", [True, False])
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.usefixtures("exact")
def test_scores_equal_brute_force(prior, edges, few):
    samples, graph = small_problem(((2, 9), (1, 7), (10, 3), (8, 11))) if few else small_problem()
    if not edges:
        graph = Graph.empty(4)
    sigma = median_bandwidths(samples, KERNEL)
    atoms = DictionaryRecipe(node_coherence=0.6).build(samples, KERNEL, sigma)
    lam = np.array([0.04, 0.04, 4.0, 4.0])
    candidates = Candidates(np.array([0.7, 1.5]), lam, lam * [1e-3, 0.3, 1e-3, 0.3])
    folds = assign_folds(samples, 5, np.random.default_rng(3))
    found = selected(samples, graph, atoms, candidates, np.float64, prior=prior, seed=3)
    expected = brute_force(samples, graph, atoms, candidates, folds, 5, 0.1, prior)
    per_fold = np.column_stack([found.results[f"fold_{r}_score"] for r in range(5)])
    assert_allclose(per_fold, expected, atol=1e-8)
    usable = ~np.isnan(expected).any(axis=0)
    assert usable.sum() >= 3
    assert_allclose(found.results["mean_score"], expected[:, usable].mean(axis=1), atol=1e-8)
    best = expected[:, usable].mean(axis=1).argmax()
    chosen = (found.bandwidth, found.graph_penalty, found.ridge)
    assert chosen == tuple(found.results[k][best] for k in list(found.results)[:3])


def selected(samples, graph, atoms, candidates, dtype, prior=0.0, seed=0):
    """A selection with five folds, in the given precision."""
    split = Split(
        samples=samples,
        folds=assign_folds(samples, 5, np.random.default_rng(seed)),
        n_folds=5,
        kernel=KERNEL,
        dictionary=atoms,
        alpha=0.1,
        prior_ratio=prior,
        dtype=dtype,
    )
    return select(split, Coupling(graph), candidates)


@pytest.mark.parametrize(("name", "seed"), [("Ia", 0), ("Ib", 1), ("IIa", 0), ("IIb", 1)])
def test_economies_do_not_change_the_choice(name, seed, monkeypatch):
    """Single precision, loose solves and fewer features select what the exact way selects."""
    scenario = gr.datasets.make_scenario(name, n_nodes=32, n=30, random_state=seed)
    samples, graph = scenario.samples, scenario.graph
    sigma = median_bandwidths(samples, KERNEL)
    atoms = DictionaryRecipe().build(samples, KERNEL, sigma)
    candidates = Candidates(bandwidth_grid(sigma)[::2], *penalty_pairs(graph))

    def run(dtype):
        return selected(samples, graph, atoms, candidates, dtype)

    single, double = run(np.float32), run(np.float64)
    monkeypatch.setattr(cross_validation, "SOLVE_TOLERANCE", 1e-8)
    monkeypatch.setattr(cross_validation, "FEATURE_FLOOR", 0.0)
    monkeypatch.setattr(cross_validation, "FOLD_RANK_TOLERANCE", 1e-9)
    full = run(np.float64)

    def choice(found):
        return found.bandwidth, found.graph_penalty, found.ridge

    assert choice(single) == choice(double) == choice(full)
    best = full.results["mean_score"].argmax()
    assert abs(single.results["mean_score"][best] - full.results["mean_score"][best]) < 5e-3


def test_defaults_are_the_papers_grids():
    samples, graph = small_problem()
    model = gr.GRULSIF(random_state=0).fit(samples, graph)
    results = model.cv_results_
    sigma = median_bandwidths(samples, KERNEL)
    low, middle, high = sigma.min(), np.median(sigma), sigma.max()
    widths = [low, (low + middle) / 2, middle, (middle + high) / 2, high]
    assert_allclose(np.unique(results["bandwidth"]), widths)
    assert_allclose(np.unique(results["gamma"]), [1e-5, 1e-3, 0.1, 1])
    expected = 4 * np.array([1e-3, 1e-2, 0.1, 1, 10]) / graph.mean_degree
    assert_allclose(np.unique(results["graph_penalty"]), expected)
    assert_allclose(results["ridge"], results["gamma"] * results["graph_penalty"])
    assert len(results["mean_score"]) == 100
    best = results["mean_score"].argmax()
    assert results["rank"][best] == 1
    assert model.bandwidth_ == results["bandwidth"][best]
    lambda_, gamma = results["graph_penalty"][best] / 4, results["gamma"][best]
    assert model.paper_penalties_ == pytest.approx({"lambda": lambda_, "gamma": gamma})


def test_pool_selects_without_a_graph_penalty():
    samples, graph = small_problem()
    model = gr.Pool(random_state=0).fit(samples, graph)
    assert set(model.cv_results_["graph_penalty"]) == {0.0}
    assert_allclose(np.unique(model.cv_results_["ridge"]), 4 * np.array(GAMMAS))
    assert_allclose(np.unique(model.cv_results_["gamma"]), GAMMAS)
    assert len(model.cv_results_["mean_score"]) == 20
    assert model.paper_penalties_["lambda"] == 1


def test_given_values_are_fixed_and_given_sequences_are_tried():
    samples, graph = small_problem()
    model = gr.GRULSIF(bandwidth=1.2, graph_penalty=[2.0, 0.04], ridge=(0.2,), random_state=0).fit(
        samples, graph
    )
    assert model.bandwidth_ == 1.2
    assert model.ridge_ == 0.2
    assert model.graph_penalty_ in (0.04, 2.0)
    assert model.cv_results_["graph_penalty"].tolist() == [0.04, 2.0]
    fixed = gr.GRULSIF(bandwidth=1.2, graph_penalty=2.0, ridge=0.2).fit(samples, graph)
    assert fixed.cv_results_ is None


def test_ties_go_to_more_regularisation():
    lam, rho = np.array([0.1, 0.1, 1.0, 1.0]), np.array([1e-3, 0.01, 0.01, 0.1])
    candidates = Candidates(np.array([1.0, 2.0]), lam, rho)
    scores = np.zeros((2, 4, 3))
    chosen = best_candidate(candidates, scores, n_nodes=1)
    assert (chosen.bandwidth, chosen.graph_penalty, chosen.ridge) == (2.0, 1.0, 0.1)
    scores[0, 0] = 1.0
    chosen = best_candidate(candidates, scores, n_nodes=1)
    assert (chosen.bandwidth, chosen.graph_penalty, chosen.ridge) == (1.0, 0.1, 1e-3)
    # The ridge counts before the graph penalty, and that before the bandwidth.
    crossed = Candidates(np.array([1.0, 2.0]), np.array([0.1, 5.0, 5.0]), np.array([0.3, 0.2, 0.1]))
    scores = np.zeros((2, 3, 3))
    assert best_candidate(crossed, scores, n_nodes=1).ridge == 0.3
    scores[:, 0] = scores[1, 1] = -1.0
    chosen = best_candidate(crossed, scores, n_nodes=1)
    assert (chosen.bandwidth, chosen.graph_penalty, chosen.ridge) == (1.0, 5.0, 0.2)


def test_a_choice_on_the_edge_is_noted():
    samples, graph = small_problem()
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.4, ridge=[4e3, 4e4], random_state=0).fit(
        samples, graph
    )
    (note,) = edge_notes(model.cv_results_)
    assert "ridge 4e+03 is at the lower edge" in note
    assert note in model.notes_
    assert "lower edge" in repr(model)


def test_folds_are_even_at_every_node():
    samples, _ = small_problem(((11, 3), (5, 20), (1, 1), (4, 2)))
    folds = assign_folds(samples, 5, np.random.default_rng(0))
    for v in range(4):
        kept = {}
        for side in (False, True):
            mine = folds[(samples.node_index == v) & (samples.is_target == side)]
            counts = np.bincount(mine, minlength=5)
            assert counts.max() - counts.min() <= 1
            kept[side] = set(mine.tolist())
        smaller, larger = sorted(kept.values(), key=len)
        assert smaller <= larger


def test_one_observation_per_node_is_handled():
    samples, graph = small_problem(((1, 1),) * 4)
    model = gr.GRULSIF(random_state=0).fit(samples, graph)
    assert np.isfinite(model.divergence_).all()
    assert np.isfinite(model.cv_results_["mean_score"]).all()


def test_progress_bar(capsys):
    samples, graph = small_problem()
    gr.GRULSIF(random_state=0, progress=True).fit(samples, graph)
    assert "model selection: 25/25" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "n", "mean", "largest"),
    [("Ia", 50, 4.5, 8), ("Ib", 50, 8.8, 22), ("IIa", 250, 3.5, 6), ("IIb", 50, 4.6, 9)],
)
def test_iteration_counts_stay_low_over_the_whole_grid(name, n, mean, largest):
    """Iterations to 1e-5 at the median bandwidth, for every pair of penalties of the paper."""
    scenario = gr.datasets.make_scenario(name, n=n, random_state=0)
    sigma = median_bandwidths(scenario.samples, KERNEL)
    atoms = DictionaryRecipe().build(scenario.samples, KERNEL, sigma)
    psi = NystromMap.build(KERNEL, atoms, float(np.median(sigma)))(scenario.samples.values)
    moments = node_moments(psi, scenario.samples.sizes, alpha=0.1)
    counts = []
    for penalties in zip(*penalty_pairs(scenario.graph), strict=True):
        objective = GraphObjective.of(moments, scenario.graph.laplacian, *penalties)
        solution = solve(objective, scenario.graph, "pcg", tol=1e-5, max_iter=1000)
        assert solution.residual <= 1e-5
        counts.append(solution.n_iter)
    assert len(counts) == len(LAMBDAS) * len(GAMMAS)
    assert np.mean(counts) <= mean
    assert max(counts) <= largest


def typical(name):
    """A draw of a scenario; of the ego networks one with 25 to 35 changed nodes."""
    for seed in count(101):
        scenario = gr.datasets.make_scenario(name, n=50, random_state=seed)
        if not name.startswith("II") or 25 <= scenario.changed.sum() <= 35:
            return scenario


@pytest.mark.parametrize(
    ("name", "limit"), [("Ia", 0.085), ("Ib", 0.21), ("IIa", 0.25), ("IIb", 0.068)]
)
def test_default_fit_is_accurate(name, limit):
    scenario = typical(name)
    ours, pool = (
        scenario.mean_squared_error(model.predict, 0.1, 500, 1).mean()
        for model in (
            kind(random_state=0).fit(scenario.samples, scenario.graph)
            for kind in (gr.GRULSIF, gr.Pool)
        )
    )
    assert ours <= limit
    assert ours < pool


@pytest.mark.parametrize("largest_spectrum", [LARGEST_SPECTRUM, 100])
def test_uneven_weights_are_solved_in_double_precision(largest_spectrum, monkeypatch):
    """Edges that differ by twelve decades leave no digits to single precision."""
    monkeypatch.setattr(bases, "LARGEST_SPECTRUM", largest_spectrum)
    rng, n_nodes = np.random.default_rng(0), 120
    edges = [(v, v + 1, 10 ** rng.uniform(-6, 6)) for v in range(n_nodes - 1) if v % 20]
    graph = gr.Graph.from_edges(edges, nodes=range(n_nodes))
    data = gr.NodeSamples.from_arrays(*(list(side) for side in rng.normal(size=(2, n_nodes, 6))))
    lam = n_nodes * np.array([1e-6, 1e-3, 1.0])
    candidates = Candidates(np.ones(1), lam, 0.1 * lam)
    atoms = np.linspace(-2, 2, 8)[:, np.newaxis]
    assert precision_for([graph]) is np.float64
    single, double = (
        selected(data, graph, atoms, candidates, dtype).results["mean_score"]
        for dtype in (np.float32, precision_for([graph, gr.Graph.empty(n_nodes)]))
    )
    assert np.abs(single / double - 1).max() > 1e-4
    even = gr.Graph.from_edges([(0, 1, 1.0), (1, 2, 9e3)])
    assert precision_for([even]) is np.float32
