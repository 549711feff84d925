"""Statistics of several nodes at once, as functions of the labels of their units.

All statistics are functions of means of columns over the target sample. Units enter through the
sums of their columns, so one matrix product gives the means of all permutations, and single
precision is enough: every statistic is computed in a unit of its own, and values that differ by
rounding are counted as equal, which can only make a p-value larger.

Symbols
-------
U           number of units of a node, U_1 of them in the target
K           number of columns of all statistics together
B           number of permutations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.testing.permutations import PermutationPlan
from graphratio.testing.statistics import PermutationLaw, combined_evidence

# Entries of the products that are computed at once, so that they stay in the cache.
_ENTRIES = 1_000_000


@dataclass(frozen=True, eq=False)
class Columns:
    """One statistic of several nodes: columns over rows, and how it is computed from their means.

    `values` has shape (n_nodes, n_rows, K). The statistic is the squared norm of the mean plus
    `offset`, shape (n_nodes, K); with `linear` and one column it is the mean itself.
    """

    values: FloatArray
    offset: FloatArray | None = None
    linear: bool = False

    def scaled(self) -> Columns:
        """The same statistic in a unit of its own at every node, so that no scale overflows."""
        largest = np.abs(self.values).max(axis=(1, 2), initial=0.0)
        if self.offset is not None:
            largest = np.maximum(largest, np.abs(self.offset).max(axis=1, initial=0.0))
        unit = np.where(largest > 0, largest, 1.0)[:, np.newaxis]
        offset = None if self.offset is None else self.offset / unit
        return Columns(self.values / unit[:, :, np.newaxis], offset, self.linear)


@dataclass(frozen=True, eq=False)
class PermutedMeans:
    """Nodes with equally many units, ready to be evaluated under any labels.

    `sums`, shape (n_nodes, U, K), are those of the units. If all units have the same size, they
    are divided by the size of the target, and contain their share of the offset, so that the sum
    over the target is all that is needed. Otherwise `sizes`, shape (n_nodes, U, 1), counts rows,
    and `offset`, shape (n_nodes, 1, K), is added at the end. `ends` says where the columns of each
    statistic end. `law` and `log_shares` have shape (n_nodes, 1, n_statistics), the observed
    `labels` (n_nodes, U).
    """

    sums: FloatArray
    sizes: FloatArray | None
    offset: FloatArray
    ends: IntArray
    linear: BoolArray
    law: PermutationLaw
    log_shares: FloatArray
    labels: FloatArray

    @classmethod
    def of(
        cls,
        plan: PermutationPlan,
        nodes: IntArray,
        statistics: Sequence[Columns],
        shares: FloatArray,
    ) -> PermutedMeans:
        """Sum the columns over units, and work out the moments of the statistics.

        The nodes have equally many rows and equally many units. `shares` has shape
        (n_nodes, n_statistics).
        """
        units, pooled = plan.units, plan.pooled
        statistics = [part.scaled() for part in statistics]
        n_nodes, n_rows, _ = statistics[0].values.shape
        ones = np.ones((n_nodes, n_rows, 1))
        columns = np.concatenate([*(part.values for part in statistics), ones], axis=2)
        first = plan.first_unit[nodes]
        count = int(plan.n_units[nodes[0]])
        rows = plan.rows(nodes)
        unit = units.of_row[rows]
        local = unit - first[:, np.newaxis] + count * np.arange(n_nodes)[:, np.newaxis]
        moving = np.flatnonzero(unit.ravel() >= 0)
        gather = sparse.csr_array(
            (np.ones(moving.size), (local.ravel()[moving], moving)),
            shape=(n_nodes * count, n_nodes * n_rows),
        )
        sums = (gather @ columns.reshape(n_nodes * n_rows, -1)).reshape(n_nodes, count, -1)
        keeps = ((unit < 0) & pooled.is_target[rows]).astype(float)
        fixed = np.einsum("vr,vrk->vk", keeps, columns)
        ends = np.cumsum([part.values.shape[2] for part in statistics])
        offset = np.concatenate(
            [
                np.zeros((n_nodes, part.values.shape[2])) if part.offset is None else part.offset
                for part in statistics
            ],
            axis=1,
        )
        linear = np.array([part.linear for part in statistics])
        single = np.float32
        with np.errstate(divide="ignore"):
            log_shares = np.log(shares)[:, np.newaxis].astype(single)
        own = first[:, np.newaxis] + np.arange(count)
        is_target = units.is_target[own]
        law = _laws(sums, fixed, offset, ends, linear, is_target)
        # As many units are in the target in every permutation: each takes its share of the rest.
        sums += fixed[:, np.newaxis] / max(int(is_target[0].sum()), 1)
        sums, sizes = sums[:, :, :-1], sums[:, :, -1:]
        equal = bool((sizes == sizes[:, :1]).all())
        if equal:
            sums = (sums / sizes + offset[:, np.newaxis]) / max(int(is_target[0].sum()), 1)
        return cls(
            sums.astype(single),
            None if equal else sizes.astype(single),
            offset[:, np.newaxis].astype(single),
            ends,
            linear,
            law,
            log_shares,
            plan.observed[own].astype(single),
        )

    def part(self, nodes: slice) -> PermutedMeans:
        """Some of the nodes."""
        law = PermutationLaw(self.law.mean[nodes], self.law.spread[nodes], self.law.skewness[nodes])
        return PermutedMeans(
            self.sums[nodes],
            None if self.sizes is None else self.sizes[nodes],
            self.offset[nodes],
            self.ends,
            self.linear,
            law,
            self.log_shares[nodes],
            self.labels[nodes],
        )

    def step(self, n_permutations: int) -> int:
        """How many nodes to evaluate at once."""
        return max(1, _ENTRIES // (n_permutations * int(self.sums.shape[2])))

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Evidence and scores of the observed labels, (n_nodes,) and (n_nodes, n_statistics)."""
        found, scores = self.evaluate(self.labels[:, np.newaxis])
        return found[:, 0], scores[:, 0]

    def evaluate(self, labels: BoolArray | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Evidence, shape (n_nodes, B), and scores, shape (n_nodes, B, n_statistics).

        `labels` has shape (B, U) if all nodes share them, else (n_nodes, B, U). In the second case
        the target may have more units or fewer than were observed, where whole times move and a
        node lacks some of them: means are then brought to the spread of the observed number.
        """
        labels = labels.astype(np.float32, copy=False)
        means = labels @ self.sums
        if self.sizes is not None:
            means /= np.maximum(labels @ self.sizes, 1)
            means += self.offset
        if labels.ndim == 3:
            means *= self._spread_of(labels)
        first = means[:, :, self.ends[self.linear] - 1]
        np.square(means, out=means)
        values = means @ np.repeat(
            np.eye(len(self.ends), dtype=np.float32), np.diff(self.ends, prepend=0), axis=0
        )
        values[:, :, self.linear] = first
        scores = self.law.scores(values)
        return combined_evidence(scores, self.log_shares), scores

    def _spread_of(self, labels: FloatArray) -> FloatArray:
        """What makes means over k units as variable as those over the observed number."""
        count, observed = labels.shape[2], self.labels.sum(axis=1)[:, np.newaxis, np.newaxis]
        k = labels.sum(axis=2, keepdims=True)
        # The variance of a mean over k of U units is proportional to (U - k) / k.
        ratio = (count - observed) * k / np.maximum(observed * (count - k), 1)
        if self.sizes is None:
            # Sums were divided by the observed number.
            ratio *= np.square(observed / np.maximum(k, 1))
        return np.sqrt(np.where((k > 0) & (k < count), ratio, 0.0)).astype(np.float32)


def _laws(
    sums: FloatArray,
    fixed: FloatArray,
    offset: FloatArray,
    ends: IntArray,
    linear: BoolArray,
    is_target: BoolArray,
) -> PermutationLaw:
    """Moments of every statistic when the labels of the units are exchanged at random."""
    count, target = sums.shape[1], is_target.sum(axis=1)
    middle = sums.mean(axis=1)
    total = target[:, np.newaxis] * middle + fixed
    size = np.maximum(total[:, -1], 1.0)
    expected = total[:, :-1] / size[:, np.newaxis] + offset
    # Sampling without replacement: U_1 (U - U_1) / (U (U - 1)) times the sum of squares.
    factor = target * (count - target) / (count * max(count - 1, 1)) / size**2
    centred = (sums - middle[:, np.newaxis]) * np.sqrt(factor)[:, np.newaxis, np.newaxis]
    laws, begin = [], 0
    for end, is_linear in zip(ends, linear, strict=True):
        part, t = centred[:, :, begin:end], expected[:, begin:end]
        cov = part.transpose(0, 2, 1) @ part
        laws.append(
            PermutationLaw.of_mean(cov[:, 0, 0], t[:, 0])
            if is_linear
            else PermutationLaw.of_squares(cov, t)
        )
        begin = end

    def stacked(name: str) -> FloatArray:
        return np.stack([getattr(law, name) for law in laws], axis=1)[:, np.newaxis].astype("f4")

    return PermutationLaw(stacked("mean"), stacked("spread"), stacked("skewness"))
