"""Rhythms and slow trends: recognise them, and remove them node by node.

A rhythm is a line in the spectrum: at its frequency, or a multiple of it, the mean power over nodes
is far above that at the frequencies beside it. Noise with a long memory has much power at low
frequencies, but no lines. A trend is a straight line: means over eighths of the panel lie on it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label

# Fewest whole periods of a panel in which a rhythm is recognised, and the shortest period.
FEWEST_PERIODS = 4
_SHORTEST_PERIOD = 3

# Chance to see a rhythm in noise, and the share of the variance that makes one worth removing.
RHYTHM_CHANCE = 0.001
_LEAST_SHARE = 0.05

_CALENDAR = {"daily": dt.timedelta(days=1), "weekly": dt.timedelta(days=7)}

# Frequencies on either side that a line is compared with.
_BESIDE = 6
_HARMONICS = 3
_MOST_RHYTHMS = 2

# A node has a trend if a straight line explains this share of the variance of means over pieces.
TREND_SHARE = 0.93
_PIECES = 8


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Recognised rhythms and trends, and those that are removed.

    `periods` are recognised ones, in steps. `profiles` are removed: one array per period, shape
    (period, n_nodes, n_measured). `slope`, per step, is zero where no trend is removed; `middle` is
    the step at which a trend is zero.
    """

    periods: tuple[int, ...]
    profiles: tuple[FloatArray, ...]
    trend: BoolArray
    slope: FloatArray
    middle: float

    def __call__(self, values: FloatArray, first: int = 0) -> FloatArray:
        """Values from the step `first` on without rhythms and trends."""
        steps = np.arange(first, first + len(values))
        result = values
        for profile in self.profiles:
            result = result - profile[steps % len(profile)]
        if self.slope.any():
            result = result - (steps - self.middle)[:, np.newaxis, np.newaxis] * self.slope
        return np.asarray(result)

    def given(self, values: FloatArray, changes: Sequence[int]) -> Adjustment:
        """Estimate slopes again, with a separate level between changes, which would tilt them."""
        rest = replace(self, slope=np.zeros_like(self.slope))(values)
        top, bottom = np.zeros_like(self.slope), np.zeros_like(self.slope)
        for piece in np.split(np.arange(len(values)), list(changes)):
            there = np.isfinite(rest[piece])
            count = np.maximum(there.sum(axis=0), 1)
            steps = np.where(there, piece[:, np.newaxis, np.newaxis], 0.0)
            steps = np.where(there, steps - steps.sum(axis=0) / count, 0.0)
            top += (steps * np.where(there, rest[piece], 0.0)).sum(axis=0)
            bottom += (steps**2).sum(axis=0)
        slope = top / np.where(bottom > 0, bottom, np.inf)
        return replace(self, slope=np.where(self.slope != 0, slope, 0.0))


def adjustment(
    values: FloatArray,
    times: Sequence[Label] | None,
    season: str | int | None,
    trend: str | None,
) -> Adjustment:
    """Recognise rhythms and trends of values (n_times, n_nodes, n_measured)."""
    found: list[int] = []
    profiles: list[FloatArray] = []
    rest = values
    given = isinstance(season, int | np.integer)
    for _ in range(1 if given else _MOST_RHYTHMS):
        period = int(season) if given else _rhythm(rest, times)  # type: ignore[arg-type]
        if period is None or period in found:
            break
        found.append(period)
        profiles.append(_profile_of(rest, period))
        rest = rest - profiles[-1][np.arange(len(rest)) % period]
    if season is None:
        profiles, rest = [], values
    trending, slope = _trends(rest)
    removed = np.where(trending, slope, 0.0) if trend == "auto" else np.zeros_like(slope)
    return Adjustment(tuple(found), tuple(profiles), trending, removed, (len(values) - 1) / 2)


def _profile_of(values: FloatArray, period: int) -> FloatArray:
    """Mean of every phase, without what changes slowly; the phases of a node have mean zero."""
    rest = values - _moving_mean(values, period)
    there = np.isfinite(rest)
    phase = np.arange(len(values)) % period
    total = np.zeros((period, *values.shape[1:]))
    count = np.zeros_like(total)
    np.add.at(total, phase, np.where(there, rest, 0.0))
    np.add.at(count, phase, there)
    mean = total / np.maximum(count, 1)
    return np.asarray(mean - mean.mean(axis=0))


def _moving_mean(values: FloatArray, width: int) -> FloatArray:
    """Mean over about `width` steps around every step, of what was observed."""
    there = np.isfinite(values)
    padded = [np.zeros((1, *values.shape[1:]))]
    total = np.concatenate([*padded, np.cumsum(np.where(there, values, 0.0), axis=0)])
    count = np.concatenate([*padded, np.cumsum(there, axis=0)])
    # Whole periods also at the ends, so that a part of one does not count as a level.
    begin = np.clip(np.arange(len(values)) - width // 2, 0, max(len(values) - width, 0))
    end = np.minimum(begin + width, len(values))
    return np.asarray((total[end] - total[begin]) / np.maximum(count[end] - count[begin], 1))


def _rhythm(values: FloatArray, times: Sequence[Label] | None) -> int | None:
    """The clearest period in steps, or None."""
    n_times = len(values)
    if n_times < FEWEST_PERIODS * _SHORTEST_PERIOD + 2 * _BESIDE:
        return None
    candidates = _calendar_periods(times, n_times)
    level = RHYTHM_CHANCE / max(1, len(candidates))
    best = [
        p for p in candidates if _line(values, p) <= level and _share(values, p) >= _LEAST_SHARE
    ]
    if best:
        return max(best, key=lambda p: _share(values, p))
    power = _power(values)
    lowest = FEWEST_PERIODS
    highest = min(n_times // _SHORTEST_PERIOD, len(power) - _BESIDE - 1)
    if highest <= lowest:
        return None
    ratios = power[lowest:highest] / _beside(power, np.arange(lowest, highest))
    peak = lowest + int(np.argmax(ratios))
    near = {round(n_times / (peak + shift)) for shift in (-0.5, -0.25, 0, 0.25, 0.5)}
    periods = sorted(p for p in near if _SHORTEST_PERIOD <= p <= n_times // FEWEST_PERIODS)
    if not periods:
        return None
    period = max(periods, key=lambda p: _share(values, p))
    clear = _line(values, period) * (highest - lowest) <= RHYTHM_CHANCE
    return period if clear and _share(values, period) >= _LEAST_SHARE else None


def _calendar_periods(times: Sequence[Label] | None, n_times: int) -> list[int]:
    """A day and a week in steps, where times are dates with an even step."""
    if times is None or not all(isinstance(one, dt.date) for one in times[:2]):
        return []
    step = (times[-1] - times[0]) / (len(times) - 1)  # type: ignore[operator]
    periods = []
    for length in _CALENDAR.values():
        steps = length / step
        whole = round(steps)
        if abs(steps - whole) < 0.01 * steps and whole >= _SHORTEST_PERIOD:
            periods.append(whole)
    return [period for period in periods if n_times >= FEWEST_PERIODS * period]


def rhythm_words(period: int, times: Sequence[Label] | None) -> str:
    """A period in words.

    Examples
    --------
    >>> days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(50)]
    >>> rhythm_words(7, days), rhythm_words(7, None)
    ('a weekly rhythm (7 steps)', 'a rhythm of 7 steps')
    """
    if times is not None and isinstance(times[0], dt.date):
        length = period * (times[-1] - times[0]) / (len(times) - 1)  # type: ignore[operator]
        for word, usual in _CALENDAR.items():
            if abs(length / usual - 1) < 0.01:
                return f"a {word} rhythm ({period} steps)"
    return f"a rhythm of {period} steps"


def _power(values: FloatArray) -> FloatArray:
    """Mean power over nodes and features at every frequency; missing values count as the mean."""
    there = np.isfinite(values)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, values, 0.0).sum(axis=0) / count
    centred = np.where(there, values - mean, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    scaled = centred / np.where(spread > 0, spread, np.inf)
    total = np.zeros(len(values) // 2 + 1)
    for part in np.array_split(scaled, max(1, scaled.shape[1] // 64), axis=1):
        total += (np.abs(np.fft.rfft(part, axis=0)) ** 2).sum(axis=(1, 2))
    return np.asarray(total)


def _beside(power: FloatArray, bins: IntArray) -> FloatArray:
    """Mean power at the frequencies beside some, without the next ones."""
    shifts = np.array([*range(-_BESIDE, -1), *range(2, _BESIDE + 1)])
    around = np.clip(bins[:, np.newaxis] + shifts, 1, len(power) - 1)
    return np.asarray(np.maximum(power[around].mean(axis=1), 1e-300))


def _line(values: FloatArray, period: int) -> float:
    """P-value of a line at a period or its multiples."""
    cycles = len(values) // period
    power = _power(values[: cycles * period])
    bins = cycles * np.arange(1, min(_HARMONICS, (period - 1) // 2) + 1)
    bins = bins[bins < len(power) - 1]
    if not bins.size:
        return 1.0
    ratios = power[bins] / _beside(power, bins)
    return float(min(stats.f.sf(ratios, 2, 4 * (_BESIDE - 1)).min() * len(bins), 1.0))


def _share(values: FloatArray, period: int) -> float:
    """Share of the variance that the rhythm explains, the mean over nodes and features."""
    rest = values - _moving_mean(values, period)
    profile = _profile_of(values, period)
    left = rest - profile[np.arange(len(values)) % period]
    whole = np.nanvar(rest, axis=0)
    freedom = len(values) / max(len(values) - period, 1)
    share = 1 - freedom * np.nanvar(left, axis=0) / np.where(whole > 0, whole, np.inf)
    return float(np.mean(np.where(whole > 0, share, 0.0)))


def _trends(values: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Where a straight line explains means over pieces, and slopes per step."""
    n_times = len(values)
    edges = np.linspace(0, n_times, _PIECES + 1).round().astype(np.intp)
    if n_times < 4 * _PIECES:
        nothing = np.zeros(values.shape[1:])
        return nothing.astype(bool), nothing
    there = np.isfinite(values)
    sums = np.add.reduceat(np.where(there, values, 0.0), edges[:-1], axis=0)
    counts = np.add.reduceat(there.astype(float), edges[:-1], axis=0)
    complete = (counts > 0).all(axis=0)
    means = sums / np.maximum(counts, 1)
    centred = means - means.mean(axis=0)
    position = (edges[:-1] + edges[1:] - 1) / 2
    position = position - position.mean()
    slope = np.einsum("p,pvf->vf", position, centred) / (position**2).sum()
    whole = (centred**2).sum(axis=0)
    # Rounding leaves a constant node a little variance.
    tiny = 1e-18 * (np.abs(means).max(axis=0) ** 2)
    usual = complete & (whole > tiny)
    share = slope**2 * (position**2).sum() / np.where(usual, whole, np.inf)
    return np.asarray(usual & (share >= TREND_SHARE)), slope
