"""The surroundings of heavy computations: threads and memory that suit the size of a problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphratio._utils.allocator import kept_memory
from graphratio._utils.threads import suitable_threads


@contextmanager
def computing(n_observations: int, n_atoms: int) -> Iterator[None]:
    """Context in which small products use one thread and freed memory is kept.

    Examples
    --------
    >>> with computing(1_000, 50):
    ...     pass
    """
    with suitable_threads(n_observations, n_atoms), kept_memory(8 * n_observations * n_atoms):
        yield
