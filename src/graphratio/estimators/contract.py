"""Checks on estimators that are passed to functions.

A function may copy an estimator (`_again`), fit it on a part of the data and evaluate it at
points (`_ratios_at_nodes`, `_ratios_everywhere`), and relies on nothing else. Copies with the same
settings share features if the estimator offers any (`_rows_to_share`, `_take_rows`). Where
`_is_quadratic` is true the fit is one quadratic problem in features that all nodes share, and
functions may take a faster path to the same answer: the estimator then has `kernel`,
`dictionary`, `prior_ratio` and `_pairs_for`.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio.data.alignment import check_graph
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator


def check_estimator(
    estimator: Any,
    rng: np.random.Generator | None = None,
    default: type[NodeRatioEstimator] | None = None,
) -> NodeRatioEstimator:
    """Return the estimator, or a new default if it is None.

    An estimator without a seed is copied and gets one from `rng`, so that the caller's
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
