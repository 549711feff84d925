"""Strike `graphratio report --overwrite` with signals, and look at what is left.

Every run writes a generation of results whose number is in each file. Whenever and however a run is
stopped, the folder must hold the files of one generation, and after the next run that is left in
peace nothing hidden may be there. `python -m tests.fuzz.signals --times 200`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import graphratio as gr

FILES = ["model.graphratio", "nodes.csv", "report.html"]
# Where a run can be killed: before and after every change of names, by the number of the call.
STEPS = ("_exchanged", "_to_disk", "_remove", "_lock")
# Runs the program in a new process for every line, which names a file for errors, where to strike,
# and its arguments. Only the imports are shared. A signal waits until the program can take it.
SERVER = """
import json, os, signal, sys
import graphratio.report
from graphratio import cli
from graphratio._utils import files
from graphratio.cli import analyse, app

run = cli._run
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

def open_to_signals():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    run()

cli._run = open_to_signals

def strike(step, which, after):
    original, count = getattr(files, step), 0
    def struck(*arguments):
        nonlocal count
        count += 1
        if count == which and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(*arguments)
        if count == which:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(files, step, struck)

for line in sys.stdin:
    errors, where, arguments = json.loads(line)
    pid = os.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        if where:
            strike(*where)
        sys.argv[1:] = arguments
        sys.exit(cli.main())
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Target:
    """A folder of results that is written again and again."""

    def __init__(self, base: Path, server: subprocess.Popen[bytes]) -> None:
        self.base, self.folder, self.server = base, base / "place" / "out", server
        self.folder.parent.mkdir()

    def command(self, generation: int) -> list[str]:
        """Arguments of a run with its own labels and title."""
        table = self.base / f"{generation % 2}.csv"
        rows = [
            f"g{generation}-{node},{period},{value}"
            for node in "abc"
            for period in ("before", "after")
            for value in (1.0, 2.0, 3.5, 4.0)
        ]
        table.write_text("station,period,x\n" + "\n".join(rows) + "\n")
        return [
            "report", str(table), "--node", "station", "--sample", "period",
            "--reference", "before", "--target", "after", "--no-graph", "--estimator", "rulsif",
            "--no-kinds", "--quiet", "--title", f"generation {generation} of results",
            "--overwrite", "--output", str(self.folder),
        ]  # fmt: skip

    def generation(self) -> int:
        """The one generation that all files are of."""
        names = sorted(entry.name for entry in self.folder.iterdir())
        assert names == FILES, names
        found = {gr.load(self.folder / "model.graphratio").nodes_[0].partition("-")[0]}
        found |= {
            line.partition("-")[0]
            for line in (self.folder / "nodes.csv").read_text().splitlines()[1:]
        }
        assert len(found) == 1, found
        number = int(found.pop()[1:])
        page = (self.folder / "report.html").read_text()
        assert f"generation {number} of results" in page
        assert page.rstrip().endswith("</html>")
        return number

    def hidden(self) -> list[str]:
        return [entry.name for entry in self.folder.parent.iterdir() if entry != self.folder]

    def run(self, generation: int, where: tuple[str, int, int] | None = None) -> int:
        """Begin a run and return its process id; call `ended` before the next one."""
        told = [str(self.base / "errors"), where, self.command(generation)]
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(told).encode() + b"\n")
        return self._answer()

    def ended(self, pid: int) -> tuple[int, str]:
        """Wait for a run: its exit code, and what it said about errors."""
        try:
            code = self._answer(seconds=120)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        return code, (self.base / "errors").read_text()

    def _answer(self, seconds: float = 60) -> int:
        assert self.server.stdout is not None
        if not select.select([self.server.stdout], [], [], seconds)[0]:
            raise TimeoutError(f"no answer within {seconds} s")
        return int(self.server.stdout.readline())

    def in_peace(self, generation: int) -> None:
        code, errors = self.ended(self.run(generation))
        assert code == 0, errors
        assert self.generation() == generation
        assert self.hidden() == [], self.hidden()


def strike(times: int, seed: int) -> dict[str, int]:
    """Stop runs at random moments and at forced ones; counts of how they ended."""
    rng = random.Random(seed)
    ended: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory() as base,
        subprocess.Popen(
            [sys.executable, "-c", SERVER], bufsize=0, stdin=PIPE, stdout=PIPE
        ) as server,
    ):
        target = Target(Path(base), server)
        # The first run waits for the imports.
        target.in_peace(0)
        began = time.perf_counter()
        target.in_peace(0)
        whole = time.perf_counter() - began
        last = 0
        for number in range(1, times + 1):
            forced = number % 2 == 0
            if forced:
                step = rng.choice(STEPS)
                which, after = rng.randint(1, 6), rng.randint(0, 1)
                kind, pid = f"killed at {step}", target.run(number, (step, which, after))
            else:
                chosen = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
                kind, pid = chosen.name, target.run(number)
                time.sleep(rng.uniform(0.3, 1.1) * whole)
                # The server knows the end of a process before we do.
                with suppress(ProcessLookupError):
                    os.kill(pid, chosen)
            _, errors = target.ended(pid)
            # Python itself may be interrupted while it shuts down, after the last line of ours.
            late = "Exception ignored in: <module 'threading'" in errors
            assert "Traceback" not in errors or late, errors
            found = target.generation()
            assert found in (last, number), (found, last, number)
            outcome = "new" if found == number else "old"
            ended[f"{kind}, {outcome}"] = ended.get(f"{kind}, {outcome}", 0) + 1
            last = found
            if number % 5 == 0 or number == times:
                target.in_peace(number)
                last = number
    return ended


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, count in sorted(strike(options.times, options.seed).items()):
        print(f"{count:4d}  {name}")
