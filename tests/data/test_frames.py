"""Long tables in pandas and polars, with every type of column that people have."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from graphratio import Graph, NodeSamples, Pool
from graphratio.data.frames import backend_of, is_frame, make_frame
from graphratio.exceptions import DataWarning, InputError

TABLE = {
    "station": ["s", "n", "s", "n", "s", "w"],
    "period": ["after", "before", "before", "after", "other", "before"],
    "count": [1, 2, 3, 4, 5, 6],
    "level": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
}
KEYS = {"node": "station", "sample": "period", "reference": "before", "target": "after"}
BOTH = pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
FRAMES = pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=["pandas", "polars", "lazy"]
)


def read(frame, **changes):
    return NodeSamples.from_frame(frame, **{**KEYS, **changes})


class TestReading:
    @FRAMES
    def test_split_by_node_and_sample(self, make):
        samples = read(make(TABLE))
        assert samples.nodes == ("s", "n", "w")
        assert samples.feature_names == ("count", "level")
        assert samples.reference("s").tolist() == [[3.0, 2.5]]
        assert samples.target("s").tolist() == [[1.0, 0.5]]
        assert samples.target("n").tolist() == [[4.0, 3.5]]
        assert samples.n_target.tolist() == [1, 1, 0]
        assert samples.labelled

    @BOTH
    @pytest.mark.parametrize("features", ["level", ["level"], ("level",), np.array(["level"])])
    def test_chosen_features(self, make, features):
        samples = read(make(TABLE), features=features)
        assert samples.feature_names == ("level",)
        assert samples.reference("n").tolist() == [[1.5]]

    @BOTH
    def test_features_keep_the_order_asked_for(self, make):
        samples = read(make(TABLE), features=["level", "count"])
        assert samples.reference("n").tolist() == [[1.5, 2.0]]

    @BOTH
    def test_nodes_fix_the_order_and_may_have_no_rows(self, make):
        samples = read(make(TABLE), nodes=["w", "x", "n", "s"])
        assert samples.nodes == ("w", "x", "n", "s")
        assert samples.n_reference.tolist() == [1, 0, 1, 1]

    @BOTH
    def test_rows_of_a_sample_keep_their_order(self, make):
        frame = make({"station": ["a"] * 5, "period": [0, 1, 0, 1, 0], "x": [5, 4, 3, 2, 1]})
        samples = read(frame, reference=0, target=1)
        assert samples.reference("a").ravel().tolist() == [5, 3, 1]
        assert samples.target("a").ravel().tolist() == [4, 2]

    @BOTH
    def test_frames_are_not_modified(self, make):
        frame = make(TABLE)
        read(frame)
        assert frame.equals(make(TABLE))

    def test_values_are_not_shared_with_the_frame(self):
        frame = pd.DataFrame({**TABLE}).astype({"count": float})
        samples = read(frame)
        frame.loc[:, "count"] = -1.0
        assert samples.values.min() > 0

    def test_pandas_columns_named_by_numbers(self):
        frame = pd.DataFrame([["a", "x", 1.0], ["a", "y", 2.0]])
        samples = NodeSamples.from_frame(frame, 0, 1, "x", "y")
        assert samples.feature_names == ("2",)
        assert samples.target("a").tolist() == [[2.0]]


def january(day):
    return dt.datetime(2020, 1, day)


class TestColumnTypes:
    @pytest.mark.parametrize(
        ("column", "nodes"),
        [
            (pd.Series(["b", "a"], dtype="category"), ("b", "a")),
            (pd.Series(["b", "a"], dtype=object), ("b", "a")),
            (pd.Series(["b", "a"], dtype="string[python]"), ("b", "a")),
            (pd.Series(["b", "a"], dtype="string[pyarrow]"), ("b", "a")),
            (pd.Series([2, 1], dtype="category"), (2, 1)),
            (pd.Series([2, 1], dtype="Int64"), (2, 1)),
            (pd.Series([2, 1], dtype=np.uint8), (2, 1)),
            (pd.Series([2.5, 1.5]), (2.5, 1.5)),
            (pd.to_datetime(pd.Series(["2020-01-02", "2020-01-01"])), (january(2), january(1))),
            (pd.Series([(1, "x"), (0, "y")]), ((1, "x"), (0, "y"))),
            (pl.Series(["b", "a"], dtype=pl.Categorical), ("b", "a")),
            (pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])), ("b", "a")),
            (pl.Series([2, 1], dtype=pl.UInt8), (2, 1)),
            (pl.Series([january(2), january(1)]), (january(2), january(1))),
            (
                pl.Series([january(2).date(), january(1).date()]),
                (january(2).date(), january(1).date()),
            ),
        ],
        ids=lambda value: (
            f"{type(value).__module__.partition('.')[0]}-{getattr(value, 'dtype', '')}"
        ),
    )
    def test_labels_become_python_objects(self, column, nodes):
        make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
        part = make({"station": column, "period": ["before"] * 2, "x": [1.0, 2.0]})
        more = make({"station": column, "period": ["after"] * 2, "x": [3.0, 4.0]})
        frame = pl.concat([part, more]) if make is pl.DataFrame else pd.concat([part, more])
        samples = read(frame)
        assert samples.nodes == nodes
        assert [type(node) for node in samples.nodes] == [type(node) for node in nodes]
        assert samples.target(nodes[1]).tolist() == [[4.0]]

    @pytest.mark.parametrize("dtype", ["category", "string[pyarrow]", object])
    def test_the_sample_column_may_be_any_of_them(self, dtype):
        assert read(pd.DataFrame(TABLE).astype({"period": dtype})).n_target.tolist() == [1, 1, 0]

    @BOTH
    @pytest.mark.parametrize(
        ("sides", "reference", "target"),
        [
            ([False, True], False, True),
            ([0, 1], np.int64(0), np.int64(1)),
            (
                [january(1), january(2)],
                pd.Timestamp("2020-01-01"),
                np.datetime64("2020-01-02", "ns"),
            ),
        ],
        ids=["bool", "int", "date"],
    )
    def test_samples_told_apart_by_other_than_strings(self, make, sides, reference, target):
        frame = make({"station": ["a", "a"], "period": sides, "x": [1.0, 2.0]})
        samples = read(frame, reference=reference, target=target)
        assert samples.target("a").tolist() == [[2.0]]

    @pytest.mark.parametrize(
        "column",
        [
            pd.Series([1, 2], dtype="Int64"),
            pd.Series([1, 2], dtype="Float32"),
            pd.Series([1, 2], dtype="int64[pyarrow]"),
            pd.Series([1, 2], dtype=np.uint8),
            pl.Series([1, 2], dtype=pl.Decimal(10, 2)),
            pl.Series([1, 2], dtype=pl.Float32),
        ],
        ids=lambda column: str(column.dtype),
    )
    def test_numbers_of_every_type(self, column):
        make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
        frame = make({"station": ["a", "a"], "period": ["before", "after"], "x": column})
        assert read(frame, features="x").values.tolist() == [[1.0], [2.0]]

    @BOTH
    def test_booleans_count_if_named(self, make):
        frame = make({**TABLE, "dry": [True, False] * 3})
        assert "dry" not in read(frame).feature_names
        assert read(frame, features=["dry"]).reference("n").tolist() == [[0.0]]


class TestMissing:
    COUNTS = r"1 in column 'count' of node 's', 1 in column 'level' of node 'n'"

    @pytest.mark.parametrize(
        ("count", "level"),
        [
            (pd.Series([None, 2, 3, 4, 5, 6], dtype="Int64"), [0.5, 1.5, 2.5, np.nan, 4.5, 5.5]),
            (
                pd.Series([None, 2, 3, 4, 5, 6], dtype="int64[pyarrow]"),
                [0.5, 1.5, 2.5, None, 4.5, 5.5],
            ),
            ([None, 2, 3, 4, 5, 6], pd.Series([0.5, 1.5, 2.5, None, 4.5, 5.5], dtype="Float64")),
            (pl.Series([None, 2, 3, 4, 5, 6]), [0.5, 1.5, 2.5, None, 4.5, 5.5]),
            (pl.Series([None, 2, 3, 4, 5, 6]), [0.5, 1.5, 2.5, float("nan"), None, 5.5]),
        ],
        ids=["Int64-nan", "pyarrow", "Float64", "polars-null", "polars-nan"],
    )
    def test_values_are_counted_or_dropped(self, count, level):
        make = pl.DataFrame if isinstance(count, pl.Series) else pd.DataFrame
        frame = make({**TABLE, "count": count, "level": level})
        # The row of the sample "other" is not looked at, whatever it lacks.
        with pytest.raises(InputError, match=rf"missing values: {self.COUNTS}"):
            read(frame)
        with pytest.warns(DataWarning, match=rf"2 of 5 observations dropped.*{self.COUNTS}") as got:
            samples = read(frame, missing="drop")
        assert got[0].filename == __file__
        assert samples.n_target.tolist() == [0, 0, 0]
        assert samples.n_reference.tolist() == [1, 1, 1]

    @pytest.mark.parametrize(
        "station",
        [
            ["s", None, "s", "n", "s", "w"],
            pd.Series(["s", None, "s", "n", "s", "w"], dtype="category"),
            pd.Series([1, None, 1, 2, 1, 3], dtype="Int64"),
            [1.0, np.nan, 1.0, 2.0, 1.0, 3.0],
            pl.Series(["s", None, "s", "n", "s", "w"]),
            pl.Series([1.0, float("nan"), 1.0, 2.0, 1.0, 3.0]),
        ],
        ids=["object", "category", "Int64", "nan", "polars-null", "polars-nan"],
    )
    def test_labels_are_an_error_that_names_the_rows(self, station):
        make = pl.DataFrame if isinstance(station, pl.Series) else pd.DataFrame
        with pytest.raises(InputError, match=r"1 row has no node label .*'station': rows 1"):
            read(make({**TABLE, "station": station}))

    @BOTH
    def test_rows_of_no_sample_may_lack_everything(self, make):
        frame = make({**TABLE, "station": ["s", "n", "s", "n", None, "w"]})
        assert read(frame).nodes == ("s", "n", "w")
        frame = make({**TABLE, "period": ["after", "before", "before", "after", None, "before"]})
        assert read(frame).n_observations == 5

    @BOTH
    def test_infinite_values(self, make):
        with pytest.raises(InputError, match=r"infinite values: 1 in column 'level' of node 's'"):
            read(make({**TABLE, "level": [np.inf, 1.0, 1.0, 1.0, 1.0, 1.0]}), missing="drop")


class TestRefusals:
    @BOTH
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"node": "staton"}, r"no column 'staton' \(given as node\). Did you mean 'station'"),
            ({"sample": "when"}, r"no column 'when' \(given as sample\)"),
            ({"features": ["levle"]}, r"no column 'levle' \(given as feature\).*'level'"),
            ({"features": 3}, r"no column 3"),
            ({"features": []}, r"no features"),
            ({"features": ["level", "level"]}, r"features are repeated"),
            ({"features": ["station"]}, r"feature 'station' is not numeric \(type String; row 0"),
            ({"reference": "befor"}, r"'period' has no value 'befor'. Did you mean 'before'"),
            ({"reference": "after"}, r"reference and target are both 'after'"),
            ({"reference": ["before"]}, r"reference sample \['before'\] is not hashable"),
            ({"target": None}, r"target sample is missing"),
            ({"nodes": ["s", "n"]}, r"lacks 1 node of the table: 'w'"),
            ({"missing": "skip"}, r"missing='skip' is not one of"),
        ],
    )
    def test_name_what_is_wrong(self, make, changes, message):
        with pytest.raises(InputError, match=message):
            read(make(TABLE), **changes)

    @BOTH
    def test_a_word_among_numbers_is_located_and_not_shown(self, make):
        levels = ["1.0", "2", "3", "12,5", "5", "x"]
        with pytest.raises(InputError, match=r"row 3, counted from 0, has no number") as caught:
            read(make({**TABLE, "level": levels}), features=["level"])
        assert "12,5" not in str(caught.value)

    @BOTH
    def test_a_table_of_words_has_no_features(self, make):
        with pytest.raises(InputError, match="no features"):
            read(make({"station": ["a"], "period": ["before"]}))

    @BOTH
    def test_an_empty_table(self, make):
        with pytest.raises(InputError, match="no value 'before'"):
            read(make(TABLE)[:0])

    @pytest.mark.parametrize("frame", [None, "table.csv", [1, 2], np.ones((2, 2)), TABLE])
    def test_what_is_no_frame(self, frame):
        with pytest.raises(InputError, match=r"not a supported data frame\. Pass pandas or polars"):
            read(frame)

    def test_repeated_columns(self):
        frame = pd.DataFrame([["a", "before", 1.0, 2.0]], columns=["station", "period", "x", "x"])
        with pytest.raises(InputError, match="column names are repeated: 'x'"):
            read(frame)

    def test_labels_that_cannot_be_hashed(self):
        frame = pl.DataFrame({"station": [[1], [2]], "period": ["before", "after"], "x": [1, 2]})
        with pytest.raises(InputError, match=r"'station' \(given as node\).*not hashable"):
            read(frame)


class TestTables:
    @pytest.mark.parametrize(
        ("make", "expected"),
        [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pl.LazyFrame, pl.DataFrame)],
        ids=["pandas", "polars", "lazy"],
    )
    def test_come_back_in_the_library_they_came_from(self, make, expected):
        frame = make({k: v[:4] for k, v in TABLE.items()})
        model = Pool(bandwidth=1.0, ridge=0.1).fit(read(frame), Graph.empty(["n", "s"]))
        table = model.to_frame()
        assert isinstance(table, expected)
        assert list(table["node"]) == ["n", "s"]
        assert list(table["n_target"]) == [1, 1]

    @pytest.mark.parametrize("backend", ["pandas", "polars"])
    @pytest.mark.parametrize(
        "labels",
        [["a", "b"], [1, 2], [0.5, 1], ["a", 1], [("a", 1), ("b", 2)], [january(1), january(2)]],
        ids=["str", "int", "numbers", "mixed", "tuple", "date"],
    )
    def test_labels_survive(self, backend, labels):
        table = make_frame({"node": labels, "size": np.array([1, 2])}, backend)
        assert list(table["node"]) == labels
        assert list(table["size"]) == [1, 2]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (pd.DataFrame(), True),
            (pl.DataFrame(), True),
            (pl.LazyFrame(), True),
            (pd.Series([1]), False),
            (pl.Series([1]), False),
            (np.ones((2, 2)), False),
            ({"columns": 1}, False),
            (None, False),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_what_is_a_frame(self, value, expected):
        assert is_frame(value) is expected

    def test_backends(self):
        assert backend_of(pl.LazyFrame()) == "polars"
        assert backend_of(pd.DataFrame()) == "pandas"


@BOTH
def test_labels_of_long_tables_are_touched_once_each(make, monkeypatch):
    # A bound on work rather than on time: with one call per row this would take minutes.
    from graphratio.data import sample_input

    calls = []
    plain_label = sample_input.plain_label
    monkeypatch.setattr(
        sample_input, "plain_label", lambda *args: calls.append(args) or plain_label(*args)
    )
    rng = np.random.default_rng(0)
    node = rng.integers(0, 100, 200_000)
    frame = make({"station": node, "period": rng.integers(0, 2, node.size), "x": node * 1.0})
    samples = read(frame, reference=0, target=1)
    assert len(calls) < 200
    assert samples.n_nodes == 100
    for label in (3, 97):
        assert np.unique(samples.reference(label)).tolist() == [label]
