"""Choices at every node: its centres, and its best candidate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.selection.cross_validation import TIE_TOLERANCE
from graphratio.solvers.solution import Solution

DEFAULT_CENTRES = 100

# A bandwidth may be this many standard errors worse than the best.
WIDTH_STANDARD_ERRORS = 2.0


def target_first(samples: NodeSamples) -> NodeSamples:
    """Swap the two samples, so that `median_bandwidths` measures the target."""
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
    """Draw centres from the target of every node without replacement.

    Returns the centres in the order of the sample, shape (n_nodes, c, n_features), and their
    number at each node. Nodes with fewer than c target observations use all of them and repeat
    the first as padding.
    """
    wanted = DEFAULT_CENTRES if n_centers is None else check_integer(n_centers, "n_centers", low=1)
    counts = np.minimum(min(wanted, samples.n_observations), samples.n_target)
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


def best_per_node(mean: FloatArray) -> tuple[IntArray, IntArray]:
    """Best candidate of every node; ties go to the strongest penalty, then the widest kernel.

    `mean` has shape (k, n_widths, n_penalties). Returns positions of width and penalty, shape (k,)
    each. Nodes without a score get the strongest penalty and the middle bandwidth.
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


def choose_cautiously(losses: FloatArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Choose a candidate for every node, allowing for the noise of its left-out losses.

    With few pairs the smallest mean loss often belongs to a weak penalty that was lucky at a few
    rows, and the strongest penalty that is not significantly worse is often far too strong. So
    every candidate gets the weight exp(-t^2 / 2), where t is the mean of its paired differences
    from the best candidate over their standard error. The chosen penalty is the weighted median.
    The chosen kernel is the widest that is at most two standard errors of the paired differences
    worse than the best at this penalty.

    `losses` has shape (k, n_widths, n_penalties, n_pairs): zero after the last pair of a node, NaN
    at nodes without any. `sizes` has shape (k, 2). Returns positions as `best_per_node` does.
    """
    k, n_widths, n_penalties, n_pairs = losses.shape
    each = np.arange(k)
    scored = sizes.min(axis=1) > 1
    flat = np.where(scored[:, np.newaxis, np.newaxis], losses.reshape(k, -1, n_pairs), 0.0)
    excess, error = _paired_differences(flat, sizes)
    # A difference without any error is certain: t is infinite and the weight zero.
    with np.errstate(divide="ignore"):
        t = np.divide(excess, error, out=np.zeros_like(excess), where=excess > 0)
    weights = np.exp(-0.5 * t**2).reshape(k, n_widths, n_penalties).sum(axis=1)
    # Summed from the strongest, so that a tie in the middle goes to the stronger one.
    share = np.cumsum(weights[:, ::-1], axis=1) / weights.sum(axis=1, keepdims=True)
    penalty = n_penalties - 1 - np.argmax(share >= 0.5 - TIE_TOLERANCE, axis=1)
    at_penalty = flat.reshape(losses.shape)[each, :, penalty]
    excess, error = _paired_differences(at_penalty, sizes)
    wide = (excess <= WIDTH_STANDARD_ERRORS * error)[:, ::-1]
    width = n_widths - 1 - np.argmax(wide, axis=1)
    return np.where(scored, width, n_widths // 2), np.where(scored, penalty, n_penalties - 1)


def _paired_differences(losses: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean loss above the best candidate, and its standard error, shape (k, n_candidates) each.

    The error uses the size of the smaller sample, since further pairs repeat its rows. Ties count
    as zero.
    """
    n_pairs = sizes.max(axis=1)[:, np.newaxis]
    mean = losses.sum(axis=2) / n_pairs
    best = mean.argmin(axis=1)[:, np.newaxis]
    lowest = np.take_along_axis(mean, best, axis=1)
    excess = mean - lowest
    excess[excess <= TIE_TOLERANCE * np.abs(lowest)] = 0.0
    difference = losses - np.take_along_axis(losses, best[:, :, np.newaxis], axis=1)
    # Padding is zero in all candidates and adds nothing.
    squares = np.einsum("kcp,kcp->kc", difference, difference)
    centred = np.maximum(squares - n_pairs * (mean - lowest) ** 2, 0.0)
    return excess, np.sqrt(centred / (n_pairs - 1).clip(1) / sizes.min(axis=1)[:, np.newaxis])


def combined(solutions: list[Solution], theta: FloatArray) -> Solution:
    """One solution for all nodes, with the worst residual at the end and after every iteration."""
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
