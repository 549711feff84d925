"""Memory of Dask workers: kept for the next array, as everywhere else.

Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, so that freed memory goes back to the
system at once. With glibc every temporary array of an iteration is then a new mapping whose pages
have to be cleared, which made the iterations on a grid of 4,096 nodes 3.6 times slower.
"""

from __future__ import annotations

import ctypes
import os

# Parameters of mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3

# What glibc goes up to by itself if no environment variable forbids it, in bytes.
LARGEST_KEPT = 32 * 2**20


def keep_freed_memory() -> bool:
    """Set the allocator of this process to where it would be without Dask's setting.

    Does nothing where the variable is not set or larger, or where there is no glibc; returns
    whether something was set.
    """
    given = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if not given.isdigit() or int(given) >= 2 * LARGEST_KEPT:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(
        mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT) and mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
    )
