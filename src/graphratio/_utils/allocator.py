"""Memory that is freed stays with the process for its next array.

A computation makes and drops arrays of the same few sizes thousands of times. glibc gives the
large ones back to the system each time, and the next one consists of pages that the system has
to find and clear again: up to a quarter of the time of a large fit, and more on virtual machines.
Elsewhere nothing is done here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

# Parameters of mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4

# What glibc goes up to by itself if no environment variable forbids it, in bytes, and what it
# starts with.
LARGEST_KEPT = 32 * 2**20
MAPPINGS = 65536

# Memory of a computation beyond which what it kept is given back in the end.
LARGE = 2**26

SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_")

_lock = Lock()
_inside = 0


@contextmanager
def kept_memory(n_bytes: int) -> Iterator[None]:
    """Context in which all memory that is freed is kept.

    In the end the allocator is where it would be after working with large arrays, and gives
    back what is free if the computation was large. Contexts may be nested and overlap. Where
    somebody has set the allocator by its environment variables, it is left alone.

    Parameters
    ----------
    n_bytes : int
        About what the computation takes.

    Examples
    --------
    >>> with kept_memory(1000):
    ...     pass
    """
    if _chosen_by_the_user():
        yield
        return
    _enter(1)
    try:
        yield
    finally:
        if _enter(-1) == 0 and n_bytes > LARGE:
            _call("malloc_trim", 0)


def _enter(change: int) -> int:
    """Count who is inside, and set the allocator when the first comes and the last leaves."""
    global _inside
    with _lock:
        before, _inside = _inside, _inside + change
        if before == 0:
            _call("mallopt", M_TRIM_THRESHOLD, -1)
            _call("mallopt", M_MMAP_MAX, 0)
        elif _inside == 0:
            _call("mallopt", M_MMAP_MAX, MAPPINGS)
            _as_without_settings()
        return _inside


def _chosen_by_the_user() -> bool:
    tuned = "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
    return tuned or any(name in os.environ for name in SETTINGS)


def keep_freed_memory() -> bool:
    """Set the allocator of a Dask worker to where it would be without Dask's setting.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, so that freed memory goes back to
    the system at once, which made the iterations on a grid of 4,096 nodes 3.6 times slower.
    Does nothing where the variable is not set or larger, or where there is no glibc; returns
    whether something was set.
    """
    given = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if not given.isdigit() or int(given) >= 2 * LARGEST_KEPT:
        return False
    return _as_without_settings()


def _as_without_settings() -> bool:
    return _call("mallopt", M_TRIM_THRESHOLD, 2 * LARGEST_KEPT) and _call(
        "mallopt", M_MMAP_THRESHOLD, LARGEST_KEPT
    )


def _call(name: str, *arguments: int) -> bool:
    """Call a function of glibc; False where there is none."""
    function = _found(name)
    return function is not None and bool(function(*arguments))


@cache
def _found(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return found
