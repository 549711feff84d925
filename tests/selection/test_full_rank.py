"""The plain fits among the candidates of GraphRatio."""

from dataclasses import replace

import numpy as np
import pytest

import graphratio as gr
from graphratio._utils.jobs import working
from graphratio.data.graph import Graph
from graphratio.selection import full_rank
from graphratio.selection.cross_validation import Coupling
from graphratio.selection.full_rank import PlainSearch
from graphratio.selection.grids import Candidates
from graphratio.selection.held_out_data import HeldOutData
from graphratio.selection.search import HOPELESS, Axis, Trial, hopeless, lead, search
from graphratio.solvers.learned_edges import Edges


def ring(n_nodes):
    return Graph.from_edges([(i, (i + 1) % n_nodes) for i in range(n_nodes)])


def own_changes(seed, n_nodes=24, n=60):
    """Neighbours on the ring change in opposite directions."""
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(n_nodes) % 2, 1.5, -1.5)[:, np.newaxis]
    return list(rng.normal(size=(n_nodes, n))), list(rng.normal(size=(n_nodes, n)) + signs)


def equal_changes(seed, n_nodes=24, n=15):
    rng = np.random.default_rng(seed)
    return list(rng.normal(size=(n_nodes, n))), list(rng.normal(1.0, size=(n_nodes, n)))


def searched(samples, graph, strengths, ridges, **free):
    """A search over given strengths and ridges, with the machinery of the estimator."""
    model = gr.GraphRatio(random_state=0)
    aligned = model._prepare(samples, graph, borrow=True)
    rng = np.random.default_rng(0)
    widths = model._build_dictionary(aligned, rng)[2:3]
    data = HeldOutData(model._split(aligned, graph, rng), Edges.of(graph))
    lam, rho = np.meshgrid(np.array(strengths) / graph.mean_degree, ridges, indexing="ij")
    return PlainSearch(
        data=data,
        coupling=Coupling(graph),
        candidates=Candidates(widths, lam.ravel(), rho.ravel()),
        ridge=None,
        free=(False, free.get("strength", True), free.get("ridge", True)),
        without_graph=free.get("without_graph", True),
        unit=graph.mean_degree,
    )


def test_the_graph_is_switched_off_where_neighbours_change_in_opposite_ways():
    plain = searched(own_changes(0), ring(24), [10.0, 100.0], [1e-3, 1e-2])
    assert plain.best()[1] < 1.0
    model = gr.GraphRatio(n_profiles=0, random_state=0).fit(own_changes(0), ring(24))
    assert model.graph_penalty_ * 2 < 1.0


def test_strengths_grow_to_one_ratio_for_all():
    plain = searched(equal_changes(1), ring(24), [1e-3, 1e-2], [1e-3, 1e-2])
    assert plain.best()[1] >= 1.0
    model = gr.GraphRatio(n_profiles=0, random_state=0).fit(equal_changes(1), ring(24))
    ratios = model.predict(np.linspace(-2, 3, 9))
    assert ratios.std(axis=1).max() < 0.1 * ratios.std(axis=0).max()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_only_the_folds_of_the_best_bandwidth_are_kept(n_jobs):
    plain = searched(equal_changes(1), ring(24), [0.1, 1.0], [1e-3, 1e-2])
    widths = np.array([0.1, 1.0, 0.2, 0.3])
    with working(n_jobs):
        best = plain._try(widths, [(1.0, 1e-3)])
    assert set(plain.data._kept) == {best[0]} == {1.0}
    assert {one[0] for one in plain.tried} == set(widths)
    # A forgotten bandwidth is prepared again, with the same folds.
    [again] = plain._losses({0.2: [(1.0, 1e-3)]})
    np.testing.assert_array_equal(np.stack(again, axis=1), plain.tried[0.2, 1.0, 1e-3].losses)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_fold_rules_out_hopeless_candidates_only(seed, monkeypatch):
    strengths, ridges = [0.1, 1.0, 10.0, 100.0], [1e-5, 1e-3, 1e-1, 10.0]
    n_nodes = full_rank.ENOUGH_NODES

    def best(enough):
        monkeypatch.setattr(full_rank, "ENOUGH_NODES", enough)
        plain = searched(equal_changes(seed, n_nodes), ring(n_nodes), strengths, ridges)
        return plain.best(), plain

    chosen, screened = best(n_nodes)
    same, whole = best(n_nodes + 1)
    assert chosen == same
    assert screened.tried.keys() < whole.tried.keys()
    for one, trial in screened.tried.items():
        np.testing.assert_allclose(trial.losses, whole.tried[one].losses, rtol=1e-4)
    left_out = [whole.tried[one].loss for one in whole.tried.keys() - screened.tried.keys()]
    assert min(left_out) > whole.tried[same].loss


def test_a_bandwidth_that_is_ruled_out_is_forgotten():
    n_nodes = full_rank.ENOUGH_NODES
    plain = searched(equal_changes(0, n_nodes), ring(n_nodes), [1.0], [1e-2])
    plain._try(np.array([1.0, 1e-3]), [(1.0, 1e-2)])
    assert set(plain.data._kept) == {1.0}
    assert {one[0] for one in plain.tried} == {1.0}
    # A hopeless one on its own leaves the best so far.
    assert plain._try(np.array([1e-3]), [(1.0, 1e-2)]) == (1.0, 1.0, 1e-2)


def test_few_nodes_with_losses_rule_nothing_out():
    reference, target = equal_changes(3, 40)
    for v in range(2, 40):
        (reference if v % 2 else target)[v] = []
    plain = searched((reference, target), ring(40), [1.0, 100.0], [1e-5, 1e-2], without_graph=False)
    pairs = [(strength, ridge) for strength in (1.0, 100.0) for ridge in (1e-5, 1e-2)]
    plain._try(np.array([0.01, 1.0]), pairs)
    assert len(plain.tried) == 8


def test_a_step_outwards_that_was_refused_stays_refused():
    """If no node is better alone, the answer is the best so far, not the best that was tried."""
    n_nodes = full_rank.ENOUGH_NODES
    plain = searched(equal_changes(0, n_nodes), ring(n_nodes), [1.0, 100.0], [1e-2])
    best = plain._try(np.array([1.0]), [(1.0, 1e-2), (100.0, 1e-2)])
    other = next(one for one in plain.tried if one != best)
    assert plain._try(np.array([1e-3]), [(1.0, 1e-2)], other) == other


def test_given_candidates_are_not_left():
    plain = searched(
        own_changes(0), ring(24), [10.0, 100.0], [1e-3, 1e-2], strength=False, ridge=False
    )
    assert plain.best()[1] in (10.0, 100.0)
    assert {(strength, ridge) for _, strength, ridge in plain.tried} == {
        (10.0, 1e-3), (10.0, 1e-2), (100.0, 1e-3), (100.0, 1e-2)
    }  # fmt: skip


def test_without_both_samples_everywhere_the_graph_stays():
    plain = searched(own_changes(0), ring(24), [10.0, 100.0], [1e-3], without_graph=False)
    plain.best()
    assert all(strength > 0 for _, strength, _ in plain.tried)


@pytest.mark.parametrize("seed", range(3))
def test_equals_grulsif_unless_something_is_clearly_better(seed):
    rng = np.random.default_rng(seed)
    shifts = np.cumsum(rng.normal(scale=0.5, size=30))[:, np.newaxis]
    samples = (list(rng.normal(size=(30, 12))), list(rng.normal(size=(30, 12)) + shifts))
    plain = gr.GRULSIF(prior_ratio=1.0, random_state=0).fit(samples, ring(30))
    model = gr.GraphRatio(n_profiles=0, random_state=0).fit(samples, ring(30))
    scores = model.cv_results_["mean_score"]
    chosen = scores[np.argmin(model.cv_results_["rank"])]
    known = plain.cv_results_["mean_score"].max()
    if (model.bandwidth_, model.ridge_) == (plain.bandwidth_, plain.ridge_):
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    else:
        assert chosen > known
    # Every candidate of GRULSIF was compared on the same folds.
    assert scores.max() >= known - 1e-6 * abs(known)


def test_a_hopeless_point_is_tried_in_one_fold_only():
    axis = Axis(np.arange(3.0), start=0)
    nodes = np.array([0.0, 0.1, -0.1])
    level = {0: 0.0, 1: 5.0, 2: 9.0}
    asked = []

    def evaluate(point, n_folds):
        asked.append((point[0], n_folds))
        return Trial(np.full((1, n_folds or 5, 3), level[point[0]]) + nodes * level[point[0]])

    best, tried = search([axis], evaluate)
    assert best == (0,)
    assert set(tried) == {(0,)}
    assert (1, None) not in asked


def test_hopeless_needs_more_than_one_node_and_a_clear_loss():
    assert HOPELESS == 2.0
    assert not hopeless(np.array([9.0]), np.array([0.0]))
    assert not hopeless(np.array([0.1, -0.1, 0.1]), np.zeros(3))
    assert hopeless(np.array([1.0, 1.1, 0.9]), np.zeros(3))
    assert not hopeless(np.full(3, np.nan), np.full(3, np.nan))


def test_selection_on_a_part_of_the_graph():
    samples, graph = equal_changes(2, n_nodes=60), ring(60)
    model = gr.GraphRatio(selection_nodes=20, random_state=0).fit(samples, graph)
    assert np.isfinite(model.divergence_held_out_).sum() == 20
    assert any("selected on 20 of 60 nodes" in note for note in model.notes_)
    assert model.coef_.shape[0] == 60


def blocked_search(n_blocks, losses):
    """A search whose folds are blocks, with given losses by fold of two candidates."""
    plain = searched(equal_changes(0), ring(24), [1.0, 10.0], [1e-3])
    plain.data.split = replace(plain.data.split, n_blocks=n_blocks)
    plain.tried = {
        (1.0, strength, 1e-3): Trial(np.array(own)[np.newaxis, :, np.newaxis], blocked=True)
        for strength, own in losses.items()
    }
    return plain


def test_few_blocks_lean_to_more_regularisation_and_many_do_not():
    # Behind by 0.1 on average, with a standard error of 0.104 or of 0.093.
    weak, close, behind = [0.0] * 3, [0.3, -0.05, 0.05], [0.28, -0.03, 0.05]
    best = (1.0, 1.0, 1e-3)
    for n_blocks, own, expected in ((3, close, 10.0), (9, close, 10.0), (3, behind, 1.0)):
        assert blocked_search(n_blocks, {1.0: weak, 10.0: own})._cautious(best)[1] == expected
    for n_blocks in (10, None):
        assert blocked_search(n_blocks, {1.0: weak, 10.0: close})._cautious(best)[1] == 1.0


def test_the_larger_ridge_counts_more_than_the_stronger_coupling():
    plain = blocked_search(4, {1.0: [0.0, 0.0, 0.0], 10.0: [0.3, -0.1, 0.1]})
    plain.tried[1.0, 0.1, 1e-1] = plain.tried[1.0, 10.0, 1e-3]
    assert plain._cautious((1.0, 1.0, 1e-3)) == (1.0, 0.1, 1e-1)


def test_the_lead_over_blocks_counts_what_nodes_share():
    by_node = np.zeros((1, 4, 30))
    noisy = by_node + np.array([1.0, -0.8, 0.9, -0.7])[:, np.newaxis]
    for blocked, clear in ((False, True), (True, False)):
        gain, error = lead(Trial(by_node, blocked), Trial(noisy, blocked))
        assert gain == pytest.approx(0.1)
        assert (gain > error) is clear


def test_with_few_blocks_every_two_successive_ones_are_held_out():
    """The scores of a candidate are those of fits without both blocks."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 20))
    times = (np.arange(20), np.arange(20) + 100)
    samples = gr.NodeSamples.from_arrays(list(x), list(y), time=times, block=5)
    model = gr.GraphRatio(bandwidth=1.0, graph_penalty=0.5, ridge=[0.1, 1.0], random_state=0)
    table = model.fit(samples, ring(6)).cv_results_
    number = np.tile(np.repeat(np.arange(4), 5), 12)
    row = int(np.argmin(table["ridge"]))
    for fold in range(3):
        held = np.isin(number, [fold, fold + 1])
        fixed = gr.GRULSIF(
            bandwidth=1.0, graph_penalty=0.5, ridge=0.1, prior_ratio=1.0,
            dictionary=model.dictionary_,
        ).fit(samples.subset(observations=~held), ring(6))  # fmt: skip
        part = fixed.divergence(samples.subset(observations=held))
        assert table[f"fold_{fold}_score"][row] == pytest.approx(part.mean() + 0.5, abs=2e-3)
    assert "fold_3_score" not in table


def test_with_few_blocks_nothing_beyond_the_grids_is_tried():
    rng = np.random.default_rng(0)
    days = rng.normal(size=(2, 12, 4)).repeat(8, axis=2)
    reference, target = days + rng.normal(size=days.shape)
    times = (np.arange(32), np.arange(32) + 100)
    samples = gr.NodeSamples.from_arrays(list(reference), list(target), time=times, block=8)
    model = gr.GraphRatio(random_state=0).fit(samples, ring(12))
    assert not model.shared_
    plain = gr.GRULSIF(prior_ratio=1.0, random_state=0).fit(samples, ring(12))
    assert len(model.cv_results_["rank"]) == len(plain.cv_results_["rank"])
    assert model.dependence_ == "Blocks of 8 observations are kept together"
    assert model.dependence_ in model.notes_


def test_more_is_needed_of_candidates_that_must_lead():
    """Behind by about 1.5 standard errors, which is short by 2.5 of a lead of one."""
    behind = np.array([0.0, 1.0, 2.0, 0.2, 1.3])
    rival = np.zeros(5)
    error = behind.std(ddof=1) / np.sqrt(5)
    assert 2 * error < behind.mean() < 3 * error
    assert not hopeless(behind - error, rival)
    assert hopeless(behind - error, rival, needed=1.0)


def test_a_given_penalty_stays_although_a_part_of_the_graph_selects():
    samples = equal_changes(3, n_nodes=60)
    edges = [(i, j) for i in range(60) for j in range(i) if (i * j) % 7 == 1 or i - j == 1]
    graph = Graph.from_edges(edges, nodes=range(60))
    model = gr.GraphRatio(graph_penalty=0.3, selection_nodes=15, random_state=0)
    model.fit(samples, graph)
    assert model.graph_penalty_ == pytest.approx(0.3)
    np.testing.assert_allclose(model.cv_results_["graph_penalty"], 0.3)
