"""Laplacians of crowded graphs that fall into clusters: dense blocks and a sparse rest.

Where most nodes of a cluster are neighbours of each other, a dense product is faster than a sparse
one. A dense product with the whole matrix also multiplies the zeros between clusters: with k
clusters, k times as many numbers as necessary.

Symbols
-------
V           lowest modes of the Laplacian, nearly constant on clusters, shape (n_nodes, k)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from graphratio._utils.typing import FloatArray, IntArray

# Time that an entry of a sparse matrix takes, relative to an entry of a dense one.
SPARSE_COST = 10

# Blocks must take at most this share of the time of the dense product.
WORTHWHILE = 0.7

# A mode of the Laplacian below this share of the mean degree tells clusters apart.
CLUSTER_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class ClusteredMatrix:
    """A matrix over the nodes that is dense inside clusters and sparse between them.

    `members` are the nodes of every cluster, `blocks` their dense parts, and `between` has shape
    (n_nodes, n_nodes).
    """

    members: list[IntArray]
    blocks: list[FloatArray]
    between: sparse.csr_array

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Multiply columns, shape (n_nodes, n_columns)."""
        product = np.asarray(self.between @ x)
        for nodes, block in zip(self.members, self.blocks, strict=True):
            product[nodes] += block @ x[nodes]
        return product


def clusters_of(modes: FloatArray, vectors: FloatArray, mean_degree: float) -> IntArray:
    """Cluster of every node, from the lowest modes of the Laplacian, shape (n_nodes,).

    The rows of V point in k directions, nearly at right angles. A factorisation with pivoting finds
    one node for each, the nearest orthogonal matrix turns them into axes, and each node belongs to
    the axis along which it is largest.

    Examples
    --------
    >>> indicators = np.repeat(np.eye(2), 3, axis=0)
    >>> turned = indicators @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> found = clusters_of(np.array([0.0, 0.1]), turned, 2.0)
    >>> len(set(found[:3])), len(set(found[3:])), len(set(found))
    (1, 1, 2)
    """
    k = max(1, int(np.count_nonzero(modes < CLUSTER_SHARE * mean_degree)))
    v = vectors[:, :k]
    pivots = linalg.qr(v.T, mode="r", pivoting=True)[1][:k]
    left, _, right = np.linalg.svd(v[pivots].T)
    return np.asarray(np.abs(v @ (left @ right)).argmax(axis=1))


def dense_or_clustered(
    laplacian: sparse.csr_array, clusters: IntArray
) -> FloatArray | ClusteredMatrix:
    """The form of a matrix with many entries that multiplies faster."""
    entries = laplacian.tocoo()
    outside = clusters[entries.row] != clusters[entries.col]
    cost = (np.bincount(clusters) ** 2).sum() + SPARSE_COST * np.count_nonzero(outside)
    if cost > WORTHWHILE * laplacian.shape[0] ** 2:
        return np.asarray(laplacian.toarray())
    rest = (entries.data[outside], (entries.row[outside], entries.col[outside]))
    members: list[IntArray] = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    blocks = [laplacian[nodes][:, nodes].toarray() for nodes in members]
    return ClusteredMatrix(members, blocks, sparse.csr_array(rest, shape=laplacian.shape))
