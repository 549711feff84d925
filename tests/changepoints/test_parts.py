"""The numbers behind the detector: windows, system, residuals, blocks, dates."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.changepoints.calibration import (
    Surrogates,
    TailTable,
    block_length,
    residuals,
    shuffled_blocks,
)
from graphratio.changepoints.panel_features import look
from graphratio.changepoints.scan import GraphScan
from graphratio.changepoints.smoother import Smoother
from graphratio.changepoints.stream import PeakTracker
from graphratio.changepoints.windows import (
    MovingWindows,
    scan_times,
    window_differences,
)
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.path import solve

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(5)])


def features(n_times=60, m=3, n_nodes=6, seed=0):
    return np.random.default_rng(seed).normal(size=(m, n_times, n_nodes))


@pytest.mark.parametrize("step", [1, 3])
def test_differences_are_those_of_the_means(step):
    psi = features()
    delta = window_differences(psi, 10, step)
    times = scan_times(60, 10, step)
    direct = np.stack(
        [psi[:, t : t + 10].mean(axis=1) - psi[:, t - 10 : t].mean(axis=1) for t in times], axis=1
    )
    np.testing.assert_allclose(delta, direct, atol=1e-13)


def test_moving_windows_give_the_same_step_by_step():
    psi = features(n_times=95)
    moving = MovingWindows(10, (3, 6))
    seen = [moving.push(psi[:, t]) for t in range(95)]
    assert all(one is None for one in seen[:19])
    np.testing.assert_allclose(
        np.stack(seen[19:], axis=1), window_differences(psi, 10, 1), atol=1e-13
    )
    np.testing.assert_array_equal(moving.stretch(50, 95), psi[:, 50:])


def test_moving_windows_do_not_drift():
    rng = np.random.default_rng(0)
    moving = MovingWindows(7, (1, 1))
    values = rng.normal(size=5000) * 10.0 ** rng.integers(-6, 7, size=5000)
    for value in values:
        delta = moving.push(np.array([[value]]))
    # Sums of values up to 1e7 keep about nine digits after the point.
    assert delta[0, 0] == pytest.approx(values[-7:].mean() - values[-14:-7].mean(), abs=1e-7)


@pytest.mark.parametrize("n_nodes", [6, 1200])
def test_the_estimate_solves_the_mean_field_problem(n_nodes):
    """The same coefficients as the solver of the estimators, with equal second moments."""
    graph = gr.Graph.from_edges([(i, (i + 1) % n_nodes) for i in range(n_nodes)])
    second, lam, rho = np.array([0.5, 0.1]), 0.3, 0.06
    delta = np.random.default_rng(0).normal(size=(2, n_nodes))
    moments = Moments(
        DenseSecond(np.repeat(np.diag(second)[np.newaxis], n_nodes, axis=0)),
        delta.T,
        np.ones(n_nodes, dtype=bool),
    )
    objective = GraphObjective.of(moments, graph.laplacian, lam, rho)
    theta = solve(objective, graph, "pcg", 1e-10, 1000).theta
    smoother = Smoother(graph, second + rho, lam)
    found = np.stack([smoother.apply(j, delta[j : j + 1])[0] for j in range(2)])
    np.testing.assert_allclose(found.T, theta, atol=1e-7)
    unit = np.zeros((1, n_nodes))
    unit[0, 4] = 1.0
    assert smoother.own[1, 4] == pytest.approx(smoother.apply(1, unit)[0, 4], rel=1e-10)


def test_the_look_makes_features_uncorrelated():
    values = np.random.default_rng(0).normal(size=(40, 6, 2))
    one = look(
        values, PATH, None, standardize=True, max_directions=8,
        random_state=np.random.default_rng(0),
    )  # fmt: skip
    psi = one(values)
    assert psi.shape == (len(one.second), 40, 6)
    flat = psi.reshape(len(one.second), -1)
    np.testing.assert_allclose(flat.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(flat, bias=True), np.diag(one.second), atol=1e-12)


def test_the_estimator_fixes_what_it_names():
    values = np.random.default_rng(0).normal(size=(40, 6, 1))
    estimator = gr.GRULSIF(
        bandwidth=0.7, graph_penalty=0.06, ridge=0.03, dictionary=np.linspace(-2, 2, 5)
    )
    fixed = look(
        values, PATH, estimator, standardize=False, max_directions=12,
        random_state=np.random.default_rng(0),
    )  # fmt: skip
    assert fixed.features.bandwidth == 0.7
    assert fixed.dictionary.ravel().tolist() == [-2, -1, 0, 1, 2]
    assert (fixed.graph_penalty, fixed.ridge) == (0.06, 0.03)
    np.testing.assert_array_equal(fixed.coupling, 0.06)


def test_blocks_keep_neighbours_together():
    order = shuffled_blocks(100, 10, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(100))
    follow = np.diff(order) % 100 == 1
    assert follow.sum() >= 90
    assert not follow.all()


def test_block_length_follows_the_autocorrelation():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(1, 1000, 20))
    smooth = noise.copy()
    for t in range(1, 1000):
        smooth[:, t] += 0.8 * smooth[:, t - 1]
    assert block_length(noise, np.ones(1), 50) == 1
    assert block_length(smooth, np.ones(1), 100) >= 40
    one_node = noise.copy()
    one_node[:, :, 3] = smooth[:, :, 3]
    assert block_length(one_node, np.ones(1), 100) >= 40


@pytest.mark.parametrize("block", [1, 5])
def test_surrogates_keep_the_variance_of_windows_where_pieces_meet(block):
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(1, 200, 2000))
    ends = [0, 100, 200]
    surrogates = Surrogates(residuals(psi, ends), ends, block)
    drawn = [window_differences(surrogates.draw(rng), 50, 1)[0] for _ in range(20 * block)]
    spread = np.mean(np.square(drawn), axis=(0, 2))
    # Two means of fifty each: 2 / 50, also at the cut.
    np.testing.assert_allclose(spread, 2 / 50, rtol=0.05)


def test_scan_has_mean_one_when_nothing_changes():
    psi = features(n_times=4000)
    scan = GraphScan.of(Smoother(PATH, np.array([1.0, 0.5, 0.2]), 0.5), psi, 1, 20)
    delta = window_differences(psi, 20, 1)
    own, graph = scan.local(delta)
    assert own.mean() == pytest.approx(1, abs=0.05)
    assert graph.mean() == pytest.approx(1, abs=0.05)
    assert scan.curves(delta, own, graph)[2].mean() == pytest.approx(1, abs=0.05)
    witness = scan.witness(delta)
    assert witness.mean() == pytest.approx(0, abs=0.05)
    assert witness.std() == pytest.approx(1, abs=0.05)
    always = np.ones(delta.shape[1], dtype=bool)
    np.testing.assert_allclose(scan.spread(scan.energy(delta), always), 1, atol=0.05)
    shifted = psi.copy()
    shifted[:, 2000:] += 3.0
    assert scan.strongest(scan.energy(window_differences(shifted, 20, 1))) + 20 == 2000


def test_tail_table():
    sample = np.random.default_rng(0).exponential(size=100_000)
    table = TailTable.of(sample)
    np.testing.assert_allclose(
        table.p_values(np.array([1.0, 5.0])), np.exp([-1.0, -5.0]), rtol=0.05
    )
    assert table.p_values(np.array([-1.0, 1e9])).tolist() == [1.0, pytest.approx(2 / 100_001)]


def test_after_a_peak_the_rest_of_it_is_no_second_one():
    triangle = [*np.linspace(0, 3, 10), *np.linspace(3, 0, 10), *np.zeros(10)]
    tracker = PeakTracker(window=10)
    said = []
    for t, value in enumerate(triangle):
        said.append(tracker.observe(t, value))
        if said[-1] == "peak":
            assert tracker.peak == 9
            tracker.settle(change=12)
            assert tracker.blocked_until == 22
    assert [word for word in said if word] == ["alarm", "peak"]
