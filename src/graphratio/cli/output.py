"""The folder with the results, and their summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphratio._utils.errors import InputError
from graphratio._utils.files import staged
from graphratio.cli.console import Screen, plain
from graphratio.cli.inputs import Problem
from graphratio.cli.models import settings_of
from graphratio.data.frames import make_frame
from graphratio.data.graph import Graph
from graphratio.estimators.base import NodeRatioEstimator

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange, TwoSampleResult

# How many nodes and features a summary shows.
SHOWN_NODES = 10
_SHOWN_FEATURES = 3

# Every file that a command writes to its folder.
RESULTS = (
    "model.graphratio", "nodes.csv", "nodes.geojson", "report.html", "tests.csv", "tests.geojson",
    "regions.csv", "tests.html", "detector.graphratio", "events.csv", "changes.html", "fits.csv",
    "graphs.html",
)  # fmt: skip

# An earlier report must not stand beside new results; other files are left alone.
_REPLACED = ("report.html", "nodes.geojson")


def check_folder(folder: Path, *reads: Path | None, overwrite: bool) -> None:
    """Refuse, before any work, an output folder that exists or holds an input to be replaced."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"the output {folder} is a file", "Name a folder with --output")
    if folder.exists() and not overwrite:
        raise InputError(
            f"the output folder {folder} exists already",
            "Pass --overwrite to replace the results in it, or another --output",
        )
    for path in reads:
        inside = path is not None and path.resolve().parent == folder.resolve()
        if path is not None and inside and path.name in RESULTS:
            raise InputError(
                f"the results in {folder} would replace the input {path}",
                "Choose another --output",
            )


def write_results(
    screen: Screen,
    folder: Path,
    model: NodeRatioEstimator,
    problem: Problem,
    summary: dict[str, Any],
    page: dict[str, Any] | None,
    *,
    geojson: bool = False,
) -> dict[str, Path]:
    """Write the model, the table of nodes and, if given, the page; return paths by content."""
    from graphratio.report import write_report

    sides = {"reference_name": problem.reference_name, "target_name": problem.target_name}
    # The page waits for a comparison that is a function; any other one is there already.
    compares = page is not None and callable(page["comparison"])
    what = "Measuring what the graph is worth" if compares else "Writing the results"
    with screen.working(what), staged(folder, _REPLACED) as rough:
        files = {"model": rough / "model.graphratio", "nodes": rough / "nodes.csv"}
        model.save(files["model"])
        write_table(make_frame(summary, "pandas"), files["nodes"])
        if geojson:
            files["map"] = write_geojson(summary, problem.graph, rough / "nodes.geojson")
        if page is not None:
            page = {**sides, **page}
            files["report"] = write_report(rough / "report.html", model, problem.samples, **page)
    return moved(files, folder)


def write_table(frame: Any, path: Path | None) -> str | None:
    """Write a frame as CSV, or return it as text.

    Text that begins with =, +, - or @ and is no number gets an apostrophe in front, so that a
    spreadsheet does not run it as a formula.
    """
    shown = frame.rename(columns=_harmless)
    for name in shown.columns[[str(kind) in ("object", "str") for kind in shown.dtypes]]:
        shown[name] = shown[name].map(_harmless)
    text: str | None = shown.to_csv(path, index=False)
    return text


def _harmless(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_geojson(columns: Mapping[str, Any], graph: Graph, path: Path) -> Path:
    """Write one point per node, with the columns of a table as its properties."""
    if graph.coordinates is None or graph.metric != "haversine":
        raise InputError(
            "GeoJSON needs latitudes and longitudes, and the coordinates of these nodes are others",
            "Name columns of degrees: --coordinates lat,lon, with --metric haversine",
        )
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [longitude, latitude]},
            "properties": {name: column[i] for name, column in columns.items()},
        }
        for i, (latitude, longitude) in enumerate(graph.coordinates.tolist())
    ]
    content = plain({"type": "FeatureCollection", "features": features})
    path.write_text(json.dumps(content, allow_nan=False, ensure_ascii=False), encoding="utf-8")
    return path


def moved(files: dict[str, Path], folder: Path) -> dict[str, Path]:
    """Paths of the files in another folder."""
    return {what: folder / path.name for what, path in files.items()}


def show_summary(
    screen: Screen,
    model: NodeRatioEstimator,
    problem: Problem,
    summary: dict[str, Any],
    kinds: KindsOfChange | None,
    test: TwoSampleResult | None,
) -> None:
    """Print the compared samples, the most changed nodes, and kinds of change."""
    samples, graph = problem.samples, problem.graph
    screen.say(
        f"Compared {problem.target_name!r} (target) with {problem.reference_name!r} (reference) at "
        f"{samples.n_nodes} nodes: {samples.n_observations} observations, "
        f"{samples.n_features} feature{'s' if samples.n_features > 1 else ''}, "
        f"{graph.n_edges} edges."
    )
    top = model.ranking_[:SHOWN_NODES].tolist()
    shown = ["node", "n_reference", "n_target", "divergence"]
    for name in samples.feature_names[:_SHOWN_FEATURES]:
        helped = f"{name}_mean_change_with_neighbors"
        shown.append(helped if helped in summary else f"{name}_mean_change")
    columns = {_heading(name): [summary[name][i] for i in top] for name in shown}
    screen.table(ranking_title(model, test), columns)
    show_kinds(screen, model, kinds)


def _heading(column: str) -> str:
    """The name of a column in words; what a feature is called stays."""
    return column.removesuffix("_with_neighbors").replace("_", " ") + (
        " with neighbours" if column.endswith("_with_neighbors") else ""
    )


def ranking_title(model: NodeRatioEstimator, test: TwoSampleResult | None = None) -> str:
    """Title of a table of the most changed nodes; estimated divergences can be negative."""
    what = "Most changed nodes"
    if test is not None and not test.n_rejected:
        doubt = "none significant" if test.answerable else "which may be chance"
        what = f"Largest estimated changes, {doubt}"
    return f"{what} (estimated {model.divergence_name_} divergence, 0 or less shows no change)"


def show_kinds(screen: Screen, model: NodeRatioEstimator, kinds: KindsOfChange | None) -> None:
    """Print the kinds of change, and the number of cut links if there are any."""
    if kinds is not None:
        screen.say(f"{kinds.summary}.")
    cut = len(model.cut_links()) if hasattr(model, "cut_links") else 0
    if cut:
        screen.say(f"{cut} of {model.graph_.n_edges} links were cut.")


def summary_object(
    command: str,
    model: NodeRatioEstimator,
    problem: Problem,
    summary: dict[str, Any],
    files: dict[str, Path],
    notes: list[str],
    kinds: KindsOfChange | None,
) -> dict[str, Any]:
    """The summary as an object for JSON."""
    found: dict[str, Any] = {} if kinds is None else {"kinds": kinds.counts}
    if hasattr(model, "cut_links"):
        found["cut_links"] = [list(ends) for ends in model.cut_links()]
    return {
        "command": command,
        "reference": problem.reference_name,
        "target": problem.target_name,
        "n_nodes": problem.samples.n_nodes,
        "n_edges": problem.graph.n_edges,
        "n_observations": problem.samples.n_observations,
        "features": list(problem.samples.feature_names),
        "estimator": type(model).__name__,
        "divergence": model.divergence_name_,
        "settings": settings_of(model),
        "most_changed": [
            {name: column[i] for name, column in summary.items()}
            for i in model.ranking_[:SHOWN_NODES]
        ],
        **found,
        "notes": notes,
        "files": files,
    }
