"""A few profiles shared by all nodes: alternating minimisation, each step solved exactly.

    Phi(B, C) = sum_v [ 1/2 c_v' B' A_v B c_v - b_v' B c_v ]
                + lam sum_uv W_uv phi(|B (c_u - c_v)|_M)      over the edges, each once
                + rho/2 sum_v |B c_v|^2

Symbols
-------
A, b        mixed second and first moment of each node, see `moments.node_moments`
B           profiles, the coefficients of g_1 .. g_r in the features, shape (m, r)
C           coordinates, shape (n_nodes, r): the ratio of node v is rho_0 + sum_k c_vk g_k
M           mean of the A_v: |B c|_M is the root mean square of the function over the data
phi         penalty of a difference, see `learned_edges`
lam, rho    strength of the graph (graph penalty times mean degree), and ridge

This is the problem of `moments.objective` for coefficients Theta = C B' of rank r, but the
penalty measures differences between neighbours over the data, not in the kernel norm, and edge
weights are divided by the mean degree. So lam is a pure number for any bandwidth, any roughness
of the ratios and any unit of the weights: at lam = 1 the neighbours of a node together count
about as much as its own data.

Phi is quadratic in C and in B, and a quadratic function bounds it at every reweighting of the
edges. So none of the three steps increases it. Profiles with the same span give the same Phi, so
they are kept orthonormal: B' M B = I.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from graphratio._utils.typing import FloatArray
from graphratio.solvers.learned_edges import Edges, typical_distance
from graphratio.solvers.path import SMALL_SYSTEM
from graphratio.solvers.positive_definite import smallest_solution, solve_positive
from graphratio.solvers.profile_problem import ProfileData
from graphratio.solvers.solution import Solution

# Relative residual of the iterative solve for more than SMALL_SYSTEM unknowns.
RESIDUAL = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}
MAX_ITERATIONS = 2000

# Largest strength of the fit that gives the first edge weights.
FIRST_STRENGTH = 5.0

# Below this sum of squared coordinates there are no profiles to refit.
NO_CHANGE = 1e-20

# Smoothing of the moments that give the first profiles.
START_STRENGTH = 1.0
START_RIDGE = 1e-4


@dataclass(frozen=True, eq=False)
class Profiles:
    """Profiles (m, r), coordinates (n_nodes, r), and the edge weights (n_edges,) that gave them."""

    profiles: FloatArray
    coordinates: FloatArray
    weights: FloatArray
    scale: float | None

    @property
    def theta(self) -> FloatArray:
        """Coefficients of all nodes, shape (n_nodes, m)."""
        return np.asarray(self.coordinates @ self.profiles.T)


def objective_value(problem: ProfileData, fit: Profiles, strength: float, ridge: float) -> float:
    """Phi(B, C), with the adaptive penalty if the fit has a scale."""
    loss = problem.loss(fit.profiles, fit.coordinates)
    distances = problem.edges.distances(fit.coordinates @ _metric_root(problem, fit.profiles))
    edges = strength * problem.edges.penalty(distances, fit.scale)
    return float(loss + edges + 0.5 * ridge * np.square(fit.theta).sum())


def rounds(
    problem: ProfileData,
    profiles: FloatArray,
    strength: float,
    ridge: float,
    n_rounds: int,
    *,
    adaptive: bool,
) -> list[Profiles]:
    """Fits after 0, 1, ..., n_rounds rounds, from profiles (m, r) with B' M B = I.

    Every round refits profiles and coordinates, if `adaptive` after reweighting the edges.
    """
    weights, scale = problem.edges.weights, None
    start = np.zeros((problem.edges.n_nodes, profiles.shape[1]), dtype=problem.dtype)
    coordinates = fit_coordinates(problem, profiles, weights, strength, ridge, start)
    path = [Profiles(profiles, coordinates, weights, scale)]
    if adaptive and n_rounds and strength > FIRST_STRENGTH:
        # A strong penalty makes the ends of all edges alike, so a weaker one gives first weights.
        coordinates = fit_coordinates(
            problem, profiles, weights, FIRST_STRENGTH, ridge, coordinates
        )
    for _ in range(n_rounds):
        if not np.square(coordinates).sum() > NO_CHANGE:
            path.append(path[-1])
            continue
        if adaptive and len(weights):
            distances = problem.edges.distances(coordinates)
            scale = typical_distance(distances) if scale is None else scale
            weights = problem.edges.reweighted(distances, scale)
        profiles = fit_profiles(problem, coordinates, weights, strength, ridge)
        profiles, coordinates = orthonormal(problem, profiles, coordinates)
        coordinates = fit_coordinates(problem, profiles, weights, strength, ridge, coordinates)
        path.append(Profiles(profiles, coordinates, weights, scale))
    return path


def first_profiles(problem: ProfileData, n_profiles: int, *, smooth: bool) -> FloatArray:
    """Leading principal functions of a mean-field estimate, shape (m, n_profiles).

    With every A_v replaced by M the estimates are (M + rho)^{-1} times the first moments, if
    `smooth` averaged over the graph.
    """
    first = problem.first
    smoothed = _smoothed(problem.edges, first) if smooth else first
    values, vectors = np.linalg.eigh(problem.metric.astype(np.float64))
    whitening = vectors / np.sqrt(np.maximum(values, 0.0) + START_RIDGE)
    _, _, right = linalg.svd(smoothed @ whitening, full_matrices=False)
    chosen = whitening @ right[:n_profiles].T
    return orthonormal(problem, chosen.astype(problem.dtype))[0]


def _smoothed(edges: Edges, first: FloatArray) -> FloatArray:
    """(I + START_STRENGTH lap)^{-1} times the first moments, shape (n_nodes, m)."""
    if not len(edges.weights):
        return first
    strengths = START_STRENGTH * edges.weights
    if edges.n_nodes <= SMALL_SYSTEM:
        matrix = np.eye(edges.n_nodes) + edges.dense_laplacian(strengths)
        return np.asarray(np.linalg.solve(matrix, first))
    system = sparse.identity(edges.n_nodes) + edges.laplacian(strengths)
    diagonal = sparse.diags_array(1 / system.diagonal())
    columns = [cg(system, column, rtol=1e-3, M=diagonal)[0] for column in first.T]
    return np.column_stack(columns)


def fit_coordinates(
    problem: ProfileData,
    profiles: FloatArray,
    weights: FloatArray,
    strength: float,
    ridge: float,
    start: FloatArray,
) -> FloatArray:
    """Minimise over C at given profiles and weights, (n_nodes, r); iterations begin at `start`."""
    blocks, rhs = _node_systems(problem, profiles, ridge)
    if not strength or not len(weights):
        return _solve_blocks(blocks, rhs)
    strengths = strength * weights
    if rhs.size <= SMALL_SYSTEM:
        solved = _dense_coordinates(blocks, problem.edges.dense_laplacian(strengths), rhs)
    else:
        coupling = problem.edges.laplacian(strengths).astype(problem.dtype)
        solved = _iterative_coordinates(blocks, coupling, rhs, start)
    return solved.astype(problem.dtype, copy=False)


def coordinate_residual(
    problem: ProfileData, fit: Profiles, strength: float, ridge: float
) -> float:
    """Relative residual of the system that the coordinates solve."""
    blocks, rhs = _node_systems(problem, fit.profiles, ridge)
    product = (blocks @ fit.coordinates[:, :, np.newaxis])[:, :, 0]
    product += problem.edges.laplacian(strength * fit.weights) @ fit.coordinates
    return float(np.linalg.norm(product - rhs) / (np.linalg.norm(rhs) or 1.0))


def solution_of(
    problem: ProfileData, path: list[Profiles], penalties: tuple[float, float], tol: float
) -> Solution:
    """The last fit of a path as a solution; `penalties` are strength and ridge."""
    residual = coordinate_residual(problem, path[-1], *penalties)
    return Solution(
        theta=path[-1].theta,
        converged=residual <= max(tol, RESIDUAL[problem.dtype]),
        n_iter=len(path) - 1,
        residual=residual,
        history=[objective_value(problem, fit, *penalties) for fit in path],
        method="alternating least squares",
    )


def _node_systems(
    problem: ProfileData, profiles: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Matrices (n_nodes, r, r) and right-hand sides (n_nodes, r) without the graph."""
    blocks, rhs = problem.projected(profiles)
    blocks += ridge * (profiles.T @ profiles)
    # Directions of pure rounding error must not blow up the coordinates.
    each = np.arange(blocks.shape[1])
    trace = np.trace(blocks, axis1=1, axis2=2)[:, np.newaxis]
    blocks[:, each, each] += np.finfo(blocks.dtype).eps * trace / len(each)
    return blocks, rhs


def _dense_coordinates(blocks: FloatArray, coupling: FloatArray, rhs: FloatArray) -> FloatArray:
    n_nodes, r = rhs.shape
    matrix = np.zeros((n_nodes, r, n_nodes, r), dtype=blocks.dtype)
    each = np.arange(n_nodes)
    for k in range(r):
        matrix[:, k, :, k] = coupling
    matrix[each, :, each, :] += blocks
    return solve_positive(matrix.reshape(n_nodes * r, -1), rhs.ravel()).reshape(n_nodes, r)


def _solve_blocks(blocks: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve the system of every node; the least-norm solution if one is singular."""
    right = rhs[:, :, np.newaxis]
    try:
        return np.asarray(np.linalg.solve(blocks, right)[:, :, 0])
    except np.linalg.LinAlgError:
        return smallest_solution(blocks, right)[:, :, 0]


def _iterative_coordinates(
    blocks: FloatArray, coupling: sparse.csr_array, rhs: FloatArray, start: FloatArray
) -> FloatArray:
    """Conjugate gradients, preconditioned by the block of every node."""
    shape = rhs.shape
    diagonal = coupling.diagonal()[:, np.newaxis, np.newaxis] * np.eye(shape[1], dtype=rhs.dtype)
    inverse = np.linalg.inv(blocks + diagonal)

    def product(x: FloatArray) -> FloatArray:
        c = x.reshape(shape)
        return np.asarray((blocks @ c[:, :, np.newaxis])[:, :, 0] + coupling @ c).ravel()

    def precondition(x: FloatArray) -> FloatArray:
        return np.asarray((inverse @ x.reshape(*shape, 1)).ravel())

    size = (rhs.size, rhs.size)
    solved, _ = cg(
        LinearOperator(size, matvec=product, dtype=rhs.dtype),
        rhs.ravel(),
        x0=start.ravel(),
        rtol=RESIDUAL[rhs.dtype],
        maxiter=MAX_ITERATIONS,
        M=LinearOperator(size, matvec=precondition, dtype=rhs.dtype),
    )
    return np.asarray(solved.reshape(shape))


def fit_profiles(
    problem: ProfileData,
    coordinates: FloatArray,
    weights: FloatArray,
    strength: float,
    ridge: float,
) -> FloatArray:
    """Minimise over B at given coordinates and edge weights, shape (m, r)."""
    m, r = problem.metric.shape[0], coordinates.shape[1]
    first, second = np.triu_indices(r)
    sums, rhs = problem.pooled(coordinates)
    dtype = problem.dtype
    system = np.empty((r, r, m, m), dtype=dtype)
    system[first, second] = system[second, first] = sums
    c = coordinates.astype(np.float64)
    differences = strength * problem.edges.quadratic(c, weights)
    system += differences.astype(dtype)[:, :, np.newaxis, np.newaxis] * problem.metric.astype(dtype)
    each = np.arange(m)
    system[:, :, each, each] += (ridge * (c.T @ c))[:, :, np.newaxis].astype(dtype)
    square = system.transpose(0, 2, 1, 3).reshape(r * m, r * m)
    # Profiles that no node uses make the system singular; then any answer will do.
    square[np.diag_indices(r * m)] += np.finfo(dtype).eps * np.trace(square) / (r * m)
    solved = solve_positive(square, rhs.ravel())
    return np.asarray(solved.reshape(r, m).T.astype(dtype))


def orthonormal(
    problem: ProfileData, profiles: FloatArray, coordinates: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Profiles of the same span with B' M B = I, and coordinates that give the same ratios."""
    if coordinates is None:
        coordinates = np.zeros((0, profiles.shape[1]), dtype=profiles.dtype)
    root = _metric_root(problem, profiles)
    scaled = np.linalg.solve(root, profiles.T).T
    dtype = problem.dtype
    return np.ascontiguousarray(scaled, dtype=dtype), (coordinates @ root).astype(dtype)


def _metric_root(problem: ProfileData, profiles: FloatArray) -> FloatArray:
    """Lower triangular L with L L' = B' M B."""
    gram = (profiles.T @ problem.metric @ profiles).astype(np.float64)
    precision = np.finfo(problem.dtype)
    if not np.trace(gram) > precision.tiny / precision.eps:
        # No node of the fold has both samples, so there is nothing to scale by.
        return np.eye(len(gram))
    gram[np.diag_indices(len(gram))] += 1e-12 * np.trace(gram)
    try:
        return np.asarray(np.linalg.cholesky(gram))
    except np.linalg.LinAlgError:
        # The profiles are linearly dependent, as with very few observations. Directions below
        # the rounding error are noise of either sign.
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        lifted = (vectors * np.maximum(values, precision.eps * values[-1])) @ vectors.T
        return np.asarray(np.linalg.cholesky(lifted))
