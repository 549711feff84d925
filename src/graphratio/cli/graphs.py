"""`graphratio graphs`: which of several graphs fits the data, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from graphratio._utils.errors import InputError
from graphratio._utils.files import staged
from graphratio.cli.console import Screen
from graphratio.cli.expand import option
from graphratio.cli.inputs import Problem, checked, read_problem, warnings_as
from graphratio.cli.models import prepared
from graphratio.cli.options import (
    COORDINATES_HELP,
    EDGES_HELP,
    METRIC_HELP,
    NEIGHBORS_HELP,
    DataOptions,
    GraphOptions,
    Metric,
    PrepareOptions,
    SampleOptions,
)
from graphratio.cli.output import check_folder, moved, write_table
from graphratio.cli.output_options import FOLDER_HELP, Json, Overwrite, Quiet
from graphratio.data.graph import Graph
from graphratio.evaluation import GraphComparison, compare_graphs
from graphratio.evaluation.verdict import in_words

_GRAPHS = "The graphs (at least one of --edges and --coordinates)"


@dataclass(frozen=True)
class CandidateOptions:
    """The graphs to compare."""

    edges: list[Path] | None = option(
        _GRAPHS, f"{EDGES_HELP} Repeat --edges for every graph; each is named after its file."
    )
    coordinates: str | None = option(
        _GRAPHS, f"{COORDINATES_HELP}adds a graph that connects nodes to their nearest ones."
    )
    neighbors: int = option(_GRAPHS, NEIGHBORS_HELP, default=5, min=1)
    metric: Metric | None = option(_GRAPHS, METRIC_HELP)
    allow_isolated: bool = option(
        _GRAPHS,
        "Accept nodes of the table that an edges file does not name.",
        "--allow-isolated",
        default=False,
    )

    def __post_init__(self) -> None:
        if not self.edges and self.coordinates is None:
            raise typer.BadParameter(
                "name a graph to compare: --edges FILE (once or several times), or --coordinates "
                "COLUMN,COLUMN"
            )

    def each(self) -> dict[str, GraphOptions]:
        """The options of every graph, by its name."""
        shared: dict[str, Any] = {
            "coordinates": self.coordinates,
            "neighbors": self.neighbors,
            "metric": self.metric,
            "allow_isolated": self.allow_isolated,
        }
        found: dict[str, GraphOptions] = {}
        for path in self.edges or []:
            if path.stem in found:
                raise InputError(
                    f"two edges files are called {path.stem!r}", "Give the files different names"
                )
            found[path.stem] = GraphOptions(edges=path, **shared)
        if self.coordinates is not None:
            name = "nearest" if "nearest" not in found else "nearest by coordinates"
            found[name] = GraphOptions(**shared)
        return found


def graphs(
    data: DataOptions,
    samples: SampleOptions,
    candidates: CandidateOptions,
    prepare: PrepareOptions,
    level: Annotated[
        float, typer.Option(help="Error probability of the verdict, between 0 and 1.")
    ] = 0.05,
    output: Annotated[Path, typer.Option(help=FOLDER_HELP)] = Path("graphratio-graphs"),
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    r"""Find out which graph fits the data, whether it helps, and what it is worth.

    Compares fits with each graph and without one on held-out data. Writes graphs.html (open it in
    a browser), fits.csv (one row per fit) and nodes.csv (one row per node).

        graphratio graphs air.csv --node station \
          --sample period --reference before --target after \
          --edges roads.csv --edges pipes.csv --coordinates lat,lon
    """
    from graphratio.report import write_graphs

    if not 0 < level < 1:
        raise typer.BadParameter("--level must be between 0 and 1")
    screen = Screen(as_json=json, quiet=quiet)
    check_folder(output, data.data, *(candidates.edges or []), overwrite=overwrite)
    with screen.working(f"Reading {data.data}"):
        problem, named = _read(data, samples, candidates, prepare.seed)
    scaled, note = prepared(problem.samples, None, prepare)
    notes = [*problem.notes, *checked(problem, scaled), note]
    with warnings_as(notes):
        found = compare_graphs(
            scaled,
            named,
            level=level,
            n_jobs=prepare.jobs,
            random_state=prepare.seed,
            progress=screen.live,
        )
    screen.notes(notes)
    drawn = {
        name: graph if graph.nodes == found.nodes else graph.subset(found.nodes)
        for name, graph in named.items()
    }
    with screen.working("Writing the results"), staged(output) as rough:
        files = {"fits": rough / "fits.csv", "nodes": rough / "nodes.csv"}
        write_table(found.summary(), files["fits"])
        write_table(found.to_frame(), files["nodes"])
        files["page"] = write_graphs(
            rough / "graphs.html",
            found,
            drawn,
            title=f"{data.stem}: which graph",
            reference_name=problem.reference_name,
            target_name=problem.target_name,
            notes=notes,
        )
    files = moved(files, output)
    _show(screen, found)
    for name in reversed(files):
        screen.say(f"{name}: {files[name]}")
    screen.result(_as_object(found, files, notes))


def _read(
    data: DataOptions, samples: SampleOptions, candidates: CandidateOptions, seed: int
) -> tuple[Problem, dict[str, Graph]]:
    """The samples, and every graph over their nodes."""
    problems = {
        name: read_problem(data, samples, options, seed, borrow=False)
        for name, options in candidates.each().items()
    }
    first = next(iter(problems.values()))
    notes = dict.fromkeys(note for one in problems.values() for note in one.notes)
    whole = Problem(
        first.samples, first.graph, first.reference_name, first.target_name, tuple(notes)
    )
    return whole, {name: one.graph for name, one in problems.items()}


def _show(screen: Screen, found: GraphComparison) -> None:
    if found.answerable:
        _show_fits(screen, found)
    screen.say(in_words(found, offer="compare_graphs in Python gives it."))


def _show_fits(screen: Screen, found: GraphComparison) -> None:
    from graphratio.report.words import difference, fixed

    table = found.summary()
    shown = {
        "fit": table["fit"].tolist(),
        "held-out loss": [fixed(value, 4) for value in table["loss"]],
        "minus no graph": [
            difference(apart, half, 4)
            for apart, half in zip(table["minus_alone"], table["half_width"], strict=True)
        ],
    }
    if stated := found.stated_worth:
        shown["worth"] = [stated[name].span if name in stated else "" for name in table["fit"]]
    screen.table("Fits", shown)


def _as_object(found: GraphComparison, files: dict[str, Path], notes: list[str]) -> dict[str, Any]:
    """The outcome for --json; None where a number is not finite."""

    def plain(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    return {
        "command": "graphs",
        "best": found.best,
        "effect": found.effect,
        "verdict": found.verdict,
        "units": found.units,
        "at_grid_end": list(found.at_grid_end),
        "correlation": None if found.correlation is None else found.correlation.value,
        "fits": [
            {
                "fit": name,
                "loss": plain(found.losses[name].mean),
                "minus_alone": plain(found.against_alone(name)[0]),
                "half_width": plain(found.against_alone(name)[1]),
                "loss_unseen_nodes": plain(found.unseen[name].mean)
                if name in found.unseen
                else None,
                "against_none": found.against_none(name) if name in found.ranking else None,
            }
            for name in found.fits
        ],
        # Only for graphs that are clearly better than none.
        "worth": {
            name: {
                "estimate": plain(own.estimate),
                "low": plain(own.low),
                "high": plain(own.high),
                "open_above": own.open_above,
            }
            for name, own in found.stated_worth.items()
        },
        "files": {name: str(path) for name, path in files.items()},
        "notes": notes,
    }
