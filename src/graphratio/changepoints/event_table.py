"""Events as columns of a table: one row per event, node and measured feature."""

from __future__ import annotations

from typing import Any

from graphratio.changepoints.events import ChangeEvent

NODE_COLUMNS = ("event", "time", "node", "onset", "kind", "divergence")
FEATURE_COLUMNS = (
    "feature",
    "mean_before",
    "mean_after",
    "spread_before",
    "spread_after",
    "spread_ratio",
    "mean_changed",
    "spread_changed",
)


def event_columns(events: list[ChangeEvent]) -> dict[str, list[Any]]:
    """Columns of equal length, nodes in the order of onset.

    Examples
    --------
    >>> list(event_columns([]))[:4]
    ['event', 'time', 'node', 'onset']
    """
    rows = [
        (
            number,
            event.time,
            node,
            one.onset,
            one.kind,
            one.divergence,
            *(getattr(feature, name) for name in FEATURE_COLUMNS),
        )
        for number, event in enumerate(events)
        for node, one in event.changes.items()
        for feature in one.features
    ]
    names = (*NODE_COLUMNS, *FEATURE_COLUMNS)
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
