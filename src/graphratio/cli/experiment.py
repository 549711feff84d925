"""`graphratio experiment`: the paper's evaluation, computed, tabled and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from graphratio.cli.console import Screen
from graphratio.cli.expand import expand
from graphratio.cli.options import Json, Quiet

FOLDER = Path("graphratio-study")
_GRID = "Another study than the profile's (lists with commas)"

Value = TypeVar("Value", str, int, float)


class Profile(StrEnum):
    """How long the study is."""

    quick = "quick"
    standard = "standard"
    full = "full"


class TableFormat(StrEnum):
    """How the table of all results is kept."""

    parquet = "parquet"
    csv = "csv"


Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER", help="Where `experiment run` wrote its results.", show_default=False
    ),
]


@dataclass(frozen=True)
class GridOptions:
    """Values that replace those of the profile."""

    scenarios: Annotated[
        str | None,
        typer.Option(help="Of Ia, Ib, IIa, IIb.", show_default=False, rich_help_panel=_GRID),
    ] = None
    methods: Annotated[
        str | None,
        typer.Option(
            help="Of GRULSIF, POOL, RULSIF, ULSIF, KLIEP, RULSIF-cautious.",
            show_default=False,
            rich_help_panel=_GRID,
        ),
    ] = None
    n: Annotated[
        str | None,
        typer.Option(
            help="Observations in each sample of each node.",
            show_default=False,
            rich_help_panel=_GRID,
        ),
    ] = None
    nodes: Annotated[
        str | None,
        typer.Option(help="Numbers of nodes.", show_default=False, rich_help_panel=_GRID),
    ] = None
    alpha: Annotated[
        str | None,
        typer.Option(
            help="For the methods that have one.", show_default=False, rich_help_panel=_GRID
        ),
    ] = None
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="How many data sets.", show_default=False, rich_help_panel=_GRID),
    ] = None
    points: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Fresh points per node on which errors are measured.",
            show_default=False,
            rich_help_panel=_GRID,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The fields of `Grid` that were given."""
        found = {
            "scenarios": _values(self.scenarios, str, "--scenarios"),
            "methods": _values(self.methods, str, "--methods"),
            "sizes": _values(self.n, int, "--n"),
            "graph_sizes": _values(self.nodes, int, "--nodes"),
            "alphas": _values(self.alpha, float, "--alpha"),
            "seeds": self.seeds,
            "n_points": self.points,
        }
        return {name: value for name, value in found.items() if value is not None}


def run(
    grid: GridOptions,
    profile: Annotated[
        Profile,
        typer.Option(
            help="quick: small graphs, under a minute. standard: 10 seeds, 100 nodes, about an "
            "hour on 2 cores. full: 100 seeds."
        ),
    ] = Profile.standard,
    quick: Annotated[bool, typer.Option("--quick", help="Short for --profile quick.")] = False,
    output: Annotated[Path, typer.Option(help="Folder for the results.")] = FOLDER,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes. Default: one per processor.", show_default=False),
    ] = None,
    table: Annotated[
        TableFormat, typer.Option(help="Format of the table of all results.")
    ] = TableFormat.parquet,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    r"""Compute the paper's study: scenarios x methods x n x graph sizes x alpha x seeds.

    Every finished fit is kept at once. Stop it with Control-C whenever you like; the same
    command goes on where it stopped, and tries again what failed.

        graphratio experiment run --quick --output small-study

        graphratio experiment run --output study --workers 2

    A study of your own:

        graphratio experiment run --output mine --scenarios Ia,IIb \
          --methods GRULSIF,POOL --n 50,200 --nodes 60 --alpha 0.1 --seeds 5
    """
    from graphratio.experiments import PROFILES
    from graphratio.experiments import run as run_study

    screen = Screen(as_json=json, quiet=quiet)
    chosen = Profile.quick if quick else profile
    grids = [replace(part, **grid.given()) for part in PROFILES[chosen.value]]
    try:
        report = run_study(
            output, grids=grids, workers=workers, table_format=table.value, progress=not quiet
        )
    except KeyboardInterrupt:
        typer.echo(
            f"stopped: what was finished is kept in {output}; the same command goes on", err=True
        )
        raise typer.Exit(130) from None
    screen.result(
        {
            "command": "experiment run",
            "n_cells": report.n_cells,
            "n_kept": report.n_kept,
            "failures": report.failures,
            "table": str(report.table) if report.table else None,
        }
    )
    new = report.n_cells - report.n_kept - len(report.failures)
    screen.say(f"{report.n_cells} cells: {new} computed now, {report.n_kept} kept from before.")
    if report.table:
        screen.say(f"Results: {report.table}")
        screen.say(f"Next: graphratio experiment figures {output}")
    for failure in report.failures[:10]:
        typer.echo(
            f"failed: {failure['scenario']} {failure['method']} n={failure['n']} "
            f"N={failure['n_nodes']} alpha={failure['alpha']:g} seed={failure['seed']}: "
            f"{failure['message']}",
            err=True,
        )
    if report.failures:
        typer.echo(
            f"error: {len(report.failures)} of {report.n_cells} cells failed\n"
            f"hint: Their traces are in {output / 'failed'}; the same command tries them again",
            err=True,
        )
        raise typer.Exit(1)


def figures(
    folder: Folder,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the figures. Default: FOLDER/figures.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw the paper's figures from the results of a study, as SVG and PNG.

    graphratio experiment figures study

    graphratio experiment figures study --output paper/figures
    """
    from graphratio.experiments import draw_figures

    _write("figures", folder, output, draw_figures, Screen(as_json=json, quiet=quiet))


def table(
    folder: Folder,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the tables. Default: FOLDER/tables.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Summarise the results of a study: errors with intervals, the order of methods, divergences.

    Prints the errors and writes all tables as CSV.

        graphratio experiment table study
    """
    from graphratio.experiments import error_table, load_results, write_tables

    screen = Screen(as_json=json, quiet=quiet)
    errors = error_table(load_results(folder))
    shown = ["scenario", "method", "n_nodes", "n", "alpha", "n_seeds", "error"]
    columns = {name.replace("_", " "): errors[name].tolist() for name in shown}
    columns["95 % interval"] = [
        f"{low:.3g} to {high:.3g}"
        for low, high in zip(errors["error_low"], errors["error_high"], strict=True)
    ]
    screen.table("Mean squared error of the ratio, geometric mean over seeds", columns)
    _write("tables", folder, output, write_tables, screen)


app = typer.Typer(
    help="""The evaluation of the paper: five methods on four scenarios, with its figures.

        graphratio experiment run --quick --output study

        graphratio experiment figures study

        graphratio experiment table study
    """,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for _command in (run, figures, table):
    app.command(_command.__name__)(expand(_command))


def _write(
    what: str,
    folder: Path,
    output: Path | None,
    write: Callable[[Path, Path], list[Path]],
    screen: Screen,
) -> None:
    target = folder / what if output is None else output
    with screen.working(f"Making the {what}"):
        files = write(folder, target)
    screen.say(f"{len(files)} files: {target}")
    screen.result({"command": f"experiment {what}", "files": [str(path) for path in files]})


def _values(text: str | None, kind: type[Value], option: str) -> tuple[Value, ...] | None:
    """Read a list with commas."""
    if text is None:
        return None
    try:
        return tuple(kind(part.strip()) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{option} {text!r} is not a list of numbers") from None
