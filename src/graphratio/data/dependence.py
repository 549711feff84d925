"""Measure how long observations depend on earlier ones, within samples and over all nodes.

Every sample of every node is a series in the order of time, centred and scaled by itself, so that
a change between the samples does not count as dependence. Evidence is added up over nodes: a
correlation that no single node can show is plain in fifty of them. Squares are measured too,
since uncorrelated observations may still have calm and restless periods.

Symbols
-------
x           standard scores of the observations in the order of time, then those of their squares
m           width of a window: the lags 1 .. m together
tau         integrated autocorrelation time, 1 + 2 (sum of the autocorrelations)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from graphratio._utils.arrays import column_sums
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.series import (
    Series,
    excess,
    excess_of_sums,
    forward_products,
    lag_products,
)

# Blocks are longer by this factor, since tau is an estimate.
TAU_MARGIN = 1.25

# Block length in units of the measured autocorrelation time of squares. Blocks need eight times
# the true one, and scores clipped against outliers show only about 70 % of it.
SQUARES_FACTOR = 11

# Largest share of the long-run variance that blocks may lose.
LOST = 0.12

# Chance to find dependence in independent data.
FALSE_ALARM = 0.01

_WINDOWS = (1, 2, 4, 8, 16, 32, 64)
_NODE_WINDOWS = (1, 4, 16)

# Autocorrelations are added up to a lag of this many tau, and until they are this small.
_LAGS_PER_TAU = 3
_SMALL = 0.02
_MOST_LAGS = 1000

# The series of means over nodes counts if it explains at least this share of the variance.
_COMMON_SHARE = 0.1

# Blocks suit the memory of this share of the nodes; the others may have a longer one.
_QUANTILE = 0.9

# Below this tau, observations without the level of their day count as independent.
_CLEAR_REST = 1.5

# Nodes whose memory exceeds the median by this factor do not count for the slowness.
_ALIKE = 3.0

# Days matter if at least this share of the correlation ends with the day.
_CLEAR = 0.2


@dataclass(frozen=True, eq=False)
class Dependence:
    """How far observations depend on earlier ones of the same sample.

    Attributes
    ----------
    found : bool
        Whether dependence was found; wrong in about 1 % of independent data sets.
    correlation, squared_correlation : float
        Autocorrelation at lag 1, pooled over nodes, of the values and of their squares, in the
        feature in which it is largest.
    tau, squared_tau : float
        Integrated autocorrelation times in observations, at least 1; where nodes differ, those of
        the nodes with a long memory.
    node_tau : ndarray of shape (n_nodes,)
        The larger of the two for every node, shrunk towards the pooled one, most at nodes with few
        observations.
    day_correlation : float
        Correlation of two observations of a node on the same day (at the same time, where times
        repeat); NaN where there are none.
    by_day : bool
        Whether observations of one day are more alike than equally close ones of two days.
    day_tau : float
        Integrated autocorrelation time of the means of days, in days; 1 where neighbouring days
        show no correlation.
    rest_tau : float
        Integrated autocorrelation time without the common level of each day.
    slowness, squared_slowness : float
        Sum of lag times autocorrelation, relative to tau, of values and squares: large if a slow
        component lies under noise. That of squares is extrapolated beyond the measured lags.
    """

    found: bool
    correlation: float
    squared_correlation: float
    tau: float
    squared_tau: float
    node_tau: FloatArray
    day_correlation: float = np.nan
    by_day: bool = False
    day_tau: float = 1.0
    rest_tau: float = 1.0
    slowness: float = 0.0
    squared_slowness: float = 0.0

    @property
    def length(self) -> int:
        """Observations of a block: at least 4 tau, or `SQUARES_FACTOR` tau where squares dominate.

        The mean over a block of length L loses the share 2 slowness / L of the long-run variance.
        For an autoregressive series this share is about `LOST` at 4 tau; where slow components
        make it larger, blocks are longer.
        """
        if not self.found:
            return 1
        longest = max(self.tau, self.squared_tau)
        factor = SQUARES_FACTOR if self.squared_tau > 1.5 * self.tau else 4
        return int(np.ceil(max(TAU_MARGIN * factor * longest, 2 * self.slowness / LOST)))

    def days(self, per_day: float) -> int:
        """Whole days of a block, with `per_day` observations a day.

        The common level of a day ends with that day. Only the rest may reach further.
        """
        if self.by_day and self.rest_tau < _CLEAR_REST:
            return 1
        needed = TAU_MARGIN * 4 * self.rest_tau if self.by_day else self.length
        return max(1, int(np.ceil(needed / per_day)))


def depends_on_past(series: Series) -> bool:
    """Whether observations depend on earlier ones; wrong in about 1 % of independent data sets."""
    x = series.scores()
    return _any_evidence(series, x, _common(series, x)[0])


def measure(
    series: Series, unit: IntArray | None = None, chance: float = FALSE_ALARM
) -> Dependence:
    """Measure the dependence; `unit` numbers the days, where days have several observations.

    `chance` is the probability of finding dependence in independent data. Choose a larger one
    where it does more harm to overlook dependence than to find it by mistake.
    """
    x = series.scores()
    common, share = _common(series, x)
    n_nodes = series.n_segments // 2
    half = x.shape[1] // 2
    found = _any_evidence(series, x, common, chance)
    pairs = np.count_nonzero(series.last > np.arange(len(x)))
    one = forward_products(series, x, 1).sum(axis=0) / max(pairs, 1)
    first, squared = (float(np.max(part, initial=0.0)) for part in (one[:half], one[half:]))
    if not found:
        return Dependence(False, first, squared, 1.0, 1.0, np.ones(n_nodes))
    tau, node_tau, slow = _times(series, x)
    if common is not None and share >= _COMMON_SHARE:
        together = common.scores()
        if _any_evidence(common, together, None, chance):
            shared_tau, _, shared_slow = _times(common, together)
            tau, slow = np.maximum(tau, shared_tau), np.maximum(slow, shared_slow)
    days: tuple[float, bool, float, float] = (np.nan, False, 1.0, 1.0)
    if unit is not None:
        days = _by_unit(series, x, unit)
        if common is not None and not days[1]:
            # Stamps of the means are those of the series.
            unit_of_stamp = np.zeros(int(series.stamp.max()) + 1, dtype=np.intp)
            unit_of_stamp[series.stamp] = unit
            seen = _by_unit(common, common.scores(), unit_of_stamp[common.stamp])
            days = (days[0], seen[1], max(days[2], seen[2]), max(days[3], seen[3]))
    return Dependence(
        True,
        first,
        squared,
        float(tau[0]),
        float(tau[1]),
        node_tau,
        *days,
        slowness=float(slow[0]),
        squared_slowness=float(slow[1]),
    )


def _ratio(sums: FloatArray, counts: FloatArray | float) -> FloatArray:
    return np.asarray(sums / np.maximum(counts, 1))


def _common(series: Series, x: FloatArray) -> tuple[Series | None, float]:
    """Mean over nodes at every time as a pair of series, and their share of the variance."""
    side = series.segment % 2
    code = 2 * series.stamp + side
    used, group = np.unique(code, return_inverse=True)
    count = np.bincount(group)
    if count.mean() < 3 or series.n_segments < 4:
        return None, 0.0
    mean = column_sums(group, x[:, : x.shape[1] // 2], len(used)) / count[:, np.newaxis]
    order = np.lexsort((used // 2, used % 2))
    spread = (mean**2).mean(axis=0) - np.mean(1 / count)
    share = float(np.max(spread, initial=0.0) / max(1 - np.mean(1 / count), 0.1))
    return Series.of(mean[order], used[order] % 2, used[order] // 2, None), share


def _any_evidence(
    series: Series, x: FloatArray, common: Series | None, chance: float = FALSE_ALARM
) -> bool:
    """Whether anything depends on the past: all nodes together, single nodes, or their means."""
    usual = float(np.median(series.sizes[series.sizes > 0]))
    together, alone = [], []
    for width in (m for m in _WINDOWS if m == 1 or 2 * m < usual):
        forward = forward_products(series, x, width)
        # Nodes at the same time may be correlated, so a time counts once.
        total = column_sums(series.stamp, forward, int(series.stamp.max()) + 1)
        together.append(excess(total, axis=0))
        if width in _NODE_WINDOWS:
            sums, squares = series.sums(forward), series.sums(forward**2)
            alone.append(excess_of_sums(_paired(sums), _paired(squares), _paired(series.sizes)))
    levels = [(together, 0.5), (alone, 0.4)]
    if any(np.min(p) * np.size(p) <= share * chance for p, share in levels):
        return True
    return common is not None and _any_evidence(common, common.scores(), None, chance)


def _paired(values: FloatArray | IntArray) -> FloatArray:
    """Sum the two samples of every node."""
    return np.asarray(values[0::2] + values[1::2], dtype=float)


def _times(series: Series, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Integrated times of values and squares, shape (2,), and the larger one of every node.

    The last array is (sum of lag times autocorrelation) / tau of values and squares: slow
    components under noise hardly show in tau, but do show here.

    Since every sample was centred, each estimated autocorrelation is too small by tau / n, and
    so is the variance; tau solves the equation that corrects for both.
    """
    sizes = series.sizes
    usual = sizes.sum() / max(np.count_nonzero(sizes), 1)
    longest = int(min(_MOST_LAGS, max(usual / 3, 1)))
    total = np.zeros(x.shape[1])
    by_node = np.zeros((series.n_segments // 2, x.shape[1]))
    by_lag = np.zeros_like(by_node)
    node_sizes = np.maximum(_paired(sizes), 1)
    recent: list[FloatArray] = []
    sums_to = []
    for lag in range(1, longest + 1):
        sums, pairs = lag_products(series, x, lag)
        if not pairs.any():
            break
        mean = _ratio(sums.sum(axis=0), pairs.sum())
        total += mean
        sums_to.append(total.copy())
        own = _paired(pairs)[:, np.newaxis]
        at_node = np.where(own > 0, _ratio(_paired(sums), own), mean)
        by_node += at_node
        by_lag += lag * at_node
        tau = np.maximum((1 + 2 * total) / (1 + 2 * (total - lag) / usual), 1.0)
        recent = [*recent, mean + tau / usual][-max(3, lag // 4) :]
        noise = 2 / np.sqrt(pairs.sum() * len(recent))
        if lag >= _LAGS_PER_TAU * tau.max() and np.mean(recent, axis=0).max() < max(_SMALL, noise):
            break
    node_tau = 1 + 2 * by_node + 2 * lag * tau / usual
    error = tau**2 * 2 * (2 * lag + 1) / node_sizes[:, np.newaxis]
    shrunk = _drawn(node_tau, error, tau)
    half = x.shape[1] // 2
    high = np.maximum(np.quantile(shrunk, _QUANTILE, axis=0), tau)
    pair = np.array([high[:half].max(initial=1.0), high[half:].max(initial=1.0)])
    longest_memory = np.maximum(shrunk.max(axis=1), 1.0)
    # A few nodes with an unusually long memory must not stretch the blocks of all.
    usual_nodes = (longest_memory <= _ALIKE * np.median(longest_memory)) & (_paired(sizes) > 0)
    chosen = usual_nodes if usual_nodes.any() else np.ones_like(usual_nodes)
    mean_by_lag = np.average(by_lag[chosen], axis=0, weights=node_sizes[chosen])
    # Corrected for the same bias as tau.
    slow = (mean_by_lag + tau / usual * lag * (lag + 1) / 2)[:half] / tau[:half]
    squares = _geometric(np.array(sums_to), tau / usual)[half:] / tau[half:]
    slowness = np.array([slow.max(initial=0.0), squares.max(initial=0.0)])
    return pair, longest_memory, slowness


def _geometric(sums_to: FloatArray, bias: FloatArray) -> FloatArray:
    """Sum of lag times autocorrelation, c / (1 - q)^2, of autocorrelations c q^(lag - 1).

    q and c come from the sums over the first and the second half of the lags, so that lags beyond
    the last one count. `sums_to` has the sums up to every lag, too small by `bias` per lag.
    """
    middle = len(sums_to) // 2
    if not middle:
        return np.zeros(sums_to.shape[1:])
    first = sums_to[middle - 1] + middle * bias
    second = sums_to[2 * middle - 1] + 2 * middle * bias - first
    usual = first > 0
    share = np.clip(np.where(usual, second / np.where(usual, first, 1.0), 0.0), 0.0, 0.9)
    q = share ** (1 / middle)
    return np.asarray(np.maximum(first, 0.0) / ((1 - share) * (1 - q)))


def _drawn(values: FloatArray, error: FloatArray, centre: FloatArray) -> FloatArray:
    """Values of nodes, shrunk towards the centre as far as chance explains their spread."""
    chance = error.mean(axis=0)
    spread = ((values - centre) ** 2).mean(axis=0) - chance
    clear = spread > 2 * np.sqrt(2 / len(values)) * chance
    weight = np.where(clear, spread, 0.0) / (np.where(clear, spread, 1.0) + error)
    return np.asarray(centre + weight * (values - centre))


def _by_unit(series: Series, x: FloatArray, unit: IntArray) -> tuple[float, bool, float, float]:
    """Correlation within days, whether it ends with the day, tau of daily means and of the rest.

    Pairs of one day are compared with pairs at the same lag of a day and the next one.
    """
    begins = np.ones(len(x), dtype=bool)
    begins[1:] = (series.segment[1:] != series.segment[:-1]) | (unit[1:] != unit[:-1])
    cell = np.cumsum(begins) - 1
    contrast = np.zeros((int(cell[-1]) + 1, x.shape[1]))
    within, n_within, weights = np.zeros(x.shape[1]), 0, 0.0
    across: dict[int, FloatArray] = {}
    for lag in _spread_lags(int(np.median(np.bincount(cell)))):
        row = np.arange(len(x) - lag)
        row = row[series.segment[row] == series.segment[row + lag]]
        ahead = cell[row + lag] - cell[row]
        same, next_day = ahead == 0, ahead == 1
        n_same, n_next = int(same.sum()), int(next_day.sum())
        if not (n_same and n_next):
            continue
        products = x[row] * x[row + lag]
        within, n_within = within + products[same].sum(axis=0), n_within + n_same
        across[lag] = products[next_day].mean(axis=0)
        weight = n_same * n_next / (n_same + n_next)
        sign = np.where(same, weight / n_same, 0.0) - np.where(next_day, weight / n_next, 0.0)
        contrast += column_sums(cell[row], products * sign[:, np.newaxis], len(contrast))
        weights += weight
    if not n_within:
        return np.nan, False, 1.0, 1.0
    correlation = within / n_within + 1 / max(len(x) / max(series.n_segments, 1) - 1, 1)
    p_values = excess(contrast, axis=0)
    clear = contrast.sum(axis=0) >= _CLEAR * weights * np.maximum(correlation, 0.0)
    ends = bool(np.min(np.where(clear, p_values, 1.0)) * p_values.size <= FALSE_ALARM)
    first = np.flatnonzero(begins)
    means = column_sums(cell, x, len(contrast)) / np.bincount(cell)[:, np.newaxis]
    day = np.unique(2 * unit[first] + series.segment[first] % 2, return_inverse=True)[1]
    days = Series.of(means, series.segment[first], day, None)
    scores = days.standard(means)
    total = excess(column_sums(day, forward_products(days, scores, 1), int(day.max()) + 1), axis=0)
    apart = total.min() * total.size <= FALSE_ALARM
    tau = float(_times(days, scores)[0].max()) if apart else 1.0
    half = x.shape[1] // 2
    return float(correlation[:half].max()), ends, tau, _rest_tau(across, half)


def _rest_tau(across: dict[int, FloatArray], n_features: int) -> float:
    """Integrated time of pairs across two days, above the level of pairs that are far apart."""
    lags = np.array(list(across))
    table = np.array(list(across.values()))[:, :n_features]
    level = table[lags > lags[-1] / 2].mean(axis=0)
    every = np.arange(1, lags[-1] // 2 + 1)
    longest = 1.0
    for column, far in zip(table.T, level, strict=True):
        curve = np.interp(every, lags, column) - far
        end = int(np.argmax(curve <= 0)) if (curve <= 0).any() else len(curve)
        longest = max(longest, 1 + 2 * float(curve[:end].sum()))
    return longest


def _spread_lags(most: int) -> list[int]:
    """Lags below `most`, all of the short ones and fewer of the long ones.

    Examples
    --------
    >>> _spread_lags(4), len(_spread_lags(288))
    ([1, 2, 3], 33)
    """
    highest = max(most - 1, 1)
    return sorted({int(lag) for lag in np.geomspace(1, highest, min(highest, 40)).round()})


def together_by_unit(series: Series, unit: IntArray) -> bool:
    """Whether different nodes are alike in the same unit of time, as under common weather."""
    x = series.scores()[:, : series.values.shape[1]]
    code = np.unique(2 * unit + series.segment % 2, return_inverse=True)[1]
    n = int(code.max()) + 1
    total, squares, fourth = (column_sums(code, x**k, n) for k in (1, 2, 4))
    # Pairs of different observations of a unit, and the variance of their sum.
    pairs, variance = (total**2 - squares) / 2, (squares**2 - fourth) / 2
    z = pairs.sum(axis=0) / np.sqrt(np.maximum(variance.sum(axis=0), 1e-12))
    share = pairs.sum(axis=0) / np.maximum((_pairs_of(np.bincount(code))).sum(), 1)
    alike = share >= _COMMON_SHARE
    return bool((stats.norm.sf(z[alike]) * z.size <= FALSE_ALARM / 10).any())


def _pairs_of(count: IntArray) -> FloatArray:
    return np.asarray(count * (count - 1) / 2)
