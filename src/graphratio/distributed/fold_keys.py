"""Random numbers on partitions: the same stream everywhere, so that no folds travel."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.typing import FloatArray, IntArray, Label
from graphratio.data.alignment import as_samples
from graphratio.data.samples import NodeSamples
from graphratio.distributed.protocol import Source
from graphratio.moments.folds import folds_by_key

# Random keys are drawn in chunks, so that a partition stores only its own.
KEYS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class OwnKeys:
    """Random numbers of the observations of one partition, as a single process would draw them.

    The generator gives those of all `total` observations in the order of the graph; the `counts`
    of each own node begin at `starts`.
    """

    generator: np.random.Generator
    starts: IntArray
    counts: IntArray
    total: int

    def random(self, size: int) -> FloatArray:
        """The numbers of all own observations, as many as `size` says."""
        generator = deepcopy(self.generator)
        first = np.cumsum(self.counts) - self.counts
        within = np.arange(size) - np.repeat(first, self.counts)
        position = np.repeat(self.starts, self.counts) + within
        keys = np.empty(size)
        for begin in range(0, self.total, KEYS_AT_ONCE):
            drawn = generator.random(min(KEYS_AT_ONCE, self.total - begin))
            # Own positions increase, so those of a piece are consecutive.
            low, high = np.searchsorted(position, [begin, begin + drawn.size])
            keys[low:high] = drawn[position[low:high] - begin]
        return keys


def skip(generator: np.random.Generator, count: int) -> None:
    """Leave the generator as it is after `count` numbers between 0 and 1."""
    bits = generator.bit_generator
    if not isinstance(bits, np.random.PCG64 | np.random.PCG64DXSM):
        for begin in range(0, count, KEYS_AT_ONCE):
            generator.random(min(KEYS_AT_ONCE, count - begin))
        return
    before = bits.state
    bits.advance(count)
    # Half of a number may be left over from an integer, which numbers between 0 and 1 do not use.
    after = bits.state
    after["has_uint32"], after["uinteger"] = before["has_uint32"], before["uinteger"]
    bits.state = after


def own_keys(
    nodes: Sequence[IntArray], counts: IntArray, random_state: np.random.Generator
) -> list[OwnKeys]:
    """Numbers of every partition, `counts` (n_nodes,) of each node.

    Leaves the generator as a single process would that draws them all.
    """
    starts, total = np.cumsum(counts) - counts, int(counts.sum())
    generator = deepcopy(random_state)
    skip(random_state, total)
    return [OwnKeys(generator, starts[own], counts[own], total) for own in nodes]


@dataclass(frozen=True, eq=False)
class FoldKeys:
    """The folds of the nodes of one partition, as a single process would draw them.

    The generator gives the keys of all `total` observations in the order of the graph; those of
    each own node begin at `starts`, and its first fold is its `offset`.
    """

    generator: np.random.Generator
    starts: IntArray
    offset: IntArray
    total: int
    n_folds: int

    def folds(self, samples: NodeSamples) -> IntArray:
        """Fold of every own observation."""
        if samples.has_blocks and samples.blocks.exist:
            raise InputError(
                "observations that depend on each other in time cannot be split with an engine",
                "Work in one process, or fit with all hyperparameters given, which needs no folds; "
                "block=None would treat the observations as independent",
            )
        keys = OwnKeys(self.generator, self.starts, samples.sizes.sum(axis=1), self.total)
        drawn = keys.random(samples.n_observations)
        return folds_by_key(samples, drawn, self.offset, self.n_folds)


def fold_keys(
    nodes: Sequence[IntArray], sizes: IntArray, n_folds: int, random_state: np.random.Generator
) -> list[FoldKeys]:
    """Keys of every partition; leaves the generator as a fit in a single process would."""
    keys = own_keys(nodes, sizes.sum(axis=1), random_state)
    offset = random_state.integers(n_folds, size=len(sizes))
    return [
        FoldKeys(part.generator, part.starts, offset[own], part.total, n_folds)
        for part, own in zip(keys, nodes, strict=True)
    ]


class OwnFolds(Protocol):
    """The folds of the nodes of one partition."""

    def folds(self, samples: NodeSamples, /) -> IntArray:
        """Fold of every own observation."""


@dataclass(frozen=True, eq=False)
class WithoutFold:
    """The source of a partition, without the observations of one fold."""

    source: Source
    keys: OwnFolds
    fold: int

    def __call__(self, labels: list[Label]) -> NodeSamples:
        """Load, and leave out the fold."""
        samples = self.source
        if not isinstance(samples, NodeSamples):
            samples = as_samples(samples(labels)).aligned(labels)
        return samples.subset(observations=self.keys.folds(samples) != self.fold)
