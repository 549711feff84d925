"""`graphratio demo`: real flights, winter against summer, fitted and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphratio._utils.jobs import working
from graphratio.cli.console import Screen, only_in_python
from graphratio.cli.curtain import Curtain
from graphratio.cli.inputs import Problem, at_random
from graphratio.cli.models import fit_problem, prepared, settings_of
from graphratio.cli.options import JOBS, FitOptions, some_jobs
from graphratio.cli.output import check_folder, show_kinds, summary_object, write_results
from graphratio.cli.output_options import Json, Quiet
from graphratio.cli.two_sample import find_kinds, options_for_kinds, tested_beside
from graphratio.data.graph import Graph
from graphratio.datasets import NetworkData, load_flights
from graphratio.estimators import GraphRatio
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.verdict import UNNAMED

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange

FOLDER = Path("graphratio-demo")

# Flights per airport and season that are analysed; the others stay hidden until the end.
FEW_FLIGHTS = 10


def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the results; earlier ones are replaced.")
    ] = FOLDER,
    every: Annotated[
        bool, typer.Option("--all", help="Analyse all flights instead of a few.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw and the folds.")] = 0,
    jobs: Annotated[int, typer.Option(help=JOBS, callback=some_jobs)] = -1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show graphratio at work: flights from New York in 2013, winter against summer.

    Draws 10 flights per airport and season, estimates the changes with the help of neighbouring
    airports, and then compares them with all flights. Writes a report to open in a browser.
    Takes less than a minute. Example:

        graphratio demo --output my-demo
    """
    with working(jobs):
        # The demo lacks the options that the notes of other commands name.
        screen = Screen(as_json=json, quiet=quiet, spelling=only_in_python)
        _analyse(output, seed, screen, every=every)


def _analyse(output: Path, seed: int, screen: Screen, *, every: bool) -> None:
    """Run the analysis; `every` takes all flights."""
    from graphratio.report import node_summary
    from graphratio.report.graph_section import compared_with_none
    from graphratio.report.words import sentence

    check_folder(output, overwrite=True)
    with screen.working("Reading the flights"):
        # All flights of a day share its weather, so they need times; ten random ones do not.
        data = load_flights(time=every)
    screen.say(data.description)
    if data.left_out:
        screen.say(f"Left out (no coordinates): {', '.join(map(str, data.left_out))}.")
    chosen = at_random(data.samples, FEW_FLIGHTS, seed)
    shown = data.samples if every else data.samples.subset(observations=chosen)
    said = [data.description]
    if not every:
        said.append(
            f"{FEW_FLIGHTS} flights per airport and season were drawn at random; the other "
            f"{data.samples.n_observations - shown.n_observations:,} stayed hidden"
        )
        screen.say(sentence(said[-1]))
    problem = Problem(shown, data.graph, data.reference_name, data.target_name)
    options = FitOptions(seed=seed)
    scaled, _ = prepared(shown, data.graph, options)
    with tested_beside(problem, scaled, options_for_kinds(scaled), seed, screen) as test:
        model, fit_notes = fit_problem(problem, options, screen)
        tested, test_notes = test()
    notes = [note.partition(" (--")[0] for note in fit_notes]
    kinds, kind_notes = find_kinds(model, scaled, tested, seed, screen)
    summary = node_summary(model, shown, kinds=kinds)
    with screen.working("Measuring what the graph is worth"):
        comparison = compared_with_none(model, shown)
    page: dict[str, Any] = {
        "title": "Flights from New York, 2013",
        "names": data.names,
        "notes": [*said, *notes],
        "noun": ("airport", "airports"),
        "units": {"ground_speed": "mph"},
        "comparison": comparison,
        "kinds": kinds,
        "spelling": screen.spelling,
    }
    curtain = None
    if not every:
        with screen.working("Comparing with the hidden flights"):
            # The same model without the graph.
            bare = Graph.empty(data.graph.nodes)
            alone = GraphRatio(random_state=seed).fit(scaled, bare)
            hidden = data.samples.subset(observations=~chosen)
            curtain = Curtain.open(shown, data.samples, hidden, data.graph, (model, alone))
        page["section"] = curtain.section(data.names, "mph", "flights", comparison)
    files = write_results(screen, output, model, problem, summary, page)
    _show(screen, model, data, summary, kinds)
    if (worth := comparison.stated_worth.get(UNNAMED)) is not None:
        screen.say(f"\n{worth.in_words}")
    if curtain is not None:
        screen.say("\nNow the curtain opens: what do the hidden flights say?")
        for text in curtain.sentences(page["section"]):
            screen.say(f"- {text}")
    screen.say(
        f"\nThe report: {files['report']}\n"
        "Open it in a browser: the map shows where flights changed; click Austin (AUS) and Boston "
        "(BOS) to see how."
    )
    notes += [*model._told(screen.spelling), *test_notes, *kind_notes]
    content = summary_object("demo", model, problem, summary, files, notes, kinds)
    if curtain is not None:
        content["hidden"] = curtain.as_json()
    screen.result(content)


def _show(
    screen: Screen,
    model: NodeRatioEstimator,
    data: NetworkData,
    summary: dict[str, Any],
    kinds: KindsOfChange | None,
) -> None:
    ranked = model.ranking_.tolist()
    # Alpha is given; only the others were selected.
    settings = [pair for pair in settings_of(model).items() if pair[0] != "alpha"]
    changes = _changes_of_speed(summary, data.samples.feature_names[0])
    for title, chosen in (
        ("Ten airports with the largest divergence", ranked[:10]),
        ("Ten airports with the smallest divergence", ranked[:-11:-1]),
    ):
        nodes = [model.nodes_[i] for i in chosen]
        screen.table(
            title,
            {
                "airport": [f"{node} {data.names.get(node, '')}" for node in nodes],
                f"flights {data.reference_name}": [int(model.sizes_[i, 0]) for i in chosen],
                f"flights {data.target_name}": [int(model.sizes_[i, 1]) for i in chosen],
                "divergence": [f"{model.divergence_[i]:.3f}" for i in chosen],
                **{head: [f"{change[i]:+.0f}" for i in chosen] for head, change in changes.items()},
            },
        )
    show_kinds(screen, model, kinds)
    words = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in settings)
    screen.say(f"Selected by cross-validation: {words}")


def _changes_of_speed(summary: dict[str, Any], feature: str) -> dict[str, list[float]]:
    """Columns with the change of the mean; a fit that left out the graph has only its own."""
    own, joined = (f"{feature}_mean_change{which}" for which in ("", "_with_neighbors"))
    if joined not in summary:
        return {"change of mean speed": summary[own]}
    return {"change of mean speed, with neighbours": summary[joined], "own flights": summary[own]}
