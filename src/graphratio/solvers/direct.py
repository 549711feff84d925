"""Closed forms: one dense solve over all nodes, or without a graph one small solve per node.

Symbols as in `moments.objective`: A, b, lap, lam, rho, K.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from graphratio._utils.errors import InputError
from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import FactoredSecond
from graphratio.solvers.solution import Solution

# A dense system of this many unknowns takes 0.8 GB and about ten seconds.
LARGEST_SYSTEM = 10_000

# Number of nodes that are solved at once, to bound memory.
SOLVED_AT_ONCE = 2048

# Systems in the rows of a node lose too many digits with a smaller ridge.
TINY_RIDGE = 1e-8


def system_matrix(objective: GraphObjective) -> FloatArray:
    """Hessian blockdiag(A) + (lam lap + rho I) (x) K, dense, shape (n_nodes m, n_nodes m)."""
    n_nodes, _, m = objective.shape
    gram = np.eye(m) if objective.gram is None else objective.gram
    lam, rho = objective.lam[0], objective.rho[0]
    matrix = np.kron(lam * objective.laplacian.toarray() + rho * np.eye(n_nodes), gram)
    diagonal = matrix.reshape(n_nodes, m, n_nodes, m)
    each = np.arange(n_nodes)
    diagonal[each, :, each, :] += objective.moments.second.dense()
    return matrix


def solve_direct(objective: GraphObjective, tol: float) -> Solution:
    """Solve the dense system of a single candidate by Cholesky factorisation."""
    n_nodes, _, m = objective.shape
    if n_nodes * m > LARGEST_SYSTEM:
        raise InputError(
            f"the dense system of {n_nodes} nodes x {m} features has {n_nodes * m} unknowns, "
            f"more than {LARGEST_SYSTEM}",
            'Use solver="pcg" or solver="auto"',
        )
    flat = linalg.solve(
        system_matrix(objective), objective.rhs.ravel(), assume_a="pos", check_finite=False
    )
    return _finished(objective, flat.reshape(n_nodes, m), tol, "direct")


def solve_nodes(objective: GraphObjective) -> FloatArray:
    """Every node by itself, the paper's closed form of POOL, shape (n_nodes, n_candidates, m)."""
    second = objective.moments.second
    regular = objective.gram is None and bool((objective.rho > TINY_RIDGE).all())
    if regular and isinstance(second, FactoredSecond) and second.low_rank:
        return _solve_rows(objective, second)
    n_nodes, n_candidates, m = objective.shape
    gram = np.eye(m) if objective.gram is None else objective.gram
    blocks = second.dense(compact=True)
    dtype = second.dtype
    theta = np.empty((n_nodes, n_candidates, m), dtype=dtype)
    for begin in range(0, n_nodes, SOLVED_AT_ONCE):
        nodes = slice(begin, begin + SOLVED_AT_ONCE)
        part = blocks[nodes].astype(dtype)
        rhs = objective.rhs[nodes, :, np.newaxis]
        for candidate, ridge in enumerate(objective.rho):
            matrix = part + (ridge * gram).astype(dtype)
            theta[nodes, candidate] = np.linalg.solve(matrix, rhs)[..., 0]
    return theta


def _solve_rows(objective: GraphObjective, second: FactoredSecond) -> FloatArray:
    """The same at nodes with fewer rows than features, by systems as large as the rows.

    With rows R, A = R'R, Woodbury's identity is (A + rho I)^{-1} b =
    (b - R' (R R' + rho I)^{-1} R b) / rho. The difference loses digits, so it is in double
    precision.
    """
    theta = np.zeros(objective.shape, dtype=second.dtype)
    for part, psi, weights in second.parts:
        for begin in range(0, len(part), SOLVED_AT_ONCE):
            some = slice(begin, begin + SOLVED_AT_ONCE)
            nodes, root = part[some], np.sqrt(weights[some], dtype=np.float64)
            rows = psi[some] * root[:, :, np.newaxis]
            gram = rows @ rows.transpose(0, 2, 1)
            rhs = objective.rhs[nodes, :, np.newaxis].astype(np.float64)
            seen = rows @ rhs
            for candidate, ridge in enumerate(objective.rho.astype(np.float64)):
                inside = np.linalg.solve(gram + ridge * np.eye(gram.shape[1]), seen)
                outside = rhs - rows.transpose(0, 2, 1) @ inside
                theta[nodes, candidate] = outside[..., 0] / ridge
    return theta


def solve_per_node(objective: GraphObjective, tol: float) -> Solution:
    """Solve a single candidate without coupling, node by node."""
    return _finished(objective, solve_nodes(objective)[:, 0], tol, "per-node closed form")


def _finished(objective: GraphObjective, theta: FloatArray, tol: float, method: str) -> Solution:
    residual = float(objective.residual(theta)[0])
    solution = Solution(theta, residual <= tol, 0, residual, [residual], method)
    return solution.warn_unless_converged(
        tol, "The system is nearly singular: raise ridge, or widen tol"
    )
