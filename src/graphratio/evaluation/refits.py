"""Any estimator fitted on parts of the data, and its ratios at the rest.

Symbols
-------
K           number of folds
f_k         the ratio fitted without fold k
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graphratio._utils.jobs import each
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.refit_noise import RefitNoise
from graphratio.moments.losses import PEARSON, Loss
from graphratio.moments.node_moments import segment_indicator

# Noise that is spread over this many directions is normal.
MANY_DIRECTIONS = 1e6


@dataclass(frozen=True, eq=False)
class Refit:
    """A copy of an estimator fitted on a part of the data.

    `known`, shape (n_nodes,), marks the nodes about which the data say something; the model has
    only these, and the ratio of the others is 1. Ratios are unclipped.
    """

    model: NodeRatioEstimator
    known: BoolArray

    def at_nodes(self, points: FloatArray, node: IntArray) -> FloatArray:
        """Ratio of the given node at each point, shape (n_points,)."""
        ratios = np.ones(len(points))
        rows = self.known[node]
        if rows.any():
            place = np.cumsum(self.known) - 1
            ratios[rows] = self.model._ratios_at_nodes(points[rows], place[node[rows]])
        return ratios

    def everywhere(self, points: FloatArray) -> FloatArray:
        """Ratios of all nodes, shape (n_points, n_nodes)."""
        ratios = np.ones((len(points), len(self.known)))
        if self.known.any():
            ratios[:, self.known] = self.model._ratios_everywhere(points)
        return ratios


def refit(
    estimator: NodeRatioEstimator,
    train: NodeSamples,
    graph: Graph,
    *,
    fixed: bool = False,
    psi: FloatArray | None = None,
) -> Refit:
    """Fit a copy on some data.

    With `fixed` the copy keeps the hyperparameters that the fitted estimator chose for all nodes.
    `psi` are then the features of the data, if they are known.
    """
    copy = estimator._again(fixed=fixed)
    copy._ratios_only = True
    known = train.complete
    if copy._couples:
        joined = graph.components
        known = (np.bincount(joined, weights=known) > 0)[joined]
    if not known.any():
        return Refit(copy, known)
    if known.all():
        copy._take_rows(psi)
    else:
        labels = [graph.nodes[i] for i in np.flatnonzero(known)]
        train, graph = train.subset(labels), graph.subset(labels)
    copy.fit(train, graph)
    # A later fit may have other data.
    copy._take_rows(None)
    return Refit(copy, known)


def fold_ratios(
    estimator: NodeRatioEstimator,
    samples: NodeSamples,
    graph: Graph | Callable[[int], Graph],
    folds: IntArray,
    *,
    fixed: bool = False,
    bar: ProgressBar | None = None,
) -> FloatArray:
    """f_k at all observations, shape (K, n_observations); a fold of -1 is never left out.

    The graph may depend on the fold.
    """

    psi = estimator._rows_to_share(samples) if fixed else None

    def ratios(fold: int) -> FloatArray:
        kept = folds != fold
        joined = graph if isinstance(graph, Graph) else graph(fold)
        own = None if psi is None else psi[kept]
        train = samples.subset(observations=kept)
        fitted = refit(estimator, train, joined, fixed=fixed, psi=own)
        return fitted.at_nodes(samples.values, samples.node_index)

    return np.array(each(ratios, range(int(folds.max()) + 1), bar))


def held_out(table: FloatArray, folds: IntArray) -> FloatArray:
    """Ratio of every observation from the fit without its fold; 1 in the fold -1.

    `table` is that of `fold_ratios`.
    """
    chosen = table[np.maximum(folds, 0), np.arange(len(folds))]
    return np.asarray(np.where(folds < 0, 1.0, chosen))


def spread_of_refits(
    table: FloatArray,
    folds: IntArray,
    samples: NodeSamples,
    alpha: float,
    loss: Loss = PEARSON,
) -> RefitNoise:
    """Variance that refitting adds to the cross-fitted loss of every node, by the jackknife.

    The variance of a ratio at an observation is (K - 1)/K times the sum of squares of
    f_k - mean f_k. Times the squared slope of the loss term, with the weights of the means, this
    is what `refit_noise` computes from the system matrix. Data of other nodes enter here too, so
    it is an upper bound. Tails are taken as those of the normal law.
    """
    n_folds = len(table)
    spread = (n_folds - 1) * table.var(axis=0)
    f = held_out(table, folds)
    slope = loss.slopes(f, samples.is_target, alpha)
    sizes = samples.sizes.ravel()
    terms = spread * np.square(slope / sizes[samples.segments])
    sums = segment_indicator(sizes, terms.dtype) @ terms
    variance = sums.reshape(-1, 2).sum(axis=1)
    return RefitNoise(variance, variance**2 / (n_folds * MANY_DIRECTIONS), n_folds)
