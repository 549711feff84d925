"""Folds: random without blocks, whole blocks with them, pieces where blocks are too few."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import graphratio as gr
from graphratio.moments.folds import assign_folds, divide
from graphratio.transfer import NodewiseTransfer


def drawn(n=20, m=15, n_nodes=3, times="shared", **options):
    """Independent samples with shared times, times of their own, or none."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(n_nodes, n)), rng.normal(size=(n_nodes, m))
    if times == "shared":
        options["time"] = (range(n), range(n, n + m))
    elif times == "own":
        stamps = rng.permutation(n_nodes * (n + m)).reshape(n_nodes, -1)
        options["time"] = (stamps[:, :n], stamps[:, n:])
    return gr.NodeSamples.from_arrays(list(reference), list(target), **options)


def folds_of(samples, n_folds=5, seed=0, **options):
    return divide(samples, n_folds, np.random.default_rng(seed), **options)


@pytest.mark.parametrize("options", [{"times": None}, {"block": None}, {"block": "auto"}])
def test_without_blocks_folds_are_random_as_ever(options):
    """Times of independent data change nothing, to the last bit."""
    found = folds_of(drawn(**options))
    expected = assign_folds(drawn(times=None), 5, np.random.default_rng(0))
    assert (found.n_blocks, found.n_folds) == (None, 5)
    np.testing.assert_array_equal(found.folds, expected)


@pytest.mark.parametrize("times", ["shared", "own", None])
def test_blocks_are_not_split(times):
    samples = drawn(times=times, block=3)
    for seed in range(20):
        found = folds_of(samples, seed=seed)
        assert (found.n_blocks, found.in_pieces, found.n_folds) == (5, False, 5)
        number = samples.blocks.number
        for block in np.unique(number):
            for node in range(3):
                own = (number == block) & (samples.node_index == node)
                assert len(set(found.folds[own])) <= 1


def test_a_shared_block_is_in_the_same_fold_everywhere():
    samples = drawn(block=3)
    for seed in range(20):
        folds = folds_of(samples, seed=seed).folds.reshape(3, 35)
        np.testing.assert_array_equal(folds, np.tile(folds[0], (3, 1)))
    # Not so with times of their own.
    folds = folds_of(drawn(times="own", block=3)).folds.reshape(3, 35)
    assert (folds != folds[0]).any()


@pytest.mark.parametrize("times", ["shared", "own"])
def test_folds_are_balanced(times):
    samples = drawn(24, 24, times=times, block=2)
    for seed in range(10):
        found = folds_of(samples, 4, seed)
        counts = np.zeros((6, 4), dtype=int)
        np.add.at(counts, (samples.segments, found.folds), 1)
        np.testing.assert_array_equal(counts, 6)


def test_folds_are_stretches_of_time_that_vary_with_the_seed():
    samples = drawn(14, 14, block=2)
    found = np.array([folds_of(samples, 5, seed).folds[:14] for seed in range(50)])
    assert (np.diff(found, axis=1) >= 0).all()
    sizes = {tuple(np.bincount(row) // 2) for row in found}
    assert all(sorted(size) == [1, 1, 1, 2, 2] for size in sizes)
    assert len(sizes) > 3


@pytest.mark.parametrize("times", ["shared", "own", None])
@pytest.mark.parametrize(("block", "expected"), [(5, 3), (7, 2), (4, 3)])
def test_there_are_no_more_folds_than_blocks(times, block, expected):
    """20 and 15 observations: the sample with fewer blocks counts."""
    found = folds_of(drawn(times=times, block=block))
    assert (found.n_folds, found.in_pieces) == (expected, False)
    assert sorted(set(found.folds)) == list(range(expected))


@pytest.mark.parametrize("times", ["shared", "own", None])
@pytest.mark.parametrize("least", [2, 3])
def test_a_single_block_is_cut_into_successive_pieces(times, least):
    samples = drawn(times=times, block=12)
    found = folds_of(samples, least=least)
    assert (found.n_folds, found.in_pieces) == (least, True)
    when = np.arange(samples.n_observations) if times is None else samples.time
    for segment in range(6):
        own = samples.segments == segment
        in_time = found.folds[own][np.argsort(when[own])]
        assert (np.diff(in_time) >= 0).all()
        counts = np.bincount(in_time, minlength=least)
        assert counts.max() - counts.min() <= 1


def test_nested_selection_keeps_three_folds():
    """Two folds are left out at once."""
    samples = drawn(40, 40, block=20)
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    model = gr.GRULSIF(bandwidth=1.0)
    bounds = gr.divergence_bounds(samples, graph, model, random_state=0)
    assert np.isfinite(bounds.fitted_divergence).all()
    # Two blocks have no standard error to speak of.
    assert not bounds.answerable
    assert np.isnan(bounds.true_divergence_lower_bound).all()
    assert "cannot say how large the divergences are" in repr(bounds)


def test_parts_of_the_data_keep_their_blocks_in_folds():
    samples = drawn(24, 24, block=3)
    first = folds_of(samples, 4)
    rest = samples.subset(observations=first.folds != 0)
    again = folds_of(rest, 4)
    for block in np.unique(rest.blocks.number):
        assert len(set(again.folds[rest.blocks.number == block])) == 1


@pytest.mark.parametrize("times", ["shared", "own", None])
@pytest.mark.parametrize(("block", "expected"), [(2, 7), (1, 4), (5, 3)])
def test_few_blocks_are_folds_of_their_own(times, block, expected):
    """20 and 15 observations have 7, 15 or 3 blocks in the sample with fewer."""
    found = folds_of(drawn(times=times, block=block), 4, single=True)
    assert (found.n_folds, found.in_pieces) == (expected, False)


def test_single_blocks_do_not_depend_on_the_seed():
    samples = drawn(14, 14, block=2)
    folds = [folds_of(samples, 5, seed, single=True).folds for seed in range(5)]
    np.testing.assert_array_equal(folds, np.tile(folds[0], (5, 1)))
    np.testing.assert_array_equal(folds[0][:14], np.repeat(np.arange(7), 2))


@pytest.mark.parametrize("kind", [gr.GRULSIF, gr.Pool, gr.KLIEP, gr.GraphRatio, gr.RULSIF])
@pytest.mark.parametrize(("block", "n_folds"), [(10, 3), (4, 7)])
def test_estimators_follow_the_number_of_blocks(kind, block, n_folds):
    samples = drawn(30, 30, block=block)
    model = kind(random_state=0).fit(samples, gr.Graph.from_edges([(0, 1), (1, 2)]))
    names = [name for name in model.cv_results_ if name.startswith("fold_")]
    # Every two successive blocks are held out together.
    assert names == [f"fold_{fold}_score" for fold in range(n_folds - 1)]


def test_functions_on_folds_take_blocks():
    samples = drawn(30, 30, block=5)
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    ring = gr.Graph.from_edges([(0, 2)], nodes=[0, 1, 2])
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1)
    assert len(gr.compare_graphs(samples, {"a": graph, "b": ring}, model, random_state=0).ranking)
    assert np.isfinite(gr.two_sample_test(samples, graph, model, random_state=0).p_value).all()
    labels = {v: samples.reference(v)[:, 0] > 0 for v in range(3)}
    transfer = NodewiseTransfer(LogisticRegression(), estimator=model, random_state=0).fit(
        samples, labels, graph
    )
    assert transfer.sharpness_ >= 0
    single = gr.RULSIF(bandwidth=1.0, ridge=0.1)
    found = gr.expected_ratio_interval(samples, None, single, x=[0.0], node=0, random_state=0)
    assert found.expected_ratio_low[0] < found.expected_ratio_high[0]


def test_folds_of_days_hold_out_days():
    """Levels of days: a fold of days sees that the fit does not carry over, random folds do not."""
    rng = np.random.default_rng(0)
    n_nodes, n_days, per_day = 6, 8, 20
    level = np.repeat(rng.normal(size=(n_nodes, 2, n_days)), per_day, axis=2)
    values = level + 0.3 * rng.normal(size=level.shape)
    days = np.repeat(np.arange(n_days), per_day)
    pair = list(values[:, 0]), list(values[:, 1])
    timed = gr.NodeSamples.from_arrays(*pair, time=(days, days + 100))
    model = gr.Pool(random_state=0)
    by_days = model.fit(timed).divergence_held_out_
    at_random = model.fit(gr.NodeSamples.from_arrays(*pair)).divergence_held_out_
    assert timed.blocks.words() == "all observations of one time"
    assert by_days.mean() < 0.5 * at_random.mean()
