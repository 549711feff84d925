"""Times of observations: every kind that users have, and errors that name the problem."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

import graphratio as gr
from graphratio.data.times import as_times
from graphratio.exceptions import DataWarning, InputError

MOMENTS = np.array(["2020-03-01T14:30", "2020-03-02"], "M8[us]")
STAMPS = pd.DatetimeIndex(MOMENTS)


@pytest.mark.parametrize(
    "given",
    [
        MOMENTS.astype("M8[ns]"),
        list(MOMENTS),
        ["2020-03-01T14:30", "2020-03-02"],
        ["2020-03-01 14:30", None],
        np.array(["2020-03-01T14:30Z", "2020-03-02T00:00+01:00"]),
        [datetime(2020, 3, 1, 14, 30), datetime(2020, 3, 2)],
        [datetime(2020, 3, 1, 14, 30, tzinfo=UTC), None],
        [datetime(2020, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))],
        pd.Series(STAMPS),
        STAMPS.tz_localize("Europe/Paris"),
        pd.Series(STAMPS.tz_localize("America/New_York")),
        pl.Series(MOMENTS),
        pl.Series(MOMENTS).dt.replace_time_zone("Asia/Tokyo"),
    ],
)
def test_dates_of_all_kinds_keep_their_clock(given):
    found = as_times(given, "time")
    assert found.dtype == "M8[us]"
    known = ~np.isnat(found)
    assert known[0]
    np.testing.assert_array_equal(found[known], MOMENTS[: len(found)][known])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (range(3), [0, 1, 2]),
        ([1.5, np.nan], [1.5, np.nan]),
        (np.array([3, 4], dtype=object), [3, 4]),
        (pd.Series([1, None], dtype="Int64"), [1, np.nan]),
        (pl.Series([1.0, None]), [1, np.nan]),
    ],
)
def test_numbers(given, expected):
    np.testing.assert_array_equal(as_times(given, "time"), expected)


def test_days_and_years():
    found = as_times([date(2020, 3, 1), None], "time")
    np.testing.assert_array_equal(found, np.array(["2020-03-01", "NaT"], "M8[us]"))
    found = as_times(["2020", "2020-03"], "time")
    np.testing.assert_array_equal(found, np.array(["2020-01-01", "2020-03-01"], "M8[us]"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["yesterday", "2020-03-01"], "not times: 'yesterday'"),
        (["2020-13-01"], "not times: '2020-13-01'"),
        (["03/01/2020"], "not times"),
        ([True, False], "not times"),
        ([1.0, np.inf], "1 infinite"),
        (["2020-03-01", 4.0], "numbers and dates"),
        (["2020-03-01T00:00Z", "2020-03-01T00:00"], "with and without a time zone"),
        ([[1], [2]], "2 dimensions"),
        (7, "of type int cannot be read"),
        (np.array([[1], {}], dtype=object), "not times"),
    ],
)
def test_what_is_no_time(given, message):
    with pytest.raises(InputError, match=message):
        as_times(given, "time")


def test_times_per_node_as_list_and_dict_and_shared():
    reference, target = {"a": [1.0, 2.0], "b": [3.0]}, {"a": [4.0], "b": []}
    by_dict = gr.NodeSamples.from_arrays(
        reference, target, time=({"a": [10, 11], "b": [12]}, {"a": [13]})
    )
    np.testing.assert_array_equal(by_dict.time, [10, 11, 13, 12])
    by_list = gr.NodeSamples.from_arrays(
        list(reference.values()), list(target.values()), time=([[10, 11], [12]], [[13], []])
    )
    np.testing.assert_array_equal(by_list.time, [10, 11, 13, 12])
    shared = gr.NodeSamples.from_arrays([[1.0, 2.0]] * 2, [[4.0]] * 2, time=([5, 6], [7]))
    np.testing.assert_array_equal(shared.time, [5, 6, 7, 5, 6, 7])
    table = np.array([[1, 2], [3, 4]])
    rows = gr.NodeSamples.from_arrays([[1.0, 2.0]] * 2, [[4.0]] * 2, time=(table, [7]))
    np.testing.assert_array_equal(rows.time, [1, 2, 7, 3, 4, 7])
    assert not rows.time.flags.writeable


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([1, 2, 3], "time of type list cannot be read"),
        (([1], [2]), "time has 1 reference times for node 0, which has 2"),
        (([[1, 2]], [[3], [4]]), "time has 1 entries for 2 nodes"),
        (([1, 2], ["2020-01-01"]), "numbers and dates"),
        (([1, np.nan], [3]), "1 in column 'time' of node 0"),
    ],
)
def test_times_that_do_not_fit(time, message):
    with pytest.raises(InputError, match=message):
        gr.NodeSamples.from_arrays([[1.0, 2.0]] * 2, [[4.0]] * 2, time=time)


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "site": ["b", "a", "b", "a", "b", "a"],
            "period": ["before", "before", "after", "after", "before", "after"],
            "pm": [1.0, 2.0, 3.0, 4.0, np.nan, 6.0],
            "day": ["2020-01-02", "2020-01-01", "2020-02-01", None, "2020-01-03", "2020-02-03"],
        }
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_time_of_a_frame_follows_its_rows(table, library):
    frame = table if library == "pandas" else pl.from_pandas(table)
    with pytest.warns(DataWarning, match="2 of 6 observations dropped.*column 'time'"):
        samples = gr.NodeSamples.from_frame(
            frame, "site", "period", "before", "after", time="day", missing="drop"
        )
    assert samples.feature_names == ("pm",)
    expected = np.array(["2020-01-02", "2020-02-01", "2020-01-01", "2020-02-03"], "M8[us]")
    np.testing.assert_array_equal(samples.time, expected)
    turned = samples.aligned(["a", "b"])
    np.testing.assert_array_equal(turned.time, expected[[2, 3, 0, 1]])
    np.testing.assert_array_equal(turned.standardized().time, turned.time)
    np.testing.assert_array_equal(samples.subset(["a"]).time, expected[2:])
    some = samples.subset(observations=np.array([True, False, True, True]))
    np.testing.assert_array_equal(some.time, expected[[0, 2, 3]])


def test_a_numeric_time_is_no_feature():
    frame = pd.DataFrame({"v": [0, 0], "s": ["r", "t"], "x": [1.0, 2.0], "t": [5, 6]})
    samples = gr.NodeSamples.from_frame(frame, "v", "s", "r", "t", time="t")
    assert samples.feature_names == ("x",)
    named = gr.NodeSamples.from_frame(frame, "v", "s", "r", "t", features=["x", "t"], time="t")
    assert named.feature_names == ("x", "t")
    with pytest.raises(InputError, match="no column 'when'"):
        gr.NodeSamples.from_frame(frame, "v", "s", "r", "t", time="when")


def test_a_frame_with_time_zones():
    hours = pd.DatetimeIndex(["2020-01-01T23:00", "2020-01-02T23:00"]).tz_localize("US/Eastern")
    frame = pd.DataFrame({"v": [0, 0], "s": ["r", "t"], "x": [1.0, 2.0], "t": hours})
    expected = np.array(["2020-01-01T23:00", "2020-01-02T23:00"], "M8[us]")
    for given in (frame, pl.from_pandas(frame)):
        samples = gr.NodeSamples.from_frame(given, "v", "s", "r", "t", time="t")
        np.testing.assert_array_equal(samples.time, expected)


@pytest.mark.parametrize("spelled", [lambda hours: hours, lambda hours: hours.map(str)])
def test_blocks_of_a_day_keep_local_days_whole(spelled):
    # Seven hours behind or ahead of UTC; summer time begins and ends inside, a day of 23 hours and
    # one of 25.
    for zone, first in (
        ("America/Los_Angeles", "2021-03-12"),
        ("Asia/Bangkok", "2021-10-30"),
        ("America/Los_Angeles", "2021-11-05"),
    ):
        hours = pd.date_range(first, periods=96, freq="h", tz=zone)
        x = np.random.default_rng(0).normal(size=96)
        samples = gr.NodeSamples.from_arrays(
            x[:48], x[48:], time=(spelled(hours[:48]), spelled(hours[48:])), block="1D"
        )
        for part, local in (("reference", hours[:48]), ("target", hours[48:])):
            number = samples.blocks.number[samples.is_target == (part == "target")]
            for day in np.unique(local.date):
                assert len(np.unique(number[local.date == day])) == 1
            assert len(np.unique(number)) == len(np.unique(local.date))


def test_the_hour_that_clocks_show_twice_leaves_blocks_shared():
    hours = pd.date_range("2021-11-05", periods=120, freq="h", tz="America/New_York")
    later = hours + pd.Timedelta(days=30)
    x = np.random.default_rng(0).normal(size=(3, 120))
    samples = gr.NodeSamples.from_arrays(list(x), list(x), time=(hours, later), block=24)
    assert samples.blocks.shared
    repeated = np.repeat(hours, 2)[:120]
    twice = gr.NodeSamples.from_arrays(list(x), list(x), time=(repeated, later), block=24)
    assert not twice.blocks.shared
