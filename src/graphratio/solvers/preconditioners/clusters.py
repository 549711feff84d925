"""Laplacians of crowded graphs that fall into clusters, as dense blocks and a sparse rest.

Where many nodes are neighbours of each other, a product with the dense matrix is faster than one
with the sparse. But between clusters there is little, and a dense product goes through all of
that nothing: with k clusters k times as much as there is.

Symbols
-------
V           lowest modes of the Laplacian, nearly constant on clusters, shape (n_nodes, k)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from graphratio._utils.typing import FloatArray, IntArray

# Time that an entry of a sparse matrix takes, in those of a dense one.
SPARSE_COST = 10

# Share of the dense product's time below which it is worth the trouble.
WORTHWHILE = 0.7


@dataclass(frozen=True, eq=False)
class ClusteredMatrix:
    """A symmetric matrix over the nodes that is dense inside clusters and sparse between them.

    Attributes
    ----------
    members : list of ndarray
        Nodes of every cluster.
    blocks : list of ndarray of shape (n_members, n_members)
    between : scipy.sparse.csr_array of shape (n_nodes, n_nodes)
    """

    members: list[IntArray]
    blocks: list[FloatArray]
    between: sparse.csr_array

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Product with columns, shape (n_nodes, n_columns)."""
        product = np.asarray(self.between @ x)
        for nodes, block in zip(self.members, self.blocks, strict=True):
            product[nodes] += block @ x[nodes]
        return product


def clusters_of(vectors: FloatArray) -> IntArray:
    """Cluster of every node from functions that are nearly constant on clusters.

    Rows of V point in k directions, nearly at right angles. A factorisation with pivoting finds
    a node for each, the nearest orthogonal matrix turns them into axes, and every node goes with
    the axis it is largest on.

    Examples
    --------
    >>> indicators = np.repeat(np.eye(2), 3, axis=0)
    >>> turned = indicators @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> found = clusters_of(turned)
    >>> len(set(found[:3])), len(set(found[3:])), len(set(found))
    (1, 1, 2)
    """
    k = vectors.shape[1]
    pivots = linalg.qr(vectors.T, mode="r", pivoting=True)[1][:k]
    left, _, right = np.linalg.svd(vectors[pivots].T)
    return np.asarray(np.abs(vectors @ (left @ right)).argmax(axis=1))


def dense_or_clustered(laplacian: sparse.csr_array, clusters: IntArray) -> Any:
    """The faster form of a matrix with many entries.

    Parameters
    ----------
    laplacian : scipy.sparse.csr_array of shape (n_nodes, n_nodes)
    clusters : ndarray of shape (n_nodes,)
        Where the entries are, if they are in clusters at all.
    """
    n_nodes = laplacian.shape[0]
    entries = laplacian.tocoo()
    outside = clusters[entries.row] != clusters[entries.col]
    cost = (np.bincount(clusters) ** 2).sum() + SPARSE_COST * np.count_nonzero(outside)
    if cost > WORTHWHILE * n_nodes**2:
        return laplacian.toarray()
    rest = (entries.data[outside], (entries.row[outside], entries.col[outside]))
    members: list[IntArray] = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    blocks = [laplacian[nodes][:, nodes].toarray() for nodes in members]
    return ClusteredMatrix(members, blocks, sparse.csr_array(rest, shape=laplacian.shape))
