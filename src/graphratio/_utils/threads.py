"""One thread of the linear algebra library, while this library computes.

A selection computes thousands of products that take less time than waking a second thread, so all
threads make it several times slower. Large arrays are cut into blocks instead (`jobs`). The setting
belongs to the whole process: computations that overlap share one limit, which the first one sets
and the last one undoes.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

Value = TypeVar("Value")


class computed_once(cached_property[Value]):
    """A property that is computed once, without a lock.

    Python 3.11 holds one lock for all instances while it computes, so that threads wait for each
    other, and a child that is forked meanwhile waits for ever. Without it two threads may compute
    the same value twice.
    """

    if not TYPE_CHECKING:  # the types are those of the base class

        def __get__(self, instance, owner=None):
            """Return the value, after computing it at the first time."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


@cache
def _controller() -> Any:
    # scikit-learn depends on threadpoolctl; it takes a while to find the libraries.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _OneThread(AbstractContextManager[None]):
    """One BLAS thread while at least one computation is inside."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            if not self._inside:
                return  # a child leaves a block that it inherited in a fork
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()

    def in_child(self) -> None:
        """Reset after a fork: the computations that were inside stay with the parent."""
        if self._inside:
            self._limit.restore_original_limits()
        self._lock, self._inside = Lock(), 0


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread.in_child)


def single_thread() -> AbstractContextManager[None]:
    """Context in which products use one thread, so that the order of sums is fixed."""
    return _one_thread
