"""The detector as users see it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import graphratio as gr
from graphratio.changepoints.online import Scales, recent_statistics
from graphratio.changepoints.scan import cumulative
from graphratio.changepoints.stretch import Stretch
from graphratio.exceptions import DataWarning, FileFormatError, InputError

GRAPH = gr.Graph.from_edges(
    [(i, j) for block in (range(6), range(6, 12)) for i in block for j in block if i < j] + [(5, 6)]
)
CHANGED = tuple(range(6, 12))


def quiet(seed=0, n_times=400, n_features=1):
    return np.random.default_rng(seed).normal(size=(n_times, 12, n_features))


def shifted(step=250, **settings):
    panel = quiet(**settings)
    panel[step:, 6:] += 1.5
    return panel


def detector(**settings):
    """Few surrogates: p-values stop at 0.05, and thresholds are rough."""
    return gr.GraphChangePointDetector(**{"random_state": 0, "n_surrogates": 19, **settings})


@pytest.fixture(scope="module")
def fitted():
    return detector(n_surrogates=99).fit(shifted(), GRAPH)


def test_finds_when_and_where(fitted):
    assert len(fitted.events_) == 1
    event = fitted.events_[0]
    assert abs(event.time - 250) <= 2
    assert event.interval[0] <= 250 <= event.interval[1]
    assert event.nodes == CHANGED
    assert set(event.onsets) == set(CHANGED)
    assert list(event.onsets.values()) == sorted(event.onsets.values())
    assert event.p_value == fitted.p_value_ == 0.01
    assert event.statistic > 1
    assert fitted.statistic_.max() > 1
    assert abs(fitted.scan_times_[fitted.statistic_.argmax()] - 250) <= 20
    assert event.alarm == 399
    assert fitted.predict() == [event.step, 400]


def test_nothing_is_found_where_nothing_changes():
    calm = detector(n_surrogates=99).fit(quiet(), GRAPH)
    assert calm.events_ == []
    assert calm.predict() == [400]
    assert calm.statistic_.max() <= 1
    assert calm.p_value_ > 0.05
    assert len(calm.to_frame()) == 0
    assert list(calm.to_frame().columns)[:5] == ["event", "time", "node", "onset", "kind"]
    assert calm.headline().startswith("No change found (p = ")
    assert not calm.too_short_


@pytest.mark.parametrize("kind", ["variance", "correlation"])
def test_finds_other_changes_than_of_the_mean(kind):
    panel = quiet(n_features=2, n_times=300)
    after = panel[150:, 6:]
    if kind == "variance":
        after *= 2.5
    else:
        after[:, :, 1] = 0.95 * after[:, :, 0] + np.sqrt(1 - 0.95**2) * after[:, :, 1]
    found = detector().fit(panel, GRAPH)
    assert len(found.events_) == 1
    event = found.events_[0]
    assert abs(event.step - 150) <= 5
    assert len(set(event.nodes) ^ set(CHANGED)) <= 1
    word = "spread of" if kind == "variance" else "correlation of x0 and x1 up"
    assert sum(word in one.kind for one in event.changes.values()) >= 5


def test_one_node_without_a_graph():
    panel = quiet()
    panel[200:, 4] += 2.5
    found = detector().fit(panel)
    assert found.graph_.n_edges == 0
    assert [event.nodes for event in found.events_] == [(4,)]
    assert abs(found.events_[0].step - 200) <= 3


def test_order_of_onset():
    panel = quiet(n_times=400)
    for position, node in enumerate(CHANGED):
        panel[230 + 5 * position :, node] += 4.0
    event = detector().fit(panel, GRAPH).events_[0]
    assert tuple(node for node in event.onsets if node in CHANGED) == CHANGED
    for position, node in enumerate(CHANGED):
        assert abs(event.onsets[node] - (230 + 5 * position)) <= 2


def test_several_changes():
    panel = quiet(n_times=350)
    panel[100:, 6:] += 2.0
    panel[200:, :3] += 2.0
    panel[275:, 6:] -= 2.0
    found = detector().fit(panel, GRAPH)
    steps = [event.step for event in found.events_]
    assert len(steps) == 3
    np.testing.assert_allclose(steps, [100, 200, 275], atol=2)
    assert set(found.events_[1].nodes) >= {0, 1, 2}
    assert len(found.events_[1].nodes) <= 4


def test_many_changes_are_not_taken_for_dependence():
    """Three pulses of all nodes, and changes close to the ends and to each other.

    In one panel of twenty chance shows some dependence, and pulses may be taken for it.
    """
    found = {"pulses": 0, "ends": 0}
    for seed in range(4):
        pulses = quiet(seed, n_times=360)
        for step in (60, 160, 260):
            pulses[step : step + 30] += 2.5
        steps = [60, 90, 160, 190, 260, 290, 360]
        found["pulses"] += detector().fit(pulses, GRAPH).predict() == steps
        ends = quiet(seed, n_times=300)
        ends[12:] += 3.0
        ends[150:162] += 4.0
        ends[280:, 6:] -= 3.0
        found["ends"] += detector().fit(ends, GRAPH).predict() == [12, 150, 162, 280, 300]
    assert found["pulses"] >= 3
    assert found["ends"] >= 3


def test_up_and_down_again_are_two_events():
    panel = quiet(n_times=400)
    panel[180:195, 6:] += 4.0
    assert detector().fit(panel, GRAPH).predict() == [180, 195, 400]


@pytest.mark.parametrize("step", [8, 390])
def test_changes_close_to_the_ends(step):
    panel = quiet()
    panel[step:, 6:] += 4.0
    assert detector().fit(panel, GRAPH).predict() == [step, 400]


def test_online_and_offline_agree():
    """Step by step the same statistics as in one go, and the same event as from a whole fit."""
    panel = np.concatenate([quiet(n_times=300), shifted(seed=1, step=60, n_times=160)])
    online = detector(memory=200).fit(panel[:300], GRAPH)
    curve, alarms = [], []
    for t, x in enumerate(panel[300:], 300):
        if (event := online.update(x)) is not None:
            assert event.alarm == t
            alarms.append(event)
        if not alarms:
            curve.append(online._watch.past.statistics()[1])
    assert len(alarms) == 1
    past = online._watch
    lens = past.settings.lens
    reference = Stretch(panel, 100, 300, lens)
    rows = np.concatenate(
        [part.reshape(360, -1) for part in reference.channels(
            lens.features(reference.score_map(panel[100:])))], axis=1
    )  # fmt: skip
    for i, found in enumerate(curve[:30]):
        scales = Scales.of(lens.shortest, 200)
        splits = scales.splits(100, np.array([301 + i]))
        whole = recent_statistics(
            splits, cumulative(rows[: 201 + i]), cumulative(rows[: 201 + i] ** 2), reference.layout
        )  # fmt: skip
        np.testing.assert_allclose(found, whole - scales.penalty(splits), rtol=1e-3, atol=1e-3)
    assert sum(found.shape[1] for found in curve[:30]) > 50
    final = online.events_[0]
    offline = detector().fit(panel, GRAPH).events_[0]
    assert (final.step, final.nodes) == (offline.step, offline.nodes)
    assert final.nodes == CHANGED
    assert 360 <= alarms[0].alarm < 375
    assert online.predict() == [final.step, 460]
    np.testing.assert_array_equal(online.panel_, panel)


def test_a_second_change_online():
    rng = np.random.default_rng(5)
    panel = rng.normal(size=(520, 12, 1))
    panel[200:, 6:] += 4.0
    panel[350:, :6] += 4.0
    online = detector().fit(panel[:150], GRAPH)
    alarms = [event for x in panel[150:] if (event := online.update(x)) is not None]
    assert len(alarms) == 2
    assert online.predict() == [200, 350, 520]
    for event, nodes in zip(online.events_, (CHANGED, tuple(range(6))), strict=True):
        assert set(event.nodes) >= set(nodes)
        assert len(event.nodes) <= 7


def test_frames_keep_their_times_and_library():
    panel = shifted(n_times=300, step=150)[:, :, 0]
    days = pd.date_range("2020-01-01", periods=300)
    frame = pd.DataFrame(panel, index=days).rename_axis("day").reset_index()
    long = frame.melt("day", var_name="station", value_name="pm25")
    columns = {"node": "station", "time": "day"}
    found = detector().fit(long, GRAPH, **columns)
    event = found.events_[0]
    assert abs((event.time - days[150].to_pydatetime()).days) <= 2
    assert found.predict() == [event.step, 300]
    table = found.to_frame()
    assert table.columns.tolist()[:4] == ["event", "time", "node", "onset"]
    assert table["node"].tolist() == list(event.onsets)
    assert repr(found).endswith(found.headline())
    with pytest.raises(InputError, match="no time, but the panel had times"):
        found.update(panel[0])
    with pytest.raises(InputError, match="is not after the last one"):
        found.update(panel[0], time=days[3])
    assert found.update(panel[-1], time=days[-1] + pd.Timedelta(days=1)) is None
    assert found.n_times_ == 301
    assert isinstance(
        detector().fit(pl.from_pandas(long), GRAPH, **columns).to_frame(), pl.DataFrame
    )


def test_saved_and_resumed(tmp_path):
    panel = shifted(n_times=360, step=260)
    estimator = gr.GRULSIF(bandwidth=1.0, random_state=np.random.default_rng(0))
    running = detector(estimator=estimator).fit(panel[:280], GRAPH)
    running.save(tmp_path / "running.graphratio")
    resumed = gr.GraphChangePointDetector.load(tmp_path / "running.graphratio")
    assert resumed.get_params(deep=False)["estimator"].bandwidth == 1.0
    for x in panel[280:]:
        assert running.update(x) == resumed.update(x)
    assert running.events_ == resumed.events_
    assert len(running.events_) == 1
    np.testing.assert_array_equal(running.statistic_, resumed.statistic_)
    np.testing.assert_array_equal(running.panel_, resumed.panel_)


def test_files_that_are_no_detector(fitted, tmp_path):
    path = tmp_path / "detector"
    fitted.save(path)
    whole = path.read_bytes()
    for damaged in (b"", whole[:1000], whole.replace(b"model.json", b"modal.json")):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="not a graphratio change-point detector"):
            gr.GraphChangePointDetector.load(path)
    gr.Pool(bandwidth=1.0, ridge=0.1).fit(([0.0, 1, 2], [1.0, 2, 3])).save(path)
    with pytest.raises(FileFormatError, match="is not ours"):
        gr.GraphChangePointDetector.load(path)
    fitted.save(path)
    with pytest.raises(FileFormatError, match="not a graphratio model"):
        gr.load(path)


def test_same_seed_same_result(fitted):
    again = clone(fitted).fit(shifted(), GRAPH)
    np.testing.assert_array_equal(again.statistic_, fitted.statistic_)
    assert again.events_ == fitted.events_


def test_pool_does_not_borrow():
    panel = shifted()
    alone = detector(estimator=gr.Pool()).fit(panel, GRAPH)
    without = detector(estimator=gr.Pool()).fit(panel, gr.Graph.empty(12))
    np.testing.assert_allclose(alone.statistic_, without.statistic_)


@pytest.mark.parametrize(
    "estimator",
    [gr.GraphRatio(), gr.GRULSIF(), gr.Pool(), gr.RULSIF(), gr.ULSIF(), gr.KLIEP()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_estimator_can_be_given(estimator):
    found = detector(estimator=estimator).fit(shifted(), GRAPH)
    assert [event.nodes for event in found.events_] == [CHANGED]
    assert abs(found.events_[0].step - 250) <= 2


def test_estimators_of_single_nodes_do_not_borrow_and_give_only_kernel_and_bandwidth():
    panel = shifted()
    given = {"kernel": "laplacian", "bandwidth": 2.0}
    pool = detector(estimator=gr.Pool(**given)).fit(panel, GRAPH)
    alone = detector(estimator=gr.RULSIF(ridge=10.0, **given)).fit(panel, GRAPH)
    assert alone.bandwidth_ == 2.0
    assert alone.ridge_ == pool.ridge_
    np.testing.assert_array_equal(alone.statistic_, pool.statistic_)


def test_units_do_not_matter():
    panel = shifted()
    factors = np.random.default_rng(1).uniform(0.1, 100, size=(12, 1))
    one = detector().fit(panel, GRAPH)
    other = detector().fit(panel * factors + 7.0, GRAPH)
    np.testing.assert_allclose(one.statistic_, other.statistic_, rtol=1e-6)


def test_a_node_that_never_moves_is_no_trouble():
    panel = shifted()
    panel[:, 0] = 3.0
    found = detector().fit(panel, GRAPH)
    assert np.isfinite(found.statistic_).all()
    assert 0 not in found.events_[0].nodes
    assert set(found.events_[0].nodes) >= set(CHANGED)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 3}, "window=3"),
        ({"window": (40, 20)}, "longest scale below the shortest"),
        ({"season": "daily"}, 'season="daily" is not a period'),
        ({"season": 2.5}, "season=2.5 is not a period"),
        ({"season": 300}, "season=300"),
        ({"trend": "linear"}, "trend='linear'"),
        ({"memory": 10}, "memory=10"),
        ({"level": 0.0}, "level=0.0"),
        ({"level": 0.001}, "n_surrogates=19 is too small.*at least 999"),
        ({"block": 0}, "block=0"),
        ({"estimator": "RULSIF"}, "estimator='RULSIF' is not an estimator of this library"),
        ({"estimator": gr.GRULSIF(bandwidth=[1.0, 2.0])}, "several candidates for bandwidth"),
    ],
)
def test_parameters_that_cannot_be_used(settings, message):
    with pytest.raises(InputError, match=message):
        detector(**settings).fit(quiet(), GRAPH)


def test_notebooks_show_what_was_found(fitted):
    page = fitted._repr_mimebundle_()["text/html"]
    assert fitted.headline() in page
    assert "mean of x0 up" in page
    assert "<table" not in str(detector())
    graph = gr.Graph.from_edges([("<b>", "c")])
    panel = quiet(n_times=120)[:, :2]
    panel[60:] += 4.0
    found = detector(n_surrogates=19).fit(panel, graph)
    assert "&lt;b&gt;" in found._repr_mimebundle_()["text/html"]
    assert "&lt;b&gt;" in found.events_[0]._repr_html_()


def test_bad_calls(fitted):
    with pytest.raises(NotFittedError):
        detector().predict()
    with pytest.raises(InputError, match=r"list is not a gr\.Graph"):
        detector().fit(quiet(), [])
    with pytest.raises(InputError, match="all observations of the panel are equal"):
        detector().fit(np.zeros((400, 12)), GRAPH)
    with pytest.raises(InputError, match="had no times"):
        fitted.update(np.zeros(12), time=7)
    with pytest.raises(InputError, match="2 axes were given"):
        fitted.plot([1, 2])
    with pytest.raises(InputError, match="int is not an event of this detector"):
        fitted.event_samples(250)
    with pytest.raises(InputError, match="the panel has 10 times, fewer than the 20"):
        detector().fit(quiet(n_times=10), GRAPH)


def test_false_alarms_are_as_rare_as_stated():
    """A small version of the study: autocorrelated, correlated nodes, one panel in ten."""
    rng = np.random.default_rng(0)
    graph = GRAPH.subset(range(3, 9))
    alarms = judged = 0
    for seed in range(44):
        noise = rng.normal(size=(350, 6)) + 0.7 * rng.normal(size=(350, 1))
        noise = lfilter([1], [1, -0.4], noise, axis=0)
        found = detector(level=0.1, random_state=seed).fit(noise[50:], graph)
        judged += not found.too_short_
        alarms += bool(found.events_)
    assert judged >= 40
    # Binomial with 40 panels and 10 %: at most 10 with probability 0.999.
    assert alarms <= 10


def test_long_gaps_raise_no_false_alarms():
    """One node reports at the beginning and at the end only, three begin late."""
    alarms = 0
    for seed in range(20):
        panel = quiet(seed, n_times=200)[:, :8]
        panel[20:180, 2] = np.nan
        panel[:130, 5:] = np.nan
        with pytest.warns(DataWarning, match="observations are missing"):
            found = detector(random_state=seed).fit(panel, missing="drop")
        alarms += bool(found.events_)
    # Binomial with 20 panels and 5 %: at most 4 with probability 0.997.
    assert alarms <= 4
