"""The result of change-point detection: one event per change, in steps and in labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.typing import Label

# Nodes in the table for notebooks.
_SHOWN = 10


@dataclass(frozen=True)
class FeatureChange:
    """One measured feature of a node before and after an event, in its own units.

    Attributes
    ----------
    feature : str
    mean_before, mean_after, spread_before, spread_after : float
        Means and standard deviations.
    mean_changed, spread_changed : bool
        Whether the difference is significant at the detector's `level`.

    Examples
    --------
    >>> from graphratio.changepoints import FeatureChange
    >>> flow = FeatureChange("flow", 12.1, 15.0, 2.0, 2.8, True, True)
    >>> round(flow.spread_ratio, 2)
    1.4
    """

    feature: str
    mean_before: float
    mean_after: float
    spread_before: float
    spread_after: float
    mean_changed: bool
    spread_changed: bool

    @property
    def spread_ratio(self) -> float:
        """Standard deviation after over that before; NaN if nothing varied before."""
        return self.spread_after / self.spread_before if self.spread_before > 0 else float("nan")


@dataclass(frozen=True)
class CorrelationChange:
    """The rank correlation of two measured features of a node before and after an event.

    Attributes
    ----------
    first, second : str
    before, after : float
    changed : bool

    Examples
    --------
    >>> from graphratio.changepoints import CorrelationChange
    >>> CorrelationChange("flow", "speed", 0.1, 0.6, True).after
    0.6
    """

    first: str
    second: str
    before: float
    after: float
    changed: bool


@dataclass(frozen=True)
class NodeChange:
    """What changed at one node.

    Attributes
    ----------
    onset : label
        When the node changed, by its own observations.
    features : tuple of FeatureChange
    correlations : tuple of CorrelationChange
    divergence : float
        Estimated Pearson divergence between before and after, from the kernel features.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> panel = np.random.default_rng(0).normal(size=(200, 2))
    >>> panel[120:, 1] += 3.0
    >>> event = gr.GraphChangePointDetector(random_state=0).fit(panel).events_[0]
    >>> event.changes[1].kind
    'mean of x0 up'
    """

    onset: Label
    features: tuple[FeatureChange, ...]
    correlations: tuple[CorrelationChange, ...]
    divergence: float

    @property
    def parts(self) -> dict[str, float]:
        """Significant changes in words, and their sizes on one scale.

        A size is about the shift of the mean, in standard deviations, that is equally easy to see.
        """
        found = {}
        for one in self.features:
            usual = math.hypot(one.spread_before, one.spread_after) / math.sqrt(2)
            moved = one.mean_after - one.mean_before
            if one.mean_changed:
                size = abs(moved) / usual if usual > 0 else math.inf
                found[f"mean of {one.feature} {_sense(moved)}"] = size
            if one.spread_changed:
                moved = math.log(max(one.spread_after, 1e-300) / max(one.spread_before, 1e-300))
                found[f"spread of {one.feature} {_sense(moved)}"] = math.sqrt(2) * abs(moved)
        for pair in self.correlations:
            if pair.changed:
                ends = np.clip([pair.before, pair.after], -0.99, 0.99)
                moved = float(np.diff(np.arctanh(ends))[0])
                found[f"correlation of {pair.first} and {pair.second} {_sense(moved)}"] = abs(moved)
        return found or {"shape": 2 * math.sqrt(max(self.divergence, 0.0))}

    @property
    def kind(self) -> str:
        """The change in words, as "mean of flow up, spread of flow up", or "shape"."""
        return ", ".join(self.parts)

    @property
    def sizes(self) -> str:
        """Before and after, of everything that changed, and the divergence."""
        words = []
        for one in self.features:
            if one.mean_changed:
                words.append(f"mean of {one.feature} {_plain(one.mean_before, one.mean_after)}")
            if one.spread_changed:
                words.append(f"spread of {one.feature} x {one.spread_ratio:.2g}")
        words += [
            f"correlation of {pair.first} and {pair.second} {pair.before:.2f} to {pair.after:.2f}"
            for pair in self.correlations
            if pair.changed
        ]
        return "; ".join([*words, f"divergence {self.divergence:.2g}"])


@dataclass(frozen=True)
class ChangeEvent:
    """A change at some nodes of the graph.

    Attributes
    ----------
    time : label
        First time of the new state: a step counted from 0, or a value of the time column.
    interval : (label, label)
        First and last time at which the change may have begun, with 95 % confidence if it is
        abrupt (likelihood-ratio interval). It does not cover nodes that changed at other times.
    nodes : tuple of labels
        The nodes that changed, in the order of the graph. The expected share of unchanged
        nodes among them is at most the detector's `level`.
    onsets : mapping of label to label
        When each of them changed, in the order of onset.
    changes : mapping of label to NodeChange
        What changed at each of them, in the order of onset.
    kinds : mapping of str to int
        Kinds of change and the number of nodes of each, the most frequent first.
    step : int
        Position of `time` in the panel.
    statistic, p_value : float
        Evidence in units of the threshold, and the probability that a panel of the same length
        without change has as much anywhere.
    alarm : label
        The last time that had been seen when the change was found.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> panel = rng.normal(size=(300, 6))
    >>> panel[200:, 3:] += 4.0
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
    >>> detector = gr.GraphChangePointDetector(random_state=0).fit(panel, graph)
    >>> event = detector.events_[0]
    >>> event.time, event.nodes
    (200, (3, 4, 5))
    """

    time: Label
    interval: tuple[Label, Label]
    nodes: tuple[Label, ...]
    onsets: Mapping[Label, Label]
    changes: Mapping[Label, NodeChange]
    kinds: Mapping[str, int]
    step: int
    statistic: float
    p_value: float
    alarm: Label

    def _repr_html_(self) -> str:
        """Table for notebooks: the nodes in the order of onset."""
        facts = [
            ("time", f"{self.time}, between {self.interval[0]} and {self.interval[1]}"),
            ("nodes", f"{len(self.nodes):,}"),
            *(("what", f"{kind}, at {number:,}") for kind, number in self.kinds.items()),
            ("p", f"{self.p_value:.2g}"),
        ]
        rows = [
            (str(node), str(one.onset), one.sizes)
            for node, one in list(self.changes.items())[:_SHOWN]
        ]
        head = ("first nodes", "onset", "before and after")
        return titled("ChangeEvent", facts_table(facts), rows_table(head, rows))


def _sense(moved: float) -> str:
    return "up" if moved > 0 else "down"


def _plain(before: float, after: float) -> str:
    """Two means with enough digits to tell them apart.

    Examples
    --------
    >>> _plain(12.1, 15.04), _plain(1013.21, 1013.85)
    ('12.1 to 15.0', '1013.21 to 1013.85')
    """
    size = abs(after - before)
    digits = int(np.clip(1 - np.floor(np.log10(size)), 0, 8)) if size > 0 else 2
    return f"{before:.{digits}f} to {after:.{digits}f}"


@dataclass(frozen=True)
class Found:
    """A change in steps and positions of nodes.

    `neighbours` are the ends of the stretch in which it was dated, `last` the step by which all
    nodes of a gradual change have changed, and `alarm` the last step seen when it was found.
    """

    step: int
    last: int
    interval: tuple[int, int]
    nodes: tuple[int, ...]
    onsets: tuple[int, ...]
    divergences: tuple[float, ...]
    neighbours: tuple[int, int]
    statistic: float
    p_value: float
    alarm: int
