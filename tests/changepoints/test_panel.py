"""Panels as users have them, and what is said about bad ones."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import graphratio as gr
from graphratio.changepoints.panel import read_panel, read_step
from graphratio.exceptions import DataWarning, InputError

GRAPH = gr.Graph.from_edges([("a", "b"), ("b", "c")])


def long_frame(n_times=4):
    rng = np.random.default_rng(0)
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=t) for t in range(n_times)]
    rows = [(day, node, *rng.normal(size=2)) for day in days for node in "cab"]
    return pd.DataFrame(rows, columns=["day", "station", "x", "y"])


def test_frames_are_matched_by_label_and_sorted_by_time():
    frame = long_frame()
    panel, graph = read_panel(
        frame.sample(frac=1, random_state=0), GRAPH, node="station", time="day"
    )
    assert graph is GRAPH
    assert panel.feature_names == ("x", "y")
    assert panel.times == tuple(day.to_pydatetime() for day in sorted(frame["day"].unique()))
    row = frame[(frame["station"] == "b") & (frame["day"] == frame["day"].max())]
    assert panel.values[3, 1].tolist() == row[["x", "y"]].to_numpy()[0].tolist()


def test_polars_gives_the_same():
    frame = long_frame()
    columns = {"node": "station", "time": "day", "features": "y"}
    one, _ = read_panel(frame, GRAPH, **columns)
    other, _ = read_panel(pl.from_pandas(frame), GRAPH, **columns)
    assert other.backend == "polars"
    np.testing.assert_array_equal(one.values, other.values)
    assert one.times == other.times


def test_arrays_of_one_feature():
    panel, graph = read_panel(np.zeros((5, 3)), GRAPH)
    assert panel.values.shape == (5, 3, 1)
    assert panel.times is None
    assert graph.nodes == ("a", "b", "c")
    assert read_panel(np.zeros((5, 3)), None)[1].nodes == (0, 1, 2)


def missing_cell():
    frame = long_frame()
    frame.loc[4, "x"] = np.nan
    return frame


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (missing_cell(), r"node 'a' has no value at time 2020-01-02; 1 of 12 are missing"),
        (long_frame().drop(index=4), "node 'a' has no value at time"),
        (pd.concat([long_frame(), long_frame().head(1)]), r"node 'c' has 2 rows at time"),
        (long_frame().query("station != 'b'"), "no rows in the panel: 'b'"),
        (long_frame().replace({"station": {"b": "bb"}}), r"not in the graph: 'bb'.*Did you mean"),
        (long_frame().replace({"station": {"b": None}}), "'station' is missing in 4 of 12 rows"),
        (long_frame().rename(columns={"day": "date"}), "no column 'day'"),
        (long_frame().head(0), "the panel has no rows"),
    ],
)
def test_frames_that_cannot_be_used(frame, message):
    with pytest.raises(InputError, match=message):
        read_panel(frame, GRAPH, node="station", time="day")


def test_missing_observations_leave_the_others():
    with pytest.warns(DataWarning, match="1 of 12 observations are missing, at 1 of 3 nodes"):
        panel, _ = read_panel(missing_cell(), GRAPH, node="station", time="day", missing="drop")
    assert panel.values.shape == (4, 3, 2)
    assert np.isnan(panel.values[1, 0]).all()
    assert np.isfinite(panel.values).sum() == 22
    values = np.arange(12.0).reshape(4, 3)
    values[1, 2] = np.nan
    with pytest.warns(DataWarning, match="1 of 12 observations"):
        read, _ = read_panel(values, None, missing="drop")
    assert read.times is None
    np.testing.assert_array_equal(read.values[:, :, 0], values)
    values[:, 2] = np.nan
    with pytest.raises(InputError, match="nodes have fewer than 2 values: 2"):
        read_panel(values, None, missing="drop")


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        (np.zeros(5), r"shape \(5,\)"),
        (np.zeros((5, 4)), "has 4 nodes and the graph 3"),
        (np.full((5, 3), np.inf), "node 'a' has an infinite value at time 0"),
        (np.full((5, 3), 1e200), "as large as 1e\\+200"),
    ],
)
def test_arrays_that_cannot_be_used(panel, message):
    with pytest.raises(InputError, match=message):
        read_panel(panel, GRAPH)


def test_times_that_have_no_order():
    frame = pd.DataFrame({"node": ["a", "b", "c"], "time": [1, "x", 2], "v": [1.0, 2, 3]})
    with pytest.raises(InputError, match="cannot be put in order"):
        read_panel(frame, GRAPH)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], "3 nodes and 1 feature"),
        ({"a": 1.0, "b": 2.0}, "lacks the nodes 'c'"),
        ({"a": 1.0, "b": 2.0, "c": 1.0, "cc": 1.0}, "not in the panel: 'cc'"),
        ([1.0, np.nan, 2.0], "missing or infinite values at nodes 'b'"),
    ],
)
def test_steps_that_cannot_be_used(x, message):
    with pytest.raises(InputError, match=message):
        read_step(x, GRAPH.nodes, 1)


def test_steps_may_have_gaps_if_the_panel_had():
    found = read_step([1.0, np.nan, 2.0], GRAPH.nodes, 1, "drop")
    assert np.isnan(found[:, 0]).tolist() == [False, True, False]


class TestOtherShapes:
    """Wide tables and labelled arrays are read as the long table of the same numbers."""

    def long(self):
        rng = np.random.default_rng(0)
        days = pd.date_range("2020-01-01", periods=4)
        wide = pd.DataFrame(rng.normal(size=(4, 3)), index=days, columns=["b", "a", "c"])
        return wide, wide.rename_axis("day").reset_index().melt("day", var_name="node")

    @pytest.mark.parametrize("kind", ["index", "column", "polars"])
    def test_wide(self, kind):
        wide, long = self.long()
        expected, graph = read_panel(long, None, time="day")
        if kind != "index":
            wide = wide.rename_axis("day").reset_index()
        given = pl.from_pandas(wide) if kind == "polars" else wide
        read, own = read_panel(given, None, node=None, time="day")
        assert own.nodes == graph.nodes == ("b", "a", "c")
        np.testing.assert_array_equal(read.values, expected.values)
        assert read.times == expected.times
        assert read.feature_names == ("value",)
        assert read.backend == ("polars" if kind == "polars" else "pandas")

    @pytest.mark.parametrize("features", ["flow", ["flow"]])
    def test_the_values_of_a_wide_frame_have_a_name(self, features):
        wide, _ = self.long()
        read, _ = read_panel(wide, None, node=None, features=features)
        assert read.feature_names == ("flow",)

    def test_the_name_of_the_values_is_one_and_no_column(self):
        wide, _ = self.long()
        with pytest.raises(InputError, match=r"one feature, and features=.* names 2"):
            read_panel(wide, None, node=None, features=["flow", "level"])
        for name in ("a", "time", "node"):
            with pytest.raises(InputError, match=f"cannot be called '{name}'"):
                read_panel(wide, None, node=None, features=name)
        with pytest.raises(InputError, match="cannot be called 'value'"):
            read_panel(wide.rename(columns={"a": "value"}), None, node=None)

    def test_xarray(self):
        xr = pytest.importorskip("xarray")
        wide, long = self.long()
        expected, _ = read_panel(long, None, time="day")
        array = xr.DataArray(wide, dims=["day", "site"], name="flow")
        read, graph = read_panel(array, None, node="site", time="day")
        assert graph.nodes == ("b", "a", "c")
        assert read.feature_names == ("flow",)
        np.testing.assert_array_equal(read.values, expected.values)

    def test_xarray_with_the_dimension_node_needs_no_name(self):
        xr = pytest.importorskip("xarray")
        wide, long = self.long()
        expected, _ = read_panel(long, None, time="day")
        array = xr.DataArray(wide, dims=["day", "node"], name="flow")
        read, graph = read_panel(array, None, node=None, time="day")
        assert graph.nodes == ("b", "a", "c")
        np.testing.assert_array_equal(read.values, expected.values)

    def test_features_of_an_array_are_refused(self):
        wide, _ = self.long()
        with pytest.raises(InputError, match=r"features='a' .* the panel is an array"):
            read_panel(wide.to_numpy(), None, features="a")

    def test_a_column_of_text_is_no_node(self):
        wide, _ = self.long()
        with pytest.raises(InputError, match="'name'"):
            read_panel(wide.assign(name="x"), None, node=None)

    def test_times_are_written_as_one_types_them(self):
        _, long = self.long()
        with pytest.raises(InputError, match="has 2 rows at time 2020-01-01"):
            read_panel(pd.concat([long, long[:1]]), None, time="day")


def test_times_that_no_node_has_are_gaps_or_warned_about():
    hours = pd.date_range("2024-01-01", periods=100, freq="h").delete([30, 31, 60])
    frame = pd.DataFrame({"node": "a", "time": hours, "x": np.arange(97.0)})
    with pytest.warns(
        DataWarning, match='3 of 100 times are absent at all nodes.* Pass missing="drop"'
    ):
        panel, _ = read_panel(frame, None)
    assert len(panel.values) == len(panel.times) == 97
    with pytest.warns(DataWarning, match="3 of 100 observations are missing"):
        panel, _ = read_panel(frame, None, missing="drop")
    assert np.flatnonzero(np.isnan(panel.values[:, 0, 0])).tolist() == [30, 31, 60]
    assert panel.times[30] == dt.datetime(2024, 1, 2, 6)
    assert panel.values[32, 0, 0] == 30
    # Working days and months are steps of their own.
    for freq in ("B", "MS"):
        days = pd.date_range("2024-01-01", periods=50, freq=freq)
        frame = pd.DataFrame({"node": "a", "time": days, "x": np.arange(50.0)})
        assert len(read_panel(frame, None, missing="drop")[0].values) == 50
