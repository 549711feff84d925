"""Views of a fitted detector: sentences, tables, samples, ratios, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.typing import Label
from graphratio.changepoints.change_words import change_headline, event_sentence
from graphratio.changepoints.event_table import before_and_after, event_columns
from graphratio.changepoints.events import ChangeEvent
from graphratio.data import frames
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.graph_ratio import GraphRatio

if TYPE_CHECKING:
    from graphratio.changepoints.detector import GraphChangePointDetector

# Events in the table for notebooks.
_SHOWN = 10


class DetectorViews(BaseEstimator):
    """Views of the results; `GraphChangePointDetector` is the only subclass."""

    def label(self: GraphChangePointDetector, step: int) -> Label:
        """Label of a step: the value of the time column, or the number of the step.

        Examples
        --------
        >>> import numpy as np
        >>> from graphratio.changepoints import GraphChangePointDetector
        >>> panel = np.random.default_rng(0).normal(size=(80, 2))
        >>> GraphChangePointDetector(n_surrogates=19).fit(panel).label(7)
        7
        """
        return step if self.times_ is None else self.times_[step]

    def headline(self: GraphChangePointDetector) -> str:
        """What was found, in one or two sentences; also warnings about rhythms and trends."""
        check_is_fitted(self, "graph_")
        return change_headline(self)

    def summary(self: GraphChangePointDetector) -> str:
        """The headline, then one sentence per event."""
        check_is_fitted(self, "graph_")
        return "\n".join(
            [
                change_headline(self),
                *(event_sentence(event, len(self.nodes_)) for event in self.events_),
            ]
        )

    def to_frame(self: GraphChangePointDetector) -> Any:
        """One row per event, node and feature, in the order of onset.

        Columns: event, time, node, onset, kind, divergence, feature, mean_before, mean_after,
        spread_before, spread_after, spread_ratio, mean_changed, spread_changed,
        correlation_before, correlation_after and correlation_changed. Pairs of features whose
        correlation is compared have rows of their own, with "x and y" as feature. A polars frame if
        the panel came as one, otherwise pandas.
        """
        return frames.make_frame(event_columns(self.events_), self.backend_)

    def event_samples(self: GraphChangePointDetector, event: ChangeEvent) -> NodeSamples:
        """Observations before (reference) and after (target) an event, up to its neighbours.

        For any function of the library that takes samples: tests, bounds, kinds of change.
        """
        if event not in self.events_:
            raise InputError(
                f"{type(event).__name__} is not an event of this detector",
                "Pass an event from events_; an update can change the last one",
            )
        return before_and_after(self.panel_, self.predict(), event.step, self.nodes_)

    def event_ratio(self: GraphChangePointDetector, event: ChangeEvent) -> NodeRatioEstimator:
        """The ratio of after to before at every node, by `estimator` or `GraphRatio`."""
        model = GraphRatio(random_state=0) if self.estimator is None else clone(self.estimator)
        return model.fit(self.event_samples(event), self.graph_)

    def plot(self: GraphChangePointDetector, axes: Any = None) -> Any:
        """Draw the panel with its events, the scan, and a map of the onsets.

        On three given matplotlib Axes, or on those of a new figure; returns them.
        """
        from graphratio.plotting.change_figure import plot_changes

        check_is_fitted(self, "graph_")
        return plot_changes(self, axes)

    def __repr__(self: GraphChangePointDetector, N_CHAR_MAX: int = 700) -> str:
        call = str(super().__repr__(N_CHAR_MAX))
        return f"{call}\n  {self.headline()}" if hasattr(self, "graph_") else call

    def _repr_mimebundle_(self: GraphChangePointDetector, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "graph_"):
            bundle["text/html"] = self._html_summary()
        return bundle

    def _html_summary(self: GraphChangePointDetector) -> str:
        """The headline and the events, for notebooks; everything from the user is escaped."""
        facts = [
            ("found", self.headline()),
            (
                "looked at",
                f"{len(self.nodes_):,} nodes with {self.graph_.n_edges:,} edges, "
                f"{self.n_times_:,} times",
            ),
        ]
        rows = [
            (
                str(event.time),
                f"{event.interval[0]} to {event.interval[1]}",
                f"{len(event.nodes):,}",
                next(iter(event.kinds)),
                f"{event.p_value:.2g}",
            )
            for event in self.events_[:_SHOWN]
        ]
        head = ("change", "95 % interval", "nodes", "what, mostly", "p")
        table = rows_table(head, rows) if rows else ""
        return titled(str(BaseEstimator.__repr__(self)), facts_table(facts), table)
