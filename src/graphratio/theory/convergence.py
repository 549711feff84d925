"""The convergence theorem: a bound on the error of the ratios, and the factor of the graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from graphratio import theory
from graphratio._utils.html import fields_html
from graphratio._utils.parameters import check_integer, check_real
from graphratio.data.graph import Graph


@dataclass(frozen=True)
class ConvergenceBound:
    """Right-hand sides of the convergence theorem, and their parts.

    Attributes
    ----------
    excess_divergence, squared_error : float
        Bounds on the mean over nodes of the true minus the attained Pearson divergence, and of
        the squared distance between estimate and ratio.
    fixed_point : float
        The local complexity of the class of functions; it carries the rate in n and n_nodes.
    variance_factor, loss_bound : float
        B_0 of the paper, the variance of the excess loss over its mean, and B_1, the largest
        excess loss of one observation.
    n_directions : float
        Eigen-directions per node that the proof treats as signal. The proof needs at least
        one; below that the bound is not established.

    Examples
    --------
    >>> from graphratio.theory import convergence_bound
    >>> bound = convergence_bound(10_000, 10, decay=2.0, capacity=1.0, smoothness=5.0, bound=10.0,
    ...                           alpha=0.1, graph_factor=1.0)
    >>> bound.squared_error > bound.fixed_point > 0
    True
    """

    excess_divergence: float
    squared_error: float
    fixed_point: float
    variance_factor: float
    loss_bound: float
    n_directions: float

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return fields_html(self, f"squared error at most {self.squared_error:.3g}")


def convergence_bound(
    n: int,
    n_nodes: int,
    *,
    decay: float,
    capacity: float,
    smoothness: float,
    bound: float,
    alpha: float,
    graph_factor: float,
    constant: float = 2.0,
    delta: float = 0.05,
) -> ConvergenceBound:
    """Bound the error of the estimated ratios, as in Theorem 1 of the paper.

    The bound is loose by orders of magnitude, but it shows the rate. The dominant part falls
    like n^(-decay / (1 + decay)) n_nodes^(-1 / (1 + decay)): more nodes help much when the
    eigenvalues decay slowly, and little when they decay fast.

    Parameters
    ----------
    n, n_nodes : int
        Observations in each of the two samples of each node, and nodes.
    decay, capacity : float
        Exponent, above 1, and factor of the capacity condition mu_i <= capacity^2 i^(-decay) for
        the eigenvalues of the covariance operator: the smallest and the largest over nodes.
    smoothness : float
        Lambda of the paper, with Lambda^2 at least half the squared graph norm of the ratios:
        half of (the sum over edges of W_uv |r_u - r_v|^2 plus gamma times the sum over
        nodes of |r_v|^2), in the norm of the kernel space.
    bound : float
        Estimates range in [-bound, bound].
    graph_factor : float
        Result of the function `graph_factor` for the graph.
    alpha : float in (0, 1)
        The plain ratio, alpha = 0, is unbounded and not covered.
    constant : float, default 2
        Free constant C of the theorem, greater than 1; smaller is sharper.
    delta : float, default 0.05
        The bound holds with probability at least 1 - delta.

    Returns
    -------
    ConvergenceBound

    Notes
    -----
    The right-hand side is the printed one except where the proof does not give it:

    - The lemma on the fixed point drops the square of the capacity when it sums the tail of the
      eigenvalues. The correct step gives capacity^(2 / (1 + decay)), used here; the theorem
      prints the exponent 1 / (1 + decay).
    - The chain of inequalities that defines B_0 ends with half of B_0, but the Bernstein
      condition then uses the whole. B_0 = (bound + 1/alpha)^2 + 4/alpha is twice the printed one.
    - C = 1, which the theorem admits, makes its factor C / (C - 1) infinite.

    The factor B_1 of the fixed point is more than the theorem needs, since B_1 > 1; it is kept.

    Examples
    --------
    >>> from graphratio.theory import convergence_bound
    >>> setting = dict(decay=2.0, capacity=1.0, smoothness=5.0, bound=10.0, alpha=0.1,
    ...                graph_factor=1.0)
    >>> few = convergence_bound(10_000, 10, **setting)
    >>> many = convergence_bound(80_000, 10, **setting)
    >>> round(few.fixed_point / many.fixed_point, 6)
    4.0
    """
    n = check_integer(n, "n", low=1)
    n_nodes = check_integer(n_nodes, "n_nodes", low=1)
    zeta = check_real(decay, "decay", low=1.0)
    s = check_real(capacity, "capacity", low=0.0)
    radius = check_real(smoothness, "smoothness", low=0.0)
    alpha = check_real(alpha, "alpha", low=0.0, high=1.0)
    reach = check_real(bound, "bound", low=0.0) + 1.0 / alpha
    inverse = check_real(graph_factor, "graph_factor", low=0.0)
    c = check_real(constant, "constant", low=1.0)
    delta = check_real(delta, "delta", low=0.0, high=1.0)

    b0 = reach**2 + 4.0 / alpha
    b1 = 0.5 * reach**2 + reach
    load = (radius * s / reach) ** 2 * inverse * n / n_nodes
    fixed_point = (
        8.0 * b0 * math.sqrt((zeta + 1) / (zeta - 1)) * reach**2 / n * load ** (1 / (1 + zeta))
    )
    chance = math.log(1.0 / delta) / (n * n_nodes)
    excess = 2.0 * c * 20.0**2 * b1 * fixed_point + (16.0 * c * b0**2 + 24.0 * b0 * b1) * chance
    return ConvergenceBound(
        excess_divergence=excess,
        squared_error=2.0 * excess,
        fixed_point=fixed_point,
        variance_factor=b0,
        loss_bound=b1,
        n_directions=(4.0 * load) ** (1 / (1 + zeta)),
    )


def graph_factor(graph: Graph, gamma: float) -> float:
    """Largest diagonal entry of (Laplacian + gamma I)^-1.

    The convergence theorem depends on the graph through this factor. The entry of a node without
    edges is 1 / gamma; that of a well connected node approaches 1 / (gamma times
    the nodes of its component).

    Parameters
    ----------
    graph : Graph
    gamma : float
        Positive.

    Returns
    -------
    float

    Notes
    -----
    Beyond a thousand nodes the diagonal comes from one sparse factorisation and n_nodes
    triangular solves: little memory for sparse graphs, but time at least like n_nodes^2.

    Examples
    --------
    >>> import graphratio as gr
    >>> from graphratio.theory import graph_factor
    >>> graph_factor(gr.Graph.empty(3), gamma=0.5)
    2.0
    >>> round(graph_factor(gr.Graph.from_adjacency([[0, 1], [1, 0]]), gamma=0.5), 6)
    1.2
    """
    gam = check_real(gamma, "gamma", low=0.0)
    n_nodes = graph.n_nodes
    if n_nodes <= theory.LARGEST_DENSE:
        eigenvalues, vectors = np.linalg.eigh(graph.laplacian.toarray())
        # Rounding can make the zero eigenvalues negative, which matters for a tiny penalty.
        return float((vectors**2 @ (1.0 / (np.maximum(eigenvalues, 0.0) + gam))).max())
    shifted = sparse.csc_array(graph.laplacian + gam * sparse.eye_array(n_nodes))
    symmetric = {"SymmetricMode": True}
    factors = splu(shifted, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
    largest = 0.0
    for start in range(0, n_nodes, theory.COLUMN_BLOCK):
        units = np.eye(n_nodes, min(theory.COLUMN_BLOCK, n_nodes - start), -start)
        largest = max(largest, float(factors.solve(units)[start:].diagonal().max()))
    return largest
