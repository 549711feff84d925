"""The paper's GRULSIF algorithm: cyclic block coordinate gradient descent (CBCGD).

Every cycle visits the nodes in their order and updates one after the other:

    theta_v <- (rho K + eta_v I)^{-1} [ eta_v theta_v - (A_v theta_v - b_v)
               - lam K (d_v theta_v - sum_u W_uv theta_u) ]

where earlier neighbours in the order already have their new value. K is the Gram matrix in the
plain dictionary form and the identity in the Nystrom form.

Symbols
-------
eta_v       curvature: largest eigenvalue of A_v + lam d_v K
kappa, Q    eigenvalues and eigenvectors of K

The update of a node needs only the new values of its earlier neighbours. So nodes that are not
adjacent and whose earlier neighbours are done can be updated together. `levels` finds these
sets, and one pass over them gives exactly the iterates of the node-by-node order.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.solution import Solution

# How much larger than the relative change the residual may be at convergence.
RESIDUAL_SLACK = 10.0


def solve_cbcgd(
    objective: GraphObjective, tol: float, max_iter: int, start: FloatArray | None = None
) -> Solution:
    """Run cycles from `start` (n_nodes, m), default zero, until Theta hardly changes.

    The rule of the paper, a relative change of at most `tol`, can hold far from the solution. So
    `converged` also requires a residual of the linear system of at most ten times `tol`.
    """
    n_nodes, _, m = objective.shape
    lam, rho = float(objective.lam[0]), float(objective.rho[0])
    blocks = objective.moments.second.dense()
    gram = np.eye(m) if objective.gram is None else objective.gram
    degrees = objective.laplacian.diagonal()
    adjacency = sparse.csr_array(sparse.diags_array(degrees) - objective.laplacian)
    adjacency.eliminate_zeros()
    curvature = curvatures(objective)
    kappa, rotation = np.linalg.eigh(gram)
    plan = [(nodes, adjacency[nodes]) for nodes in levels(adjacency)]
    theta = np.zeros((n_nodes, m)) if start is None else np.array(start, dtype=np.float64)
    history: list[float] = []
    met = False
    n_iter = 0
    while n_iter < max_iter and not met:
        n_iter += 1
        before = theta.copy()
        for nodes, weights in plan:
            own = theta[nodes]
            data = np.einsum("vij,vj->vi", blocks[nodes], own) - objective.rhs[nodes]
            graph = degrees[nodes, np.newaxis] * own - weights @ theta
            if objective.gram is not None:
                graph = graph @ gram
            eta = curvature[nodes, np.newaxis]
            step = eta * own - data - lam * graph
            if objective.gram is None:
                theta[nodes] = step / (rho + eta)
            else:
                theta[nodes] = (step @ rotation / (rho * kappa + eta)) @ rotation.T
        scale = float(np.linalg.norm(before))
        if scale > 0:
            history.append(float(np.linalg.norm(theta - before)) / scale)
            met = history[-1] <= tol
        else:
            met = not theta.any()
    residual = float(objective.residual(theta)[0])
    small = RESIDUAL_SLACK * tol
    solution = Solution(theta, met and residual <= small, n_iter, residual, history, "cbcgd")
    return solution.warn_unless_converged(
        small, 'Lower tol, raise max_iter, or use solver="pcg", which solves the same problem'
    )


def curvatures(objective: GraphObjective) -> FloatArray:
    """eta_v, the largest eigenvalue of A_v + lam d_v K, shape (n_nodes,)."""
    gram = np.eye(objective.shape[2]) if objective.gram is None else objective.gram
    graph = objective.lam[0] * objective.laplacian.diagonal()
    matrices = objective.moments.second.dense() + graph[:, None, None] * gram
    return np.asarray(np.linalg.eigvalsh(matrices)[:, -1])


def levels(adjacency: sparse.csr_array) -> list[IntArray]:
    """Sets of nodes that can be updated together without changing the cyclic order."""
    # The level of a node is one more than the highest level among its earlier neighbours.
    earlier = sparse.csr_array(sparse.tril(adjacency, k=-1))
    level = np.zeros(adjacency.shape[0], dtype=np.intp)
    while True:
        reach = np.zeros_like(level)
        above = np.repeat(np.arange(len(level)), np.diff(earlier.indptr))
        np.maximum.at(reach, above, level[earlier.indices] + 1)
        if np.array_equal(reach, level):
            break
        level = reach
    return [np.flatnonzero(level == k) for k in range(int(level.max()) + 1)]
