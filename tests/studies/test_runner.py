"""Runs that fail, are stopped, or meet each other, and still end with every row once."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from studies.paper import runner
from studies.paper.cells import Grid
from studies.paper.runner import run
from studies.paper.store import load_results, path_of

from graphratio.exceptions import FileFormatError, GraphRatioError, InputError

# Left out by `make quick`.
pytestmark = pytest.mark.slow

CELLS = list(Grid(("Ia", "IIb"), ("POOL", "ULSIF"), (20,), (8,), (0.1, 0.5), 3, n_points=50))
# As a program, so that it can be killed.
PROGRAM = """
import sys
from pathlib import Path
from studies.paper.cells import Grid
from studies.paper.runner import run
cells = list(Grid(("Ia", "IIb"), ("POOL", "ULSIF"), (20,), (8,), (0.1, 0.5), 3, n_points=50))
run(Path(sys.argv[1]), cells, workers=int(sys.argv[2]))
"""


def rows(folder):
    """The results but for the time they took."""
    return load_results(folder, CELLS).drop(columns="seconds")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The rows of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder, CELLS, workers=1) == (18, 0, {})
    return rows(folder)


def test_one_row_per_node_and_run(whole):
    assert len(whole) == 18 * 8
    key = ["scenario", "method", "n", "n_nodes", "alpha", "seed", "node"]
    assert not whole.duplicated(key).any()


def test_nothing_is_computed_twice(tmp_path, whole, monkeypatch):
    assert run(tmp_path, CELLS[:5], workers=1) == (5, 0, {})
    computed = []
    original = runner.run_cell
    monkeypatch.setattr(runner, "run_cell", lambda cell: computed.append(cell) or original(cell))
    assert run(tmp_path, CELLS, workers=1) == (13, 5, {})
    assert set(computed) == set(CELLS[5:])
    pd.testing.assert_frame_equal(rows(tmp_path), whole)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("sign", "workers"), [(signal.SIGKILL, 1), (signal.SIGINT, 2)])
def test_a_stopped_run_goes_on_where_it_stopped(tmp_path, whole, sign, workers):
    folder = tmp_path / "study"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(workers)],
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        wait_for(lambda: len(list(folder.glob("cells/*.json"))), at_least=3)
        process.send_signal(sign)
        assert process.wait(timeout=60) != 0
    finally:
        # Workers of a killed process wait for some minutes before they end.
        end_group(process.pid)
    kept = {path: path.read_bytes() for path in folder.glob("cells/*.json")}
    assert 3 <= len(kept) < 18
    assert run(folder, CELLS, workers=1) == (18 - len(kept), len(kept), {})
    assert all(path.read_bytes() == content for path, content in kept.items())
    pd.testing.assert_frame_equal(rows(folder), whole)


def wait_for(count, at_least, seconds=60.0):
    until = time.monotonic() + seconds
    while (found := count()) < at_least:
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.005)
    return found


def end_group(pid):
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def test_failed_cells_are_told_and_tried_again(tmp_path, whole, monkeypatch):
    original = runner.run_cell

    def failing(cell):
        if cell.method == "ULSIF" and cell.seed == 1:
            raise ValueError("no luck")
        return original(cell)

    monkeypatch.setattr(runner, "run_cell", failing)
    computed, kept, failures = run(tmp_path, CELLS, workers=1)
    assert (computed, kept) == (16, 0)
    unlucky = [cell.key for cell in CELLS if cell.method == "ULSIF" and cell.seed == 1]
    assert sorted(failures) == sorted(unlucky)
    assert all("in failing" in trace and "no luck" in trace for trace in failures.values())
    assert len(rows(tmp_path)) == 16 * 8
    monkeypatch.undo()
    assert run(tmp_path, CELLS, workers=1) == (2, 16, {})
    pd.testing.assert_frame_equal(rows(tmp_path), whole)


def test_a_dead_worker_is_an_error_and_the_folder_can_be_used_again(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(runner, "_attempt", _deadly)
    with pytest.raises(GraphRatioError, match="a worker process died") as told:
        run(tmp_path, CELLS, workers=2)
    assert "terminated" in str(told.value.__cause__)
    monkeypatch.undo()
    report = run(tmp_path, CELLS, workers=1)
    assert report.n_computed + report.n_kept == 18
    pd.testing.assert_frame_equal(rows(tmp_path), whole)


def _deadly(cell, attempt=runner._attempt):
    if cell == CELLS[8]:
        os._exit(1)
    return attempt(cell)


def test_two_runs_do_not_share_a_folder(tmp_path):
    with runner._locked(tmp_path), pytest.raises(InputError, match="another run"):
        run(tmp_path, CELLS, workers=1)


def test_a_half_written_cell_does_not_count(tmp_path):
    path = path_of(tmp_path, CELLS[0])
    path.parent.mkdir()
    path.with_suffix(".partial").write_text("{")
    assert run(tmp_path, CELLS[:1], workers=1) == (1, 0, {})
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert json.loads(path.read_text())["seed"] == CELLS[0].seed


def test_damaged_files_are_named(tmp_path):
    path = path_of(tmp_path, CELLS[0])
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(FileFormatError, match=CELLS[0].key):
        load_results(tmp_path, CELLS)
