"""Features and moments of one bandwidth, for fits that leave folds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.evaluation.couplings import Coupling, Fit
from graphratio.evaluation.refit_noise import MOST_DIRECTIONS, RefitNoise, refit_noise
from graphratio.features.kernels import Kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.losses import moment_losses
from graphratio.moments.node_moments import Moments, MomentSums, factored_moments, mixing_weights
from graphratio.selection.cross_validation import FEATURE_FLOOR, RANK_TOLERANCE

# Bytes that the sums of all folds may take; beyond it the features are kept instead.
LARGEST_SUMS = 2**29
# Beyond this many nodes a selection is sure enough with two inner folds instead of all.
MANY_NODES = 1_000


@dataclass(frozen=True, eq=False)
class Setting:
    """What all fits have in common.

    Attributes
    ----------
    kernel : Kernel
    dictionary : ndarray of shape (n_atoms, n_features)
    alpha, prior_ratio : float
    n_folds : int
    dtype : floating type
        Precision of moments and solves.
    """

    kernel: Kernel
    dictionary: FloatArray
    alpha: float
    prior_ratio: float
    n_folds: int
    dtype: type[np.floating] = np.float32


class Folded:
    """Features and moments of one bandwidth, for any set of folds left out."""

    def __init__(
        self, samples: NodeSamples, folds: IntArray, bandwidth: float, setting: Setting
    ) -> None:
        self.setting, self.folds = setting, folds
        self._mix = (setting.alpha, setting.prior_ratio)
        self.node = samples.node_index
        self.segment = samples.segments
        self.sizes = samples.sizes
        weights = mixing_weights(self.sizes, setting.alpha).ravel()[self.segment]
        features = NystromMap.build(
            setting.kernel, setting.dictionary, float(bandwidth), RANK_TOLERANCE
        )
        self.features, self.psi = features.principal(
            samples.values, weights, FEATURE_FLOOR, setting.dtype
        )
        m = self.psi.shape[1]
        self.sums: Sequence[MomentSums] | None = None
        if 8 * len(self.sizes) * m**2 * (setting.n_folds + 2) <= LARGEST_SUMS:
            self.sums = [self._sums(folds == fold) for fold in range(setting.n_folds)]

    def _sums(self, keep: BoolArray) -> MomentSums:
        sizes = np.bincount(self.segment[keep], minlength=self.sizes.size)
        return MomentSums.of(self.psi[keep], sizes.reshape(self.sizes.shape))

    def without(self, *left_out: int) -> Moments:
        """Moments of all folds but these."""
        if self.sums is None:
            keep = ~np.isin(self.folds, left_out)
            return factored_moments(
                self.psi, self.sizes, self.setting.alpha, self.setting.prior_ratio, keep
            )
        used = [part for fold, part in enumerate(self.sums) if fold not in left_out]
        total = used[0]
        for part in used[1:]:
            total = total + part
        return total.mixed(*self._mix)

    def only(self, fold: int) -> Moments:
        """Moments of one fold."""
        keep = self.folds == fold
        sizes = np.bincount(self.segment[keep], minlength=self.sizes.size)
        return factored_moments(
            self.psi[keep],
            sizes.reshape(self.sizes.shape),
            self.setting.alpha,
            self.setting.prior_ratio,
        )

    def nested_losses(self, fit: Fit) -> FloatArray:
        """Mean loss of every pair of penalties without the fold that is left out, shape (K, C)."""
        lam, gam = fit.candidates.pairs
        n_folds = self.setting.n_folds
        total = np.zeros((n_folds, lam.size))
        held_out = [self.only(fold) for fold in range(n_folds)]
        pairs = list(combinations(range(n_folds), 2))
        if len(self.sizes) > MANY_NODES and n_folds > 3:
            pairs = [(fold, (fold + 1) % n_folds) for fold in range(n_folds)]
        for j, k in pairs:
            theta = fit.solve(self.without(j, k), lam, gam)
            total[k] += _mean_loss(held_out[j], theta)
            total[j] += _mean_loss(held_out[k], theta)
        return total * n_folds / (2 * len(pairs))

    def ratios(self, rows: IntArray, theta: FloatArray) -> FloatArray:
        """Unclipped ratios at some observations, theta of shape (n_nodes, m)."""
        fitted = np.einsum("im,im->i", self.psi[rows], theta[self.node[rows]])
        return np.asarray(fitted, dtype=np.float64) + self.setting.prior_ratio

    def refit_noise(
        self, fold: int, fit: Coupling, train: Moments, theta: FloatArray, lam: float, gam: float
    ) -> RefitNoise:
        """Variance from refitting that the fold adds, see `_refit_noise`."""
        used = slice(0, MOST_DIRECTIONS)
        blocks = train.second.dense()[:, used, used]
        w = np.diagonal(train.second.mean())[used].astype(np.float64)
        return refit_noise(
            self.psi[:, used],
            self.ratios(np.arange(len(self.psi)), theta),
            self.segment,
            self.folds == fold,
            blocks,
            fit.stiffness(w, lam, gam),
            self.setting.alpha,
        )


def _mean_loss(held_out: Moments, theta: FloatArray) -> FloatArray:
    """Mean over nodes with both samples, shape (C,); zero if there is none."""
    if not held_out.complete.any():
        return np.zeros(theta.shape[1])
    losses = moment_losses(held_out, np.ascontiguousarray(theta))
    return np.asarray(losses[held_out.complete].mean(axis=0, dtype=np.float64))
