"""Checks on matrices of moments, and their eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import FloatArray
from graphratio.data.validation import as_numeric

# Departures from symmetry and positivity up to this, relative to the largest entry, count as
# rounding of moments in single precision.
ROUNDING = 1e-6


def checked_moments(second: Any) -> tuple[FloatArray, FloatArray]:
    """Moments (n_nodes, m, m), made exactly symmetric, and their ascending eigenvalues."""
    moments = as_numeric(second, "second")
    if moments.ndim != 3 or moments.shape[1] != moments.shape[2] or 0 in moments.shape:
        raise InputError(
            f"second has shape {moments.shape}",
            "Pass one square matrix for each node, shape (n_nodes, m, m)",
        )
    return _symmetric_spectra(moments, "second")


def checked_gram(gram: Any, m: int) -> tuple[FloatArray, float]:
    """Gram matrix and its smallest eigenvalue, which must be clearly positive."""
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
    """Symmetric part and eigenvalues of matrices that must be positive semi-definite."""
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
