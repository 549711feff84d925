"""Second moments of nodes that see few directions, as a few rows each.

If nodes have locations and scales of their own, every node sees a small part of the features. A
pivoted Cholesky factorisation of its block then stops after a few rows, A_v = R_v' R_v, which take
less memory and time than the block. Symbols as in `second_moments`.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from graphratio._utils.jobs import in_parallel
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.moments.second_moments import FEW_ROWS, DenseSecond, FactoredSecond, SecondMoment

# A block is represented up to this share of its trace, which is about the rounding of its entries.
PRECISION = 3e-7

# Smaller blocks are not worth the work.
FEWEST_FEATURES = 128

# Nodes whose rows are counted first, and groups of nodes with similar numbers of rows.
PROBED = 8
GROUPS = 4

_TASK_NODES = 16


def compressed(second: SecondMoment) -> SecondMoment:
    """Blocks as rows if nodes need few of them; in single precision only."""
    n_nodes, m = second.shape
    if not isinstance(second, DenseSecond) or second.dtype != np.float32 or m < FEWEST_FEATURES:
        return second
    probed = np.unique(np.linspace(0, n_nodes - 1, PROBED).astype(int))
    if np.mean([len(_rows(block)) for block in second.blocks[probed]]) > FEW_ROWS * m:
        return second
    found: list[FloatArray] = [np.empty((0, m), np.float32)] * n_nodes

    def work(i: int) -> None:
        for v in range(i * _TASK_NODES, min((i + 1) * _TASK_NODES, n_nodes)):
            found[v] = _rows(second.blocks[v])

    in_parallel(work, -(-n_nodes // _TASK_NODES))
    ranks = np.array([len(rows) for rows in found])
    if ranks.mean() > FEW_ROWS * m:
        return second
    groups = np.array_split(np.argsort(ranks, kind="stable"), min(GROUPS, n_nodes))
    return FactoredSecond(n_nodes, [_part(np.sort(nodes), found) for nodes in groups])


def _rows(block: FloatArray) -> FloatArray:
    """Rows R of a positive semidefinite block R' R, shape (rank, m)."""
    tolerance = PRECISION * float(np.trace(block))
    if tolerance <= 0:
        return block[:0]
    factor, order, rank, _ = linalg.lapack.spstrf(block, tol=tolerance, lower=1)
    rows = np.empty((rank, len(block)), dtype=block.dtype)
    rows[:, order - 1] = np.tril(factor[:, :rank]).T
    return rows


def _part(nodes: IntArray, rows: list[FloatArray]) -> tuple[IntArray, FloatArray, FloatArray]:
    """Nodes with their rows, filled up with zeros, and weights of one."""
    most = max(1, *(len(rows[v]) for v in nodes))
    psi = np.zeros((len(nodes), most, rows[0].shape[1]), dtype=np.float32)
    for own, v in zip(psi, nodes, strict=True):
        own[: len(rows[v])] = rows[v]
    return nodes, psi, np.ones(psi.shape[:2], dtype=np.float32)
