"""Commands of the `graphratio` program."""

from __future__ import annotations

from typing import Annotated

import typer

from graphratio._version import __version__
from graphratio.cli import demo

app = typer.Typer(
    name="graphratio",
    help="Which nodes of a graph changed between two samples, by how much, and in what way.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphratio {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Collect the options that come before a command."""


__all__ = ["app"]
