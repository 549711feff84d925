"""Where the spread of a feature clearly grew or fell."""

from __future__ import annotations

import numpy as np
from scipy import stats

from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.evaluation.pieces import IndependentPieces
from graphratio.report.node_table import Subject

# Smaller changes of the mean or spread, in standard deviations, are not mentioned.
NOTABLE = 0.2

# A change of the logarithm of a spread is clear if chance exceeds it this rarely, as often as a
# normal variable exceeds three standard deviations.
_CHANCE = 0.00135


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
        if changed[v] and (counts[v] > 1).all():
            parts = [samples.values[slice(*samples.offsets[k : k + 2])] for k in (2 * v, 2 * v + 1)]
            error = np.sqrt(
                sum(_log_variance(part, int(n)) for part, n in zip(parts, counts[v], strict=True))
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                grown = np.abs(np.log(after / before))
            notable = np.abs(after - before) >= NOTABLE * np.sqrt((before**2 + after**2) / 2)
            clear = numeric & notable & (grown >= stats.t.isf(_CHANCE, counts[v].min() - 1) * error)
        found.append(np.flatnonzero(clear).tolist())
    return found


def _log_variance(values: FloatArray, n_pieces: int) -> FloatArray:
    """Variance of the logarithm of a standard deviation, (kurtosis - 1) / 4n; 0 for a constant."""
    centred = values - values.mean(axis=0)
    second, fourth = (centred**2).mean(axis=0), (centred**4).mean(axis=0)
    kurtosis = fourth / np.where(second > 0, second**2, 1.0)
    # Small samples show tails that are too short; no less than for a normal distribution.
    return np.where(second > 0, (np.maximum(kurtosis, 3.0) - 1) / (4 * n_pieces), 0.0)
