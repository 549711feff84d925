"""What the test could have found, and how many observations it needs.

A node that changed alone is found by its own evidence, and a shift mostly by the energy distance.
Its statistic is the squared norm of a mean in the space of the kernel -|x - y| / 2. Under a shift
this mean has a known expectation, so the power follows from the first three moments of the
squared norm. They are computed once for a typical node: observations of all nodes, each centred
and scaled at its own node. The sizes of the samples enter in closed form.

Symbols
-------
K           centred kernel matrix of M unshifted and M shifted observations, divided by 2 M
w           weights of the difference of their means
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_integer, check_real
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import as_samples
from graphratio.data.blocks import Blocks
from graphratio.data.samples import NodeSamples
from graphratio.testing.multiplicity import check_correction, strictest_threshold
from graphratio.testing.statistics import LEAST_TRUST, PermutationLaw

# Probability of finding a shift.
POWER = 0.8

# Shifts, in standard deviations, between which the power is interpolated.
_SHIFTS = np.array([0.005, 0.02, 0.07, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5])

# Observations of the typical node.
_TYPICAL = 128

# A feature with at most this many values has levels. Shifted levels would fall between the old
# ones, where the energy distance finds them at once, while real data move from level to level.
_FEW_LEVELS = 12

# Share of the level of the energy distance at a node whose neighbours predict nothing, and a little
# more, because the other statistics of the node see a shift as well.
OWN_SHARE = 0.6 * (1 - LEAST_TRUST)

_MOST_OBSERVATIONS = 10_000_000


@dataclass(frozen=True, eq=False)
class ShiftLaw:
    """Moments of the energy distance of a typical node, for every shift and feature.

    `cov` are the traces of S, S^2, S^3 of both samples together, `within` those of each sample by
    itself, both of shape (3, n_shifts, n_features); `through` are m'm, m'Sm, m'S^2 m with the
    difference m of the means and S of `within`.
    """

    cov: FloatArray
    within: FloatArray
    through: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> ShiftLaw:
        """The law for observations of a node, shape (n, n_features), shifted feature by feature."""
        directions = np.diag(values.std(axis=0))
        directions = directions[directions.any(axis=1)]
        cells = [[_moments(values, shift * along) for along in directions] for shift in _SHIFTS]
        table = np.array(cells).transpose(2, 3, 0, 1)
        return cls(table[0], table[1], table[2])

    def scores(self, sizes: FloatArray, threshold: float) -> FloatArray:
        """Normal scores of the power for each shift and feature, shape (..., n_shifts, n_features).

        `sizes`, shape (..., 2), are those of the reference and of the target. The p-value must be
        at most the `threshold`.
        """
        n, m = (np.maximum(sizes[..., i, np.newaxis, np.newaxis], 1e-9) for i in (0, 1))
        # The statistic is the mean over the target minus that over both samples.
        factor = n / (m * np.maximum(n + m - 1, 1))
        null = _law(self.cov, factor, 0.0, self.through)
        critical = null.quantile(float(ndtri(1 - min(threshold * OWN_SHARE, 0.5))))
        return -_law(self.within, factor, (n / (n + m)) ** 2, self.through).scores(critical)

    def smallest_shift(
        self, sizes: FloatArray, threshold: float, power: float = POWER
    ) -> FloatArray:
        """Smallest shift of any one feature that is found with the given power, shape (...).

        In standard deviations; infinite if even the largest shift considered is not found.
        """
        scores = np.maximum.accumulate(self.scores(sizes, threshold).min(axis=-1), axis=-1)
        wanted = float(ndtri(power))
        flat = scores.reshape(-1, len(_SHIFTS))
        found = [np.interp(wanted, row, _SHIFTS, right=np.inf) for row in flat]
        return np.array(found).reshape(scores.shape[:-1])


def _law(
    cov: FloatArray, factor: FloatArray, between: FloatArray | float, through: FloatArray
) -> PermutationLaw:
    """The law of the squared norm of a normal vector from traces and quadratic forms."""
    mean = factor * cov[0] + between * through[0]
    variance = 2 * factor**2 * cov[1] + 4 * factor * between * through[1]
    third = 8 * factor**3 * cov[2] + 24 * factor**2 * between * through[2]
    return PermutationLaw.of_moments(mean, variance, third)


def _moments(values: FloatArray, shift: FloatArray) -> list[list[float]]:
    """Traces of both samples together and of each by itself, and forms of their difference."""
    count = len(values)
    both = np.vstack([values, values + shift])
    total = _centred(-0.5 * cdist(both, both))
    halves = (slice(None, count), slice(count, None))
    within = total.copy()
    for i in halves:
        for j in halves:
            within[i, j] = _centred(total[i, j])
    total, within = total / (2 * count), within / (2 * count)
    seen = total @ (2 * np.repeat([-1.0, 1.0], count))
    square = float(np.mean(seen[halves[1]]) - np.mean(seen[halves[0]]))
    for i in halves:
        seen[i] -= seen[i].mean()
    once = float(seen @ seen) / (2 * count)
    twice = float(seen @ within @ seen) / (2 * count)
    return [_traces(total), _traces(within), [square, once, twice]]


def _traces(matrix: FloatArray) -> list[float]:
    square = matrix @ matrix
    return [float(np.trace(matrix)), float(np.trace(square)), float(np.sum(square * matrix))]


def _centred(gram: FloatArray) -> FloatArray:
    rows = gram.mean(axis=1, keepdims=True)
    return np.asarray(gram - rows - gram.mean(axis=0, keepdims=True) + rows.mean())


def usual_observations(samples: NodeSamples) -> FloatArray:
    """Observations of all nodes as if they were of one, shape (n, n_features).

    Each is centred at its own sample and divided by the standard deviation there, and then
    multiplied by the usual one. Features with a few levels are replaced by normal data of the same
    standard deviation. Equally spaced rows are used if there are many.
    """
    segment, sizes = samples.segments, np.maximum(samples.sizes.ravel(), 1)
    columns = []
    # A level of a category does not shift.
    numbers = np.ones(samples.n_features, dtype=bool)
    if samples.encoding is not None:
        numbers = ~samples.encoding.is_indicator
    for column in samples.values.T[numbers]:
        mean = np.bincount(segment, column, minlength=sizes.size) / sizes
        away = column - mean[segment]
        spread = np.sqrt(np.bincount(segment, away**2, minlength=sizes.size) / sizes)
        usual = float(np.median(spread[sizes > 1])) if (sizes > 1).any() else 1.0
        columns.append(away / np.where(spread > 0, spread, 1.0)[segment] * (usual or 1.0))
        if np.unique(column).size <= _FEW_LEVELS and usual:
            # Moving between levels is found about as well as a shift of normal data.
            columns[-1] = usual * np.random.default_rng(0).normal(size=len(column))
    if not columns or not (sizes > 1).any():
        return np.empty((0, 0))
    values = np.column_stack(columns)[(sizes > 1)[segment]]
    chosen = np.linspace(0, len(values) - 1, min(len(values), _TYPICAL)).round().astype(int)
    return np.asarray(values[chosen])


def independent_sizes(sizes: IntArray, n_pieces: IntArray, blocks: Blocks) -> FloatArray:
    """Numbers of independent observations of every sample, shape (n_nodes, 2).

    Where dependence was measured, observations divided by the autocorrelation time; with other
    blocks the number of blocks.
    """
    if not blocks.exist or blocks.length == 1:
        return sizes.astype(float)
    found = blocks.measured
    if found is None or not found.found or found.by_day:
        return n_pieces.astype(float)
    return np.maximum(sizes / max(found.tau, found.squared_tau, 1.0), n_pieces)


def detectable_shifts(
    samples: NodeSamples, sizes: FloatArray, threshold: float, power: float = POWER
) -> FloatArray:
    """Smallest shift that would have been found at every node, shape (n_nodes,).

    `sizes`, shape (n_nodes, 2), are the numbers of independent observations; nodes with none in a
    sample have an infinite shift.
    """
    values = usual_observations(samples)
    if not values.any():
        return np.full(len(sizes), np.inf)
    kinds, place = np.unique(sizes, axis=0, return_inverse=True)
    found = ShiftLaw.of(values).smallest_shift(kinds, threshold, power)
    return np.where((kinds >= 1).all(axis=1), found, np.inf)[place.ravel()]


def observations_needed(
    shift: float,
    samples: object = None,
    *,
    n_nodes: int | None = None,
    n_features: int | None = None,
    level: float = 0.05,
    correction: str | None = "fwer",
    power: float = POWER,
) -> int:
    """Observations per sample with which `two_sample_test` finds a shift at a single node.

    The node changed alone, so that its neighbours do not help; with neighbours that changed alike
    fewer are enough. Both samples have equally many, independent observations.

    Parameters
    ----------
    shift : float
        Shift of one feature, in its standard deviations.
    samples : NodeSamples, or a tuple (reference, target), optional
        Data of the same kind, whose law and number of nodes are used. Default: normal features of
        the same scale.
    n_nodes : int, optional
        Number of nodes tested. Default: that of the samples, or 1.
    n_features : int, optional
        Number of features, only without `samples`. Default: 1.
    level, correction
        As in `two_sample_test`. With "fdr" a single changed node is judged as with "fwer".
    power : float, default 0.8
        Probability of finding the shift.

    Returns
    -------
    int

    Examples
    --------
    >>> import graphratio as gr
    >>> gr.observations_needed(1.0, n_nodes=25)
    43
    >>> gr.observations_needed(0.5, n_nodes=25)
    155
    """
    shift = check_real(shift, "shift", low=0)
    level = check_real(level, "level", low=0, high=1)
    power = check_real(power, "power", low=0, high=1)
    correction = check_correction(correction)
    if samples is None:
        count = check_integer(1 if n_features is None else n_features, "n_features", low=1)
        values: FloatArray = np.random.default_rng(0).normal(size=(_TYPICAL, count))
    else:
        read = as_samples(samples)
        if n_features is not None:
            raise InputError(
                f"n_features={n_features} and samples are both given",
                "Leave out n_features: the samples have their own features",
            )
        values = usual_observations(read)
        n_nodes = read.n_nodes if n_nodes is None else n_nodes
    if not values.any():
        raise InputError(
            "no feature of the samples varies within a node, so a shift has no unit",
            "Pass samples with numbers that vary, or leave out the samples",
        )
    tests = check_integer(1 if n_nodes is None else n_nodes, "n_nodes", low=1)
    threshold = strictest_threshold(tests, level, correction)
    law = ShiftLaw.of(values)
    low, high = 1, 2
    while law.smallest_shift(np.array([high, high]), threshold, power) > shift:
        low, high = high, 2 * high
        if high > _MOST_OBSERVATIONS:
            raise InputError(
                f"a shift of {shift:g} standard deviations needs more than "
                f"{_MOST_OBSERVATIONS:,} observations",
                "Ask for a larger shift, or for a larger level",
            )
    while high - low > 1:
        middle = (low + high) // 2
        enough = law.smallest_shift(np.array([middle, middle]), threshold, power) <= shift
        low, high = (low, middle) if enough else (middle, high)
    return high
