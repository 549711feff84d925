"""Stacks of coefficients, shape (n_nodes, n_candidates, m), and operators on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from graphratio._utils.threads import in_parallel, n_threads
from graphratio._utils.typing import BoolArray, FloatArray, IntArray

Selection = IntArray | BoolArray

# Entries of a stack that are worked on at once, so that what is in between stays in the cache,
# and columns that are at least, since going through a sparse matrix has a cost of its own.
GROUP_ENTRIES = 2**18
GROUP_COLUMNS = 16

# Entries of a piece of a stack in which several arrays are worked on together.
ROW_ENTRIES = 2**15


def row_chunks(x: FloatArray) -> list[slice]:
    """Nodes of a stack that are worked on at once, where several steps are to share a cache.

    Examples
    --------
    >>> row_chunks(np.empty((3, 2, 2)))
    [slice(0, 3, None)]
    """
    step = max(1, ROW_ENTRIES * len(x) // max(x.size, 1))
    return [slice(begin, min(begin + step, len(x))) for begin in range(0, len(x), step)]


class Linear(Protocol):
    """A linear operator on stacks, candidate by candidate."""

    def apply(self, x: FloatArray) -> FloatArray:
        """Apply it, shape (n_nodes, n_candidates, m)."""

    def restrict(self, candidates: Selection) -> Linear:
        """The same for some of the candidates only."""


def pick(x: FloatArray, candidates: Selection) -> FloatArray:
    """Some of the candidates of a stack, in the usual memory order, which indexing alone loses."""
    return np.ascontiguousarray(x[:, candidates])


def times(matrix: Any, x: FloatArray) -> FloatArray:
    """Product of a dense or sparse matrix over the nodes with a stack."""
    width = int(np.prod(x.shape[1:]))
    return np.asarray(matrix @ x.reshape(len(x), width)).reshape(-1, *x.shape[1:])


def by_columns(
    work: Callable[[FloatArray, slice], FloatArray], x: FloatArray, entries: int | None = None
) -> FloatArray:
    """Apply something that keeps columns apart, to groups of columns of large stacks.

    Parameters
    ----------
    work : callable
        Takes columns, shape (n_nodes, n_columns), and which of the n_candidates * m they are.
    x : ndarray of shape (n_nodes, n_candidates, m)
    entries : int, optional
        Of a group; by default few enough for the cache.

    Examples
    --------
    >>> by_columns(lambda x, columns: 2 * x, np.ones((2, 1, 3))).shape
    (2, 1, 3)
    """
    flat = x.reshape(len(x), -1)
    n_columns = flat.shape[1]
    count = min(-(-flat.size // (entries or GROUP_ENTRIES)), -(-n_columns // GROUP_COLUMNS))
    if count <= 1:
        return np.asarray(work(flat, slice(0, n_columns)), dtype=x.dtype).reshape(x.shape)
    # As many groups for every thread.
    count = min(n_columns, -(-count // n_threads()) * n_threads())
    ends = np.linspace(0, n_columns, count + 1).astype(int)
    result = np.empty_like(flat)

    def one(i: int) -> None:
        columns = slice(int(ends[i]), int(ends[i + 1]))
        result[:, columns] = work(flat[:, columns], columns)

    in_parallel(one, count)
    return result.reshape(x.shape)
