"""What "auto" sees: dependence that is there, and none that is not."""

import numpy as np
import pytest
from scipy import stats

import graphratio as gr
from graphratio.data import block_cutting, dependence

LATER = "2020-07-01"


def autoregression(rng, phi, n_nodes, n):
    """Stationary series of variance 1, shape (n_nodes, 2, n)."""
    x = np.empty((n + 200, n_nodes, 2))
    noise = rng.normal(size=x.shape)
    x[0] = noise[0]
    for t in range(1, len(x)):
        x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * noise[t]
    return np.moveaxis(x[200:], 0, 2)


def clustered(rng, n_nodes, n, a=0.1, b=0.85):
    """Uncorrelated series whose volatility comes and goes (GARCH)."""
    x, h, found = np.zeros((n_nodes, 2)), np.ones((n_nodes, 2)), []
    for _ in range(n + 300):
        h = (1 - a - b) + a * x**2 + b * h
        x = np.sqrt(h) * rng.normal(size=x.shape)
        found.append(x)
    return np.moveaxis(np.array(found[300:]), 0, 2)


def numbered(values, **options):
    """Samples at the times 0, 1, 2, ..., the same at all nodes."""
    n = values.shape[2]
    time = (range(n), range(n, 2 * n))
    return gr.NodeSamples.from_arrays(list(values[:, 0]), list(values[:, 1]), time=time, **options)


def hourly(values):
    n = values.shape[2]
    hours = np.arange(n)
    time = (np.datetime64("2020-01-01", "h") + hours, np.datetime64(LATER, "h") + hours)
    return gr.NodeSamples.from_arrays(list(values[:, 0]), list(values[:, 1]), time=time)


def daily_level(rng, n_nodes, n, share):
    """A common level of every day of 24 hours."""
    level = np.repeat(rng.normal(size=(n_nodes, 2, -(-n // 24))), 24, axis=2)[:, :, :n]
    return np.sqrt(share) * level


INDEPENDENT = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy": lambda rng, shape: rng.standard_t(3, size=shape),
    "binary": lambda rng, shape: (rng.random(shape) < 0.1).astype(float),
    "counts": lambda rng, shape: rng.poisson(0.5, shape).astype(float),
    "skewed": lambda rng, shape: np.exp(rng.normal(size=shape)),
}


@pytest.mark.parametrize("law", INDEPENDENT)
@pytest.mark.parametrize(("n_nodes", "n"), [(20, 60), (1, 150)])
def test_independent_data_have_no_blocks(law, n_nodes, n):
    """A few of 100 at most; 1 % are allowed."""
    rng = np.random.default_rng(0)
    found = [numbered(INDEPENDENT[law](rng, (n_nodes, 2, n))).blocks for _ in range(100)]
    flagged = [blocks for blocks in found if blocks.exist]
    assert len(flagged) <= 3
    assert all(blocks.length <= 12 for blocks in flagged)


def test_nodes_that_are_correlated_at_each_time_do_not_depend_on_the_past():
    rng = np.random.default_rng(1)
    flagged = 0
    for _ in range(50):
        common, own = rng.normal(size=(1, 2, 100)), rng.normal(size=(30, 2, 100))
        blocks = numbered(np.sqrt(0.8) * common + np.sqrt(0.2) * own).blocks
        flagged += blocks.measured.found
        # Folds hold out a time at all nodes.
        assert blocks.shared
        assert blocks.length == 1 or blocks.measured.found
    assert flagged <= stats.binom.ppf(0.98, 50, 0.01)


def test_a_weak_correlation_of_many_nodes_is_seen():
    """No single node of 100 observations shows 0.3 clearly; fifty together do."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = numbered(autoregression(rng, 0.3, 50, 100)).blocks.measured
        assert found.found
        assert found.correlation == pytest.approx(0.3, abs=0.06)
        assert found.tau == pytest.approx(1.3 / 0.7, abs=0.3)


@pytest.mark.parametrize(("phi", "n"), [(0.5, 150), (0.8, 150), (0.8, 600)])
def test_blocks_reach_four_times_as_far_as_the_memory(phi, n):
    rng = np.random.default_rng(0)
    tau = (1 + phi) / (1 - phi)
    lengths = [numbered(autoregression(rng, phi, 50, n)).blocks.length for _ in range(10)]
    assert np.mean(np.array(lengths) >= 4 * tau) >= 0.9
    assert np.median(lengths) <= 6 * tau


def test_volatility_is_seen():
    rng = np.random.default_rng(0)
    blocks = numbered(clustered(rng, 50, 600)).blocks
    found = blocks.measured
    assert found.found
    assert abs(found.correlation) < 0.03
    assert found.squared_correlation > 0.1
    assert found.squared_tau > 3 * found.tau
    assert blocks.length >= 8 * found.squared_tau
    assert "of their squares" in blocks.describe()


def test_a_few_nodes_with_a_long_memory_are_seen():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 2, 100))
    values[:3] = autoregression(rng, 0.8, 3, 100)
    found = numbered(values).blocks.measured
    assert found.found
    assert found.node_tau[:3].min() > 1.5 * np.median(found.node_tau[3:])


def test_the_order_of_rows_does_not_matter_when_there_are_times():
    rng = np.random.default_rng(0)
    values = autoregression(rng, 0.6, 10, 100)
    order = rng.permutation(100)
    samples = gr.NodeSamples.from_arrays(
        list(values[:, 0, order]), list(values[:, 1]), time=(order, range(100, 200))
    )
    straight = numbered(values).blocks
    assert samples.blocks.length == straight.length
    np.testing.assert_array_equal(samples.blocks.number[:100], straight.number[:100][order])


def test_a_change_between_the_samples_is_no_dependence():
    values = np.random.default_rng(0).normal(size=(20, 2, 80))
    values[:, 1] = 3 * values[:, 1] + 10
    assert not numbered(values).blocks.exist


def test_constant_values_and_tiny_samples():
    for values in (np.zeros((3, 2, 20)), np.ones((2, 2, 1)), np.full((2, 2, 9), 1e-300)):
        assert not numbered(values).blocks.exist


def test_the_scale_of_the_values_does_not_matter():
    values = autoregression(np.random.default_rng(0), 0.5, 10, 100)
    for factor in (1e-150, 1e80):
        assert numbered(factor * values).blocks.length == numbered(values).blocks.length


def test_pairs_over_long_gaps_do_not_count():
    """Mornings of ten hours: strong dependence within, a new start on every day."""
    rng = np.random.default_rng(0)
    days = autoregression(rng, 0.7, 10 * 40, 10).reshape(40, 10, 2, 10)
    values = np.moveaxis(days, 0, 2).reshape(10, 2, 400)
    clock = (np.arange(40)[:, None] * 24 + np.arange(10)).ravel()
    samples = gr.NodeSamples.from_arrays(
        list(values[:, 0]), list(values[:, 1]), time=(clock, clock + 10_000)
    )
    assert samples.blocks.measured.correlation == pytest.approx(0.7, abs=0.1)
    assert numbered(values).blocks.measured.correlation < 0.66


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("n", [72, 150, 600])
def test_levels_of_days_lead_to_whole_days(common, n):
    rng = np.random.default_rng(0)
    for _ in range(5):
        level = daily_level(rng, 1 if common else 30, n, 0.3)
        blocks = hourly(level + np.sqrt(0.7) * rng.normal(size=(30, 2, n))).blocks
        assert (blocks.kind, blocks.words()) == ("calendar", "whole days")
        assert "between observations of one day" in blocks.describe()


def test_hours_without_levels_of_days_are_cut_between_them():
    rng = np.random.default_rng(0)
    kinds = [hourly(autoregression(rng, 0.5, 50, 150)).blocks.kind for _ in range(20)]
    assert kinds.count("count") >= 18


def test_a_memory_of_more_than_a_day_takes_whole_days():
    rng = np.random.default_rng(0)
    assert hourly(autoregression(rng, 0.8, 50, 600)).blocks.words() == "blocks of 2 days"
    both = daily_level(rng, 1, 600, 0.3) + np.sqrt(0.7) * autoregression(rng, 0.8, 50, 600)
    assert hourly(both).blocks.words() == "blocks of 2 days"


def test_repeated_numbers_are_units():
    """Days counted as 0, 1, 2, ..., with five observations on each."""
    rng = np.random.default_rng(0)
    level = np.repeat(rng.normal(size=(20, 2, 12)), 5, axis=2)
    values = level + rng.normal(size=level.shape)
    days = np.repeat(np.arange(12), 5)
    samples = gr.NodeSamples.from_arrays(
        list(values[:, 0]), list(values[:, 1]), time=(days, days + 100)
    )
    assert samples.blocks.kind == "calendar"
    assert samples.blocks.words() == "all observations of one time"
    np.testing.assert_array_equal(samples.blocks.counts, np.full((20, 2), 12))


def test_one_observation_a_day_under_a_common_weather():
    """Nodes are observed once a day at hours of their own."""
    rng = np.random.default_rng(0)
    weather = np.sqrt(0.3) * rng.normal(size=(1, 2, 60))
    values = weather + np.sqrt(0.7) * rng.normal(size=(40, 2, 60))
    first = 24 * np.arange(60) + rng.integers(24, size=(40, 2, 60))
    times = np.datetime64("2020-01-01", "h") + first
    samples = gr.NodeSamples.from_arrays(
        list(values[:, 0]), list(values[:, 1]), time=(times[:, 0], times[:, 1] + 24 * 180)
    )
    blocks = samples.blocks
    assert not blocks.measured.found
    assert blocks.words() == "whole days"
    np.testing.assert_array_equal(blocks.counts, np.full((40, 2), 60))


def test_all_features_count():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10, 2, 100, 3))
    values[..., 2] = autoregression(rng, 0.6, 10, 100)
    time = (range(100), range(100, 200))
    samples = gr.NodeSamples.from_arrays(values[:, 0], values[:, 1], time=time)
    assert samples.blocks.measured.tau > 3


def test_flights_of_a_day_share_the_weather():
    samples = gr.datasets.load_flights(time=True).samples
    assert samples.blocks.words() == "whole days"
    assert samples.blocks.measured.by_day
    plain = gr.datasets.load_flights().samples
    np.testing.assert_array_equal(np.sort(samples.values, axis=0), np.sort(plain.values, axis=0))
    assert not plain.blocks.exist


def test_the_order_of_rows_at_one_time_says_nothing():
    """Rows sorted by value within a year are not dependent."""
    values = np.sort(np.random.default_rng(0).normal(size=(10, 2, 2, 50)), axis=3).reshape(
        10, 2, 100
    )
    years = np.repeat([2019, 2020], 50)
    samples = gr.NodeSamples.from_arrays(
        list(values[:, 0]), list(values[:, 1]), time=(years, years + 2)
    )
    assert not samples.blocks.exist


def test_many_observations_are_measured_in_part(monkeypatch):
    rng = np.random.default_rng(0)
    values = autoregression(rng, 0.5, 30, 100)
    whole = numbered(values).blocks
    monkeypatch.setattr(block_cutting, "_ENOUGH", 2500)
    part = numbered(values).blocks
    assert part.measured.node_tau.shape == (30,)
    assert part.measured.tau == pytest.approx(whole.measured.tau, rel=0.2)
    assert part.number.shape == whole.number.shape


@pytest.mark.parametrize(("first", "kept", "n_lags"), [(0.12, 0.95, 30), (0.5, 0.5, 9)])
def test_memory_beyond_the_last_lag_is_extrapolated(first, kept, n_lags):
    correlations = first * kept ** np.arange(n_lags)
    sums = (np.cumsum(correlations) - 0.001 * np.arange(1, n_lags + 1))[:, np.newaxis]
    found = dependence._geometric(sums, np.array([0.001]))
    assert found[0] == pytest.approx(first / (1 - kept) ** 2)
    # No memory, and sums that noise made negative.
    assert dependence._geometric(-np.ones((8, 1)), np.zeros(1))[0] == 0
