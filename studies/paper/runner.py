"""Compute the missing cells of a study, over several processes; keep every result at once."""

from __future__ import annotations

import fcntl
import math
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed, parallel_config

from graphratio.exceptions import GraphRatioError, InputError
from studies.paper.cells import Cell
from studies.paper.run_cell import run_cell
from studies.paper.store import path_of, save

# At most so many lines of progress, with the remaining time.
_LINES = 50


class RunReport(NamedTuple):
    """The numbers of cells computed now and kept from before, and the traces of failed ones."""

    n_computed: int
    n_kept: int
    failures: dict[str, str]


def run(folder: Path, cells: Sequence[Cell], workers: int) -> RunReport:
    """Compute the cells that the folder does not have.

    Only this process writes, and only finished cells, so the folder can be used again however
    the run ends. A cell that raises an error does not stop the others.

    Parameters
    ----------
    folder : path
        Created if need be.
    cells : sequence of Cell
    workers : int
        Number of processes, each with one thread; 1 means this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    failures = {}
    with _locked(folder), parallel_config("loky", inner_max_num_threads=1):
        missing = [cell for cell in cells if not path_of(folder, cell).exists()]
        # Each cell travels alone, so that it is saved as soon as it is finished.
        pool = Parallel(workers, return_as="generator_unordered", batch_size=1)
        began = time.monotonic()
        try:
            attempts = pool(delayed(_attempt)(cell) for cell in missing)
            for done, (cell, columns, trace) in enumerate(attempts, start=1):
                if columns is None:
                    failures[cell.key] = trace
                else:
                    save(folder, cell, columns)
                if done % math.ceil(len(missing) / _LINES) == 0:
                    left = (time.monotonic() - began) / done * (len(missing) - done)
                    progress = f"{done}/{len(missing)} cells, about {left / 60:.1f} min left"
                    print(progress, file=sys.stderr, flush=True)
        except BrokenExecutor as error:
            raise GraphRatioError(
                "a worker process died, perhaps for lack of memory",
                f"{folder} keeps the finished cells: run again, with fewer workers if it repeats",
            ) from error
    n_kept = len(cells) - len(missing)
    return RunReport(len(missing) - len(failures), n_kept, failures)


def _attempt(cell: Cell) -> tuple[Cell, dict[str, Any] | None, str]:
    try:
        return cell, run_cell(cell), ""
    except Exception:
        return cell, None, traceback.format_exc()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; the system releases it however the process ends."""
    with (folder / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another run is writing to {folder}", "Wait until it ends, or name another folder"
            ) from None
        yield
