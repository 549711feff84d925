"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphratio._utils.errors import Argument, Spelling, in_number


class Screen:
    """Prints text, one JSON object instead (`as_json`), or nothing (`quiet`).

    `spelling` spells arguments of the library in notes, by default as options.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, spelling: Spelling | None = None
    ) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.spelling = spelling or as_option
        self.console = Console()
        if not self.console.is_terminal:
            # A file has no window, so labels need not be cut.
            self.console.width = 200
        self.errors = Console(stderr=True)
        self._noted: set[str] = set()

    @property
    def live(self) -> bool:
        """Whether to show progress: only on a terminal."""
        return self.errors.is_terminal and not self.quiet

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a message while the block runs."""
        with self.errors.status(what) if self.live else nullcontext():
            yield

    def notes(self, notes: Sequence[str]) -> None:
        """Write notes to standard error, each of them once."""
        new = [note for note in unique(notes) if note.rstrip(".") not in self._noted]
        self._noted.update(note.rstrip(".") for note in new)
        if not self.quiet:
            for note in new:
                typer.echo(f"note: {visible(in_number(note))}", err=True)

    def say(self, text: str) -> None:
        """Write a line of text."""
        if not (self.quiet or self.as_json):
            typer.echo(visible(in_number(text)))

    def table(self, title: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write a table: the first column left-aligned, the others right-aligned."""
        if self.quiet or self.as_json:
            return
        self.say(f"\n{title}")
        table = Table()
        for position, name in enumerate(columns):
            table.add_column(
                Text(visible(name)), justify="right" if position else "left", no_wrap=True
            )
        for row in zip(*columns.values(), strict=True):
            # As Text, because rich would read brackets in labels as markup.
            table.add_row(*(Text(visible(_shown(value))) for value in row))
        self.console.print(table)

    def result(self, content: Mapping[str, Any]) -> None:
        """Write the result as JSON."""
        if self.as_json:
            typer.echo(json.dumps(plain(content), allow_nan=False, ensure_ascii=False))


def unique(notes: Iterable[str]) -> list[str]:
    """Notes in their order, without repetitions; a full stop makes no difference."""
    return list({note.rstrip("."): note for note in notes}.values())


def visible(text: str) -> str:
    """Write out the control characters of a text, so that a terminal does not obey them."""
    return text.translate(_CONTROLS)


# All control characters except the end of a line and the tab.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}


# Arguments of the library, and two of its functions, that are options or commands here.
_OPTIONS = {
    name: f"--{name.removeprefix('n_')}"
    for name in (
        "block",
        "estimator",
        "log",
        "time",
        "missing",
        "n_permutations",
        "n_surrogates",
        "null",
    )
} | {
    "compare_graphs": "the command graphratio graphs",
    "samples.standardized()": "--standardize all",
    "samples.standardized(by_node=[...])": "--standardize node",
}


def as_option(argument: Argument) -> str:
    """Spell an argument of the library as an option, or say that only Python has it."""
    if argument.name not in _OPTIONS:
        return only_in_python(argument)
    option = _OPTIONS[argument.name]
    return option if argument.value is None else f"{option} {argument.value}"


def only_in_python(argument: Argument) -> str:
    """Spell an argument of the library that a command has no option for."""
    return f"{argument} in Python"


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return "-"
    if not isinstance(value, float | np.floating):
        return str(value)
    size = abs(float(value))
    return f"{value:,.0f}" if 1e3 <= size < 1e9 else f"{value:.3g}"


def plain(value: Any) -> Any:
    """Turn a value into types of JSON; NaN and infinity become null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
