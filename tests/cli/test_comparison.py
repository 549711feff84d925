"""The comparison of the graph with none, which runs while the report is written."""

import errno
import multiprocessing
import os
import sys

import pytest
from tests.cli.conftest import COLUMNS

from graphratio.exceptions import InputError
from graphratio.report import graph_section
from graphratio.report.node_panels import NodePanels

FEATURES = ["--features", "pm25,no2", "--no-kinds"]
COMPARED = "graphratio.report.graph_section.compared_with_none"


@pytest.fixture
def report(data, edges, run, tmp_path):
    """Run `report` with a graph; return result and folder."""

    def reporter(*arguments):
        folder = tmp_path / "out"
        options = ["--edges", edges, "--overwrite", "--output", folder]
        return run("report", data, *COLUMNS, *FEATURES, *options, *arguments), folder

    return reporter


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs forks")
def test_the_comparison_runs_in_another_process_while_the_page_is_written(report, monkeypatch):
    writing, parent = multiprocessing.Event(), os.getpid()
    seen = multiprocessing.SimpleQueue()
    compared, panels = graph_section.compared_with_none, NodePanels.to_json

    def compares(*arguments):
        # Whoever waits for the comparison before writing the page waits for this in vain.
        seen.put((os.getpid() != parent, writing.wait(20)))
        return compared(*arguments)

    def writes(self):
        writing.set()
        return panels(self)

    monkeypatch.setattr(COMPARED, compares)
    monkeypatch.setattr(NodePanels, "to_json", writes)
    result, folder = report("--jobs", 2)
    assert result.exit_code == 0, result.stderr
    assert seen.get() == (True, True)
    assert seen.empty()
    assert "Was the graph worth it?" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "jobs"),
    [(OSError(errno.ENOMEM, "no room"), 1), (InputError("no room", "Make some"), 2)],
)
def test_a_comparison_that_fails_leaves_earlier_results_as_they_were(
    report, monkeypatch, error, jobs
):
    result, folder = report("--jobs", jobs)
    assert result.exit_code == 0, result.stderr
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert before.keys() == {"report.html", "nodes.csv", "model.graphratio"}
    around = sorted(folder.parent.iterdir())

    def fails(*_):
        raise error

    monkeypatch.setattr(COMPARED, fails)
    # Another fit, so that its files would be others.
    result, _ = report("--jobs", jobs, "--seed", 1, "--alpha", 0.3)
    assert result.exit_code == 1
    assert "no room" in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(folder.parent.iterdir()) == around


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_system_does_not_blame_the_folder(report, monkeypatch, jobs):
    def fails(*_):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(COMPARED, fails)
    result, _ = report("--jobs", jobs)
    assert result.exit_code == 1
    assert (
        "error: the graph could not be compared with none (Cannot allocate memory)\n"
        "hint: Try again with --jobs 1" in result.stderr
    )


def test_an_error_of_writing_does(report, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("graphratio.cli.output.write_table", full)
    result, folder = report()
    assert result.exit_code == 1
    assert f"error: {folder}: No space left on device" in " ".join(result.stderr.split())


def test_the_screen_says_what_is_waited_for(report, shown):
    result, _ = report()
    assert result.exit_code == 0, result.stderr
    assert shown[-1] == "Measuring what the graph is worth"


def test_the_screen_says_that_results_are_only_written(report, shown, monkeypatch):
    monkeypatch.setattr("graphratio.report.graph_section.can_compare", lambda *_: False)
    result, _ = report()
    assert result.exit_code == 0, result.stderr
    assert shown[-1] == "Writing the results"
