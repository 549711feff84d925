"""Results on disk: one small file per finished cell.

A file appears as a whole, under the name of its cell, or not at all. So a run that was stopped
at any moment can go on, and the rows of a cell exist once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from graphratio.exceptions import FileFormatError, InputError
from studies.paper.cells import Cell
from studies.paper.run_cell import COLUMNS

_ORDER = ["scenario", "method", "n_nodes", "n", "alpha", "seed", "n_points", "node"]


def path_of(folder: Path, cell: Cell) -> Path:
    """Where the rows of a finished cell are."""
    return folder / "cells" / f"{cell.key}.json"


def save(folder: Path, cell: Cell, columns: dict[str, Any]) -> None:
    """Keep the rows of a cell."""
    path = path_of(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    rough = path.with_suffix(".partial")
    rough.write_text(json.dumps(columns), encoding="utf-8")
    rough.replace(path)


def load_results(folder: Path, cells: Iterable[Cell]) -> pd.DataFrame:
    """Read the finished ones of the given cells: one row per node and run."""
    paths = [path for cell in cells if (path := path_of(folder, cell)).exists()]
    if not paths:
        raise InputError(
            f"{folder} holds no results of this profile",
            f"Compute some with: python -m studies.paper run --folder {folder}",
        )
    table = pd.concat([pd.DataFrame(_read(path)) for path in paths], ignore_index=True)
    return table.sort_values(_ORDER, ignore_index=True)[list(COLUMNS)]


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise FileFormatError(
            f"{path} is damaged", "Delete it and run the study again: it goes on"
        ) from error
