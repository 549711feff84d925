"""Nystrom features: the kernel space restricted to the span of the dictionary.

The paper's feature map is psi(x) = K_DD^{-1/2} (K(x, d_1), ..., K(x, d_L)). Any orthogonal
rotation of it gives the same functions and the same norms. Here the whitening comes from a
pivoted Cholesky factorisation of K_DD, which also drops near-null directions: atoms whose
squared distance to the span of the kept atoms is below a tolerance (in the kernel space, where
all atoms have norm one).

Symbols
-------
sigma       bandwidth
R           whitening, K_PP = (R R')^{-1} on the pivots P
psi         features, shape (n_points, m)
w           eigenvalues of the mean second moment in the features
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from graphratio._utils.jobs import in_parallel
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.features.kernels import NEGLIGIBLE, Kernel

# An atom at a smaller squared distance to the span of the others is dropped. The tolerance is
# tight, to use a given dictionary as it is. It is looser with many atoms, where the dropped
# directions are mostly noise and the cost grows with the square of their number.
RANK_TOLERANCE = 1e-12
RANK_TOLERANCE_LARGE = 1e-8
LARGE_DICTIONARY = 100

# The first rotation uses this many points, or this share of many points: directions that few
# points contribute to need more of them.
PRINCIPAL_ROWS = 4096
PRINCIPAL_SHARE = 1 / 128

KERNEL_ROWS = 2048


@dataclass(frozen=True, eq=False)
class NystromMap:
    """Feature map: kernel values at `pivots` times `transform`.

    Shapes are (n_pivots, n_features) and (n_pivots, n_components); pivots are atoms.
    """

    kernel: Kernel
    bandwidth: float
    pivots: FloatArray
    transform: FloatArray

    @classmethod
    def build(
        cls,
        kernel: Kernel,
        dictionary: FloatArray,
        bandwidth: float,
        tolerance: float | None = None,
    ) -> NystromMap:
        """Whiten the kernels of a dictionary; tolerance 1e-12 up to 100 atoms, 1e-8 beyond."""
        if tolerance is None:
            large = len(dictionary) > LARGE_DICTIONARY
            tolerance = RANK_TOLERANCE_LARGE if large else RANK_TOLERANCE
        gram = kernel(dictionary, dictionary, bandwidth)
        factor, order, rank, _ = linalg.lapack.dpstrf(gram, tol=tolerance, lower=1)
        kept = order[:rank] - 1
        whitening = linalg.solve_triangular(
            np.tril(factor[:rank, :rank]), np.eye(rank), lower=True
        ).T
        return cls(kernel, bandwidth, dictionary[kept], np.ascontiguousarray(whitening))

    @property
    def n_components(self) -> int:
        """Number of features, at most the number of atoms."""
        return int(self.transform.shape[1])

    def __call__(self, x: FloatArray, dtype: type[np.floating] = np.float64) -> FloatArray:
        """Features of points, shape (n_points, n_components), computed in the given precision."""
        psi = np.empty((len(x), self.n_components), dtype=dtype)
        transform = self.transform.astype(dtype)
        _drop_negligible(transform)

        # Block by block, so that the kernel values stay in the cache.
        def work(i: int) -> None:
            rows = slice(i * KERNEL_ROWS, (i + 1) * KERNEL_ROWS)
            values = self.kernel(x[rows], self.pivots, self.bandwidth, dtype)
            np.matmul(values, transform, out=psi[rows])
            if not values.all():
                _drop_negligible(psi[rows])

        in_parallel(work, -(-len(x) // KERNEL_ROWS))
        return psi

    def principal(
        self,
        x: FloatArray,
        weights: FloatArray,
        floor: float = 0.0,
        dtype: type[np.floating] = np.float64,
    ) -> tuple[NystromMap, FloatArray]:
        """Rotate so that the weighted second moment of `x` is diagonal; also returns its features.

        The mean-field preconditioner is then a division. A first rotation, from a random subset of
        points, drops directions with a share of the moment below `floor`; a second one uses all
        points.
        """
        rough = self.aligned(x, weights, floor, dtype) if floor > 0 else self
        psi = rough(x, dtype)
        rotated, vectors = rough.rotated(weighted_moment(psi, weights), 0.0)
        vectors = vectors.astype(dtype)
        _drop_negligible(vectors)

        # In place, since features take the most memory.
        def work(i: int) -> None:
            rows = slice(i * KERNEL_ROWS, (i + 1) * KERNEL_ROWS)
            spread = psi[rows].all()
            psi[rows] = psi[rows] @ vectors
            if not spread:
                _drop_negligible(psi[rows])

        in_parallel(work, -(-len(psi) // KERNEL_ROWS))
        return rotated, psi

    def aligned(
        self,
        x: FloatArray,
        weights: FloatArray,
        floor: float = 0.0,
        dtype: type[np.floating] = np.float64,
    ) -> NystromMap:
        """Rotate as `principal` does, but by a fixed random part of the points only."""
        rows = principal_rows(len(x))
        return self.rotated(weighted_moment(self(x[rows], dtype), weights[rows]), floor)[0]

    def rotated(self, moment: FloatArray, floor: float) -> tuple[NystromMap, FloatArray]:
        """Make a second moment diagonal, largest first; also returns the rotation (m, n_kept)."""
        w, vectors = np.linalg.eigh(moment.astype(np.float64))
        kept = max(1, int(np.count_nonzero(w >= floor * w.sum()))) if floor > 0 else len(w)
        vectors = vectors[:, : -kept - 1 : -1]
        transform = np.ascontiguousarray(self.transform @ vectors)
        return NystromMap(self.kernel, self.bandwidth, self.pivots, transform), vectors


def _drop_negligible(x: FloatArray) -> None:
    """Set numbers that are zero beside one to zero, in single precision; see `NEGLIGIBLE`."""
    if x.dtype == np.float32:
        x *= np.abs(x) >= NEGLIGIBLE


def principal_rows(n_rows: int) -> IntArray:
    """A fixed random part of the rows, from which the first rotation is computed."""
    # Random, because regular steps through sorted rows may miss a whole sample.
    count = min(n_rows, max(PRINCIPAL_ROWS, int(PRINCIPAL_SHARE * n_rows)))
    return np.random.default_rng(0).choice(n_rows, count, replace=False, shuffle=False)


def weighted_moment(psi: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum of weight * psi psi' over rows, shape (m, m)."""
    scaled = psi * np.sqrt(weights).astype(psi.dtype)[:, np.newaxis]
    # The product of a matrix with itself takes half the work and is exactly symmetric.
    return np.asarray(scaled.T @ scaled)
