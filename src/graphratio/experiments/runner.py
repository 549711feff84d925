"""Run a study: what is missing of it, over several processes, with every result kept at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphratio._utils.exceptions import InputError
from graphratio._utils.parameters import check_choice, check_integer
from graphratio._utils.progress import ProgressBar
from graphratio.experiments._lock import locked
from graphratio.experiments._pool import outcomes
from graphratio.experiments.cells import PROFILES, Cell, Grid, ordered
from graphratio.experiments.run_cell import run_cell
from graphratio.experiments.store import TABLE_FORMATS, Store, check_format

# Lines of progress where there is no terminal to redraw one on.
_LINES = 50


@dataclass(frozen=True)
class RunReport:
    """What a run did.

    Attributes
    ----------
    n_cells : int
        Cells of the study.
    n_kept : int
        Those that earlier runs had finished.
    failures : list of dict
        The cells that failed: their fields and `message`.
    table : path or None
        The file with one row per node and run; None if nothing succeeded.

    Examples
    --------
    >>> import tempfile
    >>> from graphratio.experiments import Grid, run
    >>> grid = Grid(("Ia",), ("POOL", "RULSIF"), (20,), graph_sizes=(8,), seeds=2, n_points=50)
    >>> folder = tempfile.mkdtemp()
    >>> report = run(folder, grids=[grid], workers=1, table_format="csv")
    >>> report.n_cells, report.n_kept, report.failures
    (4, 0, [])
    """

    n_cells: int
    n_kept: int
    failures: list[dict[str, Any]]
    table: Path | None


def run(
    folder: str | Path,
    profile: str = "standard",
    *,
    grids: Iterable[Grid] | None = None,
    workers: int | None = None,
    table_format: str = "parquet",
    progress: bool = False,
) -> RunReport:
    """Run the paper's study, or another one, and write its results into a folder.

    Cells that the folder has already are not computed again; so calling it once more after an
    interruption, or after a failure, does what is missing. With more than one worker a script
    must call it under `if __name__ == "__main__":`, since processes are started.

    Parameters
    ----------
    folder : path
        Created if need be.
    profile : {"standard", "quick", "full"}
    grids : iterable of Grid, optional
        Instead of a profile.
    workers : int, optional
        Processes; default one for each processor.
    table_format : {"parquet", "csv"}
        Of the table of all results in the folder.
    progress : bool
        Show how much is done and how long the rest will take, on standard error.

    Returns
    -------
    RunReport

    Examples
    --------
    >>> import tempfile
    >>> from graphratio.experiments import Grid, run
    >>> grid = Grid(("Ia",), ("POOL",), sizes=(20,), graph_sizes=(8,), seeds=2, n_points=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run(folder, grids=[grid], workers=1, table_format="csv")
    ...     again = run(folder, grids=[grid], workers=1, table_format="csv")
    >>> first.n_cells, first.n_kept, again.n_kept, first.failures
    (2, 0, 2, [])
    """
    if workers is None:
        workers = usable_processors()
    workers = check_integer(workers, "workers", low=1)
    check_choice(table_format, "table_format", TABLE_FORMATS)
    check_format(table_format)
    if grids is None:
        grids = PROFILES[check_choice(profile, "profile", list(PROFILES))]
    cells = ordered(grids)
    store = Store(folder)
    if store.folder.exists() and not store.folder.is_dir():
        raise InputError(f"{folder} is a file", "Name a folder for the results")
    store.folder.mkdir(parents=True, exist_ok=True)
    with locked(store.folder):
        missing = [cell for cell in cells if not store.is_done(cell)]
        _compute(missing, store, workers, progress)
        wanted = {cell.key for cell in cells}
        failed = [entry for entry in store.failures() if _key(entry) in wanted]
        succeeded = any(store.is_done(cell) for cell in cells)
        table = store.write_table(table_format) if succeeded else None
    return RunReport(len(cells), len(cells) - len(missing), failed, table)


def usable_processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compute(cells: list[Cell], store: Store, workers: int, progress: bool) -> None:
    with ProgressBar(len(cells), "cells", enabled=progress, lines=_LINES) as bar:
        for outcome in outcomes(cells, run_cell, min(workers, max(len(cells), 1))):
            if outcome.error is None:
                store.save(outcome.item, outcome.result)
            else:
                store.save_failure(outcome.item, outcome.error, outcome.trace)
            bar.advance()


def _key(failure: dict[str, Any]) -> str:
    return Cell(**{name: failure[name] for name in Cell.__dataclass_fields__}).key
