"""The folder with the results, and their summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphratio._utils.errors import InputError
from graphratio._utils.files import staged
from graphratio.cli.console import Screen
from graphratio.cli.inputs import Problem
from graphratio.cli.models import settings_of
from graphratio.data.frames import make_frame
from graphratio.estimators.base import NodeRatioEstimator

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange

# How many nodes and features a summary shows.
SHOWN_NODES = 10
_SHOWN_FEATURES = 3

# An earlier report must not stand beside new results; other files are left alone.
_REPLACED = ("report.html",)


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuse an output folder that exists, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"the output {folder} is a file", "Name a folder with --output")
    if folder.exists() and not overwrite:
        raise InputError(
            f"the output folder {folder} exists already",
            "Pass --overwrite to replace the results in it, or another --output",
        )


def write_results(
    screen: Screen,
    folder: Path,
    model: NodeRatioEstimator,
    problem: Problem,
    summary: dict[str, Any],
    page: dict[str, Any] | None,
) -> dict[str, Path]:
    """Write the model, the table of nodes and, given its options, the page; files by content."""
    from graphratio.report import write_report

    sides = {"reference_name": problem.reference_name, "target_name": problem.target_name}
    with screen.working("Writing the results"), staged(folder, _REPLACED) as rough:
        files = {"model": rough / "model.graphratio", "nodes": rough / "nodes.csv"}
        model.save(files["model"])
        make_frame(summary, "pandas").to_csv(files["nodes"], index=False)
        if page is not None:
            page = {**sides, **page}
            files["report"] = write_report(rough / "report.html", model, problem.samples, **page)
    return moved(files, folder)


def moved(files: dict[str, Path], folder: Path) -> dict[str, Path]:
    """Paths of the files in another folder."""
    return {what: folder / path.name for what, path in files.items()}


def show_summary(
    screen: Screen,
    model: NodeRatioEstimator,
    problem: Problem,
    summary: dict[str, Any],
    kinds: KindsOfChange | None,
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
    columns = {name.replace("_", " "): [summary[name][i] for i in top] for name in shown}
    screen.table("Most changed nodes (divergence 0 means no change)", columns)
    show_kinds(screen, model, kinds)


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
        "settings": settings_of(model),
        "most_changed": [
            {name: column[i] for name, column in summary.items()}
            for i in model.ranking_[:SHOWN_NODES]
        ],
        **found,
        "notes": notes,
        "files": files,
    }
