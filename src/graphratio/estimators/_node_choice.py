"""Choices made at every node by itself: its centres, and its best candidate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphratio.samples import NodeSamples
from graphratio.solvers.solution import Solution
from graphratio.typing import FloatArray, IntArray
from graphratio.validation import check_integer

DEFAULT_CENTRES = 100

# Mean scores closer than this, relative to the best, are ties.
TIE_TOLERANCE = 1e-6


def target_first(samples: NodeSamples) -> NodeSamples:
    """Exchange the two samples: the median heuristic looks at the target first."""
    order = np.lexsort((~samples.is_target, samples.node_index))
    return replace(
        samples,
        values=samples.values[order],
        n_reference=samples.n_target,
        n_target=samples.n_reference,
    )


def draw_centres(
    samples: NodeSamples, n_centers: int | None, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Draw centres from the target of every node without replacement, in their given order.

    Returns
    -------
    centres : ndarray of shape (n_nodes, c, n_features)
        Nodes with fewer than c target observations use all, and repeat the first as padding.
    counts : ndarray of shape (n_nodes,)
    """
    wanted = DEFAULT_CENTRES if n_centers is None else check_integer(n_centers, "n_centers", low=1)
    counts = np.minimum(wanted, samples.n_target)
    target = np.flatnonzero(samples.is_target)
    node = samples.node_index[target]
    first = np.cumsum(samples.n_target) - samples.n_target
    shuffled = np.lexsort((rng.random(target.size), node))
    rank = np.empty(target.size, dtype=np.intp)
    rank[shuffled] = np.arange(target.size) - first[node]
    # The drawn rows stay sorted by node, and in the order of the sample inside a node.
    drawn = target[rank < counts[node]]
    begin = np.cumsum(counts) - counts
    step = np.arange(int(counts.max()))
    position = begin[:, np.newaxis] + np.where(step < counts[:, np.newaxis], step, 0)
    return samples.values[drawn[position]], counts


def mean_scores(scores: FloatArray) -> FloatArray:
    """Mean over the folds in which a score is defined, NaN where there is none."""
    defined = ~np.isnan(scores)
    total = np.where(defined, scores, 0.0).sum(axis=-1)
    count = defined.sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def choose(mean: FloatArray) -> tuple[IntArray, IntArray]:
    """Best candidate of every node; of ties the strongest penalty, then the widest kernel.

    Where nothing could be scored: the strongest penalty and the middle bandwidth.

    Parameters
    ----------
    mean : ndarray of shape (k, n_widths, n_penalties)

    Returns
    -------
    width, penalty : ndarray of shape (k,)
        Positions.

    Examples
    --------
    >>> choose(np.array([[[0.0, 1.0], [1.0, 0.5]], [[np.nan, np.nan], [np.nan, np.nan]]]))
    (array([0, 1]), array([1, 1]))
    """
    _, n_widths, n_penalties = mean.shape
    # Penalty first, so that later positions are more regularised.
    flat = np.where(np.isnan(mean), -np.inf, mean).transpose(0, 2, 1).reshape(len(mean), -1)
    best = flat.max(axis=1, keepdims=True)
    slack = TIE_TOLERANCE * np.where(np.isfinite(best), np.abs(best), 0.0)
    position = flat.shape[1] - 1 - np.argmax((flat >= best - slack)[:, ::-1], axis=1)
    penalty, width = np.divmod(position, n_widths)
    unscored = np.isnan(mean).all(axis=(1, 2))
    return np.where(unscored, n_widths // 2, width), np.where(unscored, n_penalties - 1, penalty)


def combined(solutions: list[Solution], theta: FloatArray) -> Solution:
    """One solution of all nodes: the worst residual, after every iteration and at the end."""
    longest = max(len(solution.history) for solution in solutions)
    histories = [s.history + [s.residual] * (longest - len(s.history)) for s in solutions]
    return Solution(
        theta,
        all(solution.converged for solution in solutions),
        max(solution.n_iter for solution in solutions),
        max(solution.residual for solution in solutions),
        [max(values) for values in zip(*histories, strict=True)],
        solutions[0].method,
    )
