"""`graphratio changes`: from a table over time to events."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.files import staged
from graphratio._utils.optional import import_optional
from graphratio.changepoints import GraphChangePointDetector
from graphratio.changepoints.change_words import where_first
from graphratio.cli.console import Screen
from graphratio.cli.graph_files import build_graph
from graphratio.cli.inputs import read_rows, refuse_blanks, roles_of, warnings_as, with_labels
from graphratio.cli.models import new_estimator
from graphratio.cli.options import GraphOptions, TableOptions, TimeOptions
from graphratio.cli.output import check_folder, moved, write_table
from graphratio.cli.output_options import OutputOptions
from graphratio.cli.periods import TimeAxis
from graphratio.cli.table_files import TableFile, as_numbers
from graphratio.data.graph import Graph

# How many events are shown on the screen.
_SHOWN_EVENTS = 20


def changes(
    data: TableOptions, time: TimeOptions, graph: GraphOptions, output: OutputOptions
) -> None:
    r"""Find out when and where something changed, and in which order.

    Reads a table with one row per node and time, compares before and after at all scales, and
    writes changes.html (open it in a browser), events.csv (one row per event, node and feature)
    and detector.graphratio (the fitted detector, for Python).

        graphratio changes air.csv --node station --time day \
          --features pm25,no2 --coordinates lat,lon \
          --output air-changes
    """
    from graphratio.report import write_changes
    from graphratio.report.page_file import page_packages

    page_packages("the page")
    screen = Screen(as_json=output.json, quiet=output.quiet)
    check_folder(output.output, data.data, graph.edges, overwrite=output.overwrite)
    with screen.working(f"Reading {data.data}"):
        frame, features, network, notes = _read(data, time, graph)
    chosen = None
    if time.estimator is not None:
        chosen = new_estimator(time.estimator, random_state=time.seed)
    detector = GraphChangePointDetector(
        time.window,
        estimator=chosen,
        level=time.level,
        season=_season(time.season),
        n_surrogates=time.surrogates,
        n_jobs=time.jobs,
        random_state=time.seed,
        progress=screen.live,
    )
    with warnings_as(notes):
        detector.fit(
            frame,
            network,
            node=data.where,
            time=time.time,
            features=features,
            missing=data.missing.value,
        )
    screen.notes(notes)
    with screen.working("Writing the results"), staged(output.output) as rough:
        files = {"detector": rough / "detector.graphratio", "events": rough / "events.csv"}
        detector.save(files["detector"])
        write_table(detector.to_frame(), files["events"])
        title = f"{data.stem}: when it changed"
        files["page"] = write_changes(rough / "changes.html", detector, title=title, notes=notes)
    files = moved(files, output.output)
    _show(screen, detector)
    for name in reversed(files):
        screen.say(f"{name}: {files[name]}")
    screen.result(_summary(detector, files, notes))


def _season(given: str) -> str | int | None:
    """The option as the detector takes it."""
    if given == "none":
        return None
    return int(given) if given.isdigit() else given


def _read(
    data: TableOptions, time: TimeOptions, graph: GraphOptions
) -> tuple[Any, list[str], Graph, list[str]]:
    """Read the table and the edges, and match them.

    Returns a pandas frame with node, time and features, the features, the graph, and notes.
    """
    notes: list[str] = []
    file = TableFile(data.data, data.delimiter)
    places, features = roles_of(file, data, graph)
    roles = [(time.time, "--time")]
    if not data.wide:
        roles += [(data.where, "--node")]
        roles += [(name, "--coordinates") for name in places]
        roles += [(name, "--features") for name in features]
    for name, role in roles:
        file.check(name, role)
    special = [data.where, time.time, *places]
    named = [data.where, time.time, *features]
    if twice := [name for name in dict.fromkeys(named) if named.count(name) > 1]:
        raise InputError(
            f"--node, --time and --features name the column {twice[0]!r} twice",
            "Name different columns",
        )
    raw, labels, features = read_rows(file, data, special, features, notes)
    axis = TimeAxis(raw[time.time], time.time, time.date_format)
    refuse_blanks(time.time, int((~axis.known).sum()), len(raw), data)
    kept = axis.known & with_labels(labels, axis.known, data, notes)
    chosen = raw[kept]
    times = axis.values[kept]
    if times.dtype.kind == "f" and np.all((times == np.round(times)) & (abs(times) < 2**53)):
        # Whole numbers stay integers, as they were written.
        times = times.astype(np.int64)
    frame = import_optional("pandas", "cli", "reading tables").DataFrame(
        {
            data.where: labels[kept].to_numpy(),
            time.time: times,
            **{name: as_numbers(chosen[name], name).to_numpy() for name in features},
        }
    )
    built = build_graph(labels[kept], chosen, places, graph, data.delimiter, notes, borrow=False)
    return frame, features, built, notes


def _show(screen: Screen, detector: GraphChangePointDetector) -> None:
    from graphratio.report import time_text

    events = detector.events_
    screen.say(
        f"Examined {len(detector.nodes_)} nodes over {detector.n_times_} times, "
        f"{detector.n_features_in_} feature{'s' if detector.n_features_in_ > 1 else ''}, "
        f"{detector.graph_.n_edges} edges."
    )
    screen.say(detector.headline())
    if not events:
        return
    shown = events[:_SHOWN_EVENTS]
    screen.table(
        f"Changes ({len(shown)} of {len(events)})",
        {
            "time": [time_text(event.time) for event in shown],
            "between": [time_text(event.interval[0]) for event in shown],
            "and": [time_text(event.interval[1]) for event in shown],
            "nodes": [len(event.nodes) for event in shown],
            "where": ["".join(where_first(event, list(event.onsets))) for event in shown],
            "what": [next(iter(event.kinds)) for event in shown],
            "p": [event.p_value for event in shown],
        },
    )


def _summary(
    detector: GraphChangePointDetector, files: dict[str, Path], notes: list[str]
) -> dict[str, Any]:
    return {
        "command": "changes",
        "n_nodes": len(detector.nodes_),
        "n_edges": detector.graph_.n_edges,
        "n_times": detector.n_times_,
        "features": list(detector.feature_names_in_),
        "settings": {
            "window": detector.window,
            "level": detector.level,
            "season": detector.season,
            "bandwidth": detector.bandwidth_,
            "ridge": detector.ridge_,
            "block": detector.block_,
        },
        "headline": detector.headline(),
        "too_short": detector.too_short_,
        "periods": list(detector.periods_),
        "trend_nodes": list(detector.trend_nodes_),
        "p_value": detector.p_value_,
        "events": [
            {
                "time": _plain_time(event.time),
                "interval": [_plain_time(end) for end in event.interval],
                "step": event.step,
                "p_value": event.p_value,
                "alarm": _plain_time(event.alarm),
                "kinds": dict(event.kinds),
                "onsets": [
                    {"node": node, "onset": _plain_time(onset)}
                    for node, onset in event.onsets.items()
                ],
                "changes": [
                    {"node": node, "kind": one.kind, **asdict(one), "onset": _plain_time(one.onset)}
                    for node, one in event.changes.items()
                ],
            }
            for event in detector.events_
        ],
        "notes": notes,
        "files": files,
    }


def _plain_time(label: Any) -> Any:
    from graphratio.report import time_text

    return time_text(label) if hasattr(label, "isoformat") else label
