"""Positive definite systems: inverses of many blocks, and single systems that may be singular.

Both use the Cholesky factor, which takes half the work of the general factorisation or less.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from graphratio._utils.typing import FloatArray

# From this size on a block takes longer than a call of LAPACK for it alone.
LARGE_BLOCK = 32


def inverses(blocks: FloatArray) -> FloatArray:
    """Inverses of positive definite blocks, shape (..., m, m): symmetric to the last digit.

    A block that rounding makes indefinite is inverted all the same.
    """
    m = blocks.shape[-1]
    if m < LARGE_BLOCK:
        found = np.linalg.inv(blocks)
        return np.asarray((found + np.swapaxes(found, -1, -2)) / 2)
    halves = np.empty((blocks.size // m**2, m, m), dtype=blocks.dtype)
    for half, block in zip(halves, blocks.reshape(halves.shape), strict=True):
        half.T[:] = _upper_inverse(block)
    each = np.arange(m)
    halves[:, each, each] /= 2
    whole = halves + halves.transpose(0, 2, 1)
    return whole.reshape(blocks.shape)


def _upper_inverse(block: FloatArray) -> FloatArray:
    """The upper triangle of an inverse; zeros below it."""
    single = block.dtype == np.float32
    factorise = lapack.spotrf if single else lapack.dpotrf
    # A symmetric matrix in C order is the same in Fortran order.
    factor, info = factorise(block.T, clean=1)
    if info:
        found = np.linalg.inv(block)
        return np.triu((found + found.T) / 2)
    found, _ = (lapack.spotri if single else lapack.dpotri)(factor, overwrite_c=1)
    return np.asarray(found)


def solve_positive(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve a positive definite system in the precision of the matrix; least norm if singular."""
    # LAPACK itself, since there are thousands of small systems.
    single = matrix.dtype == np.float32
    factorise = lapack.sposv if single else lapack.dposv
    _, solved, info = factorise(matrix.T, rhs.astype(matrix.dtype), lower=1)
    if info:
        solved = smallest_solution(matrix, rhs.astype(np.float64)[:, np.newaxis])
    return np.asarray(solved).reshape(rhs.shape)


def smallest_solution(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    """Least-norm solution of a singular system; eigenvalues of pure rounding count as zero."""
    values, vectors = np.linalg.eigh(matrix)
    precision = np.finfo(np.float32)
    floor = np.maximum(precision.eps * values[..., -1:], precision.tiny / precision.eps)
    inverse = np.where(values > floor, 1 / np.maximum(values, floor), 0.0)
    projected = np.swapaxes(vectors, -1, -2) @ rhs
    return np.asarray(vectors @ (inverse[..., np.newaxis] * projected)).astype(rhs.dtype)
