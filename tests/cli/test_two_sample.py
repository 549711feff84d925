"""`graphratio test`, and `graphratio report --test`."""

import json
import re

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
        "node", "effect_size", "p_value", "adjusted_p_value", "rejected", "detectable_shift",
        "answerable", "n_pieces_reference", "n_pieces_target",
    ]  # fmt: skip
    assert set(table["node"][table["rejected"]]) == {"s5", "s6", "s7"}
    regions = pd.read_csv(folder / "regions.csv")
    assert regions["node"].tolist() == ["s5", "s6", "s7"]
    assert (regions["changed_at_least"] == 3).all()
    assert "3 of 8 nodes changed" in result.stdout
    assert "These p-values assume: " in result.stdout
    assert "Significant nodes" in result.stdout
    assert "Regions of connected significant nodes" in result.stdout


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


def test_the_global_null_calls_no_node_significant(data, edges, test_command):
    result, _ = test_command(data, "--edges", edges, "--null", "global")
    assert "Nodes that stand out" in result.stdout
    assert "ignificant" not in result.stdout
    assert "truly changed" not in result.stdout


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
    assert '<span class="value">3</span> <span class="label">changed</span>' in page


def test_console_and_page_say_the_same_of_what_was_not_found(data, edges, run, tmp_path):
    result = run("test", data, *COLUMNS, *FEATURES, "--edges", edges, "--output", tmp_path / "t")
    told = " ".join(result.stdout.split())
    result = run(
        "report", data, *COLUMNS, *FEATURES, "--edges", edges, "--test", "--output", tmp_path / "r",
    )  # fmt: skip
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    (note,) = re.findall(r"a shift by about [^<]* of 80%", page)
    assert f"No change was found at 5 nodes: {note}." in told
    assert "Most changed nodes" in result.stdout


def test_a_ranking_without_a_significant_node_says_so(table, write, edges, run, tmp_path):
    quiet = write(table.assign(pm25=np.random.default_rng(0).normal(5, 1, len(table))))
    result = run(
        "report",
        quiet,
        *COLUMNS,
        "--features",
        "pm25",
        "--edges",
        edges,
        "--output",
        tmp_path / "r",
    )
    assert result.exit_code == 0, result.output
    assert "Largest estimated changes, none significant (" in result.stdout
    assert "Most changed nodes" not in result.stdout


def test_blocks_of_time_beside_a_sample_column(table, write, edges, run, tmp_path):
    """Rows of a day share its level: what was found is told, and days are permuted."""
    rng = np.random.default_rng(0)
    timed = table.copy()
    within = timed.groupby(["station", "period"]).cumcount()
    day = within // 5 + 100 * (timed["period"] == "after")
    timed["when"] = pd.Timestamp("2020-01-06") + pd.to_timedelta(24 * day + within % 5, unit="h")
    level = {key: rng.normal() for key in day.unique()}
    timed["no2"] += 30 * day.map(level)
    arguments = [*COLUMNS, *FEATURES, "--edges", edges, "--correction", "none", "--json"]
    folder = tmp_path / "auto"
    path = write(timed)
    found = run("test", path, *arguments, "--time", "when", "--output", folder)
    assert found.exit_code == 0, found.output
    content = json.loads(found.stdout)
    assert "whole days are independent" in content["assumptions"][0]
    assert any("whole days are kept together" in note for note in content["notes"])
    alone = run(
        "test", path, *arguments, "--time", "when", "--block", "none", "--output", tmp_path / "n",
    )  # fmt: skip
    assert "the observations are independent" in json.loads(alone.stdout)["assumptions"][0]
    weekly = run(
        "test", path, *arguments, "--time", "when", "--block", "2D", "--output", tmp_path / "w",
    )  # fmt: skip
    assert "blocks of 2 days" in json.loads(weekly.stdout)["assumptions"][0]


def test_times_go_with_a_part_of_the_observations(table, write, edges, run, tmp_path):
    timed = table.copy()
    timed["hour"] = timed.groupby(["station", "period"]).cumcount()
    timed["hour"] += 100 * (timed["period"] == "after")
    result = run(
        "test", write(timed), *COLUMNS, *FEATURES, "--edges", edges, "--time", "hour",
        "--max-observations", 12, "--null", "global", "--output", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output


def test_what_deserves_a_look_is_told(table, write, edges, run, tmp_path):
    odd = table.copy()
    odd.loc[odd.index[3], "pm25"] = 1e6
    odd.loc[(odd["station"] == "s2") & (np.arange(len(odd)) % 3 == 0), "no2"] = 0.0
    result = run(
        "report", write(odd), *COLUMNS, *FEATURES, "--edges", edges, "--estimator", "pool",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    assert "1 value of 'pm25' lies far outside the rest, such as 1e+06" in told
    assert "--log pm25" not in told
    assert "the value 0 makes up" in told
    assert "--missing drop" in told
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Possible problems in the data" in page
    assert "lies far outside the rest" in page


def test_what_successive_rows_show_is_said_once(run, write, tmp_path):
    walk = np.cumsum(np.random.default_rng(0).normal(size=(4, 2, 60)), axis=2)
    rows = [
        (f"s{v}", period, walk[v, k, i])
        for v in range(4)
        for k, period in enumerate(("before", "after"))
        for i in range(60)
    ]
    data = write(pd.DataFrame(rows, columns=["station", "period", "x"]))
    arguments = [*COLUMNS, "--features", "x", "--no-graph", "--permutations", "199"]
    result = run("test", data, *arguments, "--output", tmp_path / "once")
    assert result.exit_code == 0, result.output
    assert (result.stdout + result.stderr).count("successive rows are alike") == 1
    page = (tmp_path / "once" / "tests.html").read_text(encoding="utf-8").lower()
    assert page.count("successive rows are alike") == 1
    again = run("test", data, *arguments, "--output", tmp_path / "json", "--json")
    notes = " ".join(json.loads(again.stdout)["notes"])
    assert notes.count("successive rows are alike") == 1
    # In the words of the command line.
    assert "--time" in notes


def test_a_test_without_an_answer_says_so_once(write, run, tmp_path):
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(size=(6, 100)), axis=1)
    days = pd.date_range("2020-01-01", periods=100)
    rows = [
        (f"s{v}", day, value)
        for v, walk in enumerate(walks)
        for day, value in zip(days, walk, strict=True)
    ]
    data = write(pd.DataFrame(rows, columns=["station", "date", "level"]))
    result = run(
        "report", data, "--node", "station", "--time", "date", "--split", "2020-02-20",
        "--no-graph", "--test", "--output", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert " ".join(result.stdout.split()).count("These data cannot say whether any node") == 1
