"""A bound on the cycles of the paper's block coordinate gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from graphratio import theory
from graphratio._utils.errors import InputError
from graphratio._utils.html import fields_html
from graphratio._utils.parameters import check_real
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.theory.spectra import checked_gram, checked_moments


@dataclass(frozen=True, eq=False)
class CycleBound:
    """Bound on the number of cycles of CBCGD and the constants in it.

    Attributes
    ----------
    cycles : int
        Cycles after which the objective is within the tolerance of its minimum.
    gram_eigenvalue, strong_convexity : float
        Smallest eigenvalue of the Gram matrix, 1 in the Nystrom form; lambda times gamma times it.
    curvature, node_curvature : float, ndarray of shape (n_nodes,)
        Largest eigenvalue of the Hessian of the smooth part, and of the block of each node, which
        is the node's learning rate.
    log_gap : float
        Logarithm of the initial gap over the tolerance, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.theory import cbcgd_cycle_bound
    >>> bound = cbcgd_cycle_bound(
    ...     second=np.stack([np.eye(2)] * 3), graph=gr.Graph.from_edges([(0, 1), (1, 2)]),
    ...     lambda_=0.1, gamma=1.0, initial_gap=1.0, tolerance=1e-6,
    ... )
    >>> round(bound.strong_convexity, 6), bound.node_curvature.shape
    (0.1, (3,))
    """

    cycles: int
    strong_convexity: float
    gram_eigenvalue: float
    curvature: float
    node_curvature: FloatArray
    log_gap: float

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return fields_html(self, f"at most {self.cycles:,} cycles")


def cbcgd_cycle_bound(
    second: Any,
    graph: Graph,
    lambda_: float,
    gamma: float,
    initial_gap: float,
    tolerance: float,
    gram: Any = None,
) -> CycleBound:
    """Bound the cycles that CBCGD needs, as in Theorem 2 of the paper.

    CBCGD is the paper's cyclic block coordinate gradient descent. The bound proves linear
    convergence and shows the influence of penalties, graph and sizes; it is loose by orders of
    magnitude and does not predict the cycles of a fit.

    Parameters
    ----------
    second : array of shape (n_nodes, m, m)
        Second moments of the features at each node, mixed by alpha:
        (1 - alpha) reference + alpha target.
    graph : Graph
        In the same order of nodes.
    lambda_, gamma : float
        The paper's penalties, positive; the ridge is their product. `paper_penalties_` of a
        fitted model has both.
    initial_gap, tolerance : float
        Objective at the start minus its minimum (at zero coefficients the objective is zero), and
        requested accuracy.
    gram : array of shape (m, m), optional
        Gram matrix of the dictionary, if the features are plain kernel values. Default:
        the Nystrom form, where it is the identity.

    Returns
    -------
    CycleBound

    Notes
    -----
    With mu the strong convexity, C the curvature and C_min the smallest curvature of a node,
    the bound is (1 + 16 C^2 log^2(3 n_nodes m) / (mu (C_min + mu))) log(gap / tolerance),
    rounded up.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.theory import cbcgd_cycle_bound
    >>> bound = cbcgd_cycle_bound(
    ...     second=np.stack([np.eye(2)] * 3), graph=gr.Graph.from_edges([(0, 1), (1, 2)]),
    ...     lambda_=0.1, gamma=1.0, initial_gap=1.0, tolerance=1e-6,
    ... )
    >>> bound.cycles
    13903
    >>> round(bound.curvature, 4)
    0.6333
    """
    moments, eigenvalues = checked_moments(second)
    n_nodes, m = eigenvalues.shape
    if n_nodes != graph.n_nodes:
        raise InputError(
            f"second holds moments of {n_nodes} nodes, but the graph has {graph.n_nodes}",
            "Give one matrix for each node of the graph, in its order",
        )
    lam = check_real(lambda_, "lambda_", low=0.0)
    ridge = lam * check_real(gamma, "gamma", low=0.0)
    gap = check_real(initial_gap, "initial_gap", low=0.0, include_low=True)
    tol = check_real(tolerance, "tolerance", low=0.0)

    kernel: FloatArray = np.eye(m)
    c = 1.0
    if gram is None:
        node_curvature = eigenvalues[:, -1] / n_nodes + lam * graph.degrees
    else:
        kernel, c = checked_gram(gram, m)
        coupling = lam * graph.degrees[:, np.newaxis, np.newaxis] * kernel
        node_curvature = np.linalg.eigvalsh(moments / n_nodes + coupling)[:, -1]
    mu = ridge * c
    curvature = _largest_eigenvalue(moments / n_nodes, lam * graph.laplacian, kernel)
    condition = curvature**2 / (mu * (float(node_curvature.min()) + mu))
    log_gap = math.log(gap / tol) if gap > tol else 0.0
    return CycleBound(
        cycles=math.ceil((1.0 + 16.0 * condition * math.log(3 * n_nodes * m) ** 2) * log_gap),
        strong_convexity=mu,
        gram_eigenvalue=c,
        curvature=curvature,
        node_curvature=node_curvature,
        log_gap=log_gap,
    )


def _largest_eigenvalue(
    blocks: FloatArray, laplacian: sparse.csr_array, kernel: FloatArray
) -> float:
    """Largest eigenvalue of blockdiag(blocks) + laplacian (x) kernel."""
    n_nodes, m = blocks.shape[:2]
    size = n_nodes * m

    def apply(vector: FloatArray) -> FloatArray:
        theta = vector.reshape(n_nodes, m)
        local = np.matmul(blocks, theta[:, :, np.newaxis])[:, :, 0]
        return np.asarray(local + laplacian @ (theta @ kernel)).ravel()

    operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
    # Read from the package at every call, so that one assignment there changes every method.
    if size <= theory.LARGEST_DENSE:
        return float(np.linalg.eigvalsh(operator @ np.eye(size))[-1])
    # A fixed seed makes the result a function of the input. The start is random, because a vector
    # with structure, such as the constants, may be orthogonal to the eigenvector.
    start = np.random.default_rng(0).standard_normal(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
