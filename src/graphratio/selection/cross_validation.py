"""Selection of bandwidth, graph penalty and ridge by cross-validation.

The paper's procedure splits every sample of every node into folds. For each candidate it solves
the problem on all folds but one and evaluates the loss on that one. The candidate with the
smallest mean loss over nodes and folds wins.

For each bandwidth the features are computed once, and the moments are summed once over all
observations and once over each fold; training moments are their difference. All pairs of
penalties are solved together, with the shortcuts of `fold_fits`. The final fit takes none of
these shortcuts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray
from graphratio.moments.folds import FoldedMoments
from graphratio.moments.memory import FIXED, check_cap
from graphratio.moments.objective import moment_losses
from graphratio.selection.fold_fits import (
    Coupling,
    Split,
    crossed_divergences,
    mean_over_folds,
    mean_over_nodes,
)
from graphratio.selection.grids import Candidates, paper_gammas

# Mean losses closer than this, relative to the best, are ties.
TIE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Selection:
    """The chosen hyperparameters, and the scores of all candidates.

    `results` has columns bandwidth, graph_penalty, ridge, gamma, mean_score, fold_0_score, ...,
    rank of shape (n_candidates,). Scores are minus the mean loss over nodes, so higher is better.
    `held_out` has the held-out divergence of every node, if the losses of nodes were kept.
    """

    bandwidth: float
    graph_penalty: float
    ridge: float
    results: dict[str, FloatArray]
    held_out: FloatArray | None = None

    @property
    def pairs(self) -> tuple[FloatArray, FloatArray]:
        """Graph penalties and ridges of all candidates."""
        return self.results["graph_penalty"], self.results["ridge"]


def select(
    split: Split,
    coupling: Coupling,
    candidates: Candidates,
    *,
    progress: bool = False,
    max_memory: int | None = None,
) -> Selection:
    """Run the paper's model selection; refuse one that needs more than `max_memory` bytes."""
    lam, rho = candidates.pairs
    scores = np.empty((candidates.bandwidth.size, lam.size, split.n_folds))
    losses = np.empty((*scores.shape, split.samples.n_nodes), dtype=np.float32)
    steps = candidates.bandwidth.size * split.n_folds
    with ProgressBar(steps, "model selection", enabled=progress) as bar:
        for i, bandwidth in enumerate(candidates.bandwidth):
            _, data = split.at(bandwidth)
            if i == 0 and max_memory is not None:
                # The narrowest kernel has the most features.
                check_cap(_predicted_bytes(data, lam.size), max_memory, "the selection")
            for r in range(split.n_folds):
                train, held_out = data.split(r)
                theta = coupling.solve(train, lam, rho)
                each = moment_losses(held_out, np.ascontiguousarray(theta))
                scores[i, :, r], losses[i, :, r] = -mean_over_nodes(each), each.T
                bar.advance()
    best = best_candidate(candidates, scores, split.samples.n_nodes)
    crossed = crossed_divergences(losses.reshape(-1, *losses.shape[2:]))
    return replace(best, held_out=crossed)


def _predicted_bytes(data: FoldedMoments, n_pairs: int) -> int:
    """Memory of features, sums over all observations and over a fold, and iterates."""
    n_rows, m = data.psi.shape
    n_nodes = len(data.sizes)
    entries = 2 * n_rows * m + 7 * n_nodes * m**2 + 14 * n_nodes * n_pairs * m
    return int(entries * data.psi.dtype.itemsize) + FIXED


def best_candidate(candidates: Candidates, scores: FloatArray, n_nodes: int) -> Selection:
    """Pick the candidate with the best mean score; among ties the most regularised.

    `scores` has shape (n_bandwidths, n_pairs, n_folds), with NaN in folds in which no node has
    both samples.
    """
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
    """Columns of `cv_results_`: settings, mean score, scores of the folds, rank.

    `scores` has shape (n_candidates, n_folds). The candidate `chosen` gets rank 1, also if it
    ties with others.
    """
    mean = mean_over_folds(scores)
    results = {**columns, "mean_score": mean}
    results |= {f"fold_{r}_score": scores[:, r] for r in range(scores.shape[1])}
    by_score = np.argsort(-mean, kind="stable")
    ranked = np.concatenate([[chosen], by_score[by_score != chosen]])
    results["rank"] = np.empty(mean.size, dtype=np.intp)
    results["rank"][ranked] = np.arange(1, mean.size + 1)
    return results
