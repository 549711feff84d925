"""Samples and graph as a fit or a test takes them: read, matched by label, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import Argument, DataWarning, InputError, listing, warn_caller
from graphratio._utils.typing import BoolArray
from graphratio.data import sample_input as read
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples

# Kernels hardly see a feature that varies this many times less than another one.
UNEVEN_SCALES = 30
# Squares of smaller numbers lose digits or vanish.
SMALLEST_SPREAD = 1e-150
# What to do about features of very different scales.
STANDARDIZE = (
    "Standardise the features (",
    Argument("samples.standardized()"),
    "), or change their units",
)


def as_graph(graph: Any, samples: NodeSamples) -> Graph:
    """Check a graph argument; None means the nodes of the samples without edges."""
    if graph is None:
        return Graph.empty(samples.nodes if samples.labelled else samples.n_nodes)
    return check_graph(graph)


def check_graph(graph: Any, name: str = "graph") -> Graph:
    """Refuse anything but a Graph."""
    if not isinstance(graph, Graph):
        kind = type(graph)
        raise InputError(
            f"{name} of type {kind.__module__}.{kind.__qualname__} is not a gr.Graph",
            "Build one with gr.Graph.from_edges, gr.Graph.from_adjacency or gr.Graph.from_networkx",
        )
    return graph


def align(samples: NodeSamples, graph: Graph, *, borrow: bool = True) -> NodeSamples:
    """Bring the samples into the graph's order and check that incomplete nodes can borrow.

    Without `borrow`, for estimators that fit each node by itself, every node needs both samples.
    """
    if graph.n_nodes == samples.n_nodes and not graph.labelled and samples.labelled:
        read.check_same_labels(
            samples.nodes, graph.nodes, remedy="Label the graph too: Graph.from_...(..., nodes=...)"
        )
    aligned = samples.aligned(graph.nodes)
    if not borrow:
        lacking = [graph.nodes[i] for i in np.flatnonzero(~aligned.complete)]
        if lacking:
            raise InputError(
                f"nodes without reference or target observations: {listing(lacking)}",
                "This estimator needs both at every node: add observations, leave these nodes "
                "out, or use GraphRatio, which lets them borrow from neighbours",
            )
        return aligned
    check_borrowing(aligned.complete, graph)
    return aligned


def check_borrowing(complete: BoolArray, graph: Graph) -> None:
    """Refuse incomplete nodes that are connected to no complete node."""
    helped = np.zeros(graph.n_components, dtype=bool)
    helped[graph.components[complete]] = True
    alone = ~complete & ~helped[graph.components]
    if alone.any():
        raise InputError(
            "nodes without reference or target observations, and with no connection to a node "
            f"that has both: {listing([graph.nodes[i] for i in np.flatnonzero(alone)])}",
            "Connect them in the graph, add observations, or leave these nodes out",
        )


def as_samples(samples: Any) -> NodeSamples:
    """Accept `NodeSamples` or a pair (reference, target) of anything `from_arrays` takes."""
    if isinstance(samples, NodeSamples):
        return samples
    if isinstance(samples, tuple) and len(samples) == 2:
        return NodeSamples.from_arrays(*samples)
    if samples is None:
        raise InputError(
            "there are no samples",
            "Pass NodeSamples, or a tuple (reference, target); only fits, divergence_bounds and "
            'two_sample_test with null="node" can read them from the loader of an engine',
        )
    raise InputError(
        f"samples of type {type(samples).__name__} cannot be read",
        "Pass NodeSamples, or a tuple (reference, target). scikit-learn's searches and pipelines "
        "cannot split them: pass candidates to the estimator instead",
    )


def check_spread(samples: NodeSamples) -> None:
    """Refuse data that vary so little that all squared distances vanish."""
    if not len(samples.values):
        return
    spread = np.ptp(samples.values, axis=0)
    widest = int(np.argmax(spread))
    if 0 < spread[widest] < SMALLEST_SPREAD:
        raise InputError(
            f"feature {samples.feature_names[widest]!r} varies by no more than "
            f"{spread[widest]:.3g}, and the others by less",
            STANDARDIZE,
        )


def uneven_scales(samples: NodeSamples) -> tuple[str, list[str]] | None:
    """The widest feature and those that it hides; None if all are of similar spread.

    The spread is that of the middle 90 %, or else the standard deviation; 0 does not count.
    """
    values, names = samples.values, samples.feature_names
    if samples.scaling is not None or values.shape[1] < 2 or not len(values):
        return None
    low, high = np.quantile(values, [0.05, 0.95], axis=0)
    spread = np.where(high > low, (high - low) / 3.3, values.std(axis=0))
    varies = np.flatnonzero(spread > 0)
    if not varies.size or spread[varies].min() * UNEVEN_SCALES >= spread[varies].max():
        return None
    widest = int(varies[np.argmax(spread[varies])])
    hidden = [names[j] for j in varies.tolist() if spread[j] * UNEVEN_SCALES < spread[widest]]
    return names[widest], hidden


def warn_of_scales(samples: NodeSamples) -> None:
    """Warn if the spreads of features differ so much that kernels see only the widest ones.

    Data whose distances vanish are an error.
    """
    check_spread(samples)
    uneven = uneven_scales(samples)
    if uneven is None:
        return
    widest, hidden = uneven
    warn_caller(
        (
            f"the feature {widest!r} varies more than {UNEVEN_SCALES} times as much as "
            f"{listing(hidden)}, where changes will hardly show. ",
            *STANDARDIZE,
        ),
        DataWarning,
    )
