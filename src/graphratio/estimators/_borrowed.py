"""How many observations an estimate rests on: a node's own, and those it borrows.

Along one direction of the features the fit at all nodes solves a system S = K + lam Lap with
K = diag(a_v / N + lam gam): a resistor network in which every node is earthed by its own data.
Its inverse G says how far data reach: an observation at u moves the estimate at v by G_vu / G_vv
of what an observation at v moves it. This is the probability that a walk from u, which stops
where it meets data, comes to v first. It lies in [0, 1], is 0 between components, and grows
with lam. The worth of u at v is its mean over the leading directions, and the effective size of
a sample at v is n_v + sum_u worth_vu n_u.

What a node's data say about a direction is what remains when its other directions are unknown
too: a_v is the Schur complement of A_v, not its diagonal entry. In the full system the
directions also talk to each other between nodes. The blocks of its inverse do not have the
properties above (their traces can fall as lam grows), which is why directions are taken one by
one here.

Symbols
-------
c_j         leading eigenvectors of the covariance of the features, pooled over nodes
omega_j     their weights: eigenvalues, scaled to sum to one
B_v         second moments c_i' A_v c_j of node v among these directions
a_vj        1 / [(B_v + eps I)^{-1}]_jj - eps: the Schur complement, with a small ridge
K, G        as above, for one direction
B           S = B' B: one row for every edge and every node
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from graphratio.graph import Graph
from graphratio.moments import Moments
from graphratio.typing import FloatArray, IntArray

# Directions are used until they carry this share of the variance, but no more than MOST.
CARRIED = 0.9
MOST_DIRECTIONS = 8
# The ridge eps, relative to the variance of all features.
RIDGE = 1e-3

# Up to this many nodes G is formed; beyond it the diagonal comes from random projections.
LARGEST_DENSE = 800
# Their number; the relative error of an entry of the diagonal is about sqrt(2 / 400) = 7 %.
PROJECTIONS = 400
CG_TOLERANCE = 1e-4
CG_ITERATIONS = 2000


@dataclass(frozen=True, eq=False)
class Directions:
    """What is kept of the data of a fit.

    Attributes
    ----------
    weights : ndarray of shape (n_directions,)
    moments : ndarray of shape (n_nodes, n_directions)
    """

    weights: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, moments: Moments, mean_features: FloatArray) -> Directions:
        """Find the leading directions of the features and the moments of all nodes there.

        Parameters
        ----------
        moments : Moments
        mean_features : ndarray of shape (m,)
        """
        share = len(moments.complete) / max(int(moments.complete.sum()), 1)
        second = moments.second.mean().astype(np.float64) * share
        size = second.shape[0]
        low = max(size - MOST_DIRECTIONS, 0)
        covariance = second - np.outer(mean_features, mean_features)
        values, vectors = linalg.eigh(covariance, subset_by_index=(low, size - 1))
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        total = max(float(np.trace(covariance)), np.finfo(float).tiny)
        count = min(1 + int(np.searchsorted(np.cumsum(values) / total, CARRIED)), len(values))
        kept = values[:count]
        weights = kept / kept.sum() if kept.sum() > 0 else np.full(count, 1 / count)
        stack = np.broadcast_to(vectors.T, (len(moments.complete), *vectors.T.shape))
        images = moments.second.apply(np.ascontiguousarray(stack, moments.second.dtype))
        return cls(weights, _own_information(images @ vectors, RIDGE * total)[:, :count])


def _own_information(blocks: FloatArray, ridge: float) -> FloatArray:
    """Schur complements of all directions, shape (n_nodes, n_directions)."""
    regular = blocks.astype(np.float64) + ridge * np.eye(blocks.shape[1])
    inverse = np.linalg.inv(regular)
    return np.asarray(np.maximum(1.0 / np.einsum("vjj->vj", inverse) - ridge, 0.0))


class Borrowing:
    """The reach of data over the graph of a fitted model.

    Parameters
    ----------
    directions : Directions
    graph : Graph
        The one that couples the nodes.
    graph_penalty, node_penalty : float
    sizes : ndarray of shape (n_nodes, 2)
        Observations that enter: none at nodes that lack a sample.
    """

    def __init__(
        self,
        directions: Directions,
        graph: Graph,
        graph_penalty: float,
        node_penalty: float,
        sizes: IntArray,
    ) -> None:
        self.directions, self.graph = directions, graph
        self.lam, self.gam = graph_penalty, node_penalty
        complete = (sizes > 0).all(axis=1, keepdims=True)
        self.sizes = np.where(complete, sizes, 0).astype(np.float64)
        self.component_totals = _sums_by_component(self.sizes, graph.components)

    def _earth(self, direction: int) -> FloatArray:
        """Diagonal K of a direction."""
        data = self.directions.moments[:, direction] / self.graph.n_nodes
        return np.asarray(data + self.lam * self.gam)

    def all_nodes(self) -> tuple[FloatArray, sparse.csr_array]:
        """Effective sizes, shape (n_nodes, 2), and the worth of direct neighbours (sparse).

        Row v of the matrix holds the worth at v of an observation of each of its neighbours.
        """
        graph = self.graph
        pattern = graph.adjacency
        row = np.repeat(np.arange(graph.n_nodes), np.diff(pattern.indptr))
        column = pattern.indices
        if not graph.n_edges:
            return self.sizes.copy(), sparse.csr_array(pattern.shape)
        method = self._dense if graph.n_nodes <= LARGEST_DENSE else self._projected
        sizes, near = np.zeros_like(self.sizes), np.zeros(len(row))
        for j, weight in enumerate(self.directions.weights):
            reached, worth = method(self._earth(j), row, column)
            sizes += weight * reached
            near += weight * worth
        limits = self.component_totals
        near = np.clip(near, 0.0, 1.0)
        worth_of = sparse.csr_array((near, column, pattern.indptr), shape=pattern.shape)
        return np.clip(sizes, self.sizes, limits), worth_of

    def at_node(self, position: int) -> FloatArray:
        """Worth at one node of an observation of every node, shape (n_nodes,); 1 for itself."""
        unit = np.zeros((self.graph.n_nodes, 1))
        unit[position] = 1.0
        worth = np.zeros(self.graph.n_nodes)
        for j, weight in enumerate(self.directions.weights):
            column = self._solve(self._earth(j), unit, 1e-8)[:, 0]
            worth += weight * column / column[position]
        return np.clip(worth, 0.0, 1.0)

    def _dense(
        self, earth: FloatArray, row: IntArray, column: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        system = self.lam * self.graph.laplacian.toarray()
        system[np.diag_indices_from(system)] += earth
        inverse = linalg.cho_solve(linalg.cho_factor(system), np.eye(len(system)))
        diagonal = np.diagonal(inverse)
        reached = inverse @ self.sizes / diagonal[:, np.newaxis]
        return reached, inverse[row, column] / diagonal[row]

    def _projected(
        self, earth: FloatArray, row: IntArray, column: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """G_vu = (B G e_v)' (B G e_u), and random projections keep inner products."""
        rng = np.random.default_rng(0)
        adjacency = sparse.triu(self.graph.adjacency, format="coo")
        n_nodes, n_edges = self.graph.n_nodes, adjacency.nnz
        ends = np.concatenate([adjacency.row, adjacency.col])
        root = np.sqrt(self.lam * adjacency.data)
        entries = (np.concatenate([root, -root]), (ends, np.tile(np.arange(n_edges), 2)))
        incidence = sparse.csr_array(entries, shape=(n_nodes, n_edges))
        signs = np.array([-1.0, 1.0]) / np.sqrt(PROJECTIONS)
        right = incidence @ rng.choice(signs, (n_edges, PROJECTIONS))
        right += np.sqrt(earth)[:, np.newaxis] * rng.choice(signs, (n_nodes, PROJECTIONS))
        images = self._solve(earth, right, CG_TOLERANCE)
        diagonal = np.einsum("vp,vp->v", images, images)
        near = np.empty(len(row))
        for begin in range(0, len(row), n_nodes):
            part = slice(begin, begin + n_nodes)
            near[part] = np.einsum("ep,ep->e", images[row[part]], images[column[part]])
        reached = self._solve(earth, self.sizes, 1e-8)
        return reached / diagonal[:, np.newaxis], near / diagonal[row]

    def _solve(self, earth: FloatArray, right: FloatArray, tol: float) -> FloatArray:
        """Conjugate gradients on all columns, preconditioned by the diagonal."""
        inverse = 1.0 / (earth + self.lam * self.graph.degrees)[:, np.newaxis]
        x = inverse * right
        r = right - self._apply(earth, x)
        norm = np.maximum(np.linalg.norm(right, axis=0), np.finfo(float).tiny)
        z = inverse * r
        p, rho = z.copy(), np.einsum("vk,vk->k", r, z)
        for _ in range(CG_ITERATIONS):
            if (np.linalg.norm(r, axis=0) <= tol * norm).all():
                break
            q = self._apply(earth, p)
            length = rho / np.maximum(np.einsum("vk,vk->k", p, q), np.finfo(float).tiny)
            x += length * p
            r -= length * q
            z = inverse * r
            previous, rho = rho, np.einsum("vk,vk->k", r, z)
            p = z + rho / np.maximum(previous, np.finfo(float).tiny) * p
        return x

    def _apply(self, earth: FloatArray, x: FloatArray) -> FloatArray:
        return np.asarray(earth[:, np.newaxis] * x + self.lam * (self.graph.laplacian @ x))


def _sums_by_component(sizes: FloatArray, components: IntArray) -> FloatArray:
    totals = np.column_stack([np.bincount(components, weights=side) for side in sizes.T])
    return np.asarray(totals[components])
