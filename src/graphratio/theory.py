"""The paper's bounds with every constant computed: cycles of CBCGD, rates, capacity.

They explain how accuracy and cost depend on the data, the graph and the penalties. They are not
predictions: both bounds hold for the worst case and are loose by orders of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from graphratio.exceptions import InputError, listing
from graphratio.graph import Graph
from graphratio.typing import FloatArray, IntArray
from graphratio.validation import as_numeric, check_integer, check_real

# Up to this size dense eigenvalues take about a second and need no iteration.
LARGEST_DENSE = 1000

# Columns of an inverse computed at a time, to keep memory linear in the number of nodes.
COLUMN_BLOCK = 256

# Departures from symmetry and positivity, relative to the largest entry, that count as rounding
# of moments in single precision.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class CycleBound:
    """Bound on the number of cycles of CBCGD and the constants in it.

    Attributes
    ----------
    cycles : int
        Cycles after which the objective is within the tolerance of its minimum.
    strong_convexity : float
        Graph penalty times node penalty times `gram_eigenvalue`.
    gram_eigenvalue : float
        Smallest eigenvalue of the Gram matrix; 1 in the Nystrom form.
    curvature : float
        Largest eigenvalue of the Hessian of the smooth part.
    node_curvature : ndarray of shape (n_nodes,)
        The same for the block of each node, which is the node's learning rate.
    log_gap : float
        Logarithm of the initial gap over the tolerance, at least 0.
    """

    cycles: int
    strong_convexity: float
    gram_eigenvalue: float
    curvature: float
    node_curvature: FloatArray
    log_gap: float

    @property
    def smallest_node_curvature(self) -> float:
        """Smallest of the nodes' curvatures."""
        return float(self.node_curvature.min())


def cbcgd_cycle_bound(
    second: Any,
    graph: Graph,
    graph_penalty: float,
    node_penalty: float,
    initial_gap: float,
    tolerance: float,
    gram: Any = None,
) -> CycleBound:
    """Bound the cycles that CBCGD needs, as in Theorem 2 of the paper.

    CBCGD is the paper's cyclic block coordinate gradient descent with the learning rates it
    prescribes. The bound is loose by orders of magnitude: it proves that the method converges
    linearly and shows how the penalties, the graph and the sizes enter, but it is no forecast
    of the cycles a fit will take.

    Parameters
    ----------
    second : array of shape (n_nodes, m, m)
        Second moments of the features at each node, mixed by alpha:
        (1 - alpha) reference + alpha target.
    graph : Graph
        In the same order of nodes.
    graph_penalty, node_penalty : float
        Positive; the ridge is their product.
    initial_gap : float
        Objective at the starting point minus its minimum; at zero coefficients, where the
        objective is zero, just minus its minimum.
    tolerance : float
        Accuracy asked for, in units of the objective.
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
    ...     graph_penalty=0.1, node_penalty=1.0, initial_gap=1.0, tolerance=1e-6,
    ... )
    >>> bound.cycles
    13903
    >>> round(bound.curvature, 4)
    0.6333
    """
    moments, eigenvalues = _checked_moments(second)
    n_nodes, m = eigenvalues.shape
    if n_nodes != graph.n_nodes:
        raise InputError(
            f"second holds moments of {n_nodes} nodes, but the graph has {graph.n_nodes}",
            "Give one matrix for each node of the graph, in its order",
        )
    lam = check_real(graph_penalty, "graph_penalty", low=0.0)
    ridge = lam * check_real(node_penalty, "node_penalty", low=0.0)
    gap = check_real(initial_gap, "initial_gap", low=0.0, include_low=True)
    tol = check_real(tolerance, "tolerance", low=0.0)

    kernel: FloatArray = np.eye(m)
    c = 1.0
    if gram is None:
        node_curvature = eigenvalues[:, -1] / n_nodes + lam * graph.degrees
    else:
        kernel, c = _checked_gram(gram, m)
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
    if size <= LARGEST_DENSE:
        return float(np.linalg.eigvalsh(operator @ np.eye(size))[-1])
    # A fixed start keeps the result a function of the input; a random one, because any vector
    # with structure, such as the constants, may be orthogonal to the eigenvector sought.
    start = np.random.default_rng(0).standard_normal(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


@dataclass(frozen=True)
class ConvergenceBound:
    """Right-hand sides of the convergence theorem and the pieces they are made of.

    Attributes
    ----------
    excess_divergence : float
        Bound on the mean over nodes of the true minus the attained Pearson divergence.
    squared_error : float
        Bound on the mean over nodes of the squared distance between estimate and ratio.
    fixed_point : float
        The local complexity of the class of functions; it carries the rate in n and n_nodes.
    variance_factor : float
        Factor between the variance of the excess loss and its mean (B_0 in the paper).
    loss_bound : float
        Largest excess loss of one observation (B_1 in the paper).
    n_directions : float
        Eigen-directions per node that the proof treats as signal. The proof needs at least
        one; below that the bound is not established.
    """

    excess_divergence: float
    squared_error: float
    fixed_point: float
    variance_factor: float
    loss_bound: float
    n_directions: float


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

    The bound is loose by orders of magnitude; what it tells is the rate. The part that
    dominates falls like n^(-decay / (1 + decay)) n_nodes^(-1 / (1 + decay)): more nodes help
    when the eigenvalues decay slowly, hardly when they decay fast.

    Parameters
    ----------
    n : int
        Observations in each of the two samples of each node.
    n_nodes : int
    decay : float
        Exponent of the capacity condition, mu_i <= capacity^2 i^(-decay), for the eigenvalues
        of the covariance operator; the smallest over nodes, greater than 1.
    capacity : float
        Factor of the capacity condition; the largest over nodes.
    smoothness : float
        Lambda of the paper, with Lambda^2 at least half the squared graph norm of the ratios:
        half of (the sum over edges of W_uv |r_u - r_v|^2 plus node_penalty times the sum over
        nodes of |r_v|^2), in the norm of the kernel space.
    bound : float
        Estimates range in [-bound, bound].
    alpha : float in (0, 1)
        The plain ratio, alpha = 0, is unbounded and not covered.
    graph_factor : float
        What the function `graph_factor` returns for the graph.
    constant : float, default 2
        Free constant C of the theorem, greater than 1; smaller is sharper here.
    delta : float, default 0.05
        The bound holds with probability at least 1 - delta.

    Returns
    -------
    ConvergenceBound

    Notes
    -----
    The right-hand side is the printed one except where the proof does not give it:

    - The capacity condition is stated with the square of the capacity, and the lemma on the
      fixed point drops the square when it sums the tail of the eigenvalues. Redoing that step
      gives capacity^(2 / (1 + decay)), used here, where the theorem prints the exponent
      1 / (1 + decay).
    - The chain of inequalities that defines B_0 ends with half of B_0, and the Bernstein
      condition is then used with the whole: B_0 = (bound + 1/alpha)^2 + 4/alpha, used here,
      is twice the printed one.
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


def graph_factor(graph: Graph, node_penalty: float) -> float:
    """Largest diagonal entry of (Laplacian + node_penalty I)^-1.

    This is how the graph enters the convergence theorem: 1 / node_penalty at a node without
    edges, and towards 1 / (node_penalty times the nodes of its component) at a well connected
    one.

    Parameters
    ----------
    graph : Graph
    node_penalty : float
        Positive.

    Returns
    -------
    float

    Notes
    -----
    Beyond a thousand nodes the diagonal comes from one sparse factorisation and n_nodes
    triangular solves, a few columns at a time: memory stays that of the factors, which is
    little for sparse graphs, but the time grows at least with the square of n_nodes.

    Examples
    --------
    >>> import graphratio as gr
    >>> from graphratio.theory import graph_factor
    >>> graph_factor(gr.Graph.empty(3), node_penalty=0.5)
    2.0
    >>> round(graph_factor(gr.Graph.from_adjacency([[0, 1], [1, 0]]), node_penalty=0.5), 6)
    1.2
    """
    gam = check_real(node_penalty, "node_penalty", low=0.0)
    n_nodes = graph.n_nodes
    if n_nodes <= LARGEST_DENSE:
        eigenvalues, vectors = np.linalg.eigh(graph.laplacian.toarray())
        # Rounding leaves the zero eigenvalues slightly negative, which a tiny penalty would feel.
        return float((vectors**2 @ (1.0 / (np.maximum(eigenvalues, 0.0) + gam))).max())
    shifted = sparse.csc_array(graph.laplacian + gam * sparse.eye_array(n_nodes))
    factors = splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    largest = 0.0
    for start in range(0, n_nodes, COLUMN_BLOCK):
        columns = np.arange(start, min(start + COLUMN_BLOCK, n_nodes))
        units = np.zeros((n_nodes, len(columns)))
        units[columns, np.arange(len(columns))] = 1.0
        inverse = factors.solve(units)
        largest = max(largest, float(inverse[columns, np.arange(len(columns))].max()))
    return largest


@dataclass(frozen=True, eq=False)
class Capacity:
    """How fast the eigenvalues of the features' covariance decay.

    Attributes
    ----------
    decay, capacity : float
        Exponent and factor with which mu_i <= capacity^2 i^(-decay) holds at all nodes: the
        smallest decay and the largest capacity of a node.
    node_decay, node_capacity : ndarray of shape (n_nodes,)
        The same for each node; NaN where fewer than two eigenvalues are significant.
    n_eigenvalues : ndarray of shape (n_nodes,)
        Number of significant eigenvalues of each node.
    """

    decay: float
    capacity: float
    node_decay: FloatArray
    node_capacity: FloatArray
    n_eigenvalues: IntArray

    @property
    def advice(self) -> str:
        """What the decay means for estimating the nodes together, in plain words."""
        if self.decay <= 1.0:
            return (
                f"The eigenvalues fall only like i^-{max(self.decay, 0.0):.2g}: the convergence "
                "theorem needs a decay above 1. A larger bandwidth makes them fall faster."
            )
        nodes, own = 1.0 / (1.0 + self.decay), self.decay / (1.0 + self.decay)
        if self.decay < 2.0:
            verdict = "Slow decay: estimating the nodes together promises a gain"
        elif self.decay < 4.0:
            verdict = "Moderate decay: estimating the nodes together promises some gain"
        else:
            verdict = (
                "Fast decay: estimating the nodes together promises little, "
                "more observations per node promise more"
            )
        return f"{verdict} (error bound like n^-{own:.2f} n_nodes^-{nodes:.2f})."


def estimate_capacity(second: Any, floor: float = 1e-8) -> Capacity:
    """Estimate the decay of eigenvalues that the convergence theorem assumes.

    A line is fitted to log mu_i against log i over the significant eigenvalues of each node;
    then capacity is the smallest factor with which the condition mu_i <= capacity^2 i^(-decay)
    holds for them. For kernels whose eigenvalues fall faster than any power, such as the
    Gaussian one, the exponent describes the range above `floor` only.

    Parameters
    ----------
    second : array of shape (m, m) or (n_nodes, m, m)
        Second moments of features whose Gram matrix is the identity (the Nystrom form), so
        that their eigenvalues are those of the covariance operator.
    floor : float in (0, 1), default 1e-8
        Eigenvalues below this share of a node's largest are left out: sampling and rounding
        noise is flat, and would pass for slow decay.

    Returns
    -------
    Capacity

    Examples
    --------
    >>> import numpy as np
    >>> from graphratio.theory import estimate_capacity
    >>> found = estimate_capacity(np.diag(4.0 * np.arange(1.0, 20.0) ** -1.5))
    >>> round(found.decay, 6), round(found.capacity, 6)
    (1.5, 2.0)
    >>> print(found.advice)
    Slow decay: estimating the nodes together promises a gain
    (error bound like n^-0.60 n_nodes^-0.40).
    """
    floor = check_real(floor, "floor", low=0.0, high=1.0)
    values = as_numeric(second, "second")
    _, eigenvalues = _checked_moments(values[np.newaxis] if values.ndim == 2 else values)
    descending = eigenvalues[:, ::-1]
    significant = (descending > floor * descending[:, :1]) & (descending > 0.0)
    counts = significant.sum(axis=1)
    decay = np.full(len(counts), np.nan)
    capacity = np.full(len(counts), np.nan)
    log_index = np.log(np.arange(1, descending.shape[1] + 1))
    for node in np.flatnonzero(counts >= 2):
        x, y = log_index[: counts[node]], np.log(descending[node, : counts[node]])
        decay[node] = -np.polynomial.polynomial.polyfit(x, y, 1)[1]
        capacity[node] = math.exp(0.5 * np.max(y + decay[node] * x))
    if np.isnan(decay).all():
        raise InputError(
            "no node has two significant eigenvalues, so there is no decay to estimate",
            "Use more features, more observations or a smaller floor",
        )
    return Capacity(
        decay=float(np.nanmin(decay)),
        capacity=float(np.nanmax(capacity)),
        node_decay=decay,
        node_capacity=capacity,
        n_eigenvalues=counts,
    )


def _checked_moments(second: Any) -> tuple[FloatArray, FloatArray]:
    """Moments of shape (n_nodes, m, m), made exactly symmetric, and ascending eigenvalues."""
    moments = as_numeric(second, "second")
    if moments.ndim != 3 or moments.shape[1] != moments.shape[2] or 0 in moments.shape:
        raise InputError(
            f"second has shape {moments.shape}",
            "Pass one square matrix for each node, shape (n_nodes, m, m)",
        )
    return _symmetric_spectra(moments, "second")


def _checked_gram(gram: Any, m: int) -> tuple[FloatArray, float]:
    """Gram matrix and its smallest eigenvalue, which has to be clearly positive."""
    matrix = as_numeric(gram, "gram")
    if matrix.shape != (m, m):
        raise InputError(
            f"gram has shape {matrix.shape}, but the moments have {m} features",
            f"Pass a matrix of shape ({m}, {m})",
        )
    kernels, eigenvalues = _symmetric_spectra(matrix[np.newaxis], "gram")
    smallest, largest = float(eigenvalues[0, 0]), float(eigenvalues[0, -1])
    if smallest <= m * np.finfo(np.float64).eps * largest:
        raise InputError(
            f"gram is singular to rounding (eigenvalues {smallest:.3g} to {largest:.3g})",
            "Use the Nystrom form: whitened features and gram=None",
        )
    return kernels[0], smallest


def _symmetric_spectra(matrices: FloatArray, name: str) -> tuple[FloatArray, FloatArray]:
    """Symmetric part and ascending eigenvalues of matrices that must be symmetric and >= 0."""
    if not np.isfinite(matrices).all():
        raise InputError(f"{name} contains NaN or infinite values")
    scale = ROUNDING * np.abs(matrices).max(axis=(1, 2))
    transposed = matrices.swapaxes(1, 2)
    skewed = np.abs(matrices - transposed).max(axis=(1, 2)) > scale
    if skewed.any():
        raise InputError(f"{name} is not symmetric{_at(skewed)}", "Pass second moments")
    symmetric = 0.5 * (matrices + transposed)
    eigenvalues = np.linalg.eigvalsh(symmetric)
    negative = eigenvalues[:, 0] < -scale
    if negative.any():
        raise InputError(
            f"{name} has negative eigenvalues, down to {eigenvalues.min():.3g}{_at(negative)}",
            "Pass second moments, which are positive semi-definite",
        )
    return symmetric, eigenvalues


def _at(positions: Any) -> str:
    return (
        f" at positions {listing(np.flatnonzero(positions).tolist())}" if len(positions) > 1 else ""
    )
