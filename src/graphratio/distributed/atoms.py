"""The two-level dictionary of the paper on partitions, the same as in a single process.

The node stage runs where the samples of a node are. The graph stage is one greedy pass over the
candidates of all nodes in the order of the graph, at the driver. A partition sends a candidate only
if no atom so far covers it, so most never leave their partition. Candidates are observations, or
centres of groups, with which no observation leaves its partition.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.distributed.recovery import Fleet
from graphratio.features.dictionary import DictionaryRecipe, graph_filter
from graphratio.features.kernels import Kernel

# Candidates that a partition sends at a time.
BLOCK = 512


def coherence_dictionary(
    fleet: Fleet,
    recipe: DictionaryRecipe,
    kernel: Kernel,
    sigma: FloatArray,
    n_features: int,
    n_observations: int,
) -> FloatArray:
    """Atoms in the order of the graph, shape (n_atoms, n_features).

    `sigma` (n_nodes,) are the bandwidths of the nodes. Candidates are observations, or centres of
    groups of observations, as the recipe says.
    """
    bandwidth = float(np.median(sigma))

    def both_stages(coherence: float | None) -> FloatArray:
        # Partitions drop candidates on the way, so after a loss all start again.
        if coherence is None:
            fleet.engine.gather("group_nodes", group_size=recipe.group_size)
        else:
            own = [{"sigma": part} for part in fleet.parts(sigma)]
            fleet.engine.gather("filter_nodes", own, kernel=kernel, coherence=coherence)
        atoms = new = np.empty((0, n_features))
        after, more = -1, True
        while more:
            replies = fleet.engine.gather(
                "uncovered",
                kernel=kernel,
                bandwidth=bandwidth,
                coherence=recipe.graph_coherence,
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
            kept = graph_filter(together, kernel, bandwidth, recipe.graph_coherence)
            new = together[kept[kept >= len(atoms)]]
            atoms = np.concatenate([atoms, new])
        return atoms

    if recipe.is_grouped:
        return fleet.attempt(partial(both_stages, None))
    return recipe.until_enough(
        lambda coherence: fleet.attempt(partial(both_stages, coherence)), n_observations
    )
