"""Where the spread of a feature clearly grew or fell."""

from __future__ import annotations

import numpy as np
from scipy import stats

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.evaluation.pieces import IndependentPieces
from graphratio.report.node_table import Subject

# Smaller changes of the mean or spread, in standard deviations, are not mentioned.
NOTABLE = 0.2

# A change is clear if chance exceeds it this rarely, as often as a normal variable is more than
# three standard deviations away. Each sample needs so many independent pieces.
_CHANCE = 0.0027
_FEWEST = 5


def clear_spreads(subject: Subject, changed: BoolArray) -> list[list[int]]:
    """For every node the features whose spread clearly changed; none where `changed` is False."""
    samples = subject.samples
    numeric = np.ones(samples.n_features, dtype=bool)
    if samples.encoding is not None:
        numeric = ~samples.encoding.is_indicator
    counts = IndependentPieces.of(samples).counts
    found: list[list[int]] = []
    for v, (before, after) in enumerate(subject.spread):
        clear = np.zeros(samples.n_features, dtype=bool)
        if changed[v] and counts[v].min() >= _FEWEST:
            begin, middle, end = samples.offsets[2 * v : 2 * v + 3]
            growth = _growth(samples.values[begin:middle], samples.values[middle:end], counts[v])
            grown = after - before
            notable = np.abs(grown) >= NOTABLE * np.sqrt((before**2 + after**2) / 2)
            clear = numeric & notable & (growth * np.sign(grown) > 0)
        found.append(np.flatnonzero(clear).tolist())
    return found


def _growth(before: FloatArray, after: FloatArray, n_pieces: IntArray) -> FloatArray:
    """Sign of a clear change of the spread of every feature; 0 where it is not clear.

    This is the test of Brown and Forsythe, a t-test of the distances from the median. It holds for
    long tails and for samples with few different values.
    """
    away = [np.abs(part - np.median(part, axis=0)) for part in (before, after)]
    gap = away[1].mean(axis=0) - away[0].mean(axis=0)
    freedom = int(n_pieces.sum()) - 2
    variance = (n_pieces[0] * away[0].var(axis=0) + n_pieces[1] * away[1].var(axis=0)) / freedom
    error = np.sqrt(variance * (1 / n_pieces).sum())
    clear = np.abs(gap) > stats.t.isf(_CHANCE / 2, freedom) * error
    return np.where(clear, np.sign(gap), 0.0)
