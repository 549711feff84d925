"""The result of change-point detection: one event per change, in steps and in labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphratio._utils.typing import Label


@dataclass(frozen=True)
class ChangeEvent:
    """A change at some nodes of the graph.

    Attributes
    ----------
    time : label
        First time of the new state: a step counted from 0, or a value of the time column.
    interval : (label, label)
        First and last time at which the change may have begun, with 95 % confidence if it is
        abrupt (likelihood-ratio interval), not covering nodes that changed at other times.
    nodes : tuple of labels
        The nodes that changed, in the order of the graph. The expected share of unchanged
        nodes among them is at most the detector's `level`.
    onsets : mapping of label to label
        When each of them changed, in the order of onset.
    step : int
        Position of `time` in the panel.
    statistic, p_value : float
        Largest value of the scan, in units of the threshold, and the chance that a panel of the
        same length without change has such a value anywhere.
    alarm : label
        The time at which the alarm was raised, the last one seen by then.

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


@dataclass(frozen=True)
class Found:
    """A change in steps and positions of nodes; `alarm` is the last step seen by then."""

    step: int
    interval: tuple[int, int]
    nodes: tuple[int, ...]
    onsets: tuple[int, ...]
    statistic: float
    alarm: int

    def named(
        self, nodes: tuple[Label, ...], label: Callable[[int], Label], p_value: float
    ) -> ChangeEvent:
        """The change with the labels of nodes and times."""
        order = sorted(range(len(self.nodes)), key=lambda i: self.onsets[i])
        return ChangeEvent(
            time=label(self.step),
            interval=(label(self.interval[0]), label(self.interval[1])),
            nodes=tuple(nodes[i] for i in self.nodes),
            onsets={nodes[self.nodes[i]]: label(self.onsets[i]) for i in order},
            step=self.step,
            statistic=self.statistic,
            p_value=p_value,
            alarm=label(self.alarm),
        )
