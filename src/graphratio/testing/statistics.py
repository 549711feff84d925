"""The statistics of a node, their common scale, and how they are combined.

Every statistic is a linear or a quadratic function of means of columns over the target sample.
A permutation of labels changes nothing else. Quadratic forms of such means have skewed laws, each
with its own number of degrees of freedom. Their first three moments under permutations are known,
and the cube-root transformation of Wilson and Hilferty turns them into scores that are nearly
standard normal. The largest score, each less a handicap that its share of the level sets, is the
evidence at the node. It is ranked among the same quantity of permuted data sets, so the p-value
is exact however good the scores are.

Units enter through the sums of their columns, so one matrix product gives the means of all
permutations, and single precision is enough: every statistic is computed in a unit of its own, and
values that differ by rounding are counted as equal, which can only make a p-value larger.

Symbols
-------
U           number of units of a node, U_1 of them in the target
K           number of columns
B           number of permutations
S           covariance of the means under permutations (K x K)
t           their expectation plus an offset (K,)
z_v         strength that the neighbours' prediction would have if it were right
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.testing.permutations import PermutationPlan

# The mean of the neighbours' predicted ratio at the node; the norm of the ratio fitted with their
# help; the energy distance; the whitened kernel distance; the spread around the centre.
NAMES = ("predicted", "coupled", "energy", "shape", "spread")

# How the statistics of the neighbours, and those of the node itself, divide their level.
NEIGHBOUR_SHARES = np.array([0.7, 0.3, 0.0, 0.0, 0.0])
OWN_SHARES = np.array([0.0, 0.0, 0.45, 0.35, 0.2])

# The share of the neighbours grows with the strength of their prediction, between two limits.
LEAST_TRUST, MOST_TRUST = 0.05, 0.9
WEAK_PREDICTION, STRONG_PREDICTION = 0.4, 0.9

# Scores below this all mean "not extreme". The formula for the tail turns round below -0.58.
_LOWEST = -0.5

# The normal tail is about phi(z) * 2 / (z + sqrt(z^2 + 8 / pi)).
_TAIL = np.float32(8 / np.pi)
_HALF_ROOT = np.float32(np.sqrt(np.pi / 2))

# Entries of the products that are computed at once, so that they stay in the cache.
_ENTRIES = 1_000_000

# Laws with less skewness than this count as normal.
_SYMMETRIC = 0.02


def shares_of(strength: FloatArray) -> FloatArray:
    """Share of the level of every statistic, shape (n_nodes, 5).

    `strength`, shape (n_nodes,), is that of the neighbours' prediction, zero where there is none.
    It depends on the pooled sample of a node and on other nodes, never on the node's labels.

    Examples
    --------
    >>> shares_of(np.array([0.0, 0.5, 2.0])).round(3)
    array([[0.   , 0.   , 0.45 , 0.35 , 0.2  ],
           [0.154, 0.066, 0.351, 0.273, 0.156],
           [0.63 , 0.27 , 0.045, 0.035, 0.02 ]])
    """
    between = (strength - WEAK_PREDICTION) / (STRONG_PREDICTION - WEAK_PREDICTION)
    trust = LEAST_TRUST + (MOST_TRUST - LEAST_TRUST) * np.clip(between, 0.0, 1.0)
    trust = np.where(strength > 0, trust, 0.0)[:, np.newaxis]
    return np.asarray(trust * NEIGHBOUR_SHARES + (1 - trust) * OWN_SHARES)


@dataclass(frozen=True, eq=False)
class PermutationLaw:
    """Mean, standard deviation and skewness of statistics under permutations, any shape."""

    mean: FloatArray
    spread: FloatArray
    skewness: FloatArray

    @classmethod
    def of_squares(cls, cov: FloatArray, offset: FloatArray) -> PermutationLaw:
        """The law of ||y + t||^2 for normal y with covariance S, (..., K, K), and t, (..., K)."""
        square = cov @ cov
        mean = np.einsum("...ii->...", cov) + np.einsum("...i,...i->...", offset, offset)
        through = np.einsum("...i,...ij,...j->...", offset, cov, offset)
        twice = np.einsum("...i,...ij,...j->...", offset, square, offset)
        variance = 2 * np.einsum("...ii->...", square) + 4 * through
        third = 8 * np.einsum("...ij,...ij->...", square, cov) + 24 * twice
        return cls.of_moments(mean, variance, third)

    @classmethod
    def of_mean(cls, variance: FloatArray, offset: FloatArray) -> PermutationLaw:
        """The law of a single mean."""
        return cls.of_moments(offset, variance, np.zeros_like(variance))

    @classmethod
    def of_moments(
        cls, mean: FloatArray, variance: FloatArray, third: FloatArray
    ) -> PermutationLaw:
        """From the mean and the second and third central moments."""
        # A statistic that no permutation changes must not be scaled up to its rounding error.
        varies = variance > (1e-7 * np.abs(mean)) ** 2
        spread = np.sqrt(np.where(varies, variance, np.inf))
        return cls(mean, spread, np.where(varies, third, 0.0) / np.where(varies, spread, 1.0) ** 3)

    def scores(self, values: FloatArray) -> FloatArray:
        """Nearly standard normal scores of statistics whose law has the same shape."""
        standard = (values - self.mean) / self.spread
        skewed = self.skewness > _SYMMETRIC
        root = np.where(skewed, 2 / np.where(skewed, self.skewness, 1.0), 1.0).astype(values.dtype)
        cubic = 3 * root * (np.cbrt(np.maximum(1 + standard / root, 0)) - 1) + 1 / (3 * root)
        return np.where(skewed, cubic, standard)

    def quantile(self, score: FloatArray | float) -> FloatArray:
        """The value of the statistic that has a given score: the inverse of `scores`."""
        skewed = self.skewness > _SYMMETRIC
        root = np.where(skewed, 2 / np.where(skewed, self.skewness, 1.0), 1.0)
        cubic = root * (((score - 1 / (3 * root)) / (3 * root) + 1) ** 3 - 1)
        return np.asarray(self.mean + self.spread * np.where(skewed, cubic, score))


def combined_evidence(scores: FloatArray, log_shares: FloatArray) -> FloatArray:
    """Combine the scores along the last axis: minus the log of the smallest p-value / share.

    Examples
    --------
    >>> both = combined_evidence(np.array([[0.0, 2.0], [3.0, 0.0]]), np.log([0.5, 0.5]))
    >>> both.round(2)
    array([3.05, 5.89])
    """
    scores = np.maximum(scores, _LOWEST)
    # Minus the log of the upper tail of a standard normal, within a few per cent from 0 on.
    beyond = scores + np.sqrt(np.square(scores) + _TAIL)
    tail = 0.5 * np.square(scores) + np.log(_HALF_ROOT * beyond)
    return np.asarray((log_shares + tail).max(axis=-1))


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
        sums = _sums_of_units(columns, np.where(unit >= 0, local, -1), count)
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

    def part(self, nodes: slice | IntArray) -> PermutedMeans:
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
        """Factors that make means over k units as variable as those over the observed number."""
        count, observed = labels.shape[2], self.labels.sum(axis=1)[:, np.newaxis, np.newaxis]
        k = labels.sum(axis=2, keepdims=True)
        # The variance of a mean over k of U units is proportional to (U - k) / k.
        ratio = (count - observed) * k / np.maximum(observed * (count - k), 1)
        if self.sizes is None:
            # Sums were divided by the observed number.
            ratio *= np.square(observed / np.maximum(k, 1))
        return np.sqrt(np.where((k > 0) & (k < count), ratio, 0.0)).astype(np.float32)


def _sums_of_units(columns: FloatArray, unit: IntArray, count: int) -> FloatArray:
    """Sums over the rows of every unit, shape (n_nodes, count, K); rows of the unit -1 stay out."""
    n_nodes, n_rows, width = columns.shape
    flat, moving = columns.reshape(-1, width), np.flatnonzero(unit.ravel() >= 0)
    if moving.size == n_nodes * count == n_nodes * n_rows:
        # Every unit is a single row.
        sums = np.empty_like(flat)
        sums[unit.ravel()] = flat
        return sums.reshape(n_nodes, count, width)
    gather = sparse.csr_array(
        (np.ones(moving.size), (unit.ravel()[moving], moving)), shape=(n_nodes * count, len(flat))
    )
    return np.asarray(gather @ flat).reshape(n_nodes, count, width)


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
