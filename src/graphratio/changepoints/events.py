"""The result of change-point detection: one event per change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphratio._utils.typing import Label


@dataclass(frozen=True)
class ChangeEvent:
    """A change at some nodes of the graph.

    Attributes
    ----------
    time : label
        When: the first time of the new state. A step counted from 0, or the value of the time
        column where the panel has one.
    interval : (label, label)
        First and last time at which the change may have begun, with 95 % confidence if it is
        abrupt (the likelihood-ratio interval of a change-point). It says nothing about nodes
        that began earlier or later.
    nodes : tuple of labels
        The nodes that changed, in the order of the graph. Of those named, the expected share
        of unchanged ones is at most the detector's `false_alarm`.
    onsets : mapping of label to label
        When each of them changed, in the order of onset.
    step : int
        Position of `time` in the panel.
    statistic : float
        Largest value of the scan, in units of the threshold.
    p_value : float
        Chance that a panel of the same length without change has such a value anywhere.
    alarm : label
        The time at which the alarm was raised: the last one that had to be seen.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> panel = rng.normal(size=(300, 6))
    >>> panel[200:, 3:] += 4.0
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
    >>> detector = gr.GraphChangePointDetector(window=25, random_state=0).fit(panel, graph)
    >>> event = detector.events_[0]
    >>> event.time, event.nodes
    (200, (3, 4, 5))
    """

    time: Label
    interval: tuple[Label, Label]
    nodes: tuple[Label, ...]
    onsets: Mapping[Label, Label]
    step: int
    statistic: float
    p_value: float
    alarm: Label
