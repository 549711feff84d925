"""KLIEP: likelihood-ratios by the likelihood of the target, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.parameters import check_integer, check_real
from graphratio._utils.typing import FloatArray, IntArray, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.centred import CentredEstimator
from graphratio.estimators.node_choice import best_per_node
from graphratio.features.node_blocks import NodeBlock
from graphratio.moments.folds import Division, divide
from graphratio.moments.losses import KL, SMALLEST_RATIO, Loss
from graphratio.moments.objective import kl_divergences
from graphratio.selection.cross_validation import defined_means
from graphratio.solvers.interior_point import SMALLEST_MEAN, solve_kliep
from graphratio.solvers.interior_step import low_rank_basis
from graphratio.solvers.solution import Solution

# KKT residual of the solves during selection, and about the accuracy of the scores.
SCORE_TOLERANCE = 1e-3


class KLIEP(CentredEstimator):
    """Likelihood-ratios by maximum likelihood of the target, each node by itself.

    At every node the ratio = target / reference is estimated by
    f(x) = sum_k theta_k K(x, c_k), the centres c_k being drawn from the node's target sample,
    where theta solves the convex problem

        maximise    mean_target log f - ridge/2 ||theta||^2
        subject to  mean_reference f = 1,  theta >= 0,

    every mean over its own sample (Sugiyama and others, NIPS 20, 2007, without the penalty).
    Cross-validation of the likelihood chooses bandwidth and penalty at every node.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian"}
    bandwidth : float, sequence of float, or None
        A number is used at all nodes, a sequence gives candidates, None stands for
        {0.6, 0.8, 1, 1.2, 1.4} times the median distance within the target of the node.
    ridge : float, sequence of float, or None
        None stands for the candidates 1e-5, 1e-3, 0.1 and 10.
    n_centers : int, optional
        Centres per node; default 100. A node with fewer target observations uses all.
    cv : int, default 5
        Folds of the target sample. The reference only normalises and is not split. With fewer
        than ten blocks of time every two successive blocks are held out together instead.
    tol : float, default 1e-8
        Largest residual of the optimality conditions, see
        `solvers.interior_point.kliep_residuals`.
    max_iter : int, default 100
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The estimate is the same.
    random_state : int, numpy Generator, RandomState or None
        Determines the centres and the folds.

    Attributes
    ----------
    coef_, centers_, n_centers_, bandwidth_, ridge_ :
        As in `RULSIF`.
    divergence_ : ndarray of shape (n_nodes,)
        Kullback-Leibler divergence KL(target || reference) on the training samples: the mean
        of log f over the target. Here and in scores, ratios below 1e-12 count as 1e-12.
    divergence_name_ : str
    cv_results_ : dict of ndarray, or None
        One row per node and candidate: node, bandwidth, ridge, mean_score (mean of
        log f over held-out target observations, then over folds), fold_0_score, ..., rank
        within the node. NaN for folds without observations of the node.
    solution_ : Solution
        `residual` is the largest residual of the optimality conditions (KKT) of all nodes.
    nodes_, graph_, n_features_in_, notes_ :
        As in `GRULSIF`.

    Notes
    -----
    `score` is the mean over nodes of the mean of log f over the target. With a single target
    observation at a node nothing can be held out: the node gets the strongest penalty and the
    middle bandwidth, its scores are NaN, and `notes_` says so.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference, target = rng.normal(size=400), rng.normal(1, 1, size=300)
    >>> model = gr.KLIEP(ridge=0.1, random_state=0).fit((reference, target))
    >>> model.divergence_.round(1)  # exact: 0.5
    array([0.5])
    >>> model.divergence_name_, model.solution_.residual < 1e-6
    ('KL', True)
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        ridge: float | Sequence[float] | None = None,
        n_centers: int | None = None,
        cv: int = 5,
        tol: float = 1e-8,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_centers = n_centers
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the ratio of every node from its own samples.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
            Every node needs both samples; a pair of arrays is one node.
        graph : Graph, optional
            Sets the order of nodes and serves tables and plots; its edges are not used.
        """
        super().fit(samples, graph)
        self.solution_.warn_unless_converged(self.tol, "Raise max_iter or ridge, or widen tol")
        return self

    @property
    def _loss(self) -> Loss:
        return KL

    def _check_parameters(self) -> None:
        check_real(self.tol, "tol", low=0)
        check_integer(self.max_iter, "max_iter", low=1)
        check_integer(self.cv, "cv", low=2)

    def _folds(self, samples: NodeSamples, rng: np.random.Generator) -> Division:
        return divide(samples, self.cv, rng, single=True)

    def _compare(
        self, block: NodeBlock, widths: FloatArray, penalties: FloatArray, folds: Division | None
    ) -> tuple[FloatArray, IntArray, IntArray]:
        assert folds is not None
        # Problems of one bandwidth are solved together: nodes x folds x penalties.
        n_folds = len(folds.held_out)
        fold = np.where(block.target.valid, folds.folds[block.target.rows], -1)
        held_out = np.stack(
            [np.isin(fold, each) for each in folds.held_out], axis=1
        )  # (k, folds, T)
        trained = (fold[:, np.newaxis, :] >= 0) & ~held_out
        usable = held_out.any(axis=2) & trained.any(axis=2)
        scores = np.full((*widths.shape, penalties.size, n_folds), np.nan)
        for position, width in enumerate(widths.T):
            phi_ref, phi_tgt = block.features(width)
            mean = phi_ref.sum(axis=1) / block.sizes[:, :1]
            feasible = mean.max(axis=1) >= SMALLEST_MEAN
            scores[~feasible, position] = -np.inf
            node, split = np.nonzero(usable & feasible[:, np.newaxis])
            if not node.size:
                continue
            rows = phi_tgt[node]
            basis = low_rank_basis(phi_tgt)
            weights = held_out[node, split].astype(float)
            for each, penalty in enumerate(penalties):
                solution, _ = solve_kliep(
                    rows,
                    trained[node, split].astype(float),
                    mean[node],
                    block.present[node],
                    np.full(node.size, penalty),
                    tol=SCORE_TOLERANCE,
                    max_iter=self.max_iter,
                    basis=None if basis is None else basis[node],
                )
                ratios = (rows @ solution.theta[:, :, np.newaxis])[:, :, 0]
                logarithms = np.log(np.maximum(ratios, SMALLEST_RATIO))
                scores[node, position, each, split] = np.average(
                    logarithms, axis=1, weights=weights
                )
        return scores, *best_per_node(defined_means(scores, -1))

    def _solve(self, block: NodeBlock, width: FloatArray, penalty: FloatArray) -> Solution:
        phi_ref, phi_tgt = block.features(width)
        mean = phi_ref.sum(axis=1) / block.sizes[:, :1]
        infeasible = np.flatnonzero(mean.max(axis=1) < SMALLEST_MEAN)
        if infeasible.size:
            lost = [self.nodes_[block.nodes[i]] for i in infeasible]
            raise InputError(
                "the reference is so far from the target, relative to the bandwidth, that no "
                f"ratio can have mean one over it, at nodes {listing(lost)}",
                "Pass a larger bandwidth, or use RULSIF",
            )
        solution, _ = solve_kliep(
            phi_tgt,
            block.target.valid.astype(float),
            mean,
            block.present,
            penalty,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        return solution

    def _losses(self, samples: NodeSamples) -> FloatArray:
        return -self._divergences(samples)

    def _divergences(self, samples: NodeSamples) -> FloatArray:
        ratios = self._ratios_at_nodes(samples.values, samples.node_index)
        return kl_divergences(ratios, samples.sizes)
