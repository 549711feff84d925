"""`graphratio demo`: real flights, winter against summer, fitted and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from graphratio.cli.console import Screen, as_option
from graphratio.cli.inputs import Problem, capped
from graphratio.cli.models import fit_problem, prepared, settings_of
from graphratio.cli.options import FitOptions, Json, Quiet
from graphratio.cli.output import check_folder, show_kinds, summary_object, write_results
from graphratio.cli.two_sample import find_kinds
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.datasets import NetworkData, load_flights
from graphratio.estimators import GraphRatio
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.recipe import Recipe
from graphratio.evaluation.worth import Worth, worth_of

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange

FOLDER = Path("graphratio-demo")

# With so few flights per airport and season, the graph counts.
FEW_FLIGHTS = 8


def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the results; earlier ones are replaced.")
    ] = FOLDER,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the cross-validation.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show graphratio at work: flights from New York in 2013, winter against summer.

    Takes less than a minute and writes a report to open in a browser. Example:

        graphratio demo --output my-demo
    """
    from graphratio.report import node_summary

    screen = Screen(as_json=json, quiet=quiet)
    check_folder(output, overwrite=True)
    with screen.working("Reading the flights"):
        data = load_flights()
    screen.say(data.description)
    if data.left_out:
        screen.say(f"Left out, without coordinates: {', '.join(map(str, data.left_out))}.")
    problem = Problem(data.samples, data.graph, data.reference_name, data.target_name)
    options = FitOptions(seed=seed)
    model, notes = fit_problem(problem, options, screen)
    scaled, _ = prepared(data.samples, options)
    kinds, kind_notes = find_kinds(problem, model, scaled, None, seed, screen)
    summary = node_summary(model, data.samples, kinds=kinds)
    said = [data.description, *notes]
    page = {
        "title": "Flights from New York, 2013",
        "names": data.names,
        "notes": said,
        "noun": ("airport", "airports"),
        "units": {"ground_speed": "mph"},
    }
    files = write_results(screen, output, model, problem, summary, {**page, "kinds": kinds})
    _show(screen, model, data, summary, kinds)
    with screen.working("Measuring what the graph is worth"):
        worth = _worth_of_few(scaled, data.graph, seed)
    screen.say(f"With {FEW_FLIGHTS} random flights per airport and season: {worth.in_words}")
    screen.say(
        f"\nThe report: {files['report']}\n"
        "Open it in a browser: the map shows where flights changed; click Austin (AUS) and Boston "
        "(BOS) to see how."
    )
    notes += [*model._told(as_option), *kind_notes]
    screen.result(summary_object("demo", model, problem, summary, files, notes, kinds))


def _worth_of_few(samples: NodeSamples, graph: Graph, seed: int) -> Worth:
    """What the graph is worth if only a few flights are known."""
    rng = np.random.default_rng(seed)
    few = capped(samples, FEW_FLIGHTS, seed, []).aligned(graph.nodes)
    recipe = Recipe.of(GraphRatio(random_state=seed), few, rng)
    return worth_of(recipe, {"graph": graph}, 0.05, rng)["graph"]


def _show(
    screen: Screen,
    model: NodeRatioEstimator,
    data: NetworkData,
    summary: dict[str, Any],
    kinds: KindsOfChange | None,
) -> None:
    ranked = model.ranking_.tolist()
    settings = settings_of(model).items()
    change = np.asarray(summary[f"{data.samples.feature_names[0]}_mean_change"], dtype=float)
    for title, chosen in (
        ("Ten most changed airports", ranked[:10]),
        ("Ten least changed airports", ranked[:-11:-1]),
    ):
        nodes = [model.nodes_[i] for i in chosen]
        screen.table(
            title,
            {
                "airport": [f"{node} {data.names.get(node, '')}" for node in nodes],
                f"flights {data.reference_name}": [int(model.sizes_[i, 0]) for i in chosen],
                f"flights {data.target_name}": [int(model.sizes_[i, 1]) for i in chosen],
                "divergence": [f"{model.divergence_[i]:.3f}" for i in chosen],
                "change of mean speed": [f"{change[i]:+.0f}" for i in chosen],
            },
        )
    show_kinds(screen, model, kinds)
    words = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in settings)
    screen.say(f"Selected by cross-validation: {words}")
