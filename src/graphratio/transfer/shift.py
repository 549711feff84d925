"""Is there a shift at a node? Evidence from held-out observations.

The ratio fitted without a fold is large where the target seems dense. If reference and target have
the same law, its means over their held-out observations agree; a one-sided Welch test compares
them. Neighbours only help to choose the function, so they cannot make an unchanged node look
changed. Where observations depend on each other, means over blocks are compared; a node with too
few blocks is not tested.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.pieces import IndependentPieces
from graphratio.evaluation.refits import fold_ratios, held_out
from graphratio.moments.folds import divide

# Samples with fewer observations are never held out, and their node is not tested.
SMALLEST = 5


def shift_p_values(
    model: NodeRatioEstimator,
    samples: NodeSamples,
    graph: Graph,
    n_folds: int,
    rng: np.random.Generator,
) -> FloatArray:
    """P-value of no shift at every node, NaN where not tested; samples as in the graph."""
    large = samples.sizes >= SMALLEST
    pieces = testable_pieces(samples)
    tested = pieces.enough
    p_values = np.full(samples.n_nodes, np.nan)
    if not tested.any():
        return p_values
    folds = divide(samples, n_folds, rng).folds.copy()
    folds[~large.ravel()[samples.segments]] = -1
    scores = held_out(fold_ratios(model, samples, graph, folds, fixed=True), folds)
    p_values[tested] = _welch(pieces.terms(scores, samples.sizes), pieces.counts)[tested]
    return p_values


def testable_pieces(samples: NodeSamples) -> IndependentPieces:
    """Independent pieces of the samples; enough of them only at nodes that can be tested."""
    pieces = IndependentPieces.of(samples)
    return replace(pieces, enough=pieces.enough & (samples.sizes >= SMALLEST).all(axis=1))


def _welch(scores: FloatArray, counts: IntArray) -> FloatArray:
    """One-sided p-values for a larger mean of the target scores, at all nodes at once.

    `counts`, shape (n_nodes, 2), says how many scores each sample has.
    """
    group = np.repeat(np.arange(counts.size), counts.ravel())
    n = np.maximum(counts.ravel(), 1)
    mean = np.bincount(group, weights=scores, minlength=len(n)) / n
    squares = np.bincount(group, weights=(scores - mean[group]) ** 2, minlength=len(n))
    freedom = np.maximum(n - 1, 1)
    variance = (squares / freedom / n).reshape(-1, 2)
    total = variance.sum(axis=1)
    difference = mean[1::2] - mean[0::2]
    # Constant scores are no evidence.
    varied = total > 1e-20 * np.maximum(mean[0::2] ** 2, 1e-20)
    spread = np.where(varied, total, 1.0)
    spent = (variance**2 / freedom.reshape(-1, 2)).sum(axis=1)
    degrees = np.where(varied, spread**2 / np.where(varied, spent, 1.0), 1.0)
    p_values = stats.t.sf(difference / np.sqrt(spread), degrees)
    return np.asarray(np.where(varied, p_values, 1.0))
