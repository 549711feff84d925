"""The worth of a graph: the result, and its wording."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from graphratio._utils.html import fields_html
from graphratio._utils.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Worth:
    """How many observations of a node alone one observation with the graph replaces.

    Attributes
    ----------
    estimate, low, high : float
        The worth n / m, and its interval from a bootstrap over regions of the graph. `high` is
        infinite, and `estimate` may be only a lower end, where even the smallest subset with the
        graph is better than all observations without it; see `open_above`. A worth of 1 means
        that the graph replaces nothing.
    n : float
        Typical number of observations in a sample.
    sizes : ndarray of shape (n_sizes,)
        Sizes m of the subsets.
    joined, alone : ndarray of shape (n_sizes,)
        Mean held-out losses of subsets, with the graph and without it: the learning curves.
    level : float
    at_nodes : ndarray of shape (3, n_nodes)
        Estimate, low and high at every node, those of its region; NaN where the curve cannot
        tell: at nodes without neighbours or data, outside the patches of a large network, or if
        the interval goes from 1 to infinity.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=40, n=10, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0)
    >>> found = gr.compare_graphs(scenario.samples, scenario.graph, model, random_state=0)
    >>> own = found.worth["graph"]
    >>> bool(1 < own.estimate and own.low <= own.estimate <= own.high)
    True
    """

    estimate: float
    low: float
    high: float
    n: float
    sizes: FloatArray
    joined: FloatArray
    alone: FloatArray
    level: float
    at_nodes: FloatArray = field(default_factory=lambda: np.empty((3, 0)))

    @property
    def open_above(self) -> bool:
        """Whether the estimate is only a lower end."""
        return bool(self.estimate >= self.n / self.sizes[0])

    @property
    def span(self) -> str:
        """Estimate and interval, such as "3.1 (2.2 or more)"."""
        return self._span(self.estimate, self.low, self.high)

    @property
    def span_at_nodes(self) -> list[str]:
        """The same at every node; empty where the curve cannot tell."""
        return ["" if np.isnan(part[0]) else self._span(*part) for part in self.at_nodes.T.tolist()]

    def _span(self, estimate: float, low: float, high: float) -> str:
        if estimate >= self.n / self.sizes[0]:
            return f"at least {low:.1f}"
        top = "or more" if np.isinf(high) else f"to {high:.1f}"
        return f"{estimate:.1f} ({low:.1f} {top})"

    @property
    def in_words(self) -> str:
        """The worth in one sentence."""
        if self.low <= 1:
            return f"The number of observations that the graph replaces is not clear: {self.span}."
        return (
            f"With the graph {self.fewer:.0f} observations per node say as much as {self.n:.0f} of "
            f"each node alone: the graph is worth {self.span}."
        )

    @property
    def fewer(self) -> float:
        """Observations with the graph that say as much as n alone; at most so many, if open."""
        return max(self.n / (self.low if self.open_above else self.estimate), 1.0)

    def __repr__(self) -> str:
        return f"Worth(estimate={self.estimate:.3g}, low={self.low:.3g}, high={self.high:.3g})"

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return fields_html(self, self.in_words)
