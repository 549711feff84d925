"""Stacks of coefficients, shape (n_nodes, n_candidates, m), and operators on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from graphratio._utils.threads import in_parallel, n_threads
from graphratio._utils.typing import BoolArray, FloatArray, IntArray

Chosen = IntArray | BoolArray

# Most entries of a group of columns, so that intermediate results stay in the cache, and fewest
# columns, since a pass over a sparse matrix has a cost of its own.
GROUP_ENTRIES = 2**18
GROUP_COLUMNS = 16

# Entries of a chunk of nodes, so that several arrays share the cache.
ROW_ENTRIES = 2**15


def row_chunks(x: FloatArray) -> list[slice]:
    """Chunks of nodes that are small enough for several arrays to share the cache."""
    step = max(1, ROW_ENTRIES * len(x) // max(x.size, 1))
    return [slice(begin, min(begin + step, len(x))) for begin in range(0, len(x), step)]


class Linear(Protocol):
    """A linear operator on stacks, candidate by candidate."""

    def apply(self, x: FloatArray) -> FloatArray:
        """Apply it, shape (n_nodes, n_candidates, m)."""

    def restrict(self, candidates: Chosen) -> Linear:
        """The same for some of the candidates only."""


def pick(x: FloatArray, candidates: Chosen) -> FloatArray:
    """Some of the candidates of a stack, contiguous in memory, which indexing alone is not."""
    return np.ascontiguousarray(x[:, candidates])


def times(matrix: Any, x: FloatArray) -> FloatArray:
    """Product of a dense or sparse matrix over the nodes with a stack."""
    width = int(np.prod(x.shape[1:]))
    return np.asarray(matrix @ x.reshape(len(x), width)).reshape(-1, *x.shape[1:])


def by_columns(
    work: Callable[[FloatArray, slice], FloatArray], x: FloatArray, entries: int | None = None
) -> FloatArray:
    """Apply a function that treats columns independently, to groups of columns of a stack.

    `work` takes columns, shape (n_nodes, n_columns), and which of the n_candidates * m they are. A
    group has at most `entries` entries, by default few enough for the cache.
    """
    flat = x.reshape(len(x), -1)
    n_columns = flat.shape[1]
    count = min(-(-flat.size // (entries or GROUP_ENTRIES)), -(-n_columns // GROUP_COLUMNS))
    if count <= 1:
        return np.asarray(work(flat, slice(0, n_columns)), dtype=x.dtype).reshape(x.shape)
    # Every thread gets the same number of groups.
    count = min(n_columns, -(-count // n_threads()) * n_threads())
    ends = np.linspace(0, n_columns, count + 1).astype(int)
    result = np.empty_like(flat)

    def one(i: int) -> None:
        columns = slice(int(ends[i]), int(ends[i + 1]))
        result[:, columns] = work(flat[:, columns], columns)

    in_parallel(one, count)
    return result.reshape(x.shape)
