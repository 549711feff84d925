"""Folds of a cross-validation: the fold of every observation, and moments by fold.

Every sample of every node is split by itself, at random, or in whole blocks where observations
depend on each other. The features of all observations are computed once; training moments are the
total minus those of the fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.moments.node_moments import (
    Moments,
    MomentSums,
    factored_moments,
    mixing_weights,
    moments_without,
)
from graphratio.moments.node_rows import LogRatioLoss, NodeRows

# If the sums over every fold would take more bytes, the features are used instead.
LARGEST_SUMS = 2**29

# Entries of second moments of folds that are kept between visits: 1 GB.
LARGEST_KEPT = 2**28


# With fewer blocks than this a selection makes every block a fold, so that its result does not
# depend on how chance groups them.
FEW_BLOCKS = 10


@dataclass(frozen=True, eq=False)
class Division:
    """Fold of every observation, and number of folds.

    `n_blocks` counts the blocks of the sample that has fewer of them; None without blocks.
    """

    folds: IntArray
    n_folds: int
    n_blocks: int | None = None

    @property
    def in_pieces(self) -> bool:
        """Whether there are fewer blocks than folds: blocks are cut, and folds are dependent."""
        return self.n_blocks is not None and self.n_blocks < self.n_folds

    @property
    def run(self) -> int:
        """Successive folds that a selection holds out together: one, or two where blocks are few.

        If blocks are few, each is a fold. Neighbouring blocks are alike, so the training data would
        hold near copies of a single held-out block.
        """
        few = self.n_blocks is not None and self.n_blocks < FEW_BLOCKS
        return 2 if few and self.n_folds > 2 else 1

    @property
    def held_out(self) -> list[range]:
        """Folds that are held out together: every run of successive ones once."""
        return [range(r, r + self.run) for r in range(self.n_folds - self.run + 1)]


def divide(
    samples: NodeSamples,
    n_folds: int,
    random_state: np.random.Generator,
    *,
    least: int = 2,
    single: bool = False,
) -> Division:
    """Split the observations into `n_folds`, at most one per block but at least `least`.

    With `single` each of fewer than `FEW_BLOCKS` blocks is a fold, whatever `n_folds` is.
    """
    if not samples.has_blocks or not samples.blocks.exist:
        return Division(assign_folds(samples, n_folds, random_state), n_folds)
    available = _available_blocks(samples)
    used = max(least, min(FEW_BLOCKS if single and available < FEW_BLOCKS else n_folds, available))
    return Division(assign_folds(samples, used, random_state), used, available)


def _available_blocks(samples: NodeSamples) -> int:
    """Blocks of the sample that has fewer of them, at a usual node or shared by all nodes."""
    blocks, side = samples.blocks, samples.is_target
    if blocks.shared:
        return min(len(np.unique(blocks.number[side == part])) for part in (False, True))
    width = int(blocks.number.max()) + 1
    own = np.unique(samples.segments * width + blocks.number) // width
    counts = np.bincount(own, minlength=2 * samples.n_nodes).reshape(-1, 2).min(axis=1)
    return int(np.median(counts[samples.complete])) if samples.complete.any() else 0


def assign_folds(samples: NodeSamples, n_folds: int, random_state: np.random.Generator) -> IntArray:
    """Fold of every observation, shape (n_observations,).

    Each sample of each node is split at random and as evenly as possible. Both samples of a node
    start at the same fold, so that as many folds as possible have both. Where there are blocks, a
    fold is a run of successive ones, the same at all nodes that share them. Only where there are
    fewer blocks than folds, samples are cut into successive pieces.
    """
    if samples.has_blocks and samples.blocks.exist:
        if _available_blocks(samples) < n_folds:
            return _pieces(samples, n_folds)
        return _whole_blocks(samples, n_folds, random_state)
    keys = random_state.random(samples.n_observations)
    return folds_by_key(
        samples, keys, random_state.integers(n_folds, size=samples.n_nodes), n_folds
    )


def folds_by_key(
    samples: NodeSamples, keys: FloatArray, offset: IntArray, n_folds: int
) -> IntArray:
    """Deal the observations of every sample to folds by key, beginning at `offset` (n_nodes,)."""
    segment = samples.segments
    shuffled = np.lexsort((keys, segment))
    position = np.arange(samples.n_observations) - samples.offsets[segment]
    folds = np.empty(samples.n_observations, dtype=np.intp)
    folds[shuffled] = (position + offset[samples.node_index]) % n_folds
    return folds


def _whole_blocks(
    samples: NodeSamples, n_folds: int, random_state: np.random.Generator
) -> IntArray:
    """Give each fold a run of successive blocks; chance decides which folds have one more."""
    # If blocks were dealt at random, the training data would hold near copies of held-out ones.
    # Blocks that nodes share are counted once, the others at every node.
    own, rank, count, of_row = _ranks(samples, samples.blocks.number, samples.blocks.shared)
    shift = random_state.random(len(count))
    folds = ((rank + shift[own]) * n_folds / count[own]).astype(np.intp)
    return np.asarray(np.minimum(folds, n_folds - 1)[of_row])


def _pieces(samples: NodeSamples, n_folds: int) -> IntArray:
    """Cut every sample into successive pieces, the same at all nodes if they share times."""
    when = np.arange(samples.n_observations) if samples.time is None else samples.time
    stamp = np.unique(when, return_inverse=True)[1]
    # A time counts once, whether one node or all observe it.
    shared = samples.time is not None and samples.blocks.shared
    own, rank, count, of_row = _ranks(samples, stamp, shared)
    return np.asarray((rank * n_folds // count[own])[of_row])


def _ranks(
    samples: NodeSamples, number: IntArray, shared: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Number the distinct values of each sample, of all nodes together if `shared`.

    Returns the sample and the rank of each distinct value, how many each sample has, and the
    distinct value of every row.
    """
    group = samples.is_target.astype(np.intp) if shared else samples.segments
    width = int(number.max()) + 1
    unit, of_row = np.unique(group * width + number, return_inverse=True)
    own = unit // width
    count = np.bincount(own)
    return own, np.arange(len(unit)) - (np.cumsum(count) - count)[own], count, of_row


def row_weights(sizes: IntArray, alpha: float | FloatArray) -> FloatArray:
    """Weight of every observation in its node's mixed mean, shape (n_observations,)."""
    return np.repeat(mixing_weights(sizes, alpha).ravel(), sizes.ravel())


@dataclass(frozen=True, eq=False)
class FoldedMoments:
    """Moments by fold of features psi (n_observations, m), sorted by node, reference first."""

    psi: FloatArray
    sizes: IntArray
    folds: IntArray
    alpha: float | FloatArray
    prior_ratio: float

    @computed_once
    def segment(self) -> IntArray:
        """Number of the sample of every observation, 2 v or 2 v + 1 at node v."""
        return np.repeat(np.arange(self.sizes.size), self.sizes.ravel())

    @computed_once
    def total(self) -> MomentSums:
        """Sums over all observations."""
        return MomentSums.of(self.psi, self.sizes)

    def summed(self, *, by_fold: bool = False) -> FoldedMoments:
        """Compute the sums that several tasks use, over all observations or over each fold."""
        if by_fold:
            self.by_fold  # noqa: B018
        else:
            self.total  # noqa: B018
        return self

    @computed_once
    def by_fold(self) -> list[MomentSums] | None:
        """Sums over each fold, or None if they take too much memory or more work than the rows."""
        n_folds = int(self.folds.max()) + 1
        # A product takes two passes over the rows, or one over the block.
        if 2 * len(self.psi) < len(self.sizes) * self.psi.shape[1]:
            return None
        if 8 * len(self.sizes) * self.psi.shape[1] ** 2 * (n_folds + 2) > LARGEST_SUMS:
            return None
        return [MomentSums.of(*self._rows(fold)) for fold in range(n_folds)]

    def _rows(self, *chosen: int) -> tuple[FloatArray, IntArray]:
        """Features of some folds, and how many rows each sample has in them."""
        rows = np.flatnonzero(np.isin(self.folds, chosen))
        counts = np.bincount(self.segment[rows], minlength=self.sizes.size)
        return self.psi[rows], counts.reshape(self.sizes.shape)

    def split(self, *held_out: int) -> tuple[Moments, Moments]:
        """Moments of all observations outside some folds, and those inside."""
        part = self._rows(*held_out)
        train = moments_without(self.total, *part, self.alpha, self.prior_ratio)
        return train, factored_moments(*part, self.alpha, self.prior_ratio)

    def only(self, fold: int) -> Moments:
        """Moments of one fold."""
        return factored_moments(*self._rows(fold), self.alpha, self.prior_ratio)

    def without(self, *left_out: int) -> Moments:
        """Moments of all folds but these; each fold is summed once for all calls."""
        if self.by_fold is None:
            keep = ~np.isin(self.folds, left_out)
            return factored_moments(self.psi, self.sizes, self.alpha, self.prior_ratio, keep)
        used = [part for fold, part in enumerate(self.by_fold) if fold not in left_out]
        return reduce(add, used).mixed(self.alpha, self.prior_ratio)

    def ratios(self, rows: IntArray, theta: FloatArray) -> FloatArray:
        """Unclipped ratios at some observations, from coefficients of shape (n_nodes, m)."""
        node = self.segment[rows] // 2
        fitted = np.einsum("im,im->i", self.psi[rows], theta[node])
        return np.asarray(fitted, dtype=np.float64) + self.prior_ratio


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows by fold of features psi, for losses that need more of them than moments."""

    psi: FloatArray
    sizes: IntArray
    folds: IntArray
    alpha: float
    loss: LogRatioLoss

    def summed(self) -> FoldedRows:
        """Return this as it is: rows have no sums that several tasks could share."""
        return self

    def _rows(self, chosen: BoolArray, *, constant: bool | None) -> NodeRows:
        segment = np.repeat(np.arange(self.sizes.size), self.sizes.ravel())
        counts = np.bincount(segment[chosen], minlength=self.sizes.size)
        sizes = counts.reshape(self.sizes.shape)
        return NodeRows.of(self.psi[chosen], sizes, self.alpha, self.loss, constant=constant)

    def split(self, *held_out: int) -> tuple[NodeRows, NodeRows]:
        """Rows outside some folds, and those inside, which have a constant for the intercept."""
        inside = np.isin(self.folds, held_out)
        return self._rows(~inside, constant=None), self._rows(inside, constant=True)
