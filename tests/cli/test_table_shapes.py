"""Tables as people have them: wide, with their own marks for missing values and dates, matrices."""

import json

import numpy as np
import pandas as pd
import pytest

import graphratio as gr

COLUMNS = ["--node", "station", "--sample", "period", "--reference", "before", "--target", "after"]
QUICK = ["--estimator", "pool", "--no-kinds", "--standardize", "none", "--json"]


@pytest.fixture
def fit(run, tmp_path):
    """Fit, and return what was printed and the model."""

    def fitted(*arguments):
        folder = tmp_path / "out"
        result = run("fit", *arguments, *QUICK, "--output", folder, "--overwrite")
        assert result.exit_code == 0, result.stderr
        return result, gr.load(folder / "model.graphratio")

    return fitted


@pytest.fixture(scope="module")
def long():
    """Three stations, sixty days, a change of the second half at one of them."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=60)
    values = rng.normal(size=(60, 3)).round(3)
    values[30:, 2] += 3
    frame = pd.DataFrame(values, columns=["n", "s", "w"]).assign(day=days.strftime("%Y-%m-%d"))
    frame["period"] = np.repeat(["before", "after"], 30)
    return frame.melt(["day", "period"], var_name="station", value_name="flow")


@pytest.fixture(scope="module")
def wide(long):
    return long.pivot_table("flow", ["day", "period"], "station").reset_index()


SPLIT = ["--time", "day", "--split", "2020-01-31", "--no-graph"]


class TestWide:
    def test_is_the_same_as_the_long_table(self, long, wide, write, fit):
        _, tall = fit(write(long, "long.csv"), "--node", "station", "--features", "flow", *SPLIT)
        told, model = fit(write(wide.drop(columns="period"), "wide.csv"), "--wide", *SPLIT)
        assert model.nodes_ == ("n", "s", "w") == tall.nodes_
        np.testing.assert_array_equal(model.divergence_, tall.divergence_)
        assert model.feature_names_in_.tolist() == ["value"]
        assert "3 columns are nodes: 'n', 's', 'w'" in told.stderr

    def test_with_a_column_of_samples_and_a_name(self, wide, write, fit):
        options = ["--sample", "period", "--reference", "before", "--target", "after"]
        told, model = fit(write(wide), "--wide", *options, "--features", "flow", "--no-graph")
        assert model.feature_names_in_.tolist() == ["flow"]
        assert model.sizes_.tolist() == [[30, 30]] * 3
        assert "they hold no numbers: 'day'" in told.stderr

    def test_changes(self, wide, write, run, tmp_path):
        rng = np.random.default_rng(1)
        values = rng.normal(size=(200, 4))
        values[120:, :2] += 3
        table = pd.DataFrame(values, columns=list("abcd")).assign(step=range(200))
        result = run(
            "changes", write(table), "--wide", "--time", "step", "--no-graph", "--json",
            "--output", tmp_path / "out",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        (event,) = json.loads(result.stdout)["events"]
        assert abs(event["time"] - 120) <= 2
        assert {one["node"] for one in event["onsets"]} == {"a", "b"}

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--coordinates", "n,s"], ["--coordinates", "--edges"]),
            (["--no-graph", "--features", "n"], ["--features is 'n'", "no column has"]),
            (["--no-graph", "--features", "a,b"], ["'a, b', which is several names"]),
            (["--no-graph", "--categorical", "n"], ["--categorical", "--node"]),
        ],
    )
    def test_refusals(self, wide, write, run, tmp_path, options, words):
        split = ["--time", "day", "--split", "2020-01-31"]
        result = run("fit", write(wide), "--wide", *split, *options, "--output", tmp_path / "out")
        assert result.exit_code == 1
        for word in words:
            assert word in result.stderr

    def test_either_a_node_or_wide(self, wide, write, run, tmp_path):
        for options, words in (
            ([], "--node COLUMN, or --wide"),
            (["--wide", "--node", "n"], "--node and --wide exclude each other"),
        ):
            result = run("fit", write(wide), *options, *SPLIT, "--output", tmp_path / "out")
            assert result.exit_code == 2
            assert words in " ".join(result.stderr.replace("│", "").split())

    def test_one_wrong_entry_does_not_cost_a_node(self, wide, write, run, tmp_path):
        table = wide.astype({"s": object})
        table.loc[3, "s"] = "broken"
        split = ["--sample", "period", "--reference", "before", "--target", "after"]
        command = ["fit", write(table), "--wide", *split, "--no-graph", "--output", tmp_path / "o"]
        result = run(*command)
        assert result.exit_code == 1
        assert "column 's' has 1 value other than numbers: 'broken'" in result.stderr
        assert "--na-values" in result.stderr


class TestMissingValues:
    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_marks_of_the_user(self, long, fit, tmp_path, ending):
        marked = long.copy()
        marked.loc[[0, 70], "flow"] = -999.0
        path = tmp_path / f"data.{ending}"
        if ending == "csv":
            marked.to_csv(path, index=False)
        else:
            marked.to_parquet(path, index=False)
        options = ["--node", "station", "--features", "flow", *SPLIT]
        marks = ["--na-values", "-999,gone", "--missing", "drop"]
        _, model = fit(path, *options, *marks)
        assert model.sizes_.tolist() == [[29, 30], [29, 30], [30, 30]]
        _, taken = fit(path, *options)
        assert taken.sizes_.tolist() == [[30, 30]] * 3

    def test_labels_are_left_alone(self, long, write, fit):
        renamed = long.assign(station=long.station.replace("n", "gone"))
        options = ["--node", "station", "--features", "flow", *SPLIT]
        _, model = fit(write(renamed), *options, "--na-values", "gone")
        assert model.nodes_ == ("gone", "s", "w")


class TestDates:
    def test_as_they_are_written(self, long, write, fit):
        other = long.assign(day=pd.to_datetime(long.day).dt.strftime("%d.%m.%y"))
        options = ["--node", "station", "--features", "flow", *SPLIT]
        _, model = fit(write(other), *options, "--date-format", "%d.%m.%y")
        _, iso = fit(write(long, "iso.csv"), *options)
        np.testing.assert_array_equal(model.divergence_, iso.divergence_)

    def test_numbers_are_dates_if_a_format_says_so(self, long, write, fit):
        other = long.assign(day=pd.to_datetime(long.day).dt.strftime("%Y%m%d"))
        options = ["--node", "station", "--features", "flow", *SPLIT]
        _, model = fit(write(other), *options, "--date-format", "%Y%m%d")
        assert model.sizes_.tolist() == [[30, 30]] * 3

    @pytest.mark.parametrize("given", ["%d.%m.%y", "%Q", "day"])
    def test_a_wrong_format(self, long, write, run, tmp_path, given):
        result = run(
            "fit", write(long), "--node", "station", "--features", "flow", *SPLIT,
            "--date-format", given, "--output", tmp_path / "out",
        )  # fmt: skip
        assert result.exit_code == 1
        assert "--date-format" in result.stderr
        assert "Traceback" not in result.output


class TestMatrices:
    WEIGHTS = np.array([[0, 2.0, 0], [2.0, 0, 0.5], [0, 0.5, 0]])

    def options(self, long, write):
        return [write(long), "--node", "station", "--features", "flow", *SPLIT[:-1]]

    @pytest.mark.parametrize("named", [True, False])
    def test_as_edges(self, long, write, fit, named):
        order = ["w", "n", "s"]
        frame = pd.DataFrame(self.WEIGHTS, index=order, columns=order)
        path = write(frame.to_csv(index=named), "edges.csv")
        _, model = fit(*self.options(long, write), "--edges", path)
        assert model.graph_.nodes == ("n", "s", "w")
        assert model.graph_.degrees.tolist() == [2.5, 0.5, 2.0]

    def test_diagonals_and_directions_are_said(self, long, write, fit):
        order = ["n", "s", "w"]
        matrix = self.WEIGHTS + np.eye(3)
        matrix[0, 1] = 1.0
        frame = pd.DataFrame(matrix, index=order, columns=order)
        path = write(frame.to_csv(), "edges.csv")
        told, model = fit(*self.options(long, write), "--edges", path)
        assert "diagonal" in told.stderr
        assert "not symmetric" in told.stderr
        assert model.graph_.degrees.tolist() == [2.0, 2.5, 0.5]

    def test_three_weighted_edges_are_a_list(self, long, write, fit):
        path = write("from,to,weight\nn,s,1\ns,w,2\nn,w,3\n", "edges.csv")
        _, model = fit(*self.options(long, write), "--edges", path)
        assert model.graph_.degrees.tolist() == [4.0, 3.0, 5.0]


class TestGeojson:
    def test_of_fits_and_tests(self, table, data, run, tmp_path):
        places = ["--features", "pm25", "--coordinates", "lat,lon", "--geojson"]
        for command, options, name in (
            ("fit", ["--estimator", "pool", "--no-kinds"], "nodes"),
            ("test", ["--permutations", "199"], "tests"),
        ):
            folder = tmp_path / command
            result = run(command, data, *COLUMNS, *places, *options, "--output", folder)
            assert result.exit_code == 0, result.stderr
            found = json.loads((folder / f"{name}.geojson").read_text())
            first = found["features"][0]
            assert first["geometry"] == {"type": "Point", "coordinates": [4.0, 50.0]}
            expected = pd.read_csv(folder / f"{name}.csv")
            assert first["properties"]["node"] == expected["node"][0]
            assert list(first["properties"]) == expected.columns.tolist()
            assert len(found["features"]) == len(expected)

    def test_needs_places_on_the_globe(self, data, run, tmp_path):
        given = [*COLUMNS, "--features", "pm25", "--geojson", "--output", tmp_path / "out"]
        assert run("fit", data, *given, "--no-graph").exit_code == 2
        plane = ["--coordinates", "lat,lon", "--metric", "euclidean", "--estimator", "pool"]
        result = run("fit", data, *given, *plane, "--no-kinds")
        assert result.exit_code == 1
        assert "--metric haversine" in result.stderr
