"""Thresholds, p-values and dates: counts that are exact when nothing changes."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

import graphratio as gr
from graphratio.changepoints import dating
from graphratio.changepoints.calibration import (
    Calibration,
    Calibrator,
    TailTable,
    _levels,
    block_length,
)
from graphratio.changepoints.panel_features import look
from graphratio.changepoints.scan import N_CURVES
from graphratio.changepoints.smoother import Smoother
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(5)])


def calibration(**given):
    """A calibration that has only what is given."""
    names = Calibration.__dataclass_fields__
    return Calibration(**{**dict.fromkeys(names), **given})


@pytest.mark.parametrize(
    ("n_surrogates", "level"), [(19, 0.05), (39, 0.1), (99, 0.05), (99, 0.42), (50, 0.05)]
)
def test_every_panel_in_turn_alarms_as_often_as_stated(n_surrogates, level):
    """Of n + 1 exchangeable panels, each in its turn the real one among n surrogates.

    The share that exceeds its threshold is the largest multiple of 1 / (n + 1) up to the stated
    chance, and those are the panels whose p-value is at most that chance.
    """
    # All three curves alike, so that nothing depends on how they share the chance.
    panels = np.random.default_rng(0).exponential(size=n_surrogates + 1)
    alarms, small = 0, 0
    for i, real in enumerate(panels):
        others = np.tile(np.delete(panels, i), (N_CURVES, 1))
        levels, largest = _levels(others, level)
        alarm = real > levels[0] * (1 + 1e-12)
        p_value = calibration(largest=largest).p_value(real / levels[0])
        assert p_value * (n_surrogates + 1) == pytest.approx(1 + np.sum(others[0] >= real))
        alarms += alarm
        small += p_value <= level + 1e-12
    assert alarms == small == int(level * (n_surrogates + 1) + 1e-9)


def test_a_surrogate_as_high_as_the_panel_counts_against_it():
    found = calibration(largest=np.array([0.5, 1.0, 1.0, 2.0]))
    assert [found.p_value(s) for s in (0.1, 1.0, 1.5, 2.0, 3.0)] == [1, 4 / 5, 2 / 5, 2 / 5, 1 / 5]


def test_independent_noise_shows_no_autocorrelation():
    """200 nodes in each of 20 panels, one look each: about one in a hundred panels may err."""
    rng = np.random.default_rng(0)
    found = [block_length(rng.normal(size=(1, 1000, 200)), np.ones(1), 5) for _ in range(20)]
    assert np.sum(np.array(found) > 1) <= 2


def test_curves_share_the_chance_equally():
    """Independent curves with tails of their own: each raises a third of the false alarms."""
    powers = np.array([[1.0], [0.5], [2.0]])
    maxima = np.random.default_rng(0).exponential(size=(N_CURVES, 20_000)) ** powers
    levels, _ = _levels(maxima, 0.06)
    np.testing.assert_allclose((maxima > levels[:, np.newaxis]).mean(axis=1), 0.02, atol=0.002)
    assert (maxima > levels[:, np.newaxis]).any(axis=0).mean() == pytest.approx(0.06, abs=1e-3)


@pytest.mark.parametrize("coupled", [True, False])
def test_two_looks_at_a_node_double_its_p_value(coupled):
    """With a graph a node has two chances to look changed, its own and its neighbours'."""
    table = TailTable.of(np.arange(1000.0))
    scan = SimpleNamespace(
        smoother=SimpleNamespace(coupled=coupled),
        local=lambda delta: (np.array([[990.0, 500.0, 0.0]]), None),
        witness=lambda delta: np.array([[100.0, 980.0, 0.0]]),
    )
    found = calibration(scan=scan, spread=np.ones(1), own_tail=table, witness_tail=table)
    own = (2 + np.array([9, 499, 999])) / 1001
    expected = np.minimum(2 * np.minimum(own, [1, 21 / 1001, 1]), 1) if coupled else own
    np.testing.assert_allclose(found.node_p_values(np.zeros((1, 3))), expected, rtol=0.02)


def test_independent_noise_has_no_inflation_and_blocks_do():
    """Long-run variance over variance: 1 for noise, (1 + a) / (1 - a) for autoregression a."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(1, 4000, 6))
    series = noise.copy()
    for t in range(1, 4000):
        series[:, t] += 0.5 * series[:, t - 1]
    smoother = Smoother(PATH, np.ones(1), 0.5)
    for psi, expected in ((noise, 1.0), (series, 3.0)):
        found = Calibrator(psi, [2000], smoother, window=100, step=1)
        assert found.inflation == pytest.approx(expected, rel=0.2)


def test_only_windows_without_a_cut_are_quiet():
    psi = np.random.default_rng(0).normal(size=(1, 100, 6))
    found = Calibrator(psi, [50], Smoother(PATH, np.ones(1), 0.5), window=10, step=1)
    quiet = found.times[found._quiet(np.array([50]))]
    assert quiet.tolist() == [*range(10, 41), *range(60, 91)]


def test_profile_is_the_gain_of_a_split_in_log_likelihood():
    """Against brute force, with the variance that the best split leaves."""
    y = np.random.default_rng(0).normal(size=(30, 2))
    y[18:, 0] += 2
    allowed = slice(2, 29)
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    left = np.stack(
        [
            sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in (y[:s], y[s:]))
            for s in range(2, 29)
        ]
    )
    expected = (total - left) / (left.min(axis=0) / 30) / 2.5
    found = dating._profile(y, 2.5, allowed)
    np.testing.assert_allclose(found[allowed], expected)
    assert np.isinf(found[[0, 1, 29]]).all()


def test_the_interval_of_a_date_has_its_95_percent():
    """Brownian motion with drift on either side of the true date: the drop is its quantile.

    The largest of two independent exponentials of mean 2 exceeds it in 5 % of cases.
    """
    rng = np.random.default_rng(0)
    drawn = rng.exponential(2.0, size=(200_000, 2)).max(axis=1)
    assert np.mean(drawn > dating.INTERVAL_DROP) == pytest.approx(0.05, abs=0.002)


def test_the_interval_of_a_date_holds_all_dates_that_are_likely_enough():
    """Against sums of squares of every split of one series."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=80) + 1.1 * (np.arange(80) >= 37)
    whole = SimpleNamespace(
        node_p_values=lambda delta: np.zeros(1),
        spread=np.ones(1),
        inflation=1.0,
        scan=SimpleNamespace(smoother=SimpleNamespace(apply=lambda j, part: part)),
    )
    found = dating.date(y[np.newaxis, :, np.newaxis], 40, 40, whole, 0.05)
    left = {s: y[:s].var() * s + y[s:].var() * (80 - s) for s in range(2, 79)}
    best = min(left.values())
    drop = optimize.brentq(lambda x: (1 - np.exp(-x / 2)) ** 2 - 0.95, 1, 20)
    likely = [s for s, rest in left.items() if 80 * (rest - best) / best <= drop]
    assert found.change == min(left, key=left.get)
    assert found.interval == (likely[0], likely[-1])
    assert likely[-1] > likely[0]


def test_differences_of_uneven_stretches_vary_as_those_of_two_windows():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(1, 60, 20_000))
    delta = dating._difference(psi, 12, 25)
    assert delta.var() == pytest.approx(2 / 25, rel=0.03)


def test_nodes_are_named_by_the_rule_of_benjamini_and_hochberg():
    p_values = np.array([0.001, 0.012, 0.03, 0.04, 0.8, 0.9])
    found = SimpleNamespace(node_p_values=lambda delta: p_values)
    named = dating.changed_nodes(np.empty(0), found, 0.05)
    expected = np.flatnonzero(stats.false_discovery_control(p_values) <= 0.05)
    assert named.tolist() == expected.tolist() == [0, 1]
    # An alarm was raised, so the clearest node is named in any case.
    assert dating.changed_nodes(np.empty(0), found, 1e-4).tolist() == [0]


def test_penalties_are_shares_of_the_variance_of_the_features():
    """The ridge 1 %, the pull along the edges 10 %; directions below the ridge are left out."""
    values = np.random.default_rng(0).normal(size=(60, 6, 1))
    found = look(
        values, PATH, None, standardize=True, max_directions=60,
        random_state=np.random.default_rng(0),
    )  # fmt: skip
    whole = NystromMap.build(get_kernel("gaussian"), found.dictionary, found.features.bandwidth)
    psi = whole(((values - found.shift) / found.scale).reshape(-1, 1))
    total = psi.var(axis=0).sum()
    assert found.ridge == pytest.approx(0.01 * total)
    assert found.coupling == pytest.approx(0.1 * total / PATH.mean_degree)
    w = np.linalg.eigvalsh(np.cov(psi, rowvar=False, bias=True))
    assert len(found.second) == np.sum(w >= 0.01 * total) < len(w)
