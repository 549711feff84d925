"""The page about changes over time: events, panel, scan, and the map at any time."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from graphratio._utils.errors import enumeration
from graphratio._utils.typing import FloatArray, Label
from graphratio.changepoints import ChangeEvent, GraphChangePointDetector
from graphratio.changepoints.change_words import event_sentence
from graphratio.changepoints.intervals import SHORTEST_INTERVAL
from graphratio.plotting.change_figure import main_feature, standardised
from graphratio.report.page_file import map_data, short, write_page
from graphratio.report.words import count, number, sentence

# One byte per node and time; long series are averaged into at most this many columns.
PANEL_BUDGET = 1_500_000
MOST_COLUMNS = 800
FEWEST_COLUMNS = 60
SHOWN_FEATURES = 6

# The colours end at this many standard deviations; a byte counts in fortieths of one.
COLOUR_REACH = 3.0
UNIT = 40

# The list of events names at most this many nodes of each.
_NAMED = 6


def write_changes(
    path: str | Path,
    detector: GraphChangePointDetector,
    *,
    title: str = "graphratio changes",
    notes: Iterable[str] = (),
) -> Path:
    """Write the results of a detector as one self-contained HTML file.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing one is replaced.
    detector : fitted GraphChangePointDetector
    title : str
    notes : iterable of str
        Sentences about the preparation of the data.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.report import write_changes
    >>> panel = np.random.default_rng(0).normal(size=(100, 3))
    >>> detector = gr.GraphChangePointDetector(n_surrogates=19, random_state=0).fit(panel)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_changes(f"{folder}/changes.html", detector).name
    'changes.html'
    """
    events = detector.events_
    where = {node for event in events for node in event.nodes}
    return write_page(
        path,
        "changes.html.j2",
        ("theme.js", "changes.js"),
        _data(detector, events),
        title=title,
        headline=detector.headline(),
        lead=f"{count(len(detector.nodes_), 'node')}, {count(detector.n_times_, 'time')} from "
        f"{time_text(detector.label(0))} to {time_text(detector.label(detector.n_times_ - 1))}. "
        f"Before and after were compared at every scale, {_compared(detector)}.",
        found=f"{count(len(events), 'change')} found, at {count(len(where), 'node')}."
        if events
        else "Too short to tell."
        if detector.too_short_
        else f"No change found (p = {number(detector.p_value_, 2)}).",
        events=[_in_words(event, len(detector.nodes_)) for event in events],
        rows=[
            (
                time_text(event.time),
                str(node),
                time_text(one.onset),
                one.kind,
                one.sizes,
            )
            for event in events
            for node, one in event.changes.items()
        ],
        settings=_settings(detector),
        notes=[sentence(note) for note in notes],
        features=[str(name) for name in detector.feature_names_in_[:SHOWN_FEATURES]],
        shown=main_feature(detector),
    )


def time_text(label: Label) -> str:
    """Write a time for readers: midnight as a date, other times without zero seconds.

    Returns
    -------
    str

    Examples
    --------
    >>> import datetime
    >>> from graphratio.report import time_text
    >>> time_text(datetime.datetime(2020, 3, 1)), time_text(datetime.datetime(2020, 3, 1, 14))
    ('2020-03-01', '2020-03-01 14:00')
    """
    if not isinstance(label, dt.datetime):
        return str(label)
    text = label.isoformat(" ").removesuffix(" 00:00:00")
    whole = label.second == 0 and label.microsecond == 0 and label.tzinfo is None
    return text.removesuffix(":00") if whole and " " in text else text


def _compared(detector: GraphChangePointDetector) -> str:
    if len(detector.nodes_) == 1:
        return "at the only node"
    near = ", in neighbourhoods of the graph" if detector.smoothing_ else ""
    return f"at single nodes{near} and over all nodes"


def _in_words(event: ChangeEvent, n_nodes: int) -> dict[str, str]:
    low, high = (time_text(end) for end in event.interval)
    between = f", between {low} and {high}" if low != high else ""
    names = [str(node) for node in event.onsets]
    first = "first " if len(set(event.onsets.values())) > 1 else ""
    return {
        "what": event_sentence(event, n_nodes),
        "where": f"{count(len(names), 'node')}{between}; {first}{enumeration(names, _NAMED)}; "
        f"p = {number(event.p_value, 2)}",
    }


def _settings(detector: GraphChangePointDetector) -> list[tuple[str, str, str]]:
    shuffled = f"copies of the table with blocks of {count(detector.block_, 'time')} shuffled"
    return [
        (
            "periods",
            ", ".join(str(period) for period in detector.periods_) or "none",
            "rhythms that were recognised, in time points",
        ),
        ("level", number(float(detector.level)), "probability of any alarm if nothing changes"),
        ("surrogates", str(detector.n_surrogates), shuffled),
        ("bandwidth", number(detector.bandwidth_), "width of the kernel, in spreads of a feature"),
        ("ridge", number(detector.ridge_), "larger keeps nodes closer to no change"),
        ("directions", str(detector.n_components_), "monitored directions of the kernel space"),
    ]


def _data(detector: GraphChangePointDetector, events: list[ChangeEvent]) -> dict[str, Any]:
    shown = min(detector.n_features_in_, SHOWN_FEATURES)
    edges = _columns(detector.n_times_, len(detector.nodes_) * shown)
    steps = {detector.label(step): step for step in range(detector.n_times_)}
    return {
        "nodes": [str(node) for node in detector.nodes_],
        "map": map_data(detector.graph_),
        "features": [str(name) for name in detector.feature_names_in_[:shown]],
        "times": [_axis_value(detector.label(int(edge))) for edge in edges[:-1]],
        "steps": edges[:-1].tolist(),
        "n_times": detector.n_times_,
        "window": SHORTEST_INTERVAL,
        "panel": [_packed(detector.adjusted_[:, :, j], edges) for j in range(shown)],
        "unit": UNIT,
        "reach": COLOUR_REACH,
        "scan": {
            "times": [_axis_value(detector.label(int(t))) for t in detector.scan_times_],
            "values": short(detector.statistic_),
        },
        "events": [
            {
                "time": _axis_value(event.time),
                "text": time_text(event.time),
                "step": event.step,
                "onsets": [
                    [detector.graph_.position(node), steps[onset]]
                    for node, onset in event.onsets.items()
                ],
            }
            for event in events
        ],
    }


def _axis_value(label: Label) -> Any:
    """Position on a time axis: numbers as they are, everything else as text."""
    plain = isinstance(label, int | float) and not isinstance(label, bool)
    return label if plain else time_text(label)


def _columns(n_times: int, n_rows: int) -> np.ndarray:
    """First time of every column of the panel, and the end of the last column."""
    most = int(np.clip(PANEL_BUDGET // n_rows, FEWEST_COLUMNS, MOST_COLUMNS))
    return np.unique(np.linspace(0, n_times, min(most, n_times) + 1).round().astype(int))


def _packed(values: FloatArray, edges: np.ndarray) -> str:
    """Means over columns in standard deviations of each node, one signed byte each, by node."""
    z = standardised(values)
    there = np.isfinite(z)
    seen = np.maximum(np.add.reduceat(there.astype(int), edges[:-1], axis=0), 1)
    means = np.add.reduceat(np.where(there, z, 0.0), edges[:-1], axis=0) / seen
    small = np.clip(np.round(means * UNIT), -127, 127).astype(np.int8)
    return base64.b64encode(np.ascontiguousarray(small.T).tobytes()).decode("ascii")
