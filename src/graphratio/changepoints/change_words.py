"""Sentences about changes, from the fields of events."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import enumeration
from graphratio._utils.typing import Label
from graphratio.changepoints.events import ChangeEvent
from graphratio.changepoints.seasons import rhythm_words

if TYPE_CHECKING:
    from graphratio.changepoints.detector import GraphChangePointDetector

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

# How many nodes are named as the first ones, and up to how many nodes all are named.
_FIRST, _ALL = 2, 3


def change_headline(detector: GraphChangePointDetector) -> str:
    """What was found, in one or two sentences, with warnings."""
    events = detector.events_
    parts = []
    if not events:
        parts.append(_nothing(detector))
    else:
        main = max(events, key=lambda event: (event.statistic, len(event.nodes)))
        parts.append(event_sentence(main, len(detector.nodes_)))
        if len(events) > 1:
            parts.append(f"{len(events)} changes were found; this is the clearest one.")
    return " ".join([*parts, *_warnings(detector)])


def _nothing(detector: GraphChangePointDetector) -> str:
    if detector.too_short_:
        return (
            f"The panel is too short to tell: observations depend on each other over "
            f"{detector.block_} steps, and {detector.n_times_} steps are not enough. About "
            f"{detector.n_times_needed_} steps are needed."
        )
    return f"No change found (p = {detector.p_value_:.2g})."


def _warnings(detector: GraphChangePointDetector) -> list[str]:
    said = []
    rhythms = [rhythm_words(period, detector.times_) for period in detector.periods_]
    was = "were" if len(rhythms) > 1 else "was"
    named = " and ".join(rhythms)
    if rhythms and not detector.adjustment_.profiles:
        said.append(f"Warning: {named} {was} found and not removed.")
    elif rhythms:
        said.append(f"{named[:1].upper()}{named[1:]} {was} removed.")
    trends = len(detector.trend_nodes_)
    if trends:
        removed = bool(detector.adjustment_.slope.any())
        where = f"at {trends} of {len(detector.nodes_)} nodes"
        said.append(
            f"A slow trend {where} was removed."
            if removed
            else f"Warning: a slow trend {where} was not removed."
        )
    return said


def event_sentence(event: ChangeEvent, n_nodes: int) -> str:
    """One sentence: when, what, where, where first, and by how much.

    Examples
    --------
    >>> from graphratio.changepoints.events import ChangeEvent, FeatureChange, NodeChange
    >>> flow = FeatureChange("flow", 100.0, 112.0, 5.0, 5.0, True, False)
    >>> change = NodeChange(7, (flow,), (), 0.5)
    >>> event = ChangeEvent(7, (6, 8), ("A",), {"A": 7}, {"A": change}, {change.kind: 1}, 7, 3.0,
    ...                     0.01, 9)
    >>> event_sentence(event, 40)
    'At 7 flow rose at 1 of 40 nodes (A), by 12 %.'
    """
    sizes: Counter[str] = Counter()
    for one in event.changes.values():
        sizes.update(one.parts)
    main = sizes.most_common(1)[0][0]
    nodes = [node for node, one in event.changes.items() if main in one.parts]
    began, last = event.onsets[nodes[0]], event.onsets[nodes[-1]]
    # Nodes that follow later did not change at the time of the event.
    when = time_words(event.time) if began == last else f"From {_spelled(began)} on"
    text = f"{when} {_happened(main)}"
    if n_nodes > 1:
        order, named = where_first(event, nodes)
        text += f" at {len(nodes)} of {n_nodes} nodes"
        text += f", {order}{named}" if order else f" ({named})"
    if size := _size(event, main, nodes):
        text += f"{', ' if n_nodes > 1 else ' '}{size}" + (" on average" if len(nodes) > 1 else "")
    others = len(event.nodes) - len(nodes)
    if others:
        text += f"; {others} more node{'s' if others > 1 else ''} changed in other ways"
    return f"{text}."


def where_first(event: ChangeEvent, nodes: Sequence[Label]) -> tuple[str, str]:
    """Words before the names of some nodes of an event, and the names: those that were first."""
    names = [str(node) for node in nodes]
    early = [str(node) for node in nodes if event.onsets[node] == event.onsets[nodes[0]]]
    if len(early) < len(names):
        return "first at ", enumeration(early, _FIRST)
    if len(names) > _ALL:
        return "among them ", enumeration(names[:_FIRST])
    return "", enumeration(names)


def time_words(time: Label) -> str:
    """A time at the beginning of a sentence.

    Examples
    --------
    >>> import datetime
    >>> time_words(datetime.datetime(2024, 5, 6, 14)), time_words(7)
    ('On 6 May 2024 at 14:00', 'At 7')
    """
    return f"{'On' if isinstance(time, dt.date) else 'At'} {_spelled(time)}"


def _spelled(time: Label) -> str:
    if not isinstance(time, dt.date):
        return str(time)
    text = f"{time.day} {_MONTHS[time.month - 1]} {time.year}"
    clock = isinstance(time, dt.datetime) and time.time() != dt.time()
    return f"{text} at {time:%H:%M}" if clock else text


def _happened(main: str) -> str:
    """A kind of change as subject and verb."""
    if main == "shape":
        return "the distribution changed"
    what, _, sense = main.rpartition(" ")
    if what.startswith("mean of "):
        return f"{what.removeprefix('mean of ')} {'rose' if sense == 'up' else 'fell'}"
    if what.startswith("spread of "):
        return f"{what.removeprefix('spread of ')} varied {'more' if sense == 'up' else 'less'}"
    return f"the {what} {'rose' if sense == 'up' else 'fell'}"


def _size(event: ChangeEvent, main: str, nodes: list[Label]) -> str:
    """By how much, on average over the nodes; empty for a change of shape."""
    changes = [event.changes[node] for node in nodes]
    what = main.rpartition(" ")[0]
    for number, feature in enumerate(changes[0].features):
        chosen = [one.features[number] for one in changes]
        if what == f"mean of {feature.feature}":
            before = np.array([one.mean_before for one in chosen])
            after = np.array([one.mean_after for one in chosen])
            spread = np.array([one.spread_before for one in chosen])
            if (np.abs(before) > 2 * spread).all() and len(set(np.sign(before))) == 1:
                return f"by {abs(float(np.mean(after / before - 1))):.0%}".replace("%", " %")
            return f"by {abs(float(np.mean(after - before))):.2g}"
        if what == f"spread of {feature.feature}":
            return f"by a factor of {float(np.nanmean([o.spread_ratio for o in chosen])):.2g}"
    for number, pair in enumerate(changes[0].correlations):
        if what == f"correlation of {pair.first} and {pair.second}":
            ends = [
                float(np.mean([getattr(one.correlations[number], side) for one in changes]))
                for side in ("before", "after")
            ]
            return f"from {ends[0]:.2g} to {ends[1]:.2g}"
    return ""
