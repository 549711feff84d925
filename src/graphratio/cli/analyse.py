"""`graphratio report` and `graphratio fit`: from a table to answers."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphratio._utils.beside import beside
from graphratio._utils.errors import DataWarning, GraphRatioError
from graphratio._utils.jobs import working
from graphratio.cli.console import Screen, as_option, unique
from graphratio.cli.inputs import checked, read_problem
from graphratio.cli.models import fit_problem, prepared
from graphratio.cli.options import DataOptions, FitOptions, MapOptions, SampleOptions
from graphratio.cli.output import check_folder, show_summary, summary_object, write_results
from graphratio.cli.output_options import OutputOptions, PageOptions
from graphratio.cli.two_sample import (
    TestOptions,
    find_kinds,
    options_for_kinds,
    outcome_object,
    show_test,
    tested_beside,
)

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples
    from graphratio.evaluation.comparison import GraphComparison

# Columns that a test adds to nodes.csv.
_TESTED = ("p_value", "adjusted_p_value", "rejected")


def report(
    data: DataOptions,
    samples: SampleOptions,
    graph: MapOptions,
    fit: FitOptions,
    output: OutputOptions,
    page: PageOptions,
    tests: TestOptions,
    test: Annotated[
        bool,
        typer.Option(
            "--test",
            help="Also test which nodes changed significantly, as `graphratio test` does.",
            rich_help_panel="The test",
        ),
    ] = False,
) -> None:
    r"""Find out which nodes changed, and write a report to look at.

    Reads a table with one row per observation, compares the two samples of every node, and
    writes report.html (open it in a browser), nodes.csv (one row per node) and model.graphratio
    (for `graphratio predict`).

    Air quality before and after a measure, at stations with coordinates:

        graphratio report air.csv --node station \
          --sample period --reference before --target after \
          --features pm25,no2 --coordinates lat,lon \
          --output air-report

    The same, split at a date, with roads as edges:

        graphratio report air.csv --node station \
          --time date --split 2020-03-01 \
          --features pm25,no2 --edges roads.csv

    With --test the report also says which changes are significant.
    """
    with working(fit.jobs):
        _analyse("report", data, samples, graph, fit, output, tests if test else None, page.words())


def fit(
    data: DataOptions,
    samples: SampleOptions,
    graph: MapOptions,
    fit: FitOptions,
    output: OutputOptions,
) -> None:
    r"""Fit like `report`, but write no report.

    Writes nodes.csv (one row per node) and model.graphratio (for `graphratio predict`). Takes
    the same options:

        graphratio fit air.csv --node station \
          --sample period --reference before --target after \
          --features pm25,no2 --no-graph --output air-model
    """
    with working(fit.jobs):
        _analyse("fit", data, samples, graph, fit, output, None, None)


def _compared(model: Any, samples: NodeSamples) -> GraphComparison:
    """Compare without repeating the warnings about the data, which the fit has shown as notes."""
    from graphratio.report.graph_section import compared_with_none

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return compared_with_none(model, samples)
        except OSError as error:
            # The results are being written when this is raised, but it does not come from there.
            raise GraphRatioError(
                f"the graph could not be compared with none ({error.strerror or error})",
                "Try again with --jobs 1, or use `graphratio fit`, which makes no comparison",
            ) from error


def _analyse(
    command: str,
    data: DataOptions,
    samples: SampleOptions,
    graph: MapOptions,
    fit: FitOptions,
    output: OutputOptions,
    tests: TestOptions | None,
    words: dict[str, Any] | None,
) -> None:
    from graphratio.report import node_summary
    from graphratio.report.graph_section import can_compare
    from graphratio.report.page_file import check_page_size, page_packages

    if words is not None:
        page_packages("the report")
    screen = Screen(as_json=output.json, quiet=output.quiet)
    check_folder(output.output, data.data, graph.edges, overwrite=output.overwrite)
    with screen.working(f"Reading {data.data}"):
        problem = read_problem(data, samples, graph, fit.seed)
    if words is not None:
        check_page_size(
            problem.samples.n_nodes,
            "Use `graphratio fit`, which takes the same options and writes the table of all nodes",
        )
    # Show the notes before the fit, so that they can be read while it runs.
    scaled, _ = prepared(problem.samples, problem.graph, fit)
    checks = checked(problem, scaled)
    screen.notes([*problem.notes, *checks])
    asked = tests if tests is not None or fit.no_kinds else options_for_kinds(scaled)
    with tested_beside(problem, scaled, asked, fit.seed, screen) as test:
        model, fit_notes = fit_problem(problem, fit, screen)
        told = model._told(as_option)
        screen.notes([*fit_notes, *told])
        found, kinds = None, None
        compares = words is not None and can_compare(model, problem.samples)
        work = partial(_compared, model, problem.samples)
        with beside(work, wanted=compares) as compared:
            if asked is not None:
                found, test_notes = test()
                told += test_notes if tests is None else []
            if not fit.no_kinds:
                kinds, kind_notes = find_kinds(model, scaled, found, fit.seed, screen)
                told += kind_notes
            tested = None if tests is None else found
            summary = node_summary(model, problem.samples, kinds=kinds)
            if found is not None:
                table = found.to_frame()
                summary |= {name: table[name].tolist() for name in _TESTED}
            page = None
            if words is not None:
                title, said = f"{data.stem}: what changed", [*problem.notes, *fit_notes]
                page = {"title": title, "notes": said, "test": tested, "kinds": kinds, **words}
                # The page is written while the comparison runs, and waits for it at the end.
                page |= {"comparison": compared if compares else None, "spelling": as_option}
            files = write_results(
                screen, output.output, model, problem, summary, page, geojson=graph.geojson
            )
    # A test that has no answer says why, and the kinds would repeat it.
    silent = tested is not None and not tested.answerable
    show_summary(screen, model, problem, summary, None if silent else kinds, found)
    if tested is not None:
        show_test(screen, tested)
    for name in reversed(files):
        screen.say(f"{name}: {files[name]}")
    notes = unique([*problem.notes, *checks, *fit_notes, *told])
    content = summary_object(command, model, problem, summary, files, notes, kinds)
    if tested is not None:
        content["test"] = outcome_object(tested)
    screen.result(content)
