"""Rhythms, trends and gaps: what is recognised, said and removed."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.signal import lfilter

import graphratio as gr
from graphratio.changepoints import ChangeEvent, CorrelationChange, FeatureChange, NodeChange
from graphratio.changepoints.change_words import event_sentence
from graphratio.changepoints.seasons import adjustment
from graphratio.exceptions import DataWarning

GRAPH = gr.Graph.from_edges([(i, i + 1) for i in range(7)])


def noise(n_times=480, seed=0):
    return np.random.default_rng(seed).normal(size=(n_times, 8))


def daily(n_times=480, seed=0):
    hours = np.arange(n_times)
    return noise(n_times, seed) + 2 * np.sin(2 * np.pi * hours / 24)[:, np.newaxis]


def detector(**settings):
    return gr.GraphChangePointDetector(**{"random_state": 0, "n_surrogates": 39, **settings})


def test_a_rhythm_is_recognised_said_and_taken_out():
    panel = daily()
    panel[300:, 4:] += 1.5
    found = detector().fit(panel, GRAPH)
    assert found.periods_ == (24,)
    assert "A rhythm of 24 steps was removed." in found.headline()
    assert found.adjusted_.std() < 0.7 * found.panel_.std()
    assert len(found.events_) == 1
    assert abs(found.events_[0].step - 300) <= 2
    assert set(found.events_[0].nodes) >= {4, 5, 6, 7}
    given = detector(season=np.int64(24)).fit(panel, GRAPH)
    assert given.predict() == found.predict()


def test_a_rhythm_that_stays_is_warned_about():
    found = detector(season=None).fit(daily(), GRAPH)
    assert found.periods_ == (24,)
    assert "Warning: a rhythm of 24 steps was found and not removed." in found.headline()


def test_a_day_is_known_from_the_times():
    values = daily(24 * 21)
    begin = dt.datetime(2024, 5, 1)
    times = [begin + dt.timedelta(hours=t) for t in range(len(values))]
    assert adjustment(values[:, :, np.newaxis], times, "auto", None).periods[0] == 24


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_noise_has_no_rhythm_and_no_trend(memory):
    seen = []
    for seed in range(20):
        values = lfilter([1], [1, -memory], noise(seed=seed), axis=0)[:, :, np.newaxis]
        one = adjustment(values, None, "auto", "auto")
        seen.append(bool(one.periods) or one.trend.mean() > 0.2)
    assert sum(seen) <= 1


def test_the_profile_is_that_of_the_rhythm_and_ignores_a_change():
    panel = daily(24 * 40)
    panel[500:] += 3.0
    one = adjustment(panel[:, :, np.newaxis], None, 24, None)
    expected = 2 * np.sin(2 * np.pi * np.arange(24) / 24)
    assert np.abs(one.profiles[0][:, :, 0].mean(axis=1) - expected).max() < 0.3
    rest = one(panel[:, :, np.newaxis])
    assert rest[500:].mean() - rest[:500].mean() == pytest.approx(3.0, abs=0.1)
    np.testing.assert_allclose(one(panel[100:110, :, np.newaxis], 100), rest[100:110])


def test_a_slow_trend_is_no_change():
    panel = noise()
    panel[:, 2] += np.linspace(0, 4, len(panel))
    found = detector().fit(panel, GRAPH)
    assert found.trend_nodes_ == (2,)
    assert "A slow trend at 1 of 8 nodes was removed." in found.headline()
    assert found.events_ == []
    stays = detector(trend=None).fit(panel, GRAPH)
    assert stays.events_ != []
    assert "Warning: a slow trend at 1 of 8 nodes was not removed." in stays.headline()


def test_a_step_is_no_trend():
    panel = noise()
    panel[240:, 2] += 4.0
    found = detector().fit(panel, GRAPH)
    assert found.trend_nodes_ == ()
    assert found.predict() == [240, 480]


def test_gaps_are_used_around():
    panel = noise(seed=3)
    panel[300:, 4:] += 2.0
    gaps = panel.copy()
    gaps[np.random.default_rng(0).uniform(size=gaps.shape) < 0.05] = np.nan
    with pytest.warns(DataWarning, match="observations are missing"):
        found = detector().fit(gaps, GRAPH, missing="drop")
    assert found.n_times_ == 480
    assert abs(found.events_[0].step - 300) <= 1
    assert found.events_[0].nodes == (4, 5, 6, 7)
    one = found.events_[0].changes[4].features[0]
    observed = gaps[found.events_[0].step :, 4]
    assert one.mean_after == pytest.approx(np.nanmean(observed))
    gap = np.zeros(8)
    gap[3] = np.nan
    assert found.update(gap) is None
    assert np.isnan(found.panel_[-1, 3, 0])


def test_too_short_to_tell():
    slow = lfilter([1], [1, -0.9], noise(200), axis=0)
    found = detector().fit(slow, GRAPH)
    assert found.too_short_
    assert found.events_ == []
    assert found.p_value_ == 1.0
    assert found.headline().startswith("The panel is too short to tell: observations depend on")
    assert found.n_times_needed_ > 200


def test_what_changed_is_said_in_the_units_of_the_data():
    rng = np.random.default_rng(0)
    flow = rng.normal(100, 5, size=(300, 6))
    speed = rng.normal(50, 2, size=(300, 6))
    flow[180:, 3:] += 12.0
    speed[180:, 5] = 50 + 3 * (speed[180:, 5] - 50)
    times = [dt.datetime(2024, 5, 1) + dt.timedelta(hours=t) for t in range(300)]
    rows = [(times[t], f"s{v}", flow[t, v], speed[t, v]) for t in range(300) for v in range(6)]
    frame = pd.DataFrame(rows, columns=["time", "node", "flow", "speed"])
    graph = gr.Graph.from_edges([(f"s{i}", f"s{i + 1}") for i in range(5)])
    found = detector().fit(frame, graph)
    event = found.events_[0]
    assert event.time == times[180]
    assert event.nodes == ("s3", "s4", "s5")
    assert event.kinds == {"mean of flow up": 2, "mean of flow up, spread of speed up": 1}
    change = event.changes["s5"].features[1]
    assert change.spread_ratio == pytest.approx(3, rel=0.2)
    assert event.changes["s3"].divergence > 0.2
    begin = "On 8 May 2024 at 12:00 flow rose at 3 of 6 nodes (s3, s4 and s5), by 13 %"
    assert found.headline().startswith(begin)
    growth = float(np.mean(flow[180:, 3:].mean(axis=0) / flow[:180, 3:].mean(axis=0) - 1))
    assert found.headline().endswith(f"by {100 * growth:.0f} % on average.")
    table = found.to_frame()
    assert len(table) == 9
    assert set(table["feature"]) == {"flow", "speed", "flow and speed"}
    pair = table[(table["feature"] == "flow and speed") & (table["node"] == "s3")].iloc[0]
    expected = stats.spearmanr(flow[:180, 3], speed[:180, 3]).statistic
    assert pair["correlation_before"] == pytest.approx(expected)
    assert not pair["correlation_changed"]
    assert np.isnan(pair["mean_before"])
    assert "mean of flow" in event.changes["s3"].sizes
    assert "mean of flow" in event._repr_html_()
    samples = found.event_samples(event)
    assert samples.reference("s3").shape == (180, 2)
    assert samples.target("s3").shape == (120, 2)
    ratio = found.event_ratio(event)
    after, before = ratio.predict([[112.0, 50.0], [95.0, 50.0]], node="s3")
    assert after > 1.2 > 0.8 > before


def test_a_jump_does_not_tilt_the_trend():
    """A line through both would leave a saw tooth, with changes where there are none."""
    exact = 0
    for seed in range(4):
        panel = np.random.default_rng(seed).normal(size=(300, 8)) + 0.015 * np.arange(300)[:, None]
        panel[170:, :3] += 2.0
        found = detector(random_state=seed, n_surrogates=19).fit(panel, GRAPH)
        exact += len(found.events_) == 1 and abs(found.predict()[0] - 170) <= 2
        np.testing.assert_allclose(found.adjustment_.slope, 0.015, atol=0.006)
        event = min(found.events_, key=lambda one: abs(one.step - 170))
        change = event.changes[1].features[0]
        assert change.mean_after - change.mean_before == pytest.approx(2, abs=0.8)
    assert exact >= 3


def test_slopes_given_changes_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 2, 1)) + 0.3 * np.arange(60)[:, None, None]
    values[40:] += 9.0
    values[7, 0] = np.nan
    one = adjustment(values, None, None, "auto")
    found = one.given(values, [25, 40]).slope
    levels = np.searchsorted([25, 40], np.arange(60), "right")[:, None] == np.arange(3)
    design = np.c_[np.arange(60), levels]
    for node in range(2):
        there = np.isfinite(values[:, node, 0])
        expected = np.linalg.lstsq(design[there], values[there, node, 0], rcond=None)[0][0]
        assert found[node, 0] == pytest.approx(expected)


def test_the_headline_names_the_largest_change():
    """Not the first of several: a mean that moved a little beside a correlation."""
    small = FeatureChange("x", 0.06, -0.18, 1.0, 1.0, True, False)
    large = CorrelationChange("x", "y", 0.0, 0.75, True)
    one = NodeChange(9, (small,), (large,), 0.1)
    assert one.kind == "mean of x down, correlation of x and y up"
    event = ChangeEvent(9, (9, 9), (0,), {0: 9}, {0: one}, {one.kind: 1}, 9, 2.0, 0.01, 20)
    assert event_sentence(event, 1) == "At 9 the correlation of x and y rose from 0 to 0.75."


def test_a_sentence_says_who_was_first_only_if_somebody_was():
    flow = FeatureChange("flow", 10.0, 9.0, 1.0, 1.0, True, False)

    def sentence(*onsets):
        changes = {f"s{i}": NodeChange(t, (flow,), (), 0.1) for i, t in enumerate(onsets)}
        times = {node: one.onset for node, one in changes.items()}
        event = ChangeEvent(5, (4, 6), tuple(changes), times, changes, {}, 5, 2.0, 0.01, 20)
        return event_sentence(event, 9)

    assert sentence(5, 5) == "At 5 flow fell at 2 of 9 nodes (s0 and s1), by 10 % on average."
    assert "4 of 9 nodes, among them s0 and s1, by" in sentence(5, 5, 5, 5)
    assert sentence(3, 5, 5, 5).startswith("From 3 on flow fell at 4 of 9 nodes, first at s0, by")
    assert "4 of 9 nodes, first at s0, s1 and 1 more, by" in sentence(3, 3, 3, 5)


def test_two_peaks_instead_of_one_are_a_change_of_shape():
    """Deviations from the median grow, standard deviations do not: that is no spread."""
    rng = np.random.default_rng(0)
    panel = rng.normal(size=(600, 4))
    panel[300:, :2] = np.sign(panel[300:, :2]) * 0.95 + 0.3 * rng.normal(size=(300, 2))
    event = detector().fit(panel).events_[0]
    assert event.kinds == {"shape": 2}
    assert abs(event.step - 300) <= 15
