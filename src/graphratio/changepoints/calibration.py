"""Thresholds from surrogate panels: blocks of time, of all nodes together, in random order.

If nothing changes, a panel with its blocks in another order is as likely as the panel itself,
apart from the seams. Moving all nodes together keeps their correlation; blocks keep the
correlation in time. Four steps make the thresholds accurate:

- *Residuals.* A change would be carried into every surrogate and raise the threshold. So the panel
  is cut at the changes found and one more suspect, and each piece loses its mean features.
- *Pieces.* Blocks move within their piece only, since a change may alter the variance too. Every
  piece gets a random mean that varies as means of such pieces do: residuals alone would vary too
  little where two pieces meet.
- *Own scale.* Seams lose correlation, so windows of a surrogate vary a little less. Therefore every
  panel is divided by its own spread, direction by direction, without the times within a window of
  the largest difference or of a change found.
- *Counts.* The threshold is an order statistic of the surrogates and the real panel.

Symbols
-------
psi         features, shape (m, n_times, n_nodes)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.changepoints.scan import N_CURVES, GraphScan
from graphratio.changepoints.smoother import Smoother
from graphratio.changepoints.windows import scan_times, window_differences

# Length of a block, as a multiple of the longest lag with visible autocorrelation.
BLOCK_FACTOR = 8

# Points of the table of tail probabilities.
TABLE_POINTS = 400


@dataclass(frozen=True, eq=False)
class TailTable:
    """Shares of null values of single nodes at or above decreasing values."""

    values: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, sample: FloatArray) -> TailTable:
        """Store the tail of a sample in detail and the rest coarsely."""
        ordered = np.sort(sample)[::-1]
        ranks = np.unique(np.geomspace(1, ordered.size, TABLE_POINTS).round().astype(np.intp))
        return cls(np.asarray(ordered[ranks - 1], float), (ranks + 1) / (ordered.size + 1))

    def p_values(self, values: FloatArray) -> FloatArray:
        """Share of null values at least as large; never zero."""
        shares = np.interp(-values, -self.values, np.log(self.shares))
        return np.asarray(np.where(values < self.values[-1], 1.0, np.minimum(np.exp(shares), 1.0)))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A scan with its thresholds: an alarm is raised where a curve exceeds its level.

    Differences are divided by `spread`, shape (m,). `largest` are the sorted largest values of the
    surrogates in units of the `levels`, shape (3,). `inflation` is the long-run variance over the
    variance of the features, and `marginal` that variance, shape (m, n_nodes).
    """

    scan: GraphScan
    spread: FloatArray
    levels: FloatArray
    largest: FloatArray
    own_tail: TailTable
    witness_tail: TailTable
    block: int
    inflation: float
    marginal: FloatArray

    def statistic(self, delta: FloatArray) -> FloatArray:
        """Largest of the three curves in units of their levels, shape (n_scans,)."""
        scaled = delta / self.spread[:, np.newaxis, np.newaxis]
        curves = self.scan.curves(scaled, *self.scan.local(scaled))
        return np.asarray((curves / self.levels[:, np.newaxis]).max(axis=0))

    def p_value(self, statistic: float) -> float:
        """Probability that a panel without change reaches this value anywhere."""
        above = self.largest.size - np.searchsorted(self.largest, statistic, side="left")
        return float((1 + above) / (1 + self.largest.size))

    def node_p_values(self, delta: FloatArray) -> FloatArray:
        """P-values of single nodes, from differences (m, n_nodes) of windows."""
        scaled = (delta / self.spread[:, np.newaxis])[:, np.newaxis]
        own = self.own_tail.p_values(self.scan.local(scaled)[0][0])
        witness = self.witness_tail.p_values(self.scan.witness(scaled)[0])
        if not self.scan.smoother.coupled:
            return own
        return np.asarray(np.minimum(2 * np.minimum(own, witness), 1.0))


def residuals(psi: FloatArray, ends: list[int]) -> FloatArray:
    """Features without their means in every piece between two ends, in single precision."""
    result = np.empty(psi.shape, dtype=np.float32)
    for begin, end in pairwise(ends):
        part = psi[:, begin:end]
        result[:, begin:end] = part - part.mean(axis=1, keepdims=True)
    return result


def block_length(psi: FloatArray, weights: FloatArray, longest: int) -> int:
    """Steps per block: 1 without autocorrelation, else 8 times the longest visible lag.

    Autocorrelation, averaged over directions with weights, is visible while some node exceeds the
    largest value that independent nodes reach by chance. No block is longer than `longest`.
    """
    _, n_times, n_nodes = psi.shape
    noise = math.sqrt(2 * math.log(2 * n_nodes * longest) / n_times)
    total = weights @ np.einsum("jtv,jtv->jv", psi, psi)
    visible = 0
    for lag in range(1, longest + 1):
        products = weights @ np.einsum("jtv,jtv->jv", psi[:, lag:], psi[:, :-lag])
        if float(np.max(products / np.where(total > 0, total, np.inf))) < noise:
            break
        visible = lag
    return int(min(BLOCK_FACTOR * visible, longest)) if visible else 1


def shuffled_blocks(n_times: int, block: int, rng: np.random.Generator) -> IntArray:
    """Times with their blocks in random order; the first block begins at a random time."""
    n_blocks = n_times // block
    first = int(rng.integers(n_times)) if block > 1 else 0
    order = rng.permutation(n_blocks)[:, np.newaxis] * block + np.arange(block)
    rest = np.arange(n_blocks * block, n_times)
    return np.asarray((np.concatenate([order.ravel(), rest]) + first) % n_times)


class Surrogates:
    """Draws panels without change from residual features, within pieces between the `ends`."""

    def __init__(self, psi: FloatArray, ends: list[int], block: int) -> None:
        self.psi, self.block = psi, block
        self.pieces = list(pairwise(ends))
        # Pieces shorter than a block are one block.
        self.lengths = [min(block, end - begin) for begin, end in self.pieces]
        self.sums = [
            _block_sums(psi[:, begin:end], length)
            for (begin, end), length in zip(self.pieces, self.lengths, strict=True)
        ]

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One surrogate, shape (m, n_times, n_nodes)."""
        result = np.empty_like(self.psi)
        for (begin, end), length, sums in zip(self.pieces, self.lengths, self.sums, strict=True):
            order = begin + shuffled_blocks(end - begin, length, rng)
            result[:, begin:end] = self.psi[:, order]
            if len(self.pieces) > 1:
                drawn = np.bincount(rng.integers(sums.shape[1], size=sums.shape[1]))
                mean = np.einsum("b,jbv->jv", drawn, sums[:, : drawn.size])
                mean /= sums.shape[1] * length
                result[:, begin:end] += mean.astype(result.dtype)[:, np.newaxis]
        return result


class Calibrator:
    """Scans surrogates of a panel cut at its suspected changes; `block` is None for the rule."""

    def __init__(
        self,
        psi: FloatArray,
        cuts: Sequence[int],
        smoother: Smoother,
        *,
        window: int,
        step: int,
        block: int | None = None,
    ) -> None:
        ends = [0, *sorted(cuts), psi.shape[1]]
        rest = residuals(psi, ends)
        self.window, self.step = window, step
        self.block = block or block_length(rest, 1 / smoother.diagonal, window)
        self.surrogates = Surrogates(rest, ends, self.block)
        self.scan = GraphScan.of(smoother, _block_sums(rest, self.block), self.block, window)
        self.times = scan_times(psi.shape[1], window, step)
        quiet = self._quiet(np.array(cuts))
        # Changes that are close together leave no quiet time: use the residuals instead.
        whole = psi if quiet.any() else rest
        energy = self.scan.energy(window_differences(whole, window, step))
        self.spread = self.scan.spread(energy, quiet)
        self.marginal = np.einsum("jtv,jtv->jv", rest, rest, dtype=np.float64) / rest.shape[1]
        # A floor, since a node may never vary.
        self.marginal += 1e-12 * self.marginal.mean()
        variance = self.marginal.sum(axis=1)
        long_run = self.scan.variance.sum(axis=1) * window / 2 * self.spread**2
        weights = variance / smoother.diagonal
        self.inflation = max(1.0, float(np.average(long_run / variance, weights=weights)))
        self.maxima: list[FloatArray] = []
        self.own_null: list[FloatArray] = []
        self.witness_null: list[FloatArray] = []

    def draw(self, n_surrogates: int, rng: np.random.Generator, *, progress: bool = False) -> None:
        """Scan surrogates until there are this many."""
        # The tails of single nodes need few times, since overlapping windows are alike.
        stride = max(1, self.window // (2 * self.step))
        missing = n_surrogates - len(self.maxima)
        with ProgressBar(missing, "surrogate panels", enabled=progress) as bar:
            for _ in range(missing):
                delta = window_differences(self.surrogates.draw(rng), self.window, self.step)
                energy = self.scan.energy(delta)
                quiet = self._quiet(self.times[[self.scan.strongest(energy)]])
                spread = self.scan.spread(energy, quiet)
                delta /= spread.astype(delta.dtype)[:, np.newaxis, np.newaxis]
                own, graph = self.scan.local(delta)
                self.maxima.append(self.scan.curves(delta, own, graph).max(axis=1))
                self.own_null.append(own[::stride].ravel())
                self.witness_null.append(self.scan.witness(delta[:, ::stride]).ravel())
                bar.advance()

    def _quiet(self, cuts: IntArray) -> BoolArray:
        """Scan times whose windows contain none of the cuts, shape (n_scans,)."""
        distance = np.abs(self.times[:, np.newaxis] - cuts).min(axis=1)
        return np.asarray(distance >= self.window)

    def result(self, level: float) -> Calibration:
        """Thresholds from the surrogates so far."""
        levels, largest = _levels(np.stack(self.maxima, axis=1).astype(np.float64), level)
        return Calibration(
            self.scan,
            self.spread,
            levels,
            largest,
            TailTable.of(np.concatenate(self.own_null)),
            TailTable.of(np.concatenate(self.witness_null)),
            self.block,
            self.inflation,
            self.marginal,
        )


def _block_sums(psi: FloatArray, block: int) -> FloatArray:
    """Sums over whole consecutive blocks, shape (m, n_blocks, n_nodes)."""
    m, n_times, n_nodes = psi.shape
    whole = n_times // block * block
    parts = psi[:, :whole].reshape(m, -1, block, n_nodes)
    return np.asarray(parts.sum(axis=2, dtype=np.float64))


def _levels(maxima: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Levels of the curves: the given share of panels without change exceeds any of them."""
    n = maxima.shape[1]
    each = np.quantile(maxima, 1 - level / N_CURVES, axis=1)
    largest = np.sort((maxima / each[:, np.newaxis]).max(axis=0))
    # The real panel counts too. Rounded, since 0.58 * 100 is not 58 in floating point.
    rank = math.ceil(round((1 - level) * (n + 1), 6))
    threshold = largest[rank - 1]
    return each * threshold, largest / threshold
