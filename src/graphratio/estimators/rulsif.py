"""RULSIF and ULSIF: relative and plain least-squares importance fitting, node by node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphratio._utils.parameters import check_choice, check_flag
from graphratio._utils.typing import FloatArray, IntArray, RandomState
from graphratio.data.samples import NodeSamples
from graphratio.estimators.centred import CentredEstimator
from graphratio.estimators.node_choice import best_per_node, choose_cautiously
from graphratio.features.node_blocks import NodeBlock
from graphratio.moments.folds import FEW_BLOCKS, Division, divide
from graphratio.selection.cross_validation import defined_means
from graphratio.solvers.least_squares import fold_losses, least_squares, left_out_losses
from graphratio.solvers.solution import Solution

# Largest relative residual of the linear systems that counts as solved.
_TOLERANCE = 1e-6


class _LeastSquares(CentredEstimator):
    """RULSIF and ULSIF without their constructors."""

    nonnegative: bool
    selection: str | None

    def _check_parameters(self) -> None:
        check_flag(self.nonnegative, "nonnegative")
        if self.selection is not None:
            check_choice(self.selection, "selection", ("cautious", "min"))

    def _folds(self, samples: NodeSamples, rng: np.random.Generator) -> Division | None:
        """Folds of whole blocks; None where observations are left out one by one."""
        if not samples.has_blocks or not samples.blocks.exist:
            return None
        return divide(samples, FEW_BLOCKS, rng)

    def _compare(
        self, block: NodeBlock, widths: FloatArray, penalties: FloatArray, folds: Division | None
    ) -> tuple[FloatArray, IntArray, IntArray]:
        if folds is not None:
            scores = -self._fold_losses(block, widths, penalties, folds)
            if self._takes_minimum:
                return scores, *best_per_node(defined_means(scores, -1))
            # The folds that a node has come first.
            absent = np.isnan(scores[:, :1, :1])
            order = np.broadcast_to(np.argsort(absent, axis=3, kind="stable"), scores.shape)
            losses = np.nan_to_num(-np.take_along_axis(scores, order, axis=3))
            n_used = np.count_nonzero(~absent[:, 0, 0], axis=1)
            return scores, *choose_cautiously(losses, np.stack([n_used, n_used], axis=1))
        n_pairs = block.sizes.max(axis=1)
        losses = np.empty((*widths.shape, penalties.size, int(n_pairs.max())))
        for position, width in enumerate(widths.T):
            left_out = left_out_losses(
                *block.features(width),
                block.sizes,
                self._relative,
                penalties,
                nonnegative=bool(self.nonnegative),
            )
            losses[:, position] = left_out.transpose(0, 2, 1)
        scores = -losses.sum(axis=3, keepdims=True) / n_pairs.reshape(-1, 1, 1, 1)
        if self._takes_minimum:
            return scores, *best_per_node(scores[..., 0])
        return scores, *choose_cautiously(losses, block.sizes)

    @property
    def _takes_minimum(self) -> bool:
        return self.selection == "min" or (self.selection is None and bool(self.nonnegative))

    def _fold_losses(
        self, block: NodeBlock, widths: FloatArray, penalties: FloatArray, folds: Division
    ) -> FloatArray:
        """Held-out losses, shape (k, n_widths, n_penalties, n_folds); NaN where undefined."""
        first, second = (
            np.where(side.valid, folds.folds[side.rows], -1)
            for side in (block.reference, block.target)
        )
        found = [
            fold_losses(
                block.features(width),
                (first, second),
                folds.held_out,
                self._relative,
                penalties,
                nonnegative=bool(self.nonnegative),
            )
            for width in widths.T
        ]
        return np.stack(found, axis=1)

    def _solve(self, block: NodeBlock, width: FloatArray, penalty: FloatArray) -> Solution:
        theta, residuals = least_squares(
            *block.features(width), block.sizes, self._relative, penalty
        )
        theta = np.where(block.present, theta, 0.0)
        if self.nonnegative:
            theta = np.maximum(theta, 0.0)
        residual = float(residuals.max())
        solution = Solution(
            theta, residual <= _TOLERANCE, 0, residual, [residual], "per-node closed form"
        )
        return solution.warn_unless_converged(
            _TOLERANCE, "The systems are nearly singular: raise ridge"
        )


class RULSIF(_LeastSquares):
    """Relative likelihood-ratios by least squares, each node by itself.

    At every node the ratio = target / ((1 - alpha) reference + alpha target) is estimated by
    f(x) = sum_k theta_k K(x, c_k), the centres c_k being drawn from the node's target sample.
    With the features phi(x) = (K(x, c_k))_k,

        theta = (H + ridge I)^{-1} h,
        H = (1 - alpha) mean_reference phi phi' + alpha mean_target phi phi',
        h = mean_target phi,

    every mean over its own sample (Yamada and others, Neural Computation 25, 2013). Bandwidth
    and penalty are chosen at every node by the leave-one-out loss, in closed form for the
    whole grid.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
        How much of the target is mixed into the reference; ratios are bounded by 1 / alpha.
    kernel : {"gaussian", "laplacian"}
    bandwidth : float, sequence of float, or None
        A number is used at all nodes, a sequence gives candidates, None stands for
        {0.6, 0.8, 1, 1.2, 1.4} times the median distance within the target of the node.
    ridge : float, sequence of float, or None
        Half of it times the squared norm of theta is added to the loss. None stands for the
        candidates 1e-5, 1e-3, 0.1 and 10.
    n_centers : int, optional
        Centres per node; default 100. A node with fewer target observations uses all.
    nonnegative : bool, default False
        Set negative coefficients to zero after the fit and in the leave-one-out losses, as some
        implementations do. This is not the solution under a constraint: with a small penalty it
        can be far off, so leave `ridge` to the selection.
    selection : {"cautious", "min"}, optional
        "min" takes the candidate with the smallest leave-one-out loss. "cautious" allows for
        the noise of these losses, see the notes. Default "cautious", but "min" with
        `nonnegative`, where the losses of weak penalties are too large to win by luck.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The estimate is the same.
    random_state : int, numpy Generator, RandomState or None
        Draws the centres at nodes with more than `n_centers` target observations.

    Attributes
    ----------
    coef_ : ndarray of shape (n_nodes, c)
        theta; zero where a node has fewer than c centres.
    centers_ : ndarray of shape (n_nodes, c, n_features)
    n_centers_ : ndarray of shape (n_nodes,)
        How many centres each node has; the rest of `centers_` is padding.
    bandwidth_, ridge_ : ndarray of shape (n_nodes,)
    divergence_ : ndarray of shape (n_nodes,)
        Pearson divergence on the training samples, each mean over its own sample.
    divergence_name_ : str
    cv_results_ : dict of ndarray, or None
        One row per node and candidate: node, bandwidth, ridge, mean_score (minus the
        leave-one-out loss), rank within the node by this score. With blocks also fold_0_score,
        ...: minus the loss of each fold. None if nothing was selected.
    solution_ : Solution
        Its residual is the largest relative residual of the linear systems, before negative
        coefficients are set to zero.
    nodes_, graph_, n_features_in_, notes_ :
        As in `GRULSIF`.

    Notes
    -----
    Leave-one-out with n reference and n' target observations: for i = 0 .. max(n, n') - 1
    reference i mod n and target i mod n' are left out together, the means over the others
    divide by n - 1 and n' - 1, and the pair's loss is
    (1 - alpha)/2 f(x)^2 + alpha/2 f(y)^2 - f(y). Every observation of the larger sample is
    left out once. The centres stay the same. With a single observation in one of the samples
    nothing can be left out: the node gets the strongest penalty and the middle bandwidth, its
    scores are NaN, and `notes_` says so.

    Where samples have blocks (`NodeSamples.blocks`), a left-out observation depends on its
    neighbours. So whole blocks are left out: ten runs of successive blocks, or every two
    successive ones if there are fewer. The loss of a run replaces the loss of a pair.

    Cautious selection: with some tens of observations the smallest of these losses often
    belongs to a penalty that is far too weak. So each candidate is compared with the best one
    at the same pairs. Let t be the mean difference of their losses over its standard error
    (with min(n, n') for the number of pairs); the candidate gets the weight exp(-t^2 / 2). The
    chosen penalty is the median under these weights. The chosen bandwidth is the largest that
    is at most two standard errors worse than the best at this penalty. With many observations
    only the best candidates keep a weight.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference, target = rng.normal(size=200), rng.normal(1, 1, size=300)
    >>> model = gr.RULSIF(alpha=0.1, ridge=0.1, random_state=0).fit((reference, target))
    >>> model.predict([-1.0, 0.5, 2.0], node=0).round(1)  # exact: 0.2, 1.0, 3.3
    array([0.3, 1. , 3.2])
    >>> model.bandwidth_.shape, model.divergence_name_
    ((1,), 'Pearson')
    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        ridge: float | Sequence[float] | None = None,
        n_centers: int | None = None,
        nonnegative: bool = False,
        selection: str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_centers = n_centers
        self.nonnegative = nonnegative
        self.selection = selection
        self.n_jobs = n_jobs
        self.random_state = random_state


class ULSIF(_LeastSquares):
    """Plain likelihood-ratios by least squares, each node by itself: `RULSIF` at alpha = 0.

    The ratio = target / reference has no upper bound, so estimates are less stable than the
    relative ones where the reference is rare (Kanamori, Hido and Sugiyama, JMLR 10, 2009).

    Parameters
    ----------
    kernel, bandwidth, ridge, n_centers, nonnegative, selection, n_jobs, random_state :
        As in `RULSIF`.

    Attributes
    ----------
    coef_, centers_, n_centers_, bandwidth_, ridge_, divergence_, cv_results_, solution_ :
        As in `RULSIF`.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference, target = rng.normal(size=(3, 80, 2)), rng.normal(size=(3, 60, 2))
    >>> target[2] += 1
    >>> model = gr.ULSIF(random_state=0).fit((reference, target))
    >>> int(model.divergence_.argmax())
    2
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        ridge: float | Sequence[float] | None = None,
        n_centers: int | None = None,
        nonnegative: bool = False,
        selection: str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_centers = n_centers
        self.nonnegative = nonnegative
        self.selection = selection
        self.n_jobs = n_jobs
        self.random_state = random_state
