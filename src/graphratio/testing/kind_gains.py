"""Ratios of the changed nodes at common points, and held-out gains of groups of them.

Every training fold fits the estimator and groups the nodes anew; the held-out observations enter
only the loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphratio._utils.jobs import each
from graphratio._utils.progress import ProgressBar
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.node_means import NodeMeans, loss_terms
from graphratio.evaluation.pieces import IndependentPieces
from graphratio.evaluation.refits import Refit, refit
from graphratio.moments.folds import divide, row_weights
from graphratio.testing.grouping import Gains, grouped

N_FOLDS = 5
MOST_KINDS = 6

# Ratios that have no upper bound, those with alpha = 0, are compared as relative ratios.
BOUNDING_ALPHA = 0.1

# Points at which ratios are compared; more do not change the groups.
N_POINTS = 1000

# Observations at which the ratios of all nodes are computed at once.
_BLOCK = 2048


class ChangedNodes:
    """The changed nodes of a fitted model, with the samples of all nodes in its order and scale.

    Two nodes are compared by the mean square of the difference of their ratios over the data of
    all changed nodes, weighted as in the loss.
    """

    def __init__(
        self,
        model: NodeRatioEstimator,
        samples: NodeSamples,
        members: IntArray,
        rng: np.random.Generator,
        bar: ProgressBar,
    ) -> None:
        self.model, self.samples, self.members, self.bar = model, samples, members, bar
        self.most = min(MOST_KINDS, len(members))
        self.seed = int(rng.integers(2**31))
        division = divide(samples, N_FOLDS, rng)
        self.folds, self.n_folds = division.folds, division.n_folds
        self.own_rows = np.flatnonzero(np.isin(samples.node_index, members))
        self.alpha = model.alpha_ or BOUNDING_ALPHA
        weights = row_weights(samples.sizes, self.alpha)[self.own_rows]
        count = min(N_POINTS, int(np.count_nonzero(weights)))
        chosen = rng.choice(self.own_rows, count, replace=False, p=weights / weights.sum())
        self.points = samples.values[np.sort(chosen)]

    def groups(self, n_groups: int) -> IntArray:
        """Group of every changed node by the ratios of the model."""
        return self._grouped(self.model._ratios_everywhere(self.points), [n_groups])[0]

    def gains_by_number(self) -> FloatArray:
        """Gains with 1, 2, ... groups, shape (n_numbers, n_changed)."""
        return np.array([self._means(k, None).mean for k in range(self.most)])

    def gains(self, n_groups: int) -> Gains:
        """Gains with this number of groups, and with the nodes' own ratios."""
        kind, ahead = self._means(n_groups - 1, None), self._means(self.most, n_groups - 1)
        return Gains(kind.mean, kind.mean + ahead.mean, kind.error, ahead.error)

    def _means(self, row: int, rival: int | None) -> NodeMeans:
        """Loss of one row of held-out ratios, or of the ratio 1, minus that of another."""
        target = self.samples.is_target[self.own_rows]
        ratios = self.held_out_ratios[row]
        against = np.ones_like(ratios) if rival is None else self.held_out_ratios[rival]
        behind, ahead = (loss_terms(f[np.newaxis], target, self.alpha) for f in (against, ratios))
        terms = np.zeros(self.samples.n_observations)
        terms[self.own_rows] = behind - ahead
        pieces = IndependentPieces.of(self.samples)
        node = np.repeat(np.arange(self.samples.n_nodes), pieces.counts.sum(axis=1))
        own = pieces.terms(terms, self.samples.sizes)[np.isin(node, self.members)]
        return NodeMeans.of(own, pieces.counts[self.members])

    @computed_once
    def held_out_ratios(self) -> FloatArray:
        """Ratios at the observations of the changed nodes, after fits without their folds.

        Shape (n_numbers + 1, n_own_rows): the mean ratio of the node's group with 1, 2, ...
        groups, and the node's own ratio.
        """
        ratios = np.empty((self.most + 1, len(self.own_rows)))
        folds = self.folds[self.own_rows]

        psi = self.model._rows_to_share(self.samples)

        def fitted(fold: int) -> Refit:
            kept = self.folds != fold
            train, own = self.samples.subset(observations=kept), None if psi is None else psi[kept]
            return refit(self.model, train, self.model.graph_, fixed=True, psi=own)

        for fold, model in enumerate(each(fitted, range(self.n_folds), self.bar)):
            ratios[:, folds == fold] = self._ratios_after(model, self.own_rows[folds == fold])
        return ratios

    def _ratios_after(self, fitted: Refit, rows: IntArray) -> FloatArray:
        everywhere = fitted.everywhere(self.points)
        groups = np.array(self._grouped(everywhere, range(1, self.most + 1)))
        # Weights of the nodes in the mean of every group, shape (n_changed, n_groups).
        means = [np.eye(self.most)[row] / np.bincount(row)[row, np.newaxis] for row in groups]
        place = np.searchsorted(self.members, self.samples.node_index[rows])
        ratios = np.empty((self.most + 1, len(rows)))
        for begin in range(0, len(rows), _BLOCK):
            part = slice(begin, begin + _BLOCK)
            found = fitted.everywhere(self.samples.values[rows[part]])
            found = self._bounded(found[:, self.members])
            each, at = np.arange(len(found)), place[part]
            for k in range(self.most):
                ratios[k, part] = (found @ means[k])[each, groups[k, at]]
            ratios[-1, part] = found[each, at]
        return ratios

    def _grouped(self, everywhere: FloatArray, numbers: Sequence[int]) -> list[IntArray]:
        ratios = self._bounded(everywhere[:, self.members]).T
        return grouped(ratios / np.sqrt(len(self.points)), numbers, self.seed)

    def _bounded(self, ratios: FloatArray) -> FloatArray:
        """Ratios between 0 and 1 / alpha."""
        clipped = self.model._clipped(ratios)
        if self.model.alpha_ > 0:
            return clipped
        return np.asarray(clipped / (1 - self.alpha + self.alpha * clipped))
