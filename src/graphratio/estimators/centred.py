"""The base of RULSIF, ULSIF and KLIEP: every node has its own centres, bandwidth and penalty.

The ratio of node v is f_v(x) = sum_k theta_vk K(x, c_vk) with centres c_vk drawn from the
target sample of the node. Nodes are independent problems of the same form. They are solved in
blocks of similar sizes (see `features.node_blocks`), never one by one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import islice
from typing import Any, Self

import numpy as np

from graphratio._utils.arrays import batches
from graphratio._utils.errors import Words
from graphratio._utils.jobs import each, n_tasks
from graphratio._utils.parameters import as_generator
from graphratio._utils.typing import FloatArray, IntArray, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator, all_or_nothing
from graphratio.estimators.node_choice import combined, draw_centres, target_first
from graphratio.estimators.notes import unscored_notes
from graphratio.features.kernels import get_kernel, median_bandwidths
from graphratio.features.node_blocks import (
    LARGEST_RECTANGLE,
    NodeBlock,
    batched_distances,
    kernel_values,
    node_blocks,
)
from graphratio.moments.folds import Division
from graphratio.selection.cross_validation import defined_means
from graphratio.selection.grids import candidates_of
from graphratio.solvers.solution import Solution

# The grids of the paper's appendix; bandwidths are multiples of the median heuristic.
BANDWIDTH_FACTORS = (0.6, 0.8, 1.0, 1.2, 1.4)
PAPER_RIDGES = (1e-5, 1e-3, 0.1, 10.0)


class CentredEstimator(NodeRatioEstimator):
    """Base of the estimators in which every node has its own centres and hyperparameters."""

    kernel: str
    bandwidth: float | Sequence[float] | None
    ridge: float | Sequence[float] | None
    n_centers: int | None
    random_state: RandomState

    centers_: FloatArray
    n_centers_: IntArray
    coef_: FloatArray
    bandwidth_: FloatArray
    ridge_: FloatArray
    solution_: Solution
    cv_results_: dict[str, Any] | None

    _fitted_names = (
        *NodeRatioEstimator._fitted_names,
        "centers_",
        "n_centers_",
        "coef_",
        "bandwidth_",
        "ridge_",
        "solution_",
        "cv_results_",
    )

    @abstractmethod
    def _compare(
        self, block: NodeBlock, widths: FloatArray, penalties: FloatArray, folds: Division | None
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Score every candidate (higher is better); choose one for each of the k nodes of a block.

        `widths` has shape (k, n_widths); `folds` is None if `_folds` returns None. Returns

        - scores, shape (k, n_widths, n_penalties, n_folds): NaN where undefined; one fold for a
          leave-one-out score,
        - positions of the chosen width and penalty, shape (k,) each.
        """

    @abstractmethod
    def _solve(self, block: NodeBlock, width: FloatArray, penalty: FloatArray) -> Solution:
        """Fit the nodes of a block with given hyperparameters, each of shape (k,)."""

    def _folds(self, samples: NodeSamples, rng: np.random.Generator) -> Division | None:
        """Folds of the observations, if the selection needs them."""
        return None

    def _check_parameters(self) -> None:
        """Check the parameters that only a subclass has."""

    @all_or_nothing
    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the ratio of every node from its own samples.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
            Every node needs both samples; a pair of arrays is one node.
        graph : Graph, optional
            Sets the order of nodes and serves tables and plots; its edges are not used.
        """
        self._check_parameters()
        aligned = self._prepare(samples, graph, borrow=False)
        rng = as_generator(self.random_state)
        kernel = get_kernel(self.kernel)
        medians = median_bandwidths(target_first(aligned), kernel)
        widths = np.outer(medians, BANDWIDTH_FACTORS)
        if self.bandwidth is not None:
            given = candidates_of(self.bandwidth, "bandwidth", np.empty(0))
            widths = np.tile(given, (aligned.n_nodes, 1))
        penalties = candidates_of(self.ridge, "ridge", np.array(PAPER_RIDGES))
        self.centers_, self.n_centers_ = draw_centres(aligned, self.n_centers, rng)
        selecting = widths.shape[1] * penalties.size > 1
        folds = self._folds(aligned, rng) if selecting else None

        self.bandwidth_ = widths[:, 0].copy()
        self.ridge_ = np.full(aligned.n_nodes, penalties[0])
        self.coef_ = np.zeros(self.centers_.shape[:2])
        solutions, tables = [], []

        def fit(block: NodeBlock) -> tuple[IntArray, FloatArray | None, Solution]:
            nodes, scores = block.nodes, None
            if selecting:
                scores, width, penalty = self._compare(block, widths[nodes], penalties, folds)
                self.bandwidth_[nodes] = widths[nodes, width]
                self.ridge_[nodes] = penalties[penalty]
            return nodes, scores, self._solve(block, self.bandwidth_[nodes], self.ridge_[nodes])

        blocks = node_blocks(aligned, self.centers_, self.n_centers_, kernel)
        # A few at a time, since blocks take much memory.
        while some := list(islice(blocks, n_tasks())):
            for nodes, scores, solution in each(fit, some):
                self.coef_[nodes, : solution.theta.shape[1]] = solution.theta
                solutions.append(solution)
                if scores is not None:
                    tables.append((nodes, scores))
        self.solution_ = combined(solutions, self.coef_)
        self.cv_results_ = self._table_of_scores(widths, penalties, tables) if selecting else None
        if not self._ratios_only:
            self.divergence_ = self._divergences(aligned)
        return self

    def _notes(self) -> list[Words]:
        return unscored_notes(self.cv_results_, self.nodes_)

    def _table_of_scores(
        self,
        widths: FloatArray,
        penalties: FloatArray,
        tables: list[tuple[IntArray, FloatArray]],
    ) -> dict[str, Any]:
        """One row per node and candidate."""
        n_folds = tables[0][1].shape[3]
        scores = np.empty((*widths.shape, penalties.size, n_folds))
        for nodes, part in tables:
            scores[nodes] = part
        mean = defined_means(scores, -1)
        flat = mean.reshape(len(widths), -1)
        labels = np.empty(len(widths), dtype=object)
        labels[:] = self.nodes_
        order = np.argsort(-flat, axis=1, kind="stable")
        results: dict[str, Any] = {
            "node": np.repeat(labels, flat.shape[1]),
            "bandwidth": np.repeat(widths.ravel(), penalties.size),
            "ridge": np.tile(penalties, widths.size),
            "mean_score": flat.ravel(),
        }
        if n_folds > 1:
            per_fold = scores.reshape(-1, n_folds)
            results |= {f"fold_{r}_score": per_fold[:, r].copy() for r in range(n_folds)}
        results["rank"] = 1 + np.argsort(order, axis=1, kind="stable").ravel()
        return results

    def _ratios_everywhere(self, points: FloatArray) -> FloatArray:
        n_nodes, most = self.coef_.shape
        ratios = np.empty((len(points), n_nodes))
        height = max(1, LARGEST_RECTANGLE // most)
        for begin in range(0, len(points), height):
            rows = slice(begin, begin + height)
            count = max(1, height // len(points[rows]))
            for first in range(0, n_nodes, count):
                nodes = np.arange(first, min(first + count, n_nodes))
                ratios[rows, nodes] = self._evaluate(points[np.newaxis, rows], nodes).T
        return ratios

    def _ratios_at_nodes(self, points: FloatArray, node: IntArray) -> FloatArray:
        ratios = np.empty(len(points))
        height = max(1, LARGEST_RECTANGLE // self.coef_.shape[1])
        # Points in blocks, since a rectangle has at least one whole node.
        for begin in range(0, len(points), height):
            here = node[begin : begin + height]
            order = begin + np.argsort(here, kind="stable")
            counts = np.bincount(here, minlength=len(self.nodes_))
            starts = np.cumsum(counts) - counts
            for batch in batches(starts, counts):
                rows = order[batch.rows]
                values = self._evaluate(points[rows], batch.segments)
                valid = slice(None) if batch.valid is None else batch.valid
                ratios[rows[valid]] = values[valid]
        return ratios

    def _evaluate(self, points: FloatArray, nodes: IntArray) -> FloatArray:
        """Ratios of nodes at points of shape (k or 1, n_points, d), shape (k, n_points)."""
        kernel = get_kernel(self.kernel)
        distances = batched_distances(points, self.centers_[nodes], kernel)
        phi = kernel_values(distances, self.bandwidth_[nodes], kernel)
        return np.asarray((phi @ self.coef_[nodes, :, np.newaxis])[:, :, 0])

    def _table(self) -> dict[str, Any]:
        chosen = {"bandwidth": self.bandwidth_, "ridge": self.ridge_}
        return super()._table() | chosen

    def _summary(self) -> str:
        chosen = "selected at every node" if self.cv_results_ is not None else "given"
        spans = [
            f"{name} {values.min():.3g} to {values.max():.3g}"
            if values.min() < values.max()
            else f"{name} {values[0]:.3g}"
            for name, values in (
                ("bandwidth", self.bandwidth_),
                ("ridge", self.ridge_),
            )
        ]
        return (
            f"{super()._summary()}\n  {chosen}: {', '.join(spans)}; "
            f"up to {self.n_centers_.max()} centres per node\n"
            f"  solver: {self.solution_.describe()}, residual {self.solution_.residual:.1g}"
        )
