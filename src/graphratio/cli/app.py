"""The `graphratio` program: its commands and error messages."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphratio._utils.errors import GraphRatioError
from graphratio._version import __version__
from graphratio.cli import analyse, changes, demo, graphs, saved, two_sample
from graphratio.cli.console import as_option, visible
from graphratio.cli.expand import expand

# Cells and names of columns can be of any length.
_LONGEST_MESSAGE = 1500


class Commands(TyperGroup):
    """Commands that report an error as one message and a hint, with exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A label that the terminal cannot encode must not lose the result.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except GraphRatioError as error:
            problem, remedy = error.spelled(as_option)
        except BrokenPipeError:
            # The reader of our output has stopped reading.
            raise typer.Exit(0) from None
        except MemoryError:
            problem = "there is not enough memory for these data"
            remedy = "Use fewer observations (--max-observations), features or nodes"
        except OSError as error:
            problem = f"{error.filename or 'a file'}: {error.strerror or error}"
            remedy = "Check the path, its permissions and the space on the disk"
        typer.echo(f"error: {_line(problem)}", err=True)
        if remedy:
            typer.echo(f"hint: {_line(remedy)}", err=True)
        raise typer.Exit(1)


def _line(text: str) -> str:
    """Turn a text into one line of limited length."""
    line = visible(" ".join(text.split()).rstrip("."))
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[: _LONGEST_MESSAGE // 2]} ... {line[-_LONGEST_MESSAGE // 2 :]}"
    return line


app = typer.Typer(
    name="graphratio",
    cls=Commands,
    help="""Which nodes of a graph changed between two samples, by how much, and in what way.

    See it at work on real flights:

        graphratio demo

    On your own table, with a column that says where and one that says before or after:

        graphratio report air.csv --node station \\
          --sample period --reference before --target after \\
          --features pm25,no2 --coordinates lat,lon
    """,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "report": analyse.report,
    "test": two_sample.node_tests,
    "fit": analyse.fit,
    "graphs": graphs.graphs,
    "changes": changes.changes,
    "predict": saved.predict,
    "info": saved.info,
    "demo": demo.demo,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(expand(_command))


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
