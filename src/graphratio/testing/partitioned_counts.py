"""Counts of permutations on partitions, with the splits that a single process would draw.

Nodes of equal sizes share splits, wherever they are. So the driver goes through the same batches of
nodes as one process, and sends every partition the state of the generator with which the splits of
a batch begin.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.distributed.fold_keys import skip
from graphratio.distributed.recovery import Fleet
from graphratio.testing.node_null import (
    ENOUGH_EXTREME,
    KEPT_ROWS,
    Counts,
    counts_of_batches,
    no_values,
)
from graphratio.testing.partitioned_rows import Batch
from graphratio.testing.permutations import alike_nodes


class PartitionedCount:
    """Counts on the partitions of a fleet; `sizes`, shape (n_nodes, 2), count what is permuted.

    With `keeps` the largest values of permuted evidence are kept.
    """

    def __init__(
        self, fleet: Fleet, sizes: IntArray, rng: np.random.Generator, keeps: bool
    ) -> None:
        self.fleet, self.sizes, self.rng, self.keeps = fleet, sizes, rng, keeps
        # Partition of every node, and its place there.
        self.owner, self.place = np.empty((2, len(sizes)), dtype=np.intp)
        for p, own in enumerate(fleet.nodes):
            self.owner[own], self.place[own] = p, np.arange(len(own))

    def __call__(self, active: IntArray, n_permutations: int) -> Counts:
        """Counts of some nodes under a number of further permutations."""
        batches: list[list[Batch]] = [[] for _ in self.fleet.nodes]
        order: list[list[IntArray]] = [[] for _ in self.fleet.nodes]
        counts = self.sizes.sum(axis=1)
        for batch in alike_nodes(active, counts, self.sizes, KEPT_ROWS):
            generator = deepcopy(self.rng)
            skip(self.rng, n_permutations * int(counts[batch[0]]))
            for p in np.unique(self.owner[batch]):
                members = batch[self.owner[batch] == p]
                batches[p].append((generator, self.place[members]))
                order[p].append(members)
        replies = self.fleet.ask(
            "test.count",
            [{"batches": own} for own in batches],
            n_permutations=n_permutations,
            keeps=self.keeps,
        )
        nodes = [np.concatenate(own) for own in order if own]
        return counts_of_batches(
            active, nodes, [self._counts(*own) for own in replies if own is not None]
        )

    def _counts(
        self, evidence: FloatArray, scores: FloatArray, extreme: IntArray, top: FloatArray
    ) -> Counts:
        kept = no_values(len(evidence), keeps=self.keeps)
        kept[extreme[0] < ENOUGH_EXTREME] = top
        return Counts(evidence, scores, extreme, kept)
