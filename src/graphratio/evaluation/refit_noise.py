"""The variance of cross-fitted losses that the spread of the held-out terms does not show.

The held-out loss of a node averages phi(f_k, z_i) over its observations z_i, where f_k is fitted
without the fold of z_i. Given the fits the terms are independent, and their spread gives the
standard error. But an observation also enters the fits of all other folds. To first order the
mean contains sum_ij s_i' G s_j with each pair of observations of different folds twice: once
with i held out and once with j. The spread of the terms counts every pair once, so the true
variance exceeds it by the sum of squares of (s_i' G s_j) over such pairs, which is

    sum_k trace(G C_k G C_-k).

This matters at unchanged nodes, whose ratio shows mostly their own noise. There the mean is a
quadratic form of noise. If this form has few directions, a large value comes with a large spread
of the terms, and their quotient has lighter tails than the normal law.

Symbols
-------
s_i         derivative of the term of z_i along the features, centred within its sample
C_k, C_-k   sums of s_i s_i' over fold k and over the others, with the weights of the means
G           block of the inverse system at the node: (A_v + stiffness)^{-1}, the neighbours
            responding as the average node does
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import MomentSums
from graphratio.selection.nested import FoldFit

# The trailing directions carry almost no noise.
NOISY_DIRECTIONS = 32
# Nodes processed at once.
NODES_AT_ONCE = 1024
# Up to this many nodes the response of the whole graph is computed, from all of its modes.
LARGEST_EXACT = 800


@dataclass(frozen=True, eq=False)
class RefitNoise:
    """Variance that refitting adds to the cross-fitted loss of every node, shape (n_nodes,).

    `fourth`, of the same shape, is the sum over `n_folds` folds of trace((G C_k G C_-k)^2).
    """

    variance: FloatArray
    fourth: FloatArray
    n_folds: int = 1

    def __add__(self, other: RefitNoise) -> RefitNoise:
        return RefitNoise(
            self.variance + other.variance,
            self.fourth + other.fourth,
            self.n_folds + other.n_folds,
        )

    def averaged(self, n_repeats: int) -> RefitNoise:
        """Noise of one split, from the sum over several."""
        return RefitNoise(
            self.variance / n_repeats, self.fourth / n_repeats, self.n_folds // n_repeats
        )

    @property
    def directions(self) -> FloatArray:
        """Number of directions that the noise is spread over, at least 1, shape (n_nodes,)."""
        alike = self.n_folds * np.maximum(self.fourth, np.finfo(float).tiny)
        return np.asarray(np.maximum(self.variance**2 / alike, 1.0))

    def lighter_tails(self, shown: FloatArray) -> FloatArray:
        """Reduction of a normal quantile for lighter tails, shape (n_nodes,).

        In simulations of the quadratic form plus a normal part, with 5 folds, the 90 % quantile
        of |mean / standard error| is below the normal one by 0.27 to 0.34 share /
        directions^0.8, where share is the quadratic part of the spread. The reduction is
        somewhat smaller at 80 % and larger at 99 %. `shown` is the variance from the spread of
        the terms.
        """
        share = np.minimum(self.variance / np.maximum(shown, np.finfo(float).tiny), 1.0)
        return np.asarray(0.3 * share / self.directions**0.8)


def noise_of_fit(fit: FoldFit, graph: Graph, alpha: float) -> RefitNoise:
    """The noise of one fit on folds; `graph` couples the nodes."""
    used = slice(0, NOISY_DIRECTIONS)
    data, second = fit.data, fit.train.second
    w = np.diagonal(second.mean())[used].astype(np.float64)
    return refit_noise(
        data.psi[:, used],
        data.ratios(np.arange(len(data.psi)), fit.theta),
        data.segment,
        data.folds == fit.fold,
        second.dense()[:, used, used],
        stiffness(graph, w, fit.graph_penalty, fit.ridge),
        alpha,
    )


def stiffness(graph: Graph, w: FloatArray, lam: float, rho: float) -> FloatArray:
    """How strongly the rest of the graph holds the ratio of a node, shape (n_nodes, m).

    For every eigenvalue w of the mean second moment this is the inverse of the (v, v) entry of
    (w + lam lap + rho I)^{-1}, minus w: the other nodes respond as the average node does. On
    large graphs the neighbours are taken as fixed.
    """
    if graph.n_nodes > LARGEST_EXACT or not graph.n_edges or not lam:
        own = lam * graph.degrees + rho
        return np.repeat(own[:, np.newaxis], len(w), axis=1)
    modes, vectors = graph.spectrum
    data = np.maximum(w, 0.0)
    response = vectors**2 @ (1.0 / (data + lam * modes[:, np.newaxis] + rho))
    return np.asarray(1.0 / response - data)


def refit_noise(
    psi: FloatArray,
    ratios: FloatArray,
    segment: IntArray,
    held_out: BoolArray,
    blocks: FloatArray,
    stiffness: FloatArray,
    alpha: float,
) -> RefitNoise:
    """Variance that one fold adds to the cross-fitted loss of every node.

    `psi` has shape (n_observations, m). `ratios` are those of the fit without the fold, at all
    observations. `segment` is twice the position of the node, plus one for a target, in increasing
    order. `held_out` is True for the fold. `blocks`, shape (n_nodes, m, m), are the second moments
    A_v of the fit; `stiffness` has shape (n_nodes, m).
    """
    n_nodes = len(blocks)
    target = segment % 2 == 1
    slope = np.where(target, 1 - alpha * ratios, (1 - alpha) * ratios)
    scores = (psi * slope[:, np.newaxis]).astype(np.float64)
    sizes, held, trained = (
        np.bincount(rows, minlength=2 * n_nodes).reshape(n_nodes, 2)
        for rows in (segment, segment[held_out], segment[~held_out])
    )
    within = _weighted(scores[held_out], held, sizes)
    outside = _weighted(scores[~held_out], trained, trained)
    variance, fourth = np.zeros(n_nodes), np.zeros(n_nodes)
    each = np.arange(blocks.shape[1])
    for begin in range(0, n_nodes, NODES_AT_ONCE):
        part = slice(begin, begin + NODES_AT_ONCE)
        system = blocks[part].astype(np.float64)
        system[:, each, each] += stiffness[part] + 1e-9
        both = np.linalg.solve(system, within[part]) @ np.linalg.solve(system, outside[part])
        variance[part] = np.einsum("vii->v", both)
        fourth[part] = np.einsum("vij,vji->v", both, both)
    return RefitNoise(variance, fourth)


def _weighted(scores: FloatArray, sizes: IntArray, divisors: IntArray) -> FloatArray:
    """Centred sums of s s' over both samples, with the weights of the means, (n_nodes, m, m).

    `sizes` counts the scores of each sample, `divisors` the observations of its mean.
    """
    sums = MomentSums.of(scores, sizes)
    count = np.maximum(sizes, 1)[:, :, np.newaxis, np.newaxis]
    second = sums.second - sums.first[:, :, :, np.newaxis] * sums.first[:, :, np.newaxis] / count
    weights = (1.0 / np.maximum(divisors, 1) ** 2)[:, :, np.newaxis, np.newaxis]
    return np.asarray((second * weights).sum(axis=1))
