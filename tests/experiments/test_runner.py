"""Runs that fail, are stopped, or meet each other, and still end with every row once."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from graphratio.exceptions import FileFormatError, InputError
from graphratio.experiments import Grid, load_results, run
from graphratio.experiments import runner as runner_module
from graphratio.experiments._lock import locked
from graphratio.experiments._pool import outcomes
from graphratio.experiments.store import Store

GRID = Grid(("Ia", "IIb"), ("POOL", "ULSIF"), (20,), (8,), (0.1, 0.5), seeds=3, n_points=50)
# As a program, so that it can be killed.
PROGRAM = """
import sys
from graphratio.experiments import Grid, run
if __name__ == "__main__":
    grid = Grid(("Ia", "IIb"), ("POOL", "ULSIF"), (20,), (8,), (0.1, 0.5), seeds=3, n_points=50)
    run(sys.argv[1], grids=[grid], workers=2, table_format="csv")
"""


def rows(folder):
    """The results but for the time they took."""
    return load_results(folder).drop(columns="seconds")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The rows of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    report = run(folder, grids=[GRID], workers=1, table_format="csv")
    assert (report.n_cells, report.n_kept, report.failures) == (18, 0, [])
    return rows(folder)


def test_one_row_per_node_and_run(whole):
    assert len(whole) == 18 * 8
    key = ["scenario", "method", "n", "n_nodes", "alpha", "seed", "node"]
    assert not whole.duplicated(key).any()


def test_table_on_disk_holds_the_same_rows(tmp_path, whole):
    for kind, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        report = run(tmp_path, grids=[GRID], workers=1, table_format=kind)
        table = read(report.table).drop(columns="seconds")
        pd.testing.assert_frame_equal(table, whole, check_dtype=False)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_goes_on_where_it_stopped(tmp_path, whole, sign):
    folder = tmp_path / "study"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for(lambda: len(list(folder.glob("cells/*.json"))), at_least=3)
    finally:
        process.send_signal(sign)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert sign == signal.SIGKILL or b"KeyboardInterrupt" in errors
    # The workers end with it, or they would go on beside the next run.
    assert wait_for(lambda: not group_alive(process.pid), at_least=1)
    kept = len(list(folder.glob("cells/*.json")))
    assert 3 <= kept < 18
    report = run(folder, grids=[GRID], workers=1, table_format="csv")
    assert (report.n_cells, report.n_kept, report.failures) == (18, kept, [])
    pd.testing.assert_frame_equal(rows(folder), whole)


def wait_for(count, at_least, seconds=60.0):
    until = time.monotonic() + seconds
    while (found := count()) < at_least:
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.005)
    return found


def group_alive(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_failed_cells_are_kept_told_and_tried_again(tmp_path, whole, monkeypatch):
    original = runner_module.run_cell

    def failing(cell):
        if cell.method == "ULSIF" and cell.seed == 1:
            raise ValueError("no luck")
        return original(cell)

    monkeypatch.setattr(runner_module, "run_cell", failing)
    report = run(tmp_path, grids=[GRID], workers=1, table_format="csv")
    assert [(entry["scenario"], entry["seed"]) for entry in report.failures] == [
        ("IIb", 1),
        ("Ia", 1),
    ]
    assert all(entry["message"] == "ValueError: no luck" for entry in report.failures)
    assert "in failing" in report.failures[0]["trace"]
    assert len(rows(tmp_path)) == 16 * 8
    monkeypatch.undo()
    report = run(tmp_path, grids=[GRID], workers=1, table_format="csv")
    assert (report.n_kept, report.failures) == (16, [])
    assert Store(tmp_path).failures() == []
    pd.testing.assert_frame_equal(rows(tmp_path), whole)


def test_when_all_fails_there_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_module, "run_cell", lambda cell: 1 / 0)
    report = run(tmp_path, grids=[GRID], workers=1, table_format="csv")
    assert len(report.failures) == 18
    assert report.table is None


def test_two_runs_do_not_share_a_folder(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="another run"):
        run(tmp_path, grids=[GRID], workers=1, table_format="csv")


def test_a_half_written_cell_does_not_count(tmp_path, whole):
    (tmp_path / "cells").mkdir()
    cell = next(iter(GRID))
    (tmp_path / "cells" / f"{cell.key}.partial").write_text("{")
    report = run(tmp_path, grids=[GRID], workers=1, table_format="csv")
    assert report.n_kept == 0
    pd.testing.assert_frame_equal(rows(tmp_path), whole)


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "broken.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"broken\.json"):
        load_results(tmp_path)


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        run(tmp_path / "file", grids=[GRID])


def test_a_piece_that_kills_its_process_is_found_and_the_rest_goes_on():
    deadly = "__import__('os')._exit(1)"
    work = [deadly, "0 * 2", "1 * 2", "2 * 2"]
    found = {outcome.item: outcome for outcome in outcomes(work, eval, 2)}
    assert set(found) == set(work)
    assert "died" in found[deadly].error
    assert [found[f"{k} * 2"].result for k in range(3)] == [0, 2, 4]
