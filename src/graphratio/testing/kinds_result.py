"""The outcome of `kinds_of_change`: a label for every node, and what each kind looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.typing import FloatArray, Label
from graphratio.data import frames
from graphratio.data.geography import Mappable
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.new_points import own_units_error
from graphratio.testing.grouping import CHANGED
from graphratio.testing.result import TwoSampleResult

# Nodes of a kind that the table for notebooks names.
_NAMED = 6


@dataclass(frozen=True, eq=False, repr=False)
class KindsOfChange(Mappable):
    """Result of `kinds_of_change`, with nodes in the order of the graph.

    Attributes
    ----------
    nodes : tuple of labels, length n_nodes
    kinds : ndarray of str, shape (n_nodes,)
        "kind 1", "kind 2", ... by size, and "other" at nodes that changed like none of the kinds.
        If there are no kinds, rejected nodes are "changed". Nodes that the test does not reject
        are "no change found", nodes that lack a sample "not tested", and nodes about which the
        data cannot say whether they changed "cannot say".
    test : TwoSampleResult
        Which nodes changed, with p-values.
    model : fitted estimator or None
        None if nothing changed and no fitted estimator was given.
    samples : NodeSamples
        In the order of the nodes, and in the scale of the model.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ib", n_nodes=40, random_state=1)
    >>> found = gr.kinds_of_change(scenario.samples, scenario.graph, random_state=0)
    >>> found.names, found.members("kind 1")[:3]
    (('kind 1', 'kind 2'), (30, 31, 32))
    >>> found.ratio([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).shape  # of both kinds at three points
    (3, 2)
    """

    nodes: tuple[Label, ...]
    kinds: np.ndarray
    test: TwoSampleResult
    model: NodeRatioEstimator | None
    samples: NodeSamples

    @property
    def answerable(self) -> bool:
        """Whether the data can say that any node changed; see `two_sample_test`."""
        return self.test.answerable

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kinds, the largest first; empty if there are none."""
        return tuple(sorted(kind for kind in set(self.kinds.tolist()) if kind.startswith("kind ")))

    @property
    def n_kinds(self) -> int:
        """Number of kinds, without "other"."""
        return len(self.names)

    @property
    def counts(self) -> dict[str, int]:
        """Number of nodes with each label, kinds first."""
        labels = self.kinds.tolist()
        rest = sorted(set(labels) - set(self.names))
        return {label: labels.count(label) for label in (*self.names, *rest)}

    def members(self, kind: str) -> tuple[Label, ...]:
        """Nodes with a label, say "kind 1"; empty if there are none."""
        return tuple(self.nodes[v] for v in np.flatnonzero(self.kinds == kind))

    def ratio(self, x: Any, *, standardized: bool = False) -> FloatArray:
        """Mean ratio = target / reference of the nodes of each kind.

        Parameters
        ----------
        x : array of shape (n_points, n_features), or 1-D for one feature
            In original units, as for `predict` of the model.
        standardized : bool, default False
            The points are in the units of the fit. Nodes with scales of their own have no others in
            common.

        Returns
        -------
        ndarray of shape (n_points, n_kinds)
        """
        if self.model is None:
            raise InputError("no change was found, so there is no ratio", "Look at `test`")
        scaling = self.model.scaling_
        if scaling is not None and scaling.own_mask.any() and not standardized:
            raise own_units_error()
        ratios = self.model.predict(x, standardized=standardized)
        columns = [ratios[:, self.kinds == name].mean(axis=1) for name in self.names]
        return np.stack(columns, axis=1) if columns else np.empty((len(ratios), 0))

    @property
    def graph(self) -> Graph:
        """The graph of the test."""
        return self.test.graph

    def to_frame(self) -> Any:
        """One row per node: node, kind, p_value, adjusted_p_value.

        A polars frame if the samples came from one, otherwise pandas.
        """
        columns: dict[str, Any] = {
            "node": list(self.nodes),
            "kind": self.kinds.tolist(),
            "p_value": self.test.p_value,
            "adjusted_p_value": self.test.adjusted_p_value,
        }
        return frames.make_frame(columns, self.test.backend)

    def plot(self, feature: str | int | None = None) -> np.ndarray:
        """Draw a map of the nodes by kind, and the mean ratio of each kind along a feature.

        Parameters
        ----------
        feature : str or int, optional
            Feature to draw along, with the others at their medians; default the first.

        Returns
        -------
        ndarray of matplotlib Axes, shape (2,); shape (1,), only the map, if there are no kinds
        """
        from graphratio.plotting.kind_figure import plot_kinds

        return plot_kinds(self, feature)

    @property
    def summary(self) -> str:
        """The outcome in a sentence."""
        if not self.test.answerable:
            return self.test.summary
        counts = ", ".join(f"{kind}: {number:,}" for kind, number in self.counts.items())
        kinds = f"{self.n_kinds} kind{'' if self.n_kinds == 1 else 's'} of change"
        return f"{kinds} at {len(self.nodes):,} nodes ({counts})"

    @property
    def own_notes(self) -> tuple[str, ...]:
        """Why there are no kinds although nodes changed; otherwise empty."""
        changed = int((self.kinds == CHANGED).sum())
        if changed == 1:
            return ("only one node changed, so there are no kinds",)
        if changed:
            return (
                "there are no kinds: on held-out data, groups of nodes do not describe the changes "
                "as well as a separate ratio for every node",
            )
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the kinds and on the test, in plain language."""
        return (*self.own_notes, *self.test.notes)

    def __repr__(self) -> str:
        lines = [
            f"KindsOfChange(correction={self.test.correction!r}, level={self.test.level:g})",
            f"  {self.summary}",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        facts = [
            ("outcome", self.summary),
            ("test", self.test.summary),
            *(("assumes", text) for text in self.test.assumptions),
            *(("note", note) for note in self.notes),
        ]
        body = []
        for kind, number in self.counts.items():
            shown = [str(node) for node in self.members(kind)[:_NAMED]]
            more = f" and {number - len(shown):,} more" if number > len(shown) else ""
            body.append((kind, f"{number:,}", f"{', '.join(shown)}{more}"))
        title = f"kinds of change, correction={self.test.correction!r}"
        return titled(title, facts_table(facts), rows_table(("kind", "size", "nodes"), body))
