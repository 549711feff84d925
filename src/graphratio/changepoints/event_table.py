"""Events as columns of a table, and the observations before and after one as samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray, Label
from graphratio.changepoints.events import ChangeEvent
from graphratio.data.samples import NodeSamples

NODE_COLUMNS = ("event", "time", "node", "onset", "kind", "divergence", "feature")
FEATURE_COLUMNS = (
    "mean_before",
    "mean_after",
    "spread_before",
    "spread_after",
    "spread_ratio",
    "mean_changed",
    "spread_changed",
)
PAIR_COLUMNS = ("correlation_before", "correlation_after", "correlation_changed")

_NO_FEATURE = (*(float("nan"),) * 5, False, False)
_NO_PAIR = (float("nan"), float("nan"), False)


def event_columns(events: list[ChangeEvent]) -> dict[str, list[Any]]:
    """One row per event, node and measured feature or pair, nodes in the order of onset.

    Examples
    --------
    >>> list(event_columns([]))[:4]
    ['event', 'time', 'node', 'onset']
    """
    rows: list[tuple[Any, ...]] = []
    for number, event in enumerate(events):
        for node, one in event.changes.items():
            begin = (number, event.time, node, one.onset, one.kind, one.divergence)
            for feature in one.features:
                moments = (getattr(feature, name) for name in FEATURE_COLUMNS)
                rows.append((*begin, feature.feature, *moments, *_NO_PAIR))
            for pair in one.correlations:
                name = f"{pair.first} and {pair.second}"
                rows.append((*begin, name, *_NO_FEATURE, pair.before, pair.after, pair.changed))
    names = (*NODE_COLUMNS, *FEATURE_COLUMNS, *PAIR_COLUMNS)
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def before_and_after(
    panel: FloatArray, predicted: list[int], step: int, nodes: Sequence[Label]
) -> NodeSamples:
    """Observations between a change and its neighbours; `predicted` has all changes and the end."""
    steps = [0, *predicted]
    place = steps.index(step)
    parts = []
    for side in (slice(steps[place - 1], step), slice(step, steps[place + 1])):
        values = np.swapaxes(panel[side], 0, 1)
        parts.append([one[np.isfinite(one).all(axis=1)] for one in values])
    return NodeSamples.from_arrays(parts[0], parts[1], nodes=list(nodes))
