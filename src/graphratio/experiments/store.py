"""Results on disk: one small file per finished cell, and one tidy table made of them.

The files of the cells are what counts. Each appears as a whole, under the name of its cell, or
not at all; so a run that was stopped at any moment can go on, and a cell has its rows once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphratio._utils.exceptions import FileFormatError, InputError
from graphratio._utils.files import appearing
from graphratio._utils.optional import import_optional
from graphratio.data.frames import make_frame
from graphratio.experiments.cells import Cell
from graphratio.experiments.run_cell import COLUMNS

TABLE_FORMATS = ("parquet", "csv")


class Store:
    """The folder of a study.

    Parameters
    ----------
    folder : path
        Created when something is written.

    Examples
    --------
    >>> import tempfile
    >>> from graphratio.experiments.run_cell import run_cell
    >>> cell = Cell("Ia", "POOL", n=20, n_nodes=8, alpha=0.1, seed=0, n_points=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.save(cell, run_cell(cell))
    ...     store.is_done(cell), len(store.results([cell]))
    (True, 8)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def is_done(self, cell: Cell) -> bool:
        """Whether the rows of a cell are there."""
        return self._done(cell.key).exists()

    def save(self, cell: Cell, columns: dict[str, Any]) -> None:
        """Keep the rows of a cell; an earlier failure of it is forgotten."""
        _write(self._done(cell.key), columns)
        self._failed(cell.key).unlink(missing_ok=True)

    def save_failure(self, cell: Cell, message: str, trace: str = "") -> None:
        """Keep the reason why a cell has no rows."""
        _write(self._failed(cell.key), asdict(cell) | {"message": message, "trace": trace})

    def failures(self) -> list[dict[str, Any]]:
        """The failed cells: their fields and a message."""
        return [_read(path) for path in sorted(self.folder.glob("failed/*.json"))]

    def results(self, cells: Iterable[Cell] | None = None) -> Any:
        """One row per node and run, as a pandas frame.

        Parameters
        ----------
        cells : iterable of Cell, optional
            Only these; default all in the folder.
        """
        pandas = import_optional("pandas", "frame", "a table of results")
        if cells is None:
            paths = sorted(self.folder.glob("cells/*.json"))
        else:
            paths = [self._done(cell.key) for cell in cells]
        if not paths:
            return self._table_alone(pandas)
        parts = [make_frame(_read(path), "pandas") for path in paths]
        table = pandas.concat(parts, ignore_index=True)
        order = ["scenario", "method", "n_nodes", "n", "alpha", "seed", "n_points", "node"]
        return table.sort_values(order, ignore_index=True)[list(COLUMNS)]

    def write_table(self, kind: str) -> Path:
        """Write all results into one file, results.parquet or results.csv; return its path."""
        table = self.results()
        path = self.folder / f"results.{kind}"
        with appearing(path) as rough:
            if kind == "parquet":
                table.to_parquet(rough, index=False)
            else:
                table.to_csv(rough, index=False)
        return path

    def _table_alone(self, pandas: Any) -> Any:
        """The results of a folder that holds only the table made of the cells."""
        for kind in TABLE_FORMATS:
            path = self.folder / f"results.{kind}"
            if path.exists():
                return pandas.read_parquet(path) if kind == "parquet" else pandas.read_csv(path)
        raise InputError(
            f"{self.folder} holds no results of a study",
            f"Make some with: graphratio experiment run --output {self.folder}",
        )

    def _done(self, key: str) -> Path:
        return self.folder / "cells" / f"{key}.json"

    def _failed(self, key: str) -> Path:
        return self.folder / "failed" / f"{key}.json"


def check_format(kind: str) -> None:
    """Refuse, before hours of work, a table that could not be written."""
    if kind == "parquet":
        import_optional("pyarrow", "parquet", "writing Parquet files")
    import_optional("pandas", "frame", "a table of results")


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as rough:
        rough.write_text(json.dumps(content), encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, FileNotFoundError) as error:
        raise FileFormatError(
            f"{path} is missing or damaged", "Delete it and run the study again: it resumes"
        ) from error
    return dict(content)
