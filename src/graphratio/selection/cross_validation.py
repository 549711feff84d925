"""Choosing bandwidth, graph penalty and node penalty by cross-validation.

The paper's model selection procedure: every sample of every node is split into folds; for
each candidate the problem is solved on all folds but one and the loss is evaluated on that
one; the candidate with the smallest mean loss over nodes and folds wins.

How it is computed. For a bandwidth the features are evaluated once, and the moments are summed
once over all observations and once over each fold; training moments are their difference. All
pairs of penalties are solved together (see `solvers.pcg`), in single precision if the graph's
weights allow it, to a residual
of `SOLVE_TOLERANCE`, and without the directions that carry less than `FEATURE_FLOOR` of the
second moment. The final fit makes none of these economies.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from graphratio._utils.parameters import check_choice, check_integer
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import Kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import FoldedMoments, assign_folds, row_weights
from graphratio.moments.losses import moment_losses
from graphratio.moments.memory import FIXED, check_cap
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.solvers import basis_of, selection_precision, solve_nodes, solve_path
from graphratio.solvers.bases import Basis

# The grids of the paper's appendix; graph penalties are divided by the mean degree.
NODE_PENALTIES = (1e-5, 1e-3, 0.1, 1.0)
GRAPH_PENALTIES = (1e-3, 1e-2, 0.1, 1.0, 10.0)

# Nodes that a selection looks at by default; the paper's grid for the graph penalty is meant for
# graphs of up to this size.
SELECTION_NODES = 2000

# Relative residual of the solves during selection.
SOLVE_TOLERANCE = 1e-3
SOLVE_ITERATIONS = 200

# Share of the second moment below which a direction is left out during selection.
FEATURE_FLOOR = 1e-6

# Whitening threshold during selection.
RANK_TOLERANCE = 1e-6

# Mean losses closer than this, relative to the best, are ties.
TIE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Candidates:
    """What is tried: every combination of the three.

    Attributes
    ----------
    bandwidth, graph_penalty, node_penalty : ndarray
        In increasing order.
    """

    bandwidth: FloatArray
    graph_penalty: FloatArray
    node_penalty: FloatArray

    @property
    def pairs(self) -> tuple[FloatArray, FloatArray]:
        """All (graph penalty, node penalty), each as an array of shape (n_pairs,)."""
        lam, gam = np.meshgrid(self.graph_penalty, self.node_penalty, indexing="ij")
        return lam.ravel(), gam.ravel()

    def __len__(self) -> int:
        return self.bandwidth.size * self.graph_penalty.size * self.node_penalty.size


@dataclass(frozen=True, eq=False)
class Selection:
    """The outcome.

    Attributes
    ----------
    bandwidth, graph_penalty, node_penalty : float
        The chosen ones.
    results : dict of str to ndarray of shape (n_candidates,)
        Columns bandwidth, graph_penalty, node_penalty, mean_score, fold_0_score, ...,
        rank; scores are minus the mean loss over nodes, so higher is better.
    """

    bandwidth: float
    graph_penalty: float
    node_penalty: float
    results: dict[str, FloatArray]


def selection_size(selection_nodes: object, n_nodes: int) -> int:
    """How many nodes a selection looks at: all up to a limit, that many, or those asked for.

    Examples
    --------
    >>> selection_size(None, 500), selection_size(None, 100_000), selection_size("all", 100_000)
    (500, 2000, 100000)
    """
    if selection_nodes is None:
        return min(n_nodes, SELECTION_NODES)
    if isinstance(selection_nodes, str):
        check_choice(selection_nodes, "selection_nodes", ("all",))
        return n_nodes
    return min(n_nodes, check_integer(selection_nodes, "selection_nodes", low=2))


def select(
    samples: NodeSamples,
    graph: Graph,
    kernel: Kernel,
    dictionary: FloatArray,
    candidates: Candidates,
    *,
    alpha: float | FloatArray,
    prior_ratio: float,
    n_folds: int,
    random_state: np.random.Generator,
    progress: bool = False,
    dtype: type[np.floating] | None = None,
    max_memory: int | None = None,
    penalty_scale: float = 1.0,
) -> Selection:
    """Run the paper's model selection procedure.

    Parameters
    ----------
    samples : NodeSamples
        Aligned to the graph.
    graph : Graph
    kernel : Kernel
    dictionary : ndarray of shape (n_atoms, n_features)
    candidates : Candidates
    alpha : float, or ndarray of shape (n_nodes,)
    prior_ratio : float
    n_folds : int
    random_state : numpy Generator
    progress : bool
    dtype : floating type, optional
        Precision of the moments and solves. Default: single, or double where the weights of the
        graph are very uneven.
    max_memory : int, optional
        Bytes that the selection may take; more is an error.
    penalty_scale : float
        Graph penalties are multiplied by this in the solves, but reported without it: for
        samples that are a part of the nodes the candidates are meant for.
    """
    dtype = selection_precision(graph) if dtype is None else dtype
    folds = assign_folds(samples, n_folds, random_state)
    lam, gam = candidates.pairs
    scores = np.empty((candidates.bandwidth.size, lam.size, n_folds))
    # Without edges every node has its closed form.
    basis = basis_of(graph, dtype) if graph.n_edges else None
    steps = candidates.bandwidth.size * n_folds
    with ProgressBar(steps, "model selection", enabled=progress) as bar:
        for i, bandwidth in enumerate(candidates.bandwidth):
            features = NystromMap.build(kernel, dictionary, float(bandwidth), RANK_TOLERANCE)
            data = folded_data(samples, folds, features, alpha, prior_ratio, dtype)
            if i == 0:
                # The narrowest kernel has the most features.
                check_cap(_predicted_bytes(data, lam.size), max_memory, "the selection")
            for r in range(n_folds):
                train, held_out = data.split(r)
                objective = GraphObjective.of(train, graph.laplacian, penalty_scale * lam, gam)
                scores[i, :, r] = -_mean_loss(held_out, _solve(objective, basis))
                bar.advance()
    return choose(candidates, scores)


def folded_data(
    samples: NodeSamples,
    folds: IntArray,
    features: NystromMap,
    alpha: float | FloatArray,
    prior_ratio: float,
    dtype: type[np.floating],
) -> FoldedMoments:
    """Features and moments of one bandwidth, ready to be split by folds."""
    sizes = np.column_stack([samples.n_reference, samples.n_target])
    weights = row_weights(sizes, alpha)
    _, psi = features.principal(samples.values, weights, FEATURE_FLOOR, dtype)
    return FoldedMoments(psi, sizes, folds, alpha, prior_ratio)


def _predicted_bytes(data: FoldedMoments, n_pairs: int) -> int:
    """Memory of the selection: features, sums of all and of a fold, and iterates."""
    n_rows, m = data.psi.shape
    n_nodes = data.shape[0]
    entries = 2 * n_rows * m + 7 * n_nodes * m**2 + 14 * n_nodes * n_pairs * m
    return int(entries * data.psi.dtype.itemsize) + FIXED


def _solve(objective: GraphObjective, basis: Basis | None) -> FloatArray:
    if basis is None:
        return solve_nodes(objective)
    return solve_path(objective, basis, SOLVE_TOLERANCE, SOLVE_ITERATIONS).theta


def _mean_loss(held_out: Moments, theta: FloatArray) -> FloatArray:
    """Mean over the nodes that the fold has both samples of, shape (n_pairs,)."""
    losses = moment_losses(held_out, theta)[held_out.complete]
    if not len(losses):
        return np.full(theta.shape[1], np.nan)
    return np.asarray(losses.mean(axis=0, dtype=np.float64))


def choose(candidates: Candidates, scores: FloatArray) -> Selection:
    """Pick the candidate with the best mean score; among ties the most regularised.

    Parameters
    ----------
    candidates : Candidates
    scores : ndarray of shape (n_bandwidths, n_pairs, n_folds)
        NaN in folds that no node has both samples in.
    """
    # Folds that no node has both samples in say nothing.
    usable = ~np.isnan(scores).any(axis=(0, 1))
    mean = scores[:, :, usable].mean(axis=2)
    triples = list(product(candidates.bandwidth, zip(*candidates.pairs, strict=True)))
    bandwidth = np.array([s for s, _ in triples])
    lam = np.array([pair[0] for _, pair in triples])
    gam = np.array([pair[1] for _, pair in triples])
    flat = mean.ravel()
    tied = flat >= flat.max() - TIE_TOLERANCE * abs(flat.max())
    # More regularisation first: the larger ridge, then the stronger graph, then the wider kernel.
    order = np.lexsort((bandwidth, lam, lam * gam))
    best = int(order[tied[order]][-1])
    results = {"bandwidth": bandwidth, "graph_penalty": lam, "node_penalty": gam}
    results["mean_score"] = flat
    per_fold = scores.reshape(-1, scores.shape[2])
    results |= {f"fold_{r}_score": per_fold[:, r] for r in range(scores.shape[2])}
    by_score = np.argsort(-flat, kind="stable")
    # The chosen one comes first, also where it is tied with others.
    ranked = np.concatenate([[best], by_score[by_score != best]])
    results["rank"] = np.empty(flat.size, dtype=np.intp)
    results["rank"][ranked] = np.arange(1, flat.size + 1)
    chosen = {name: float(results[name][best]) for name in list(results)[:3]}
    return Selection(**chosen, results=results)
