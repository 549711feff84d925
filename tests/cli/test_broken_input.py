"""Broken files and options: each gives one message that a person can act on, and exit code 1."""

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import graphratio as gr
from graphratio.cli import file_content
from graphratio.cli.app import app
from graphratio.cli.output import RESULTS
from graphratio.cli.table_files import TableFile

COLUMNS = ["--node", "station", "--sample", "period", "--reference", "before", "--target", "after"]
HEADER = "station,period,date,pm25,lat,lon\n"
ROWS = (
    "n,before,2020-01-01,1.0,50,4\nn,after,2020-04-01,2.0,50,4\n"
    "s,before,2020-01-01,1.5,51,4\ns,after,2020-04-01,2.5,51,4\n"
)
GOOD = HEADER + ROWS


def workbook():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


# Content of the table, and the words that the message must have.
TABLES = {
    "empty": (b"", ["is empty"]),
    "blank": (b"\n\n  \n", ["is empty"]),
    "only a header": (HEADER, ["header but no rows"]),
    "empty first line": ("\n" + GOOD, ["first line", "column names"]),
    "semicolons": (GOOD.replace(",", ";"), ["no column 'station'", "--delimiter ';'"]),
    "tabs": (GOOD.replace(",", "\t"), ["no column 'station'", "--delimiter tab"]),
    "binary": (bytes(range(256)) * 4, ["binary file", "CSV or Parquet"]),
    "workbook": (workbook(), ["Excel workbook", "Export the table as CSV"]),
    "twice": (gzip.compress(gzip.compress(GOOD.encode())), ["more than once", "Unpack"]),
    "latin-1": (GOOD.replace("n,", "Zürich,").encode("latin-1"), ["not UTF-8", "0xfc"]),
    "utf-16": (GOOD.encode("utf-16"), ["UTF-16", "UTF-8"]),
    "row too long": (GOOD + "n,before,2020-01-01,1.0,50,4,9,9\n", ["as a table", "line 6"]),
    "all rows too long": (HEADER + ROWS.replace("\n", ",9\n"), ["fields", "header"]),
    "open quote": (GOOD + '"n,before,2020-01-01,1.0,50,4\n', ["as a table", "quote"]),
    "no header": (ROWS, ["no column 'station'", "Available: 'n', 'before'"]),
    "column misspelt": (GOOD.replace("station", "statoin"), ["Did you mean 'statoin'?"]),
    "column twice": (GOOD.replace("lat", "pm25"), ["2 columns called 'pm25'", "Rename"]),
    "words for numbers": (GOOD.replace("2.5", "high"), ["'pm25'", "'high'", "row 4"]),
    "decimal commas": (GOOD.replace("2.5", '"2,5"'), ["'2,5'", "with a point"]),
    "missing numbers": (
        GOOD.replace("2.5", ""),
        ["1 in column 'pm25' of node 's'", "--missing drop"],
    ),
    "infinite numbers": (GOOD.replace("2.5", "inf"), ["infinite", "node 's'"]),
    "huge numbers": (GOOD.replace("2.5", "1e300"), ["1e+300", "Rescale"]),
    "no label": (GOOD.replace("s,after", ",after"), ["'station' is empty", "--missing drop"]),
    "value not found": (
        GOOD.replace("before", "Before"),
        ["'period' has no value 'before'", "'Before' (2 rows)", "Did you mean 'Before'?"],
    ),
    "one sample only": (GOOD.replace("after", "before"), ["no value 'after'", "'before' (4 rows)"]),
    "node without a sample": (
        GOOD + "w,before,2020-01-01,1,52,4\n",
        ["one of the two samples only: 'w'", "--edges"],
    ),
}


def assert_helpful(result, words):
    """Exit code 1, one message and one hint on standard error, nothing else."""
    assert result.exit_code == 1, result.output
    lines = result.stderr.strip().splitlines()
    assert "Traceback" not in result.output
    told = [line for line in lines if not line.startswith("note: ")]
    assert len(told) == 2
    assert told[0].startswith("error: ")
    assert told[1].startswith("hint: ")
    for word in words:
        assert word in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind, write, run, tmp_path):
    content, words = TABLES[kind]
    folder = tmp_path / "out"
    result = run(
        "report", write(content), *COLUMNS, "--features", "pm25", "--no-graph", "--output", folder
    )
    assert_helpful(result, words)
    assert not folder.exists()


EDGES = {
    "empty": ("", ["is empty"]),
    "one column": ("a\nn\ns\n", ["single column 'a'", "two columns"]),
    "semicolons": ("a;b\nn;s\n", ["single column", "--delimiter"]),
    "unknown labels": ("a,b\nx,y\n", ["2 of 2 nodes", "'n', 's'", "has 'x', 'y'", "same way"]),
    "other spelling": ("a,b\nN,s\n", ["1 of 2 nodes", "table has 'n', the edges file 'N'"]),
    "label not in the graph": ("a,b\ns,w\n", ["1 of 2 nodes", "'n'", "--allow-isolated"]),
    "no end": ("a,b\nn,s\nn,\n", ["without one of their ends", "rows 2 below"]),
    "words for weights": ("a,b,w\nn,s,strong\n", ["'strong'", "third column is the weight"]),
    "no weight": ("a,b,w\nn,s,\n", ["without a weight", "'w'"]),
    "negative weight": ("a,b,w\nn,s,-1\n", ["negative", "'n' - 's'"]),
    "self-loop": ("a,b\nn,s\nn,n\n", ["self-loop", "'n' - 'n'"]),
    "edge twice": ("a,b\nn,s\nn,s\n", ["more than once", "('n', 's')"]),
}


@pytest.mark.parametrize("kind", EDGES)
def test_edges(kind, write, run):
    content, words = EDGES[kind]
    edges = write(content, "edges.csv")
    result = run("fit", write(GOOD), *COLUMNS, "--features", "pm25", "--edges", edges)
    assert_helpful(result, words)


@pytest.mark.parametrize(("other", "suspected"), [("norht 1", True), ("north 2", False)])
def test_a_misspelt_label_of_an_edge_is_suspected(other, suspected, write, run):
    table = write(GOOD.replace("\nn,", "\nnorth 1,"))
    edges = write(f"a,b\ns,{other}\n", "edges.csv")
    result = run("fit", table, *COLUMNS, "--features", "pm25", "--edges", edges)
    assert_helpful(result, ["1 of 2 nodes of the table: 'north 1'", "--allow-isolated"])
    told = f"The table has 'north 1', the edges file {other!r}" in result.stderr
    assert told == suspected


OPTIONS = {
    "unknown feature": (["--features", "pm2.5"], ["no column 'pm2.5'", "Did you mean 'pm25'?"]),
    "feature named twice": (["--features", "pm25,pm25"], ["named twice"]),
    "node as feature": (["--features", "station"], ["both as a feature and as --node"]),
    "unknown coordinate": (["--coordinates", "lat,long"], ["no column 'long'", "'lon'"]),
    "one coordinate": (["--coordinates", "lat"], ["names 1 column:", "lat,lon"]),
    "longitude first": (["--coordinates", "lon,lat"], ["longitude first", "--coordinates lat,lon"]),
    "too many neighbours": (["--coordinates", "lat,lon"], ["--neighbors 5", "--neighbors 1"]),
    "logarithm of a stranger": (["--log", "no2"], ["--log", "'no2'", "'pm25'"]),
    "two letters as delimiter": (["--delimiter", ";;"], ["not one character"]),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_options(kind, write, run):
    options, words = OPTIONS[kind]
    features = [] if "--features" in options else ["--features", "pm25"]
    graph = [] if "--coordinates" in options else ["--no-graph"]
    result = run("fit", write(GOOD), *COLUMNS, *features, *graph, *options)
    assert_helpful(result, words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["test", *COLUMNS, "--permutations", "5"], ["Use at least", "leave out --permutations"]),
        (
            ["changes", "--node", "station", "--time", "date", "--window", "5", "--level",
             "0.001"],
            ["error: --surrogates 99 is too small"],
        ),
    ],
)  # fmt: skip
def test_messages_of_the_library_speak_of_options(options, words, table, write, run, tmp_path):
    days = table.groupby("station").cumcount()
    content = write(table.assign(date=days))
    command, *rest = options
    output = ["--output", tmp_path / "out"]
    result = run(command, content, *rest, "--features", "no2", "--no-graph", *output)
    assert_helpful(result, words)


TIMES = {
    "not dates": ("period", ["--split", "2020-03-01"], ["not dates", "'before'", "2020-03-01"]),
    "split is no date": ("date", ["--split", "March"], ["'March' is not a date"]),
    "day first": ("date", ["--split", "01/03/2020"], ["'01/03/2020' is not a date"]),
    "split outside": ("date", ["--split", "2031-01-01"], ["from 2020-01-01 to 2020-04-01"]),
    "number for a date": ("lat", ["--split", "2020-03-01"], ["is not a number"]),
    "no range": (
        "date",
        ["--reference-range", "2020", "--target-range", "2021:2022"],
        ["'2020' is not a range", "first:last"],
    ),
    "range backwards": (
        "date",
        ["--reference-range", "2021:2020", "--target-range", "2022:2023"],
        ["ends before it begins"],
    ),
    "ranges overlap": (
        "date",
        ["--reference-range", "2020-01:2020-02", "--target-range", "2020-02:2020-04"],
        ["overlap"],
    ),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times(kind, write, run):
    column, options, words = TIMES[kind]
    result = run(
        "fit", write(GOOD), "--node", "station", "--time", column, *options, "--no-graph",
        "--features", "pm25",
    )  # fmt: skip
    assert_helpful(result, words)


def test_empty_times(write, run):
    data = write(GOOD.replace("s,after,2020-04-01", "s,after,"))
    options = ["--node", "station", "--time", "date", "--split", "2020-03-01", "--no-graph"]
    assert_helpful(run("fit", data, *options), ["'date' is empty in 1 of 4", "--missing drop"])


def test_a_node_in_two_places(write, run):
    data = write(GOOD.replace("s,after,2020-04-01,2.5,51", "s,after,2020-04-01,2.5,52"))
    result = run("fit", data, *COLUMNS, "--coordinates", "lat,lon", "--neighbors", "1")
    assert_helpful(result, ["'lat'", "node 's'", "51, 52", "one place"])


def test_a_node_without_place(write, run):
    data = write(GOOD.replace(",51,4", ",,"))
    result = run("fit", data, *COLUMNS, "--coordinates", "lat,lon", "--neighbors", "1")
    assert_helpful(result, ["1 node has no coordinates", "'s'"])


def test_logarithm_of_negative_values(write, run):
    data = write(GOOD.replace("2.5", "-2.5"))
    result = run("fit", data, *COLUMNS, "--features", "pm25", "--no-graph", "--log", "pm25")
    assert_helpful(result, ["logarithm of 'pm25'", "1 are zero or negative", "'s'"])


def test_no_numbers_to_compare(write, run):
    data = write("station,period,lat\nn,before,1\nn,after,1\n")
    assert_helpful(run("fit", data, *COLUMNS, "--no-graph"), ["no column of numbers", "--features"])


def test_file_not_found_names_the_nearest(data, run, tmp_path):
    result = run("fit", tmp_path / "dta.csv", *COLUMNS, "--no-graph")
    assert_helpful(result, ["does not exist", "Did you mean", "data.csv"])
    result = run("fit", tmp_path / "nowhere" / "data.csv", *COLUMNS, "--no-graph")
    assert_helpful(result, ["the folder", "does not exist"])


def test_a_folder_is_not_a_table(run, tmp_path):
    assert_helpful(run("fit", tmp_path, *COLUMNS, "--no-graph"), ["is a folder"])


def test_lists_in_parquet(run, tmp_path):
    frame = pd.DataFrame({"station": [["n"], ["n"]], "period": ["before", "after"], "x": [1, 2]})
    frame.to_parquet(tmp_path / "data.parquet")
    result = run("fit", tmp_path / "data.parquet", *COLUMNS, "--no-graph")
    assert_helpful(result, ["'station' has lists", "text or numbers"])
    columns = ["--node", "x", *COLUMNS[2:], "--features", "station"]
    result = run("fit", tmp_path / "data.parquet", *columns, "--no-graph")
    assert_helpful(result, ["'station' has 2 values other than numbers", "other --features"])


def test_the_index_of_a_frame_is_a_column_of_its_file(run, table, tmp_path):
    table.set_index("station").to_parquet(tmp_path / "data.parquet")
    options = [*COLUMNS, "--features", "pm25,no2", "--no-graph", "--estimator", "rulsif"]
    result = run("fit", tmp_path / "data.parquet", *options, "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "s7" in result.stdout


def test_times_that_no_calendar_has(run, tmp_path):
    times = np.array(["-0002-01-01", "2020-01-01"], dtype="datetime64[us]")
    frame = pd.DataFrame({"station": ["n", "n"], "period": ["before", "after"], "x": times})
    frame.to_parquet(tmp_path / "data.parquet")
    result = run("fit", tmp_path / "data.parquet", *COLUMNS, "--features", "x", "--no-graph")
    assert_helpful(result, ["'x'", "before the year 1", "Correct"])


def test_the_year_9999(write, run, tmp_path):
    data = write(GOOD.replace("2020-04-01", "9999-12-31"))
    options = ["--node", "station", "--time", "date", "--split", "2020-03-01", "--no-graph"]
    result = run("fit", data, *options, "--features", "pm25", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr


def test_infinite_times(write, run):
    data = write(GOOD.replace("2020-04-01", "inf").replace("2020-01-01", "1"))
    options = ["--node", "station", "--time", "date", "--split", "3", "--no-graph"]
    assert_helpful(run("fit", data, *options), ["'date' has 2 infinite times"])


def test_endless_cells_give_short_messages(write, run):
    data = write(GOOD.replace("2.5", "x" * 150_000))
    result = run("fit", data, *COLUMNS, "--features", "pm25", "--no-graph")
    assert_helpful(result, ["than numbers: 'xxx", "..."])
    assert len(result.stderr) < 2000
    data = write(GOOD.replace("pm25", "y" * 120_000))
    result = run("fit", data, *COLUMNS, "--features", "y" * 119_999, "--no-graph")
    assert_helpful(result, [" ... "])
    assert len(result.stderr) < 4000


def test_labels_do_not_command_the_terminal(write, run, tmp_path):
    data = write(GOOD.replace("s,", "s\x1b[31m\x07,"))
    result = run(
        "fit", data, *COLUMNS, "--features", "pm25", "--no-graph", "--output", tmp_path / "out"
    )
    assert result.exit_code == 0
    assert "s\\x1b[31m\\x07" in result.stdout
    assert "\x07" not in result.stdout


def test_damaged_parquet(write, run):
    for content in (b"PAR1 and nonsense", b"nonsense"):
        result = run("fit", write(content, "data.parquet"), *COLUMNS, "--no-graph")
        assert_helpful(result, ["not a Parquet file, or it is damaged"])


def test_output_exists_already(data, run, tmp_path):
    result = run("fit", data, *COLUMNS, "--no-graph", "--output", tmp_path)
    assert_helpful(result, ["exists already", "--overwrite"])
    result = run("fit", data, *COLUMNS, "--no-graph", "--output", data, "--overwrite")
    assert_helpful(result, ["is a file"])


@pytest.mark.parametrize("content", [b"", b"nonsense", GOOD.encode(), workbook()])
def test_models(content, data, write, run):
    model = write(content, "model.graphratio")
    for arguments in (["info", model], ["predict", model, data]):
        assert_helpful(run(*arguments), ["is not a graphratio model, or it is damaged"])


def test_points(write, run, fit, data):
    _, folder = fit(data, "--no-graph", "--features", "pm25,no2")
    model = folder / "model.graphratio"
    points = pd.DataFrame({"pm25": [1.0], "no2": [0.0], "where": ["s9"]})
    good = write(points, "points.csv")
    assert_helpful(run("predict", model, good, "--at", "s9"), ["no node 's9'", "Available: 's0'"])
    assert_helpful(run("predict", model, good, "--node", "where"), ["'s9'", "'s0', 's1', 's2'"])
    assert_helpful(run("predict", model, good, "--output", good), ["exists already"])
    lacking = write(points.drop(columns="no2"), "lacking.csv")
    assert_helpful(run("predict", model, lacking), ["no column 'no2'", "feature of the model"])
    blank = write(points.assign(no2=None), "blank.csv")
    assert_helpful(run("predict", model, blank), ["missing values in rows 1 below"])


def packed(content, name="air.csv"):
    """The same table in every format that is unpacked."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, content)
    zstandard = pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)
    return {
        "gzip": gzip.compress(content),
        "bzip2": bz2.compress(content),
        "xz": lzma.compress(content),
        "zip": archive.getvalue(),
        "zstd": zstandard,
    }


@pytest.mark.parametrize("ending", ["csv", "zip", "xz", "tar", "zst", "gz"])
def test_the_content_counts_and_not_the_ending(ending, write):
    for kind, content in {"plain": GOOD.encode(), **packed(GOOD.encode())}.items():
        path = write(content, f"air-{kind}.{ending}")
        read = TableFile(Path(path))
        assert read.columns == HEADER.strip().split(","), kind
        assert len(read.read(["station"])) == 4


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zip", "zstd"])
def test_damaged_archives(kind, write, run, tmp_path):
    content = packed(GOOD.encode() * 200)[kind]
    path = write(content[: len(content) // 2], "air.csv")
    result = run("fit", path, *COLUMNS, "--no-graph", "--output", tmp_path / "out")
    assert_helpful(result, ["air.csv"])


def test_archives_that_hold_no_table(write, run, tmp_path):
    several = io.BytesIO()
    with zipfile.ZipFile(several, "w") as archive:
        archive.writestr("a.csv", GOOD)
        archive.writestr("b.csv", GOOD)
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.add(__file__, "a.csv")
    for content, words in {
        several.getvalue(): ["air.csv is a zip archive of 2 files", "name one"],
        tar.getvalue(): ["tar archive"],
        gzip.compress(tar.getvalue()): ["tar archive"],
        gzip.compress(b""): ["compressed and empty"],
    }.items():
        path = write(content, "air.csv")
        result = run("fit", path, *COLUMNS, "--no-graph", "--output", tmp_path / "out")
        assert_helpful(result, words)


def test_the_attributes_that_macos_packs_are_no_second_file(write):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("air.csv", GOOD)
        archive.writestr("__MACOSX/._air.csv", b"\0\5\26\7")
    assert len(TableFile(Path(write(content.getvalue(), "air.zip"))).read(["station"])) == 4


def test_an_archive_that_unpacks_to_too_much(write, monkeypatch):
    monkeypatch.setattr(file_content, "LARGEST_UNPACKED", 1000)
    path = write(gzip.compress(GOOD.encode() * 100), "air.csv.gz")
    with pytest.raises(gr.exceptions.InputError, match="unpacks to more than"):
        TableFile(Path(path))


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(GOOD.encode() * 2000,), daemon=True)
    writer.start()
    table = TableFile(pipe)
    # Every repetition of the header is a row.
    assert len(table.read(["station"])) == 2000 * 5 - 1
    writer.join(timeout=5)
    assert not writer.is_alive()


def test_standard_input(tmp_path):
    command = [
        "fit", "-", *COLUMNS, "--features", "pm25",
        "--no-graph", "--no-kinds", "--json", "--output",
    ]  # fmt: skip
    rows = "".join(ROWS.replace("1.", f"{k}.").replace("2.", f"{k + 1}.") for k in range(1, 5))
    packed = gzip.compress((HEADER + rows).encode())
    done = CliRunner().invoke(app, [*command, str(tmp_path / "a")], input=packed)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["n_observations"] == 16
    again = CliRunner().invoke(app, [*command, str(tmp_path / "b")], input=b"")
    assert again.exit_code == 1
    assert "standard input is empty" in again.stderr
    program = [sys.executable, "-m", "graphratio", *command, str(tmp_path / "c")]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *program]
    done = subprocess.run(closed, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert b"standard input is empty" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_dangling_link_is_called_by_its_name(tmp_path, run):
    link = tmp_path / "air.csv"
    link.symlink_to(tmp_path / "gone.csv")
    result = run("fit", link, *COLUMNS, "--no-graph", "--output", tmp_path / "out")
    assert_helpful(result, ["is a link to", "gone.csv"])
    assert "Did you mean" not in result.stderr


def test_values_that_hardly_differ_are_refused(write, run, tmp_path):
    path = write(GOOD.replace("1.0", "1e-300").replace("2.0", "2e-300").replace("1.5", "0")
                 .replace("2.5", "3e-300"))  # fmt: skip
    options = [
        "--features",
        "pm25",
        "--no-graph",
        "--standardize",
        "none",
        "--output",
        tmp_path / "out",
    ]
    assert_helpful(run("fit", path, *COLUMNS, *options), ["'pm25'", "3e-300", "change their units"])


class TestOwnInput:
    """A command does not replace what it reads."""

    def test_of_fits(self, write, run, tmp_path):
        path = write(GOOD, "nodes.csv")
        for output in (tmp_path, tmp_path / "x" / ".."):
            options = ["--no-graph", "--output", output, "--overwrite"]
            result = run("fit", path, *COLUMNS, *options)
            assert_helpful(result, ["would replace", "nodes.csv", "another --output"])
        assert (tmp_path / "nodes.csv").read_text() == GOOD

    def test_of_predictions(self, table, write, run, tmp_path):
        fitted = ["--features", "pm25", "--no-graph", "--estimator", "pool", "--no-kinds"]
        run("fit", write(table), *COLUMNS, *fitted, "--output", tmp_path / "out")
        model = tmp_path / "out" / "model.graphratio"
        before = model.read_bytes()
        points = write("pm25\n1\n", "points.csv")
        for read in (model, points):
            result = run("predict", model, points, "--output", read, "--overwrite")
            assert_helpful(result, ["would replace", "another --output"])
        assert model.read_bytes() == before
        assert Path(points).read_text() == "pm25\n1\n"

    def test_all_results_are_known(self, table, data, run, tmp_path):
        written = set()
        for command, options in {
            "report": [*COLUMNS, "--no-graph", "--no-kinds", "--estimator", "pool"],
            "test": [*COLUMNS, "--no-graph", "--permutations", "199"],
            "graphs": [*COLUMNS, "--coordinates", "lat,lon"],
        }.items():
            folder = tmp_path / command
            result = run(command, data, "--features", "pm25", *options, "--output", folder)
            assert result.exit_code == 0, result.stderr
            written |= {entry.name for entry in folder.iterdir()}
        assert {"report.html", "tests.html", "graphs.html"} <= written <= set(RESULTS)


def test_no_cell_is_a_formula(table, write, run, tmp_path):
    names = {"s0": "=1+1", "s1": "+SUM(A1)", "s2": "-2+3", "s3": "@x", "s4": "-4"}
    hostile = table.assign(station=table.station.replace(names)).rename(columns={"pm25": "=pm"})
    options = ["--features", "=pm", "--no-graph", "--estimator", "pool", "--no-kinds"]
    result = run("fit", write(hostile), *COLUMNS, *options, "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    written = pd.read_csv(tmp_path / "out" / "nodes.csv", dtype=str)
    assert written["node"].tolist()[:5] == ["'=1+1", "'+SUM(A1)", "'-2+3", "'@x", "-4"]
    assert not any(name.startswith("=") for name in written.columns)
    model = tmp_path / "out" / "model.graphratio"
    printed = run("predict", model, write("=pm\n1\n", "points.csv"), "--at", "=1+1").stdout
    assert printed.splitlines()[0].startswith("'=pm,")
    assert "'=1+1" in printed


def test_ctrl_c_while_importing():
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'scipy': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from graphratio.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True)
    assert done.returncode == 130
    assert b"Traceback" not in done.stderr
