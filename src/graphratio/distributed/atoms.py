"""The two-level dictionary of the paper on partitions, the same as in a single process.

The node stage runs where the samples of a node are. The graph stage is one greedy pass over the
candidates of all nodes in the order of the graph, at the driver. A partition sends a candidate only
if no atom so far covers it, so most never leave their partition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.distributed.recovery import Fleet
from graphratio.features.dictionary import graph_filter
from graphratio.features.kernels import Kernel

# Candidates that a partition sends at a time.
BLOCK = 512


def coherence_dictionary(
    fleet: Fleet,
    kernel: Kernel,
    sigma: Sequence[FloatArray],
    bandwidth: float,
    node_coherence: float,
    graph_coherence: float,
    n_features: int,
) -> FloatArray:
    """Atoms in the order of the graph, shape (n_atoms, n_features).

    `sigma` are the bandwidths of the nodes of every partition, `bandwidth` that of the graph stage.
    """

    def both_stages() -> FloatArray:
        # Partitions drop candidates on the way, so after a loss all start again.
        fleet.engine.gather(
            "filter_nodes",
            [{"sigma": own} for own in sigma],
            kernel=kernel,
            coherence=node_coherence,
        )
        atoms = new = np.empty((0, n_features))
        after, more = -1, True
        while more:
            replies = fleet.engine.gather(
                "uncovered",
                kernel=kernel,
                bandwidth=bandwidth,
                coherence=graph_coherence,
                atoms=new,
                after=after,
                limit=BLOCK,
            )
            more = any(reply[2] for reply in replies)
            # Up to this node the driver knows the candidates of all partitions.
            known = [int(order[-1]) for _, order, rest in replies if rest]
            after = min(known) if known else np.iinfo(np.int64).max
            points = np.concatenate([points for points, _, _ in replies])
            order = np.concatenate([order for _, order, _ in replies])
            points = points[np.argsort(order, kind="stable")[: np.count_nonzero(order <= after)]]
            # Atoms do not cover each other, so all of them pass and then cover what follows.
            together = np.concatenate([atoms, points])
            kept = graph_filter(together, kernel, bandwidth, graph_coherence)
            new = together[kept[kept >= len(atoms)]]
            atoms = np.concatenate([atoms, new])
        return atoms

    return fleet.attempt(both_stages)
