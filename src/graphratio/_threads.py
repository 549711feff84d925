"""Threads of the linear algebra library: one for small products, all for large ones.

A selection consists of thousands of products that take less time than waking a second thread;
with all threads it is several times slower, and much slower beside other work.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

# Observations times atoms above which the products are large enough to share.
LARGE_PROBLEM = 100_000_000


@cache
def _controller() -> Any:
    # scikit-learn depends on threadpoolctl, so it is there; finding the libraries takes a while.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def suitable_threads(n_observations: int, n_atoms: int) -> AbstractContextManager[Any]:
    """Context in which products use one thread, unless the problem is large.

    Examples
    --------
    >>> with suitable_threads(1_000, 50):
    ...     pass
    """
    if n_observations * n_atoms > LARGE_PROBLEM:
        return nullcontext()
    return single_thread()


def single_thread() -> AbstractContextManager[Any]:
    """Context in which products use one thread, so that sums come in one order."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
