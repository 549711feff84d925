"""Independent pieces of the samples, and whether they are enough for a standard error.

A piece is a block of observations, or a single observation where there are no blocks. A standard
error from k blocks is itself uncertain by about 1 / sqrt(2 (k - 1)), with three blocks by a half.
Fewer than `FEWEST_BLOCKS` in a sample are too few for an interval or a verdict. So are blocks that
are shorter than the memory of a node. Without blocks two observations are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.blocks import Blocks
from graphratio.data.samples import NodeSamples

FEWEST_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class IndependentPieces:
    """Independent pieces of both samples of some nodes, numbered sample after sample.

    `counts` has shape (n_nodes, 2); `enough`, shape (n_nodes,), marks the nodes with enough pieces.
    `of_row` and `block` are the piece of every observation and the block of every piece; None if
    every observation is a piece.
    """

    counts: IntArray
    enough: BoolArray
    blocks: Blocks
    of_row: IntArray | None = None
    block: IntArray | None = None

    @classmethod
    def of(cls, samples: NodeSamples) -> IndependentPieces:
        """Pieces that do not depend on each other."""
        samples = samples.exchangeable()
        blocks = samples.blocks
        if not samples.has_blocks or not blocks.exist:
            return cls(samples.sizes, np.asarray((samples.sizes >= 2).all(axis=1)), blocks)
        width = int(blocks.number.max()) + 1
        codes, of_row = np.unique(samples.segments * width + blocks.number, return_inverse=True)
        counts = np.bincount(codes // width, minlength=2 * samples.n_nodes).reshape(-1, 2)
        enough = np.asarray((counts >= FEWEST_BLOCKS).all(axis=1))
        if blocks.too_short is not None:
            enough &= ~blocks.too_short
        return cls(counts, enough, blocks, of_row, codes % width)

    def at(self, position: int) -> IndependentPieces:
        """Pieces of a node whose estimate also rests on others, even if it lacks a sample."""
        counts = self.counts[[position]]
        enough = self.enough if not counts.all() else self.enough[[position]]
        known = bool(enough.any()) or not self.blocks.exist
        return IndependentPieces(counts, np.array([known]), self.blocks)

    def terms(self, terms: FloatArray, sizes: IntArray) -> FloatArray:
        """One term per piece instead of observation; the mean of every sample stays the same."""
        if self.of_row is None:
            return terms
        usual = (self.counts / np.maximum(sizes, 1)).ravel()
        return np.asarray(np.bincount(self.of_row, terms) * np.repeat(usual, self.counts.ravel()))

    def error_over_blocks(self, terms: FloatArray) -> tuple[float, int]:
        """Standard error of the mean over nodes, from terms of pieces, and degrees of freedom.

        Nodes with enough pieces count. Blocks that all nodes share are independent, nodes are not.
        (0, 1) if nodes share no blocks.
        """
        if self.block is None or not self.blocks.shared or not self.enough.any():
            return 0.0, 1
        segment = np.repeat(np.arange(self.counts.size), self.counts.ravel())
        used = self.enough[segment // 2]
        share = used / self.counts.ravel()[segment] / np.count_nonzero(self.enough)
        variance, fewest = 0.0, len(terms)
        for side in (0, 1):
            rows = used & (segment % 2 == side)
            place = np.unique(self.block[rows], return_inverse=True)[1]
            sums = np.bincount(place, (terms * share)[rows])
            variance += len(sums) * float(sums.var(ddof=1))
            fewest = min(fewest, len(sums))
        return float(np.sqrt(variance)), fewest - 1

    def cannot_say(self, question: str) -> str:
        """Why the question cannot be answered, and how much more data it takes."""
        needed = FEWEST_BLOCKS if self.blocks.exist else 2
        have = int(np.median(self.counts.min(axis=1)))
        if have >= needed:
            return (
                f"These data cannot say {question}: observations depend on each other for longer "
                f"than a block of {self.blocks.length} observations. Pass longer blocks"
            )
        return (
            f"These data cannot say {question}: each sample has {self.blocks.about(have)}, and a "
            f"standard error needs {needed}. You need about {self.blocks.amount(needed - have)} "
            "more in each sample"
        )


class Answered:
    """A result that rests on independent pieces of the samples."""

    pieces: IndependentPieces

    @property
    def n_pieces(self) -> IntArray:
        """Independent blocks or observations of both samples of every node, (n_nodes, 2)."""
        return self.pieces.counts

    @property
    def blocks(self) -> Blocks:
        """Observations that belong together."""
        return self.pieces.blocks

    @property
    def answerable_nodes(self) -> BoolArray:
        """Nodes with enough pieces for a standard error, shape (n_nodes,)."""
        return self.pieces.enough

    @property
    def answerable(self) -> bool:
        """Whether the data can answer the question at any node."""
        return bool(self.pieces.enough.any())
