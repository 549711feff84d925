"""What a function may ask of an estimator that it takes, and the checks on what it is given.

Every estimator can be copied, fitted on a part of the data, and evaluated at points. Functions
rely on nothing else. Where `_is_quadratic` is true the fit is one quadratic problem in features
that all nodes share, and functions may take a faster path to the same answer.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol, Self

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import check_graph
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator


class RatioEstimator(Protocol):
    """The protocol, which `NodeRatioEstimator` implements for all estimators of the library."""

    @property
    def _couples(self) -> bool:
        """Whether neighbours in the graph enter the fit of a node."""

    @property
    def _is_quadratic(self) -> bool:
        """Whether the fit is one quadratic problem in features that all nodes share.

        The estimator then has `kernel`, `dictionary`, `prior_ratio`, and its penalties as pairs
        (`_pairs_for`).
        """

    def _again(self, *, fixed: bool) -> Self:
        """An unfitted copy; with `fixed` at what the fit chose for all nodes."""

    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the ratios of all nodes."""

    def _ratios_at_nodes(self, points: FloatArray, node: IntArray) -> FloatArray:
        """Unclipped ratio of the given node at each scaled point, shape (n_points,)."""

    def _ratios_everywhere(self, points: FloatArray) -> FloatArray:
        """Unclipped ratios of all nodes at scaled points, shape (n_points, n_nodes)."""


def check_estimator(
    estimator: Any,
    rng: np.random.Generator | None = None,
    default: type[NodeRatioEstimator] | None = None,
) -> NodeRatioEstimator:
    """Return the estimator, or a new default if it is None.

    An estimator without a seed gets one from `rng`, on a copy, so that the caller's
    `random_state` decides.
    """
    if estimator is None and default is not None:
        estimator = default()
    if not isinstance(estimator, NodeRatioEstimator):
        raise InputError(
            f"estimator={estimator!r} is not an estimator of this library",
            "Pass an instance such as gr.GraphRatio() or gr.GRULSIF(), or None for the default",
        )
    if rng is not None and getattr(estimator, "random_state", 0) is None:
        seeded: Any = copy(estimator)
        seeded.random_state = int(rng.integers(2**31))
        return seeded  # type: ignore[no-any-return]
    return estimator


def graph_of_fit(model: NodeRatioEstimator, graph: Graph | None) -> Graph:
    """Return the graph of a fitted estimator; refuse another one."""
    if graph is not None and not check_graph(graph).same_as(model.graph_):
        raise InputError(
            "the estimator was fitted with another graph",
            "Leave out the graph, or pass an unfitted estimator",
        )
    return model.graph_


def data_of_fit(model: NodeRatioEstimator, samples: Any) -> NodeSamples:
    """Return samples in the order and scale of a fitted estimator; refuse other sizes."""
    data = model._align(samples)
    other = np.flatnonzero((data.sizes != model.sizes_).any(axis=1))
    if other.size:
        v = int(other[0])
        was, now = (" + ".join(map(str, row)) for row in (model.sizes_[v], data.sizes[v]))
        raise InputError(
            f"the model was fitted on {was} observations of node {data.nodes[v]!r}, and the "
            f"samples have {now}",
            "Pass the samples that the model was fitted on",
        )
    return data
