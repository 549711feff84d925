"""Cross-validation: the one engine of fits on folds, and the paper's selection with it.

Selections, searches, bounds and comparisons all fit on some folds and evaluate on others. They
share the shortcuts of this module and two rules:

- precision: single, or double if the weights of the graph are too uneven;
- empty folds: a fold in which no node has both samples has the loss NaN, and means over folds
  leave it out.

The paper's selection solves the problem on all folds but one for each candidate and evaluates the
loss on that one. The candidate with the smallest mean loss over nodes and folds wins. For each
bandwidth the features are computed once, and the moments are summed once over all observations
and once over each fold; training moments are their difference. All pairs of penalties are solved
together. The final fit takes none of these shortcuts.

Symbols
-------
C           pairs of penalties
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np

from graphratio._utils.jobs import if_worth_it, in_stages, n_tasks
from graphratio._utils.progress import ProgressBar
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import Kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import FEW_BLOCKS, FoldedMoments, FoldedRows, row_weights
from graphratio.moments.log_ratio import LogRatioObjective, row_losses, with_intercepts
from graphratio.moments.losses import PEARSON, Loss
from graphratio.moments.memory import FIXED, check_cap
from graphratio.moments.node_moments import Moments
from graphratio.moments.node_rows import LOG_RATIO_LOSSES, NodeRows
from graphratio.moments.objective import GraphObjective, moment_losses
from graphratio.moments.second_moments import DenseSecond
from graphratio.selection.grids import Candidates, paper_gammas
from graphratio.solvers.bases import Basis, basis_of
from graphratio.solvers.direct import solve_nodes
from graphratio.solvers.newton import solve_newton
from graphratio.solvers.path import solve_path

# Relative residual of the solves.
SOLVE_TOLERANCE = 1e-3
SOLVE_ITERATIONS = 200

# Norm of the gradient of log-ratio losses, relative to that at zero.
NEWTON_TOLERANCE = 1e-2
# Iterations of conjugate gradients in all Newton steps; only bad candidates need more.
NEWTON_ITERATIONS = 60

# Directions with a smaller share of the second moment are dropped.
FEATURE_FLOOR = 1e-6

# Whitening threshold.
FOLD_RANK_TOLERANCE = 1e-6

# Largest ratio of weights at which sums over edges keep enough digits in single precision.
EVEN_WEIGHTS = 1e4

# Mean losses closer than this, relative to the best, are ties.
TIE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Samples, aligned to the graph and split into folds, and the recipe of their features.

    `alpha` is one number or one per node; `dtype` is that of features, moments and solves.
    `n_blocks` counts the blocks of the folds; None if observations are independent. `run`
    successive folds are held out together. Directions with a smaller share of the second moment
    than `floor`, by default `FEATURE_FLOOR`, are dropped. `known` are the features of the only
    bandwidth, if they were computed before.
    """

    samples: NodeSamples
    folds: IntArray
    n_folds: int
    kernel: Kernel
    dictionary: FloatArray
    alpha: float | FloatArray
    prior_ratio: float
    dtype: type[np.floating]
    n_blocks: int | None = None
    run: int = 1
    loss: Loss = PEARSON
    floor: float | None = None
    known: tuple[NystromMap, FloatArray] | None = None

    @property
    def few_blocks(self) -> bool:
        """Whether there are so few blocks of time that a choice must be cautious."""
        return self.n_blocks is not None and self.n_blocks < FEW_BLOCKS

    @property
    def held_out(self) -> list[range]:
        """Folds that are held out together: every run of successive ones once."""
        return [range(r, r + self.run) for r in range(self.n_folds - self.run + 1)]

    def at(self, bandwidth: float) -> tuple[NystromMap, FoldedMoments]:
        """Features of one bandwidth, and their moments by fold."""
        features, psi = self._features(bandwidth)
        sizes = self.samples.sizes
        return features, FoldedMoments(psi, sizes, self.folds, self.alpha, self.prior_ratio)

    def by_fold(self, bandwidth: float) -> FoldedMoments | FoldedRows:
        """The data of the loss by fold: moments of the features, or all rows for log-ratios."""
        log_ratio = LOG_RATIO_LOSSES.get(self.loss.name)
        if log_ratio is None:
            return self.at(bandwidth)[1]
        sizes, alpha = self.samples.sizes, float(self.alpha)
        return FoldedRows(self._features(bandwidth)[1], sizes, self.folds, alpha, log_ratio)

    def _features(self, bandwidth: float) -> tuple[NystromMap, FloatArray]:
        if self.known is not None:
            return self.known
        features = NystromMap.build(
            self.kernel, self.dictionary, float(bandwidth), FOLD_RANK_TOLERANCE
        )
        weights = row_weights(self.samples.sizes, self.alpha)
        floor = FEATURE_FLOOR if self.floor is None else self.floor
        return features.principal(self.samples.values, weights, floor, self.dtype)


def precision_for(graphs: Iterable[Graph]) -> type[np.floating]:
    """Single precision, or double if the weights of one of the graphs are too uneven."""
    weights = (graph.adjacency.data for graph in graphs)
    uneven = any(own.size and own.max() > EVEN_WEIGHTS * own.min() for own in weights)
    return np.float64 if uneven else np.float32


def mean_losses(losses: FloatArray) -> FloatArray:
    """Mean of losses (n_nodes, C) over the nodes that have one, shape (C,); NaN without any."""
    complete = ~np.isnan(losses[:, 0])
    if not complete.any():
        return np.full(losses.shape[1], np.nan)
    return np.asarray(losses[complete].mean(axis=0, dtype=np.float64))


def defined_means(
    losses: FloatArray, axis: int, dtype: type[np.floating] | None = None
) -> FloatArray:
    """Mean of the finite values along an axis, summed in `dtype`; NaN without any."""
    counted = np.isfinite(losses)
    total = np.where(counted, losses, 0.0).sum(axis=axis, dtype=dtype)
    number = counted.sum(axis=axis)
    means: FloatArray = np.full(total.shape, np.nan)
    np.divide(total, number, out=means, where=number > 0)
    return means


def crossed_divergences(
    losses: FloatArray, run: int = 1, shift: float = PEARSON.shift
) -> FloatArray:
    """Held-out divergence of every node, from losses (n_candidates, n_folds, n_nodes).

    Every fold is judged by the candidate that is best on the other folds, so the result is not too
    high on average. Folds closer than `run` overlap, and do not count as others. NaN at nodes
    without losses. The divergence is `shift` minus the loss.
    """
    by_fold = defined_means(losses, 2, np.float64)
    picked: FloatArray = np.full(losses.shape[1:], np.nan)
    for fold in range(losses.shape[1]):
        apart = np.abs(np.arange(losses.shape[1]) - fold) >= run
        others = defined_means(by_fold[:, apart], 1)
        if np.isfinite(others).any():
            picked[fold] = losses[int(np.nanargmin(others)), fold]
    return shift - defined_means(picked, 0)


def mean_over_folds(scores: FloatArray) -> FloatArray:
    """Mean over the last axis without the folds that are NaN for any candidate."""
    usable = ~np.isnan(scores).any(axis=tuple(range(scores.ndim - 1)))
    return np.asarray(scores[..., usable].mean(axis=-1))


class Fit(Protocol):
    """A way of fitting all nodes at once."""

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""


@dataclass(frozen=True, eq=False)
class Coupling:
    """Fit neighbours in a graph together; without edges fit every node by itself.

    `tolerance` is the relative residual of the solves.
    """

    graph: Graph
    tolerance: float | None = None

    @computed_once
    def _bases(self) -> dict[np.dtype[np.floating], Basis]:
        return {}

    def solve(self, data: Moments | NodeRows, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m).

        Those of log-ratios have their intercept last.
        """
        laplacian = self.graph.laplacian
        if isinstance(data, NodeRows):
            problem = LogRatioObjective(data, laplacian, lam, rho)
            basis = self._basis(data.dtype) if self.graph.n_edges else None
            path = solve_newton(problem, basis, NEWTON_TOLERANCE, NEWTON_ITERATIONS)
            return with_intercepts(data, path.theta, self.graph, lam)
        objective = GraphObjective.of(data, laplacian, lam, rho)
        if not self.graph.n_edges:
            return solve_nodes(objective)
        basis = self._basis(data.second.dtype)
        tolerance = self.tolerance or SOLVE_TOLERANCE
        return solve_path(objective, basis, tolerance, SOLVE_ITERATIONS).theta

    def _basis(self, dtype: np.dtype[np.floating]) -> Basis:
        if dtype not in self._bases:
            self._bases[dtype] = basis_of(self.graph, dtype)
        return self._bases[dtype]


@dataclass(frozen=True, eq=False)
class SharedFit:
    """One ratio for all nodes, with the same ridge at each."""

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """The same coefficients at every node, shape (n_nodes, C, m)."""
        # The average over the complete nodes, as the moments of a single node.
        dtype, n_nodes = moments.second.dtype, len(moments.complete)
        share = n_nodes / max(int(moments.complete.sum()), 1)
        second = (moments.second.mean()[np.newaxis] * share).astype(dtype)
        first = (moments.first.mean(axis=0, keepdims=True) * share).astype(dtype)
        mean = Moments(DenseSecond(second), first, np.array([True]), moments.prior_ratio)
        theta = solve_nodes(GraphObjective.of(mean, Graph.empty(1).laplacian, lam, rho))
        return np.broadcast_to(theta, (n_nodes, *theta.shape[1:]))


@dataclass(frozen=True, eq=False)
class Selection:
    """The chosen hyperparameters, the scores of all candidates, and held-out divergences."""

    bandwidth: float
    graph_penalty: float
    ridge: float
    results: dict[str, FloatArray] | None = None
    held_out: FloatArray | None = None


def select(
    split: Split,
    coupling: Coupling,
    candidates: Candidates,
    *,
    n_nodes: int | None = None,
    progress: bool = False,
    max_memory: int | None = None,
) -> Selection:
    """Run the paper's model selection; refuse one that needs more than `max_memory` bytes.

    `n_nodes` is the number of nodes of the whole graph, if the split has only a part of them.
    """
    lam, rho = candidates.pairs

    def make(bandwidth: float) -> FoldedMoments | FoldedRows:
        data = split.by_fold(bandwidth)
        # The narrowest kernel has the most features.
        if max_memory is not None and bandwidth == candidates.bandwidth[0]:
            check_cap(_predicted_bytes(data, lam.size), max_memory, "the selection")
        return data.summed()

    def fit(data: FoldedMoments | FoldedRows, left_out: range) -> tuple[FloatArray, FloatArray]:
        train, held_out = data.split(*left_out)
        theta = coupling.solve(train, lam, rho)
        found = losses_on(held_out, np.ascontiguousarray(theta))
        return -mean_losses(found), found.T.astype(np.float32)

    steps = candidates.bandwidth.size * len(split.held_out)
    size = split.samples.n_nodes * lam.size * len(split.dictionary)
    with if_worth_it(size), ProgressBar(steps, "model selection", enabled=progress) as bar:
        found = in_stages(make, list(candidates.bandwidth), fit, split.held_out, bar)
    scores = np.array([[score for score, _ in row] for row in found]).transpose(0, 2, 1)
    losses = np.stack([np.stack([loss for _, loss in row], axis=1) for row in found])
    best = best_candidate(candidates, scores, n_nodes or split.samples.n_nodes)
    crossed = crossed_divergences(
        losses.reshape(-1, *losses.shape[2:]), split.run, split.loss.shift
    )
    return replace(best, held_out=crossed)


def losses_on(held_out: Moments | NodeRows, theta: FloatArray) -> FloatArray:
    """Held-out loss of every node, shape (n_nodes, C)."""
    if isinstance(held_out, NodeRows):
        return row_losses(held_out, theta)
    return moment_losses(held_out, theta)


def _predicted_bytes(data: FoldedMoments | FoldedRows, n_pairs: int) -> int:
    """Memory of features, sums over all observations and over folds, and iterates.

    Several tasks work on a fold each, and hold the features of up to three bandwidths.
    """
    n_rows, m = data.psi.shape
    n_nodes, tasks = len(data.sizes), n_tasks()
    kept = 2 * n_rows * m + 4 * n_nodes * m**2
    own = 3 * n_nodes * m**2 + 14 * n_nodes * n_pairs * m
    if isinstance(data, FoldedRows):
        # Log-ratios of all rows, their steps, slopes and weights.
        own += 8 * n_rows * n_pairs
    return int((kept * min(tasks, 3) + own * tasks) * data.psi.dtype.itemsize) + FIXED


def best_candidate(candidates: Candidates, scores: FloatArray, n_nodes: int) -> Selection:
    """The best mean score (n_bandwidths, n_pairs, n_folds); among ties the most regularised."""
    flat = mean_over_folds(scores).ravel()
    triples = list(product(candidates.bandwidth, zip(*candidates.pairs, strict=True)))
    bandwidth = np.array([s for s, _ in triples])
    lam = np.array([pair[0] for _, pair in triples])
    rho = np.array([pair[1] for _, pair in triples])
    tied = flat >= flat.max() - TIE_TOLERANCE * abs(flat.max())
    # Order by regularisation: by ridge, then by graph penalty, then by bandwidth.
    order = np.lexsort((bandwidth, lam, rho))
    best = int(order[tied[order]][-1])
    columns = {"bandwidth": bandwidth, "graph_penalty": lam, "ridge": rho}
    table = columns | {"gamma": paper_gammas(lam, rho, n_nodes)}
    results = score_table(table, scores.reshape(-1, scores.shape[2]), best)
    return Selection(float(bandwidth[best]), float(lam[best]), float(rho[best]), results)


def score_table(
    columns: dict[str, FloatArray], scores: FloatArray, chosen: int
) -> dict[str, FloatArray]:
    """Columns of `cv_results_`, from scores (n_candidates, n_folds); `chosen` gets rank 1."""
    mean = mean_over_folds(scores)
    results = {**columns, "mean_score": mean}
    results |= {f"fold_{r}_score": scores[:, r] for r in range(scores.shape[1])}
    by_score = np.argsort(-mean, kind="stable")
    ranked = np.concatenate([[chosen], by_score[by_score != chosen]])
    results["rank"] = np.empty(mean.size, dtype=np.intp)
    results["rank"][ranked] = np.arange(1, mean.size + 1)
    return results
