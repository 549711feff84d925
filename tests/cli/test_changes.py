"""`graphratio changes`: files in, events out."""

import json

import numpy as np
import pandas as pd
import pytest

import graphratio as gr

COLUMNS = ["--node", "station", "--time", "day", "--surrogates", 39]


@pytest.fixture(scope="module")
def series():
    """Eight stations on a line over 160 days; the last three change on the hundredth."""
    values = np.random.default_rng(0).normal(size=(160, 8))
    values[100:, 5:] += 4.0
    days = pd.date_range("2020-01-01", periods=160).strftime("%Y-%m-%d")
    rows = [(f"s{v}", days[t], values[t, v], 50.0 + v, 4.0) for t in range(160) for v in range(8)]
    return pd.DataFrame(rows, columns=["station", "day", "pm25", "lat", "lon"]).round(4)


@pytest.fixture
def changes(run, tmp_path):
    def runner(data, *arguments):
        folder = tmp_path / "out"
        return run("changes", data, *COLUMNS, "--output", folder, *arguments), folder

    return runner


def test_writes_events_page_and_detector(series, write, changes):
    result, folder = changes(write(series), "--coordinates", "lat,lon", "--neighbors", 2)
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == {
        "changes.html", "events.csv", "detector.graphratio",
    }  # fmt: skip
    events = pd.read_csv(folder / "events.csv")
    assert events.columns.tolist()[:5] == ["event", "time", "node", "onset", "kind"]
    assert set(events["kind"]) == {"mean of pm25 up"}
    assert "On 10 April 2020 pm25 rose at 3 of 8 nodes" in result.stdout.replace("\n", " ")
    assert sorted(events["node"]) == ["s5", "s6", "s7"]
    assert set(events["time"]) == {"2020-04-10"}
    assert "2020-04-10" in result.stdout
    assert "2 nearest by great-circle distance" in result.stderr
    resumed = gr.GraphChangePointDetector.load(folder / "detector.graphratio")
    assert resumed.predict() == [100, 160]


def test_json_and_numbers_as_times(series, write, changes, edges):
    numbered = series.assign(day=series["day"].astype("category").cat.codes)
    result, _ = changes(write(numbered), "--edges", edges, "--features", "pm25", "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["n_edges"] == 7
    assert [event["time"] for event in content["events"]] == [100]
    assert {row["node"] for row in content["events"][0]["onsets"]} == {"s5", "s6", "s7"}
    assert content["files"]["page"].endswith("changes.html")
    first = content["events"][0]["changes"][0]
    assert first["kind"] == "mean of pm25 up"
    assert first["features"][0]["mean_after"] - first["features"][0]["mean_before"] > 3
    assert content["events"][0]["kinds"] == {"mean of pm25 up": 3}
    assert content["headline"].startswith("At 100 pm25 rose at 3 of 8 nodes (s")
    assert content["too_short"] is False


def test_quiet_and_nothing_found(series, write, changes):
    calm = series[series["station"] < "s5"]
    result, folder = changes(write(calm), "--no-graph", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    assert (folder / "events.csv").read_text().startswith("event,time,node,onset,kind,")
    assert len(pd.read_csv(folder / "events.csv")) == 0
    again, _ = changes(write(calm), "--no-graph", "--overwrite")
    assert "No change found (p = " in again.stdout


def test_nodes_without_rows_are_left_out(series, write, changes):
    few = series[series["station"] != "s3"]
    edges = write("a,b\n" + "".join(f"s{v},s{v + 1}\n" for v in range(7)), "edges.csv")
    result, _ = changes(write(few), "--edges", edges, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_nodes"] == 7
    assert "left out 1 node of the edges file without rows in the table: 's3'" in result.stderr


@pytest.mark.parametrize(
    ("spoil", "arguments", "message"),
    [
        (lambda t: t.drop(index=30), ["--no-graph"], "node 's6' has no value at time"),
        (lambda t: pd.concat([t, t.head(1)]), ["--no-graph"], "'s0' has 2 rows at time"),
        (lambda t: t[t["day"] < "2020-01-10"], ["--no-graph"], "9 times, fewer than the 20"),
        (lambda t: t, ["--no-graph", "--features", "day"], "name the column 'day' twice"),
        (lambda t: t, ["--no-graph", "--time", "date"], "no column 'date'"),
        (lambda t: t.assign(day="soon"), ["--no-graph"], "not dates: 'soon'"),
        (lambda t: t.replace({"day": {"2020-01-02": ""}}), ["--no-graph"], "empty in 8 of 1280"),
    ],
)
def test_input_that_cannot_be_used(series, write, changes, spoil, arguments, message):
    result, folder = changes(write(spoil(series)), *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "hint: " in result.stderr
    assert not folder.exists()


def test_absent_times_name_the_option(series, write, changes):
    table = series[series["day"] != series["day"].unique()[30]]
    result, _ = changes(write(table), "--no-graph")
    told = " ".join(result.stderr.split())
    assert "1 of 160 times are absent at all nodes" in told
    assert "Pass --missing drop to keep the places of absent times" in told


def test_missing_observations_may_be_left_out(series, write, changes):
    result, _ = changes(write(series.drop(index=30)), "--no-graph", "--missing", "drop", "--json")
    assert result.exit_code == 0, result.output
    assert "1 of 1280 observations are missing, at 1 of 8 nodes" in result.stderr
    assert json.loads(result.stdout)["n_times"] == 160


@pytest.mark.parametrize("arguments", [["--level", 2], ["--season", "daily"], []])
def test_options_that_do_not_fit_together(series, write, changes, arguments):
    graph = ["--no-graph"] if arguments else []
    assert changes(write(series), *arguments, *graph)[0].exit_code == 2
