"""The statistics of all nodes when every node is permuted at once, and how they are combined.

Symbols
-------
b           first moment of a node: mean of the features over the target minus over the pooled
            sample; the only quantity that a permutation changes
A           second moment of the features over the pooled sample of a node
theta       coefficients of f_v - 1
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray

JOINT_NAMES = ("fitted", "coupled", "predicted", "kernel")

# The share of the level that each statistic gets: its p-value is divided by its share. The one
# that trusts the neighbours most gets most, since a test on a graph gains from neighbours.
JOINT_SHARES = np.array([0.1, 0.2, 0.65, 0.05])

# Without neighbours there is no prediction to trust.
JOINT_SHARES_ALONE = np.array([0.35, 0.15, 0.0, 0.5])

# Relative differences below this are rounding; the statistics then count as tied.
_TIE = 1e-9


def node_statistics(
    theta: FloatArray, b: FloatArray, second: FloatArray, witness: FloatArray
) -> FloatArray:
    """Four statistics, large when a node changed, shape (4, ..., n_permutations).

    The divergence on the node's own samples, the squared norm of f_v - 1 in the kernel space,
    the neighbours' ratio evaluated at the node, and the squared distance of the two means in
    the kernel space (MMD, up to a constant).

    `theta` and `b` have shape (..., n_permutations, m), `second` (..., m, m). `witness` has
    shape (..., m, 1) if all permutations share it, else (..., n_permutations, m).
    """
    fitted = theta @ second
    divergence = np.einsum("...m,...m->...", theta, b - 0.5 * fitted)
    norm = np.einsum("...m,...m->...", theta, theta)
    if witness.shape == b.shape:
        seen = np.einsum("...m,...m->...", b, witness)
    else:
        seen = (b @ witness)[..., 0]
    return np.stack([divergence, norm, seen, np.einsum("...m,...m->...", b, b)])


def exceedances(statistics: FloatArray) -> IntArray:
    """For every entry, how many entries along the last axis are at least as large.

    Divided by the length of that axis the counts are permutation p-values, of the observed and
    of every permuted data set. Entries that differ only by rounding are tied.
    """
    count = statistics.shape[-1]
    flat = statistics.reshape(-1, count)
    scale = np.abs(flat).max(axis=1, keepdims=True)
    rounded = np.rint(flat / (np.where(scale > 0, scale, 1.0) * _TIE))
    ordered = np.sort(rounded, axis=1)
    found = np.empty(flat.shape, dtype=np.intp)
    for row in range(len(flat)):
        found[row] = count - np.searchsorted(ordered[row], rounded[row], side="left")
    return found.reshape(statistics.shape)


def combine(counts: IntArray, *, alone: bool = False) -> tuple[FloatArray, IntArray]:
    """Combine the statistics of each data set by their smallest p-value.

    From exceedances of shape (4, n_permutations + 1), the observed data set first. Returns the
    smallest one relative to its share, and the sum of all, which breaks ties; both of shape
    (n_permutations + 1,). Smaller is more extreme. `alone` takes the shares without neighbours.
    """
    shares = JOINT_SHARES_ALONE if alone else JOINT_SHARES
    used = shares > 0
    return (counts[used] / shares[used, np.newaxis]).min(axis=0), counts[used].sum(axis=0)


def combined_count(counts: IntArray, *, alone: bool = False) -> int:
    """How many data sets, permuted or observed, are as extreme as the observed one."""
    smallest, total = combine(counts, alone=alone)
    as_extreme = (smallest < smallest[0]) | ((smallest == smallest[0]) & (total <= total[0]))
    return int(np.count_nonzero(as_extreme))
