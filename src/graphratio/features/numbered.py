"""A given number of atoms: drawn, cluster centres, or the most distinct of many."""

from __future__ import annotations

import warnings
from threading import Lock

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import Kernel

# Number of atoms of "uniform", "kmeans" and "quasi-random" without max_atoms.
DEFAULT_ATOMS = 100

# Warning filters belong to the whole process: two threads at once could leave changed ones behind.
_ONE_AT_A_TIME = Lock()


def fixed_number(
    strategy: str, samples: NodeSamples, n_atoms: int, rng: np.random.Generator
) -> FloatArray:
    """Observations drawn at random ("uniform"), or centres of clusters ("kmeans")."""
    distinct = np.unique(samples.values, axis=0)
    n_atoms = min(n_atoms, len(distinct))
    if strategy == "uniform":
        return distinct[np.sort(rng.choice(len(distinct), n_atoms, replace=False))]
    # Imported here: scikit-learn's cluster module would double the time of `import graphratio`.
    from sklearn.cluster import KMeans

    seed = int(rng.integers(2**31 - 1))
    # Threads would change the last digits with their number.
    with _ONE_AT_A_TIME, threadpool_limits(1), warnings.catch_warnings():
        # Fewer clusters than requested do no harm: repeated centres are dropped.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(n_clusters=n_atoms, n_init=1, random_state=seed).fit(samples.values)
    return np.asarray(fitted.cluster_centers_, dtype=np.float64)


def most_distinct(atoms: FloatArray, kernel: Kernel, bandwidth: float, n_atoms: int) -> IntArray:
    """Pivots of a Cholesky factorisation, without forming the whole Gram matrix."""
    residual = np.ones(len(atoms))
    factor = np.zeros((n_atoms, len(atoms)))
    pivots = np.empty(n_atoms, dtype=np.intp)
    for step in range(n_atoms):
        pivot = int(np.argmax(residual))
        pivots[step] = pivot
        column = kernel(atoms[pivot : pivot + 1], atoms, bandwidth)[0]
        column -= factor[:step, pivot] @ factor[:step]
        factor[step] = column / np.sqrt(max(residual[pivot], np.finfo(np.float64).tiny))
        residual = np.maximum(residual - factor[step] ** 2, 0.0)
        residual[pivots[: step + 1]] = -1.0
    return np.sort(pivots)
