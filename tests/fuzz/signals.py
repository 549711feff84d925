"""Strike `graphratio report --overwrite` with signals, and look at what is left.

Every run writes a generation of results whose number is in each file. Whenever and however a run is
stopped, the folder must hold the files of one generation, and after the next run that is left in
peace nothing hidden may be there. `python -m tests.fuzz.signals --times 200`.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import graphratio as gr

FILES = ["model.graphratio", "nodes.csv", "report.html"]
# Where a run can be killed: before and after every change of names, by the number of the call.
STEPS = ("_exchanged", "_to_disk", "_remove", "_lock")
STRUCK = """
import os, signal, sys
from graphratio._utils import files
from graphratio.cli import main
step, which, after = sys.argv.pop(1).split(":")
original, count = getattr(files, step), 0
def struck(*arguments):
    global count
    count += 1
    if count == int(which) and after == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    found = original(*arguments)
    if count == int(which):
        os.kill(os.getpid(), signal.SIGKILL)
    return found
setattr(files, step, struck)
main()
"""


class Target:
    """A folder of results that is written again and again."""

    def __init__(self, base: Path) -> None:
        self.base, self.folder = base, base / "place" / "out"
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

    def run(self, generation: int, *before: str) -> subprocess.Popen[bytes]:
        start = [sys.executable, *(["-c", STRUCK, *before] if before else ["-m", "graphratio"])]
        return subprocess.Popen(
            [*start, *self.command(generation)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )

    def in_peace(self, generation: int) -> None:
        with self.run(generation) as run:
            _, errors = run.communicate(timeout=120)
        assert run.returncode == 0, errors.decode()
        assert self.generation() == generation
        assert self.hidden() == [], self.hidden()


def strike(times: int, seed: int) -> dict[str, int]:
    """Stop runs at random moments and at forced ones; counts of how they ended."""
    rng = random.Random(seed)
    ended: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as base:
        target = Target(Path(base))
        began = time.perf_counter()
        target.in_peace(0)
        whole = time.perf_counter() - began
        last = 0
        for number in range(1, times + 1):
            forced = number % 2 == 0
            if forced:
                step = rng.choice(STEPS)
                which, after = rng.randint(1, 6), rng.randint(0, 1)
                kind, run = f"killed at {step}", target.run(number, f"{step}:{which}:{after}")
            else:
                chosen = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
                kind, run = chosen.name, target.run(number)
                time.sleep(rng.uniform(0.3, 1.1) * whole)
                run.send_signal(chosen)
            with run:
                _, errors = run.communicate(timeout=120)
            # Python itself may be interrupted while it shuts down, after the last line of ours.
            late = b"Exception ignored in: <module 'threading'" in errors
            assert b"Traceback" not in errors or late, errors.decode()
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
