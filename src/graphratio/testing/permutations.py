"""One engine for all permutations: single observations, blocks of them, shared times.

Permutations exchange units between the two samples. A unit is what a node observed in one block,
a single observation where there are no blocks. Statistics need only sums of features over the
permuted target sample, so units enter through their sums.

Symbols
-------
U           number of units of a node
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.errors import Argument, InputError, listing
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data.blocks import Blocks
from graphratio.data.graph import Graph
from graphratio.testing.pooled import Draws, PooledSamples

# Permutations are processed in chunks of about this many labels.
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class Units:
    """Units that are exchanged between the two samples, node after node.

    `of_row`, shape (n_observations,), is the unit of each pooled row, -1 where the row keeps its
    label. The other arrays have shape (n_units,). Units with the same `code` move together when
    nodes are permuted jointly.
    """

    of_row: IntArray
    node: IntArray
    is_target: BoolArray
    code: IntArray

    @classmethod
    def of(cls, pooled: PooledSamples, rng: Draws, blocks: Blocks) -> Units:
        """Take the blocks of the samples as units, in random order within a node.

        A rest at the end of a sample, too short for a block, keeps its label. Blocks with the
        same number at several nodes have the same code.
        """
        node = pooled.samples.node_index
        code, kept = blocks.number[pooled.rows], blocks.whole[pooled.rows]
        pairs = node[kept] * (int(code.max(initial=0)) + 1) + code[kept]
        _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        rows = np.flatnonzero(kept)[first]
        shuffled = np.lexsort((rng.random(len(rows)), node[rows]))
        place = np.empty_like(shuffled)
        place[shuffled] = np.arange(len(shuffled))
        of_row = np.full(len(node), -1, dtype=np.intp)
        of_row[kept] = place[inverse]
        rows = rows[shuffled]
        return cls(of_row, node[rows], pooled.is_target[rows], code[rows])

    def counts(self, n_nodes: int) -> tuple[IntArray, IntArray]:
        """Units and target units of each node, both of shape (n_nodes,)."""
        return (
            np.bincount(self.node, minlength=n_nodes),
            np.bincount(self.node[self.is_target], minlength=n_nodes),
        )

    def by_sample(self, n_nodes: int, *, joint: bool = False) -> IntArray:
        """Units of the reference and of the target of each node, shape (n_nodes, 2).

        With `joint` those of all nodes together, since these move at once.
        """
        if joint:
            moving = np.unique(self.code[self.is_target]).size
            return np.tile([np.unique(self.code).size - moving, moving], (n_nodes, 1))
        total, target = self.counts(n_nodes)
        return np.column_stack([total - target, target])


@dataclass(frozen=True, eq=False)
class PermutationPlan:
    """Data in the order of the graph and units to permute, shared by both null hypotheses.

    Units are exchanged within their `stratum` only, shape (n_units,), where there is one. The
    units of a node are then ordered by it. `lost`, shape (n_nodes,), is the share of the variance
    that the units do not show.
    """

    pooled: PooledSamples
    graph: Graph
    units: Units
    n_permutations: int
    rng: np.random.Generator
    stratum: IntArray | None = None
    lost: FloatArray | None = None

    @computed_once
    def observed(self) -> FloatArray:
        """Labels of the units as they were observed, shape (n_units,): 1 in the target, else 0.

        Blocks that lose a share of the variance make permuted differences too small. The observed
        one is made smaller by as much: labels are drawn towards the share of the target.
        """
        labels = self.units.is_target.astype(np.float64)
        if self.lost is None or not self.lost.any():
            return labels
        stratum = np.zeros_like(self.units.node) if self.stratum is None else self.stratum
        here = self.shapes[self.units.node, stratum]
        share = here[:, 1] / here.sum(axis=1)
        return np.asarray(share + np.sqrt(1 - self.lost[self.units.node]) * (labels - share))

    @computed_once
    def shapes(self) -> IntArray:
        """Reference and target units of each stratum of every node, shape (n_nodes, S, 2)."""
        stratum = np.zeros_like(self.units.node) if self.stratum is None else self.stratum
        count = int(stratum.max(initial=0)) + 1
        code = (self.units.node * count + stratum) * 2 + self.units.is_target
        n_nodes = self.graph.n_nodes
        return np.bincount(code, minlength=2 * count * n_nodes).reshape(n_nodes, count, 2)

    def rows(self, nodes: IntArray) -> IntArray:
        """Pooled rows of nodes with equally many, shape (n_nodes, n_rows)."""
        begin = self.pooled.samples.offsets[2 * nodes]
        return np.asarray(begin[:, np.newaxis] + np.arange(self.pooled.sizes[nodes[0]]))

    def batches(self, nodes: IntArray, entries: int) -> Iterator[IntArray]:
        """Nodes that have equally many rows and may share splits, about `entries` rows at once."""
        shapes = self.shapes.reshape(self.graph.n_nodes, -1)
        return alike_nodes(nodes, self.pooled.sizes, shapes, entries)

    def shared_splits(
        self, node: int, count: int, rng: np.random.Generator | None = None
    ) -> Iterator[FloatArray]:
        """Random labels, shape (n, U), for nodes with as many units as this one; `count` in all.

        Units are in random order within a node and stratum, so that a shared split is a different
        one at each node.
        """
        rng = self.rng if rng is None else rng
        parts = self.shapes[node].sum(axis=1).tolist(), self.shapes[node][:, 1].tolist()
        for part in chunks(count, 400 * int(self.n_units[node]), least=64):
            size = part.stop - part.start
            yield np.concatenate(
                [random_labels(size, int(n), int(k), rng) for n, k in zip(*parts, strict=True)],
                axis=1,
            )

    @computed_once
    def n_units(self) -> IntArray:
        """Units of every node, shape (n_nodes,)."""
        return self.units.counts(self.graph.n_nodes)[0]

    @computed_once
    def first_unit(self) -> IntArray:
        """Position of the first unit of every node, shape (n_nodes,)."""
        return np.cumsum(self.n_units) - self.n_units


def alike_nodes(
    nodes: IntArray, sizes: IntArray, shapes: IntArray, entries: int
) -> Iterator[IntArray]:
    """Nodes with equal `sizes`, (n_nodes,), and `shapes`, (n_nodes, k); `entries` rows at once."""
    key = np.column_stack([sizes, shapes])
    _, kind = np.unique(key[nodes], axis=0, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(kind.ravel()))
    for members in np.split(nodes[order], ends[:-1]):
        size = max(1, entries // max(int(sizes[members[0]]), 1))
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]


def no_complete_block(blocks: Blocks, sample: str, nodes: list[Label]) -> InputError:
    """The error for blocks that are too long for a sample of some nodes."""
    words = f" leaves no complete block in {sample} of {listing(nodes)}"
    return InputError((Argument("block", blocks.asked), words), "Use shorter blocks")


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Features summed over units, to be added up by permuted labels.

    `sums` has shape (n_units, m); `sizes`, shape (n_units,), counts observations. The fixed ones,
    shapes (n_nodes, m) and (n_nodes,), are of the target observations that keep their label.
    """

    sums: FloatArray
    sizes: FloatArray
    fixed_sums: FloatArray
    fixed_sizes: FloatArray

    @classmethod
    def of(cls, units: Units, pooled: PooledSamples, psi: FloatArray) -> UnitSums:
        """Sum the features of pooled rows."""
        moving = np.flatnonzero(units.of_row >= 0)
        fixed = np.flatnonzero((units.of_row < 0) & pooled.is_target)
        to_units = _indicator(units.of_row[moving], len(units.node), moving, len(psi))
        node, n_nodes = pooled.samples.node_index, len(pooled.complete)
        to_nodes = _indicator(node[fixed], n_nodes, fixed, len(psi))
        ones = np.ones(len(psi))
        return cls(to_units @ psi, to_units @ ones, to_nodes @ psi, to_nodes @ ones)

    def first_moments(
        self, labels: FloatArray, units: IntArray, node: int | IntArray
    ) -> FloatArray:
        """Mean of the centred features over the target, shape (..., n_permutations, m).

        `labels` has shape (..., n_permutations, U), and `units` of shape (..., U) are those of
        the node, or of several nodes with equally many.
        """
        total = labels @ self.sums[units] + self.fixed_sums[node][..., np.newaxis, :]
        sizes = self.sizes[units]
        count = (labels @ sizes[..., np.newaxis])[..., 0]
        count += np.asarray(self.fixed_sizes[node])[..., np.newaxis]
        return np.asarray(total / np.maximum(count, 1.0)[..., np.newaxis])


def _indicator(to: IntArray, n_to: int, rows: IntArray, n_rows: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(rows)), (to, rows)), shape=(n_to, n_rows))


def random_labels(
    n_permutations: int, n_units: int, n_target: int, rng: np.random.Generator
) -> BoolArray:
    """Uniformly random splits, shape (n_permutations, n_units)."""
    labels = np.zeros((n_permutations, n_units), dtype=bool)
    for rows in chunks(n_permutations, n_units):
        part = labels[rows]
        keys = rng.random(part.shape)
        chosen = np.argpartition(keys, min(n_target, n_units - 1), axis=1)[:, :n_target]
        np.put_along_axis(part, chosen, True, axis=1)
    return labels


def chunks(n_permutations: int, width: int, begin: int = 0, least: int = 1) -> Iterator[slice]:
    """Cut the permutations so that each part has a bounded number of entries.

    Examples
    --------
    >>> [(part.start, part.stop) for part in chunks(5, 1_000_000)]
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(least, _CHUNK // max(width, 1))
    for start in range(begin, n_permutations, step):
        yield slice(start, min(start + step, n_permutations))
