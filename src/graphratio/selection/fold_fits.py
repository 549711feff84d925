"""The engine of all fits on folds: split data, couplings of the nodes, held-out losses.

Selections, searches, bounds and comparisons all fit on some folds and evaluate on others. They
share the shortcuts of this module and two rules:

- precision: single, or double if the weights of the graph are too uneven;
- empty folds: a fold in which no node has both samples has the loss NaN, and means over folds
  leave it out.

Symbols
-------
C           pairs of penalties
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import Kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import FoldedMoments, row_weights
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective, moment_losses
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers import basis_of, selection_precision, solve_nodes, solve_path
from graphratio.solvers.bases import Basis

# Relative residual of the solves.
SOLVE_TOLERANCE = 1e-3
SOLVE_ITERATIONS = 200

# Directions with a smaller share of the second moment are dropped.
FEATURE_FLOOR = 1e-6

# Whitening threshold.
RANK_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Samples, aligned to the graph and split into folds, and the recipe of their features.

    `folds` has shape (n_observations,), `dictionary` (n_atoms, n_features); `alpha` is one number
    or one per node. `dtype`, from `precision_for`, is that of features, moments and solves.
    """

    samples: NodeSamples
    folds: IntArray
    n_folds: int
    kernel: Kernel
    dictionary: FloatArray
    alpha: float | FloatArray
    prior_ratio: float
    dtype: type[np.floating]

    def at(self, bandwidth: float) -> tuple[NystromMap, FoldedMoments]:
        """Features of one bandwidth, and their moments by fold."""
        features = NystromMap.build(self.kernel, self.dictionary, float(bandwidth), RANK_TOLERANCE)
        sizes = self.samples.sizes
        weights = row_weights(sizes, self.alpha)
        principal, psi = features.principal(self.samples.values, weights, FEATURE_FLOOR, self.dtype)
        return principal, FoldedMoments(psi, sizes, self.folds, self.alpha, self.prior_ratio)


def precision_for(graphs: Iterable[Graph]) -> type[np.floating]:
    """Single precision, or double if the weights of one of the graphs are too uneven."""
    uneven = any(selection_precision(graph) is np.float64 for graph in graphs)
    return np.float64 if uneven else np.float32


def mean_losses(held_out: Moments, theta: FloatArray) -> FloatArray:
    """Mean over the nodes that have both samples in the fold, shape (C,); NaN without any."""
    return mean_over_nodes(moment_losses(held_out, np.ascontiguousarray(theta)))


def mean_over_nodes(losses: FloatArray) -> FloatArray:
    """Mean of losses (n_nodes, C) over the nodes that have one, shape (C,); NaN without any."""
    complete = ~np.isnan(losses[:, 0])
    if not complete.any():
        return np.full(losses.shape[1], np.nan)
    return np.asarray(losses[complete].mean(axis=0, dtype=np.float64))


def defined_means(
    losses: FloatArray, axis: int, dtype: type[np.floating] | None = None
) -> FloatArray:
    """Mean of the finite values along an axis, summed in `dtype`; NaN without any.

    Examples
    --------
    >>> defined_means(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]), axis=1)
    array([ 2., nan])
    """
    counted = np.isfinite(losses)
    total = np.where(counted, losses, 0.0).sum(axis=axis, dtype=dtype)
    number = counted.sum(axis=axis)
    means: FloatArray = np.full(total.shape, np.nan)
    np.divide(total, number, out=means, where=number > 0)
    return means


def crossed_divergences(losses: FloatArray) -> FloatArray:
    """Held-out divergence of every node, from losses (n_candidates, n_folds, n_nodes).

    The loss of a fold is that of the candidate that is best on the other folds, which does not
    know the fold. For a fixed function minus the loss minus one half is the divergence less half
    its squared error, so the result is not too high on average. NaN at nodes without losses.

    Examples
    --------
    >>> losses = np.array([[[-0.9], [-0.5]], [[-0.6], [-0.8]]])  # two candidates, folds; one node
    >>> crossed_divergences(losses)  # the other fold prefers the worse candidate
    array([0.05])
    """
    by_fold = defined_means(losses, 2, np.float64)
    picked: FloatArray = np.full(losses.shape[1:], np.nan)
    for fold in range(losses.shape[1]):
        others = defined_means(np.delete(by_fold, fold, axis=1), 1)
        if np.isfinite(others).any():
            picked[fold] = losses[int(np.nanargmin(others)), fold]
    return -defined_means(picked, 0) - 0.5


def mean_over_folds(scores: FloatArray) -> FloatArray:
    """Mean over the last axis without the folds that are NaN for any candidate.

    Examples
    --------
    >>> mean_over_folds(np.array([[1.0, np.nan, 3.0], [2.0, 5.0, 4.0]]))
    array([2., 3.])
    """
    usable = ~np.isnan(scores).any(axis=tuple(range(scores.ndim - 1)))
    return np.asarray(scores[..., usable].mean(axis=-1))


class Fit(Protocol):
    """A way of fitting all nodes at once."""

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""


@dataclass(frozen=True, eq=False)
class Coupling:
    """Fit neighbours in a graph together; without edges fit every node by itself."""

    graph: Graph

    @cached_property
    def _bases(self) -> dict[np.dtype[np.floating], Basis]:
        return {}

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""
        objective = GraphObjective.of(moments, self.graph.laplacian, lam, rho)
        if not self.graph.n_edges:
            return solve_nodes(objective)
        dtype = moments.second.dtype
        if dtype not in self._bases:
            self._bases[dtype] = basis_of(self.graph, dtype)
        return solve_path(objective, self._bases[dtype], SOLVE_TOLERANCE, SOLVE_ITERATIONS).theta


@dataclass(frozen=True, eq=False)
class SharedFit:
    """One ratio for all nodes, with the same ridge at each."""

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """The same coefficients at every node, shape (n_nodes, C, m)."""
        one = Graph.empty(1).laplacian
        theta = solve_nodes(GraphObjective.of(_averaged(moments), one, lam, rho))
        return np.broadcast_to(theta, (len(moments.complete), *theta.shape[1:]))


def _averaged(moments: Moments) -> Moments:
    """Average over the complete nodes, as the moments of a single node."""
    share = len(moments.complete) / max(int(moments.complete.sum()), 1)
    second = moments.second.mean()[np.newaxis] * share
    first = moments.first.mean(axis=0, keepdims=True) * share
    return Moments(
        DenseSecond(second.astype(moments.second.dtype)),
        first.astype(moments.second.dtype),
        np.array([True]),
        moments.prior_ratio,
    )
