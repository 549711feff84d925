"""`graphratio report` and `graphratio fit`: from a table to answers."""

from __future__ import annotations

from graphratio._optional import import_optional
from graphratio.cli._console import Screen
from graphratio.cli.fitting import fit_problem
from graphratio.cli.inputs import read_problem
from graphratio.cli.options import (
    DataOptions,
    FitOptions,
    GraphOptions,
    OutputOptions,
    SampleOptions,
)
from graphratio.cli.output import check_folder, show_summary, summary_object, write_results


def report(
    data: DataOptions,
    samples: SampleOptions,
    graph: GraphOptions,
    fit: FitOptions,
    output: OutputOptions,
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

    The same, divided by a date, with roads between the stations:

        graphratio report air.csv --node station \
          --time date --split 2020-03-01 \
          --features pm25,no2 --edges roads.csv
    """
    _analyse("report", data, samples, graph, fit, output)


def fit(
    data: DataOptions,
    samples: SampleOptions,
    graph: GraphOptions,
    fit: FitOptions,
    output: OutputOptions,
) -> None:
    r"""Do what `report` does, without the report.

    Writes nodes.csv (one row per node) and model.graphratio (for `graphratio predict`). Takes
    the same options:

        graphratio fit air.csv --node station \
          --sample period --reference before --target after \
          --features pm25,no2 --no-graph --output air-model
    """
    _analyse("fit", data, samples, graph, fit, output)


def _analyse(
    command: str,
    data: DataOptions,
    samples: SampleOptions,
    graph: GraphOptions,
    fit: FitOptions,
    output: OutputOptions,
) -> None:
    from graphratio.report import node_summary, write_report

    if command == "report":
        # Now, rather than after a long fit.
        for package in ("plotly", "jinja2"):
            import_optional(package, "report", "the report")
    screen = Screen(as_json=output.json, quiet=output.quiet)
    check_folder(output.output, overwrite=output.overwrite)
    with screen.working(f"Reading {data.data}"):
        problem = read_problem(data, samples, graph, fit.seed)
    # Before the fit, so that they can be read while it runs.
    screen.notes(problem.notes)
    model, fit_notes = fit_problem(problem, fit, screen)
    screen.notes([*fit_notes, *model.notes_])
    summary = node_summary(model, problem.samples)
    with screen.working("Writing the results"):
        files = write_results(output.output, model, summary)
        if command == "report":
            files["report"] = write_report(
                output.output / "report.html",
                model,
                problem.samples,
                title=f"{data.data.stem}: what changed",
                reference_name=problem.reference_name,
                target_name=problem.target_name,
                notes=[*problem.notes, *fit_notes],
            )
    show_summary(screen, model, problem, summary)
    for name in reversed(files):
        screen.say(f"{name}: {files[name]}")
    notes = [*problem.notes, *fit_notes, *model.notes_]
    screen.result(summary_object(command, model, problem, summary, files, notes))
