"""Threads of the linear algebra library: one for small products, all for large ones.

A selection consists of thousands of products that take less time than waking a second thread;
with all threads it is several times slower, and much slower beside other work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


def in_parallel(work: Callable[[int], None], count: int) -> None:
    """Call work(0), ..., work(count - 1), several at a time.

    For pieces that are large enough for NumPy to let other threads run, and that write to
    places of their own, so that the result does not depend on the number of threads.

    Examples
    --------
    >>> squares = [0] * 4
    >>> in_parallel(lambda i: squares.__setitem__(i, i * i), 4)
    >>> squares
    [0, 1, 4, 9]
    """
    workers = min(n_threads(), count)
    if workers <= 1:
        for i in range(count):
            work(i)
        return
    # Each piece has a core to itself, so the library underneath must not take more.
    one: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    with one, ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(count)))


def n_threads() -> int:
    """Cores this process may use, or what the usual variable says."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
