"""Penalties for the nodes of one group, learned from the other groups.

Selecting on the labelled data of the tested node would favour what makes it look changed. The
penalties of a group are therefore selected with all its observations taken away, and so is the
ratio that the rest of the graph predicts for it.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.moments.folds import assign_folds
from graphratio.selection.cross_validation import select
from graphratio.selection.fold_fits import Coupling, Split, precision_for
from graphratio.testing.settings import RatioSettings


def pooled_share(samples: NodeSamples) -> FloatArray:
    """Share of the target in the pooled sample of every node, the alpha of the test."""
    total = samples.n_reference + samples.n_target
    return np.asarray(samples.n_target / np.maximum(total, 1))


def selected_penalties(
    samples: NodeSamples,
    graph: Graph,
    groups: IntArray,
    settings: RatioSettings,
    dictionary: FloatArray,
    rng: np.random.Generator,
) -> list[tuple[float, float, float]]:
    """Bandwidth, graph penalty and node penalty of every group."""
    n_groups = int(groups.max()) + 1
    if len(settings.candidates) == 1:
        return [settings.middle] * n_groups
    alpha = pooled_share(samples)
    coupling, dtype = Coupling(graph), precision_for([graph])
    chosen = []
    for group in range(n_groups):
        left = samples.subset(observations=groups[samples.node_index] != group)
        if not left.complete.any():
            # Nothing to learn from: a graph of one node, or the only ones with both samples.
            chosen.append(settings.middle)
            continue
        split = Split(
            left,
            assign_folds(left, settings.n_folds, rng),
            settings.n_folds,
            settings.kernel,
            dictionary,
            alpha,
            1.0,
            dtype,
        )
        found = select(split, coupling, settings.candidates)
        chosen.append((found.bandwidth, found.graph_penalty, found.node_penalty))
    return chosen
