"""`graphratio test`, and `graphratio report --test`."""

import json

import numpy as np
import pandas as pd
import pytest

COLUMNS = ["--node", "station", "--sample", "period", "--reference", "before", "--target", "after"]
FEATURES = ["--features", "pm25,no2", "--log", "pm25"]


@pytest.fixture
def test_command(run, tmp_path):
    def runner(data, *arguments):
        folder = tmp_path / "tests"
        return run("test", data, *COLUMNS, *FEATURES, "--output", folder, *arguments), folder

    return runner


def test_finds_the_changed_stations(data, edges, test_command):
    result, folder = test_command(data, "--edges", edges)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(folder / "tests.csv")
    assert list(table.columns) == [
        "node", "statistic", "p_value", "adjusted_p_value", "rejected",
    ]  # fmt: skip
    assert set(table["node"][table["rejected"]]) == {"s5", "s6", "s7"}
    regions = pd.read_csv(folder / "regions.csv")
    assert regions["node"].tolist() == ["s5", "s6", "s7"]
    assert (regions["changed_at_least"] == 3).all()
    assert "3 of 8 nodes changed" in result.stdout
    assert "Assumed: " in result.stdout


def test_json_and_the_same_seed(data, edges, test_command):
    first, _ = test_command(data, "--edges", edges, "--json", "--correction", "fdr")
    again, _ = test_command(data, "--edges", edges, "--json", "--correction", "fdr", "--overwrite")
    content = json.loads(first.stdout)
    assert content == json.loads(again.stdout)
    assert content["rejected"] == ["s5", "s6", "s7"]
    assert content["correction"] == "fdr"
    assert content["regions"][0]["nodes"] == ["s5", "s6", "s7"]


def test_global_null_with_time_stamps(table, write, edges, run, tmp_path):
    timed = table.copy()
    timed["hour"] = timed.groupby(["station", "period"]).cumcount()
    timed["hour"] += 100 * (timed["period"] == "after")
    # Stamps are read from the rows themselves, so their order does not matter.
    mixed = timed.sample(frac=1, random_state=0)
    arguments = [*COLUMNS, *FEATURES, "--edges", edges, "--null", "global", "--time", "hour"]
    outputs = []
    for name, frame in (("sorted", timed), ("mixed", mixed)):
        folder = tmp_path / name
        result = run("test", write(frame, f"{name}.csv"), *arguments, "--output", folder, "--json")
        assert result.exit_code == 0, result.output
        outputs.append(json.loads(result.stdout))
    assert outputs[0]["global_p_value"] <= 0.05
    assert outputs[1]["global_p_value"] <= 0.05
    assert "nodes may depend on each other" in outputs[0]["assumptions"][0]


def test_stamps_of_dropped_rows_are_dropped(table, write, edges, run, tmp_path):
    timed = table.copy()
    timed["hour"] = timed.groupby(["station", "period"]).cumcount()
    timed["hour"] += 100 * (timed["period"] == "after")
    timed.loc[::7, "no2"] = np.nan
    result = run(
        "test", write(timed), *COLUMNS, *FEATURES, "--edges", edges, "--time", "hour",
        "--missing", "drop", "--block", 2, "--correction", "none",
        "--output", tmp_path / "out", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "blocks of 2 observations" in json.loads(result.stdout)["assumptions"][0]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--permutations", "20"], 1, "permutations the smallest p-value is"),
        (["--time", "nowhere"], 1, "nowhere"),
        (["--level", "2"], 2, "--level must be between 0 and 1"),
        (["--block", "weekly"], 2, "--block weekly is not auto, none, a number of rows"),
        (["--block", "0"], 2, "--block 0 is not auto"),
        (["--block", "6h"], 2, "--block 6h is a duration and needs --time"),
    ],
)
def test_bad_options(data, edges, test_command, arguments, code, message):
    result, folder = test_command(data, "--edges", edges, *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.output.replace("│", " ").split())
    assert not folder.exists()


def test_report_with_a_test(data, edges, run, tmp_path):
    folder = tmp_path / "out"
    result = run(
        "report", data, *COLUMNS, *FEATURES, "--edges", edges, "--test", "--output", folder,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "3 of 8 nodes changed" in result.stdout
    table = pd.read_csv(folder / "nodes.csv")
    assert set(table["node"][table["rejected"]]) == {"s5", "s6", "s7"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "3 of 8 nodes changed by more than chance explains." in page
