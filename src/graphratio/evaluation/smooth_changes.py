"""Changes of means at every node, drawn towards those of neighbours as far as the data suggest.

With few observations the change of a node's own means is mostly noise. The changes of all nodes
are modelled as a smooth field on the graph, observed with noise of known size. How smooth it is and
how much it varies follow from the likelihood of the observed changes, so that a graph that does
not help is not used.

Symbols
-------
y_v         change of the means of node v, with variance s_v^2 of its two means
theta       true changes: normal around a level m, with precision (Lap + mu I) / tau
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, optimize, sparse
from scipy.sparse.linalg import cg, splu
from scipy.special import digamma, polygamma

from graphratio._utils.html import rows_table, titled
from graphratio._utils.threads import single_thread
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import align, as_graph, as_samples
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.moments.node_moments import segment_indicator
from graphratio.selection.patches import choose_patches

# Rows of the table for notebooks.
_SHOWN = 8

# With more nodes than this, smoothness is estimated on patches of this many.
LARGEST_EIGENBASIS = 1000
# Systems of more nodes are solved without factors.
MOST_FACTORED = 5000

# Nodes have scales of their own from this ratio between large and small standard deviations.
DIFFERENT = 3.0
# Neighbours move the estimate of a node freely up to this many standard errors of its own change.
# Beyond, the node is probably an exception, and the estimate returns to its own change.
FURTHEST = 2.0
# Nodes with a larger variance, relative to the median, are not used to estimate smoothness.
NOISY = 10.0

# Where the search for (log tau, log mu) begins, in units of the observed variance and mean degree.
_STARTS = ((-2.0, 0.0), (0.0, 0.0), (0.0, -3.0))


@dataclass(frozen=True, eq=False, repr=False)
class MeanChanges:
    """Changes of the mean of every feature from reference to target.

    Attributes
    ----------
    own : ndarray of shape (n_nodes, n_features)
        Changes of the node's own samples; NaN where one is missing.
    estimate : ndarray of shape (n_nodes, n_features)
        Drawn towards the changes of neighbours, also where a sample is missing.
    nodes : tuple of labels

    Examples
    --------
    >>> import graphratio as gr
    >>> found = gr.mean_changes(([[0.0, 1.0], [0.0, 1.0]], [[2.0, 3.0], [0.0, 1.0]]))
    >>> found.own.ravel().tolist()
    [2.0, 0.0]
    """

    own: FloatArray
    estimate: FloatArray
    nodes: tuple[Any, ...]

    @property
    def _largest(self) -> IntArray:
        """Positions of nodes, the largest change first, with every feature on its own scale."""
        scale = np.nanstd(self.estimate, axis=0)
        size = np.abs(self.estimate / np.where(scale > 0, scale, 1.0)).max(axis=1)
        return np.asarray(np.argsort(-np.nan_to_num(size), kind="stable"))

    def _line(self, v: int) -> str:
        return ", ".join(f"{value:+.3g}" for value in self.estimate[v])

    def __repr__(self) -> str:
        largest = ", ".join(f"{self.nodes[v]!r} {self._line(v)}" for v in self._largest[:3])
        return f"MeanChanges(n_nodes={len(self.nodes)}), largest: {largest}"

    def _repr_html_(self) -> str:
        """Table for notebooks: the largest changes."""
        body = [
            (str(self.nodes[v]), self._line(v), ", ".join(f"{x:+.3g}" for x in self.own[v]))
            for v in self._largest[:_SHOWN]
        ]
        head = ("largest changes", "with neighbours", "own observations")
        return titled(f"changes of means at {len(self.nodes):,} nodes", rows_table(head, body))


def mean_changes(samples: Any, graph: Graph | None = None) -> MeanChanges:
    """Estimate how the mean of every feature changed at every node, with the help of neighbours.

    Parameters
    ----------
    samples : NodeSamples, or a tuple (reference, target)
        In the units wanted.
    graph : Graph, optional
        Aligned with the samples by label. None means no edges.

    Returns
    -------
    MeanChanges

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0.0, 2.0], 20)
    >>> reference, target = rng.normal(size=(2, 40, 5))
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(39)])
    >>> found = gr.mean_changes((list(reference), list(target + truth[:, None])), graph)
    >>> for change in (found.own, found.estimate):
    ...     print(round(float(np.abs(change[:, 0] - truth).mean()), 2))
    0.56
    0.24
    """
    data = as_samples(samples)
    graph = as_graph(graph, data)
    data = align(data, graph)
    own, spread, variance = _observed(data)
    estimate = own.copy()
    if graph.n_edges:
        with single_thread():
            for j in range(data.n_features):
                estimate[:, j] = _smoothed(own[:, j], spread[:, j], variance[:, j], graph)
    return MeanChanges(own, estimate, data.nodes)


def _observed(data: NodeSamples) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Changes of means, variances of observations and of the changes, (n_nodes, n_features) each.

    Variances within samples are drawn towards the typical one of all nodes, since a few
    observations hardly show them.
    """
    sizes = data.sizes.ravel()
    sums = segment_indicator(sizes, np.dtype(np.float64))
    count = np.maximum(sizes, 1)[:, np.newaxis]
    mean = (sums @ data.values) / count
    squares = sums @ (data.values - mean[data.segments]) ** 2
    within = squares.reshape(data.n_nodes, 2, -1).sum(axis=1)
    freedom = (sizes - 1).clip(0).reshape(-1, 2).sum(axis=1)[:, np.newaxis]
    spread = _variances(within, freedom)
    shape = (data.n_nodes, 2, data.n_features)
    own = np.diff(mean.reshape(shape), axis=1)[:, 0]
    own[~data.complete] = np.nan
    return own, spread, (1 / count).reshape(-1, 2, 1).sum(axis=1) * spread


def _variances(within: FloatArray, freedom: FloatArray) -> FloatArray:
    """Variances of nodes from sums of squares, drawn together as far as chance explains them.

    Logarithms of variances with d degrees of freedom vary by trigamma(d / 2) through chance. Their
    variance beyond that decides how far they are drawn towards the typical one. Scales of nodes can
    differ by powers of ten, so the logarithms are drawn together.
    """
    spread = np.zeros_like(within)
    for j in range(within.shape[1]):
        used = (freedom[:, 0] > 0) & (within[:, j] > 0)
        if not used.any():
            continue
        half = freedom[used, 0] / 2
        # Without the bias of the logarithm of an estimated variance.
        own = np.log(within[used, j]) - np.log(2.0) - digamma(half)
        chance, typical = polygamma(1, half), float(np.median(own))
        excess = max(float(np.var(own) - np.median(chance)), 0.0)
        spread[:, j] = np.exp(typical)
        spread[used, j] = np.exp(typical + excess / (excess + chance) * (own - typical))
    return spread


def _smoothed(y: FloatArray, spread: FloatArray, variance: FloatArray, graph: Graph) -> FloatArray:
    """The mean of theta given y, in units in which nodes can be compared, shape (n_nodes,)."""
    known = np.flatnonzero(np.isfinite(y))
    scale = float(np.std(y[known]))
    if known.size < 3 or scale == 0 or variance[known].max() == 0:
        # Nothing to learn from: own changes, and their mean where there is none.
        return np.where(np.isfinite(y), y, np.mean(y[known]))
    deviation = np.sqrt(np.maximum(variance, variance[known].max() * 1e-9))
    unit = np.full_like(y, scale)
    own_unit = np.sqrt(np.maximum(spread, spread[known].max() * 1e-9))
    if np.quantile(own_unit[known], 0.9) > DIFFERENT * np.quantile(own_unit[known], 0.1):
        # Nodes of very different scale change alike in units of their own.
        unit = own_unit
    smooth = unit * _posterior(y / unit, (deviation / unit) ** 2, graph, known)
    # Neighbours may not outvote clear observations of the node itself: the further they would move
    # it, the less they may.
    moved = (smooth - y) / deviation
    share = np.square(FURTHEST / np.maximum(np.abs(moved), FURTHEST))
    return np.where(np.isfinite(y), y + share * (smooth - y), smooth)


def _posterior(y: FloatArray, noise: FloatArray, graph: Graph, known: IntArray) -> FloatArray:
    """The mean of theta given y with variances `noise`, shape (n_nodes,)."""
    tau, mu = _likeliest(y, noise, graph, known)
    weight = np.where(np.isfinite(y), 1 / noise, 0.0)
    prior = sparse.csc_array((graph.laplacian + mu * sparse.eye_array(graph.n_nodes)) / tau)
    system = sparse.csc_array(prior + sparse.diags_array(weight))
    # The level m is that of generalised least squares.
    both = np.column_stack([np.where(weight > 0, y, 0.0), np.ones_like(y)]) * weight[:, np.newaxis]
    solved = _solved(system, both)
    ones, given = weight.sum() - weight @ solved[:, 1], np.nan_to_num(y)
    level = (weight @ given - weight @ solved[:, 0]) / max(ones, np.finfo(float).tiny)
    return np.asarray(solved[:, 0] + level * (1 - solved[:, 1]))


def _solved(system: sparse.csc_array, right: FloatArray) -> FloatArray:
    """Solve for both columns; without factors where these might fill the memory."""
    if len(right) <= MOST_FACTORED:
        return np.asarray(splu(system).solve(right))
    inverse = sparse.diags_array(1 / system.diagonal())
    columns = [cg(system, column, rtol=1e-8, M=inverse)[0] for column in right.T]
    return np.column_stack(columns)


def _likeliest(
    y: FloatArray, variance: FloatArray, graph: Graph, known: IntArray
) -> tuple[float, float]:
    """The tau and mu of the largest restricted likelihood, one variance for all nodes."""
    # Nodes that are much noisier than usual say nothing about smoothness.
    known = known[variance[known] <= NOISY * np.median(variance[known])]
    chosen = known
    if known.size > LARGEST_EIGENBASIS:
        mask = np.zeros(len(y), dtype=bool)
        mask[known] = True
        chosen = choose_patches(graph, LARGEST_EIGENBASIS, mask, np.random.default_rng(0))
        chosen = chosen[mask[chosen]]
    part = graph.subset([graph.nodes[i] for i in chosen])
    values, vectors = linalg.eigh(part.laplacian.toarray())
    # Where only nodes without observations join the others, their edges give the unit.
    noise, degree = float(np.median(variance[chosen])), part.mean_degree or graph.mean_degree
    turned, ones = vectors.T @ y[chosen], vectors.sum(axis=0)
    scale = float(np.var(y[chosen]))

    def minus_likelihood(point: FloatArray) -> float:
        tau, mu = np.exp(point) * [scale * degree, degree]
        spread = tau / (np.maximum(values, 0.0) + mu) + noise
        weight = 1 / spread
        level = (weight * ones) @ turned / ((weight * ones) @ ones)
        rest = turned - level * ones
        return float(
            0.5 * (np.log(spread) + weight * rest**2).sum() + 0.5 * np.log((weight * ones) @ ones)
        )

    found = min(
        (
            optimize.minimize(
                minus_likelihood, start, method="L-BFGS-B", bounds=[(-12.0, 4.0), (-9.0, 6.0)]
            )
            for start in _STARTS
        ),
        key=lambda result: result.fun,
    )
    tau, mu = np.exp(found.x) * [scale * degree, degree]
    return float(tau), float(mu)
