"""Ctrl-C, full and read-only disks, and runs side by side: every file is whole or not there."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
import typer.main
from tests.fuzz.signals import strike

import graphratio as gr
from graphratio.cli.app import app

# Left out by `make quick`.
pytestmark = pytest.mark.slow

COLUMNS = ["--node", "station", "--sample", "period", "--reference", "before", "--target", "after"]
OPTIONS = [*COLUMNS, "--features", "pm25,no2", "--no-graph", "--estimator", "rulsif", "--no-kinds"]
OPTIONS.append("--overwrite")


def assert_whole(folder, n_nodes=8):
    """Every file in the folder can be read and is complete; nothing hidden is left."""
    names = {entry.name for entry in folder.iterdir()}
    assert names <= {"report.html", "nodes.csv", "model.graphratio"}
    if "report.html" in names:
        assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    if "nodes.csv" in names:
        assert len(pd.read_csv(folder / "nodes.csv")) == n_nodes
    if "model.graphratio" in names:
        assert len(gr.load(folder / "model.graphratio").nodes_) == n_nodes
    return names


@pytest.fixture(scope="module")
def results(program, table, tmp_path_factory):
    """The folder of a run that nothing disturbed."""
    base = tmp_path_factory.mktemp("results")
    table.to_csv(base / "data.csv", index=False)
    arguments = ["report", str(base / "data.csv"), *OPTIONS, "--quiet", "--output"]
    program.main([*arguments, str(base / "out")], standalone_mode=False)
    return base / "out"


@pytest.fixture
def earlier(results, tmp_path):
    """A folder with the results of an earlier run."""
    return shutil.copytree(results, tmp_path / "out")


def contents(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


class TestCtrlC:
    # A program that is stopped lets the system close what it was reading.
    @pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    )
    def test_at_any_time(self, data, earlier, tmp_path, capsys):
        """Stopped at moments from the first line to the last file."""
        program = typer.main.get_command(app)
        arguments = ["report", data, *OPTIONS, "--quiet", "--output"]

        def stop(*_):
            raise KeyboardInterrupt

        def seconds_and_code(folder, delay):
            signal.setitimer(signal.ITIMER_REAL, delay)
            began = time.perf_counter()
            try:
                program.main(args=[*arguments, str(folder)])
            except SystemExit as end:
                return time.perf_counter() - began, end.code
            except KeyboardInterrupt:
                # After the last line of the program, before the clock was stopped.
                return time.perf_counter() - began, 130
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

        old = signal.signal(signal.SIGALRM, stop)
        try:
            whole, _ = seconds_and_code(tmp_path / "new", 0)
            codes = set()
            for part in range(1, 26):
                _, code = seconds_and_code(earlier, whole * part / 25)
                codes.add(code)
                assert assert_whole(earlier) == {"report.html", "nodes.csv", "model.graphratio"}
                new = tmp_path / str(part)
                _, code = seconds_and_code(new, whole * part / 25)
                if new.exists():
                    assert_whole(new)
        finally:
            signal.signal(signal.SIGALRM, old)
        assert 130 in codes
        assert codes <= {0, 130}

    def test_in_a_callback_of_python_is_not_lost(self):
        """Python prints and forgets an interrupt there; imports have such callbacks."""
        code = """
import time, weakref
from graphratio import cli

class Thing: pass

def run():
    thing = Thing()
    def callback(_): raise KeyboardInterrupt
    reference = weakref.ref(thing, callback)
    del thing
    time.sleep(60)

cli._run = run
cli.main()
"""
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (130, "Aborted!\n")
        assert time.monotonic() - began < 50

    @pytest.mark.usefixtures("interruptible")
    def test_of_the_program(self, data, earlier):
        before = contents(earlier)
        code = (
            "import time, graphratio.cli as cli\n"
            "def slow(*args): print('begun', flush=True); time.sleep(60)\n"
            "import graphratio.cli.analyse as analyse\n"
            "analyse.fit_problem = slow\n"
            "cli.main()"
        )
        arguments = [sys.executable, "-c", code, "report", data, *OPTIONS, "--output", earlier]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        assert process.returncode == 130
        assert b"Traceback" not in errors
        assert contents(earlier) == before


class TestDisk:
    def test_full(self, data, earlier, run):
        """The report needs several megabytes; here a file may have one."""
        before = contents(earlier)
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, old[1]))
        try:
            result = run("report", data, *OPTIONS, "--output", earlier)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        assert result.exit_code == 1
        assert "File too large" in result.stderr
        assert f"error: {earlier}: " in result.stderr
        assert "hint: " in result.stderr
        assert contents(earlier) == before

    def test_read_only(self, data, earlier, run, monkeypatch):
        before = contents(earlier)

        def refuse(path, *_, **__):
            raise OSError(errno.EROFS, "Read-only file system", str(path))

        monkeypatch.setattr(os, "mkdir", refuse)
        result = run("report", data, *OPTIONS, "--output", earlier)
        assert result.exit_code == 1
        assert f"error: {earlier}: Read-only file system" in result.stderr
        monkeypatch.undo()
        assert contents(earlier) == before

    def test_of_predictions(self, earlier, run, write, monkeypatch):
        points = write("pm25,no2\n1,2\n", "points.csv")
        model = earlier / "model.graphratio"
        result = run("predict", model, points, "--output", "/dev/full", "--overwrite")
        assert result.exit_code == 1
        assert "/dev/full: No space left on device" in result.stderr


def test_runs_side_by_side_do_not_mix(data, table, write, tmp_path):
    """Two programs write different results to one folder, again and again."""
    other = write(table[table["station"] < "s4"], "other.csv")
    folder = tmp_path / "out"
    code = (
        "import sys, typer.main\n"
        "from graphratio.cli.app import app\n"
        "program = typer.main.get_command(app)\n"
        "for _ in range(5):\n"
        "    program.main(args=sys.argv[1:], standalone_mode=False)\n"
    )

    def work(file):
        command = ["fit", file, *OPTIONS, "--quiet", "--output", str(folder)]
        return subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True
        ).returncode

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (data, other))) == [0, 0]
    n_nodes = len(pd.read_csv(folder / "nodes.csv"))
    assert n_nodes in (4, 8)
    assert assert_whole(folder, n_nodes) == {"nodes.csv", "model.graphratio"}


def test_signals_leave_one_generation_of_files():
    """Stopped at random and forced moments; the long version is `make signals`."""
    assert sum(strike(4, seed=2).values()) == 4
