"""One computation in a child process, while this process goes on with another.

Threads that call many small functions wait for each other's turn in the interpreter; a process
does not. The child is a fork, so it starts at once and shares the data. Only the command line uses
this, where no thread of the user can be running.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from graphratio._utils.jobs import at_most, n_tasks
from graphratio._utils.threads import single_thread

Result = TypeVar("Result")

# Cores that this process and its children may use; None outside of `beside`.
_cores: ContextVar[int | None] = ContextVar("graphratio_cores", default=None)


@dataclass(frozen=True, eq=False)
class Beside(Generic[Result]):
    """Work that was begun in a child, unless `started` is false; call it for the result."""

    wait: Callable[[], Result]
    started: bool

    def __call__(self) -> Result:
        """Wait for the result."""
        return self.wait()


@contextmanager
def beside(
    work: Callable[[], Result],
    *,
    wanted: bool = True,
    quietly: Callable[[], Result] | None = None,
) -> Iterator[Beside[Result]]:
    """Begin `work` in a child; the object that is returned waits for its result.

    Without a second core to use, without forks, or if the child dies, that object does the work
    itself. It does so too if the work fails, so that errors are raised in this process. The child
    runs `quietly` instead of work that shows its progress. Meanwhile this process has one thread
    less; whichever of the two has finished leaves its core to the other.
    """
    cores = _cores.get() or n_tasks()
    if not wanted or cores < 2 or not sys.platform.startswith("linux"):
        yield Beside(work, started=False)
        return
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    todo = (quietly or work, here, there, cores)
    child = context.Process(target=_send, args=todo, daemon=True)
    started = running = _started(child)
    there.close()
    most = n_tasks()

    def tasks() -> int:
        return max(most - (running and not here.poll()), 1)

    def result() -> Result:
        nonlocal running
        running = False
        # From now on this process only waits. A child that has finished does not hear of it.
        with suppress(OSError):
            here.send(None)
        try:
            found: Result = here.recv()
        except (EOFError, OSError):
            return work()
        return found

    token = _cores.set(cores)
    try:
        with at_most(tasks):
            yield Beside(result, started)
    finally:
        _cores.reset(token)
        here.close()
        if started:
            # A child has nothing to tidy up, and inherits what the parent does about SIGTERM.
            child.kill()
            child.join()


def _started(child: BaseProcess) -> bool:
    with warnings.catch_warnings():
        # Threads of the linear algebra library count as threads, but end before a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            child.start()
        except OSError:  # the system allows no further process
            return False
    return True


def _send(work: Callable[[], object], here: Connection, there: Connection, cores: int) -> None:
    """Work in the child, and send the result; send nothing if that fails."""
    # An interruption reaches both processes; the parent ends the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A parent that is killed ends no child, so the child watches it.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # So that sending fails, instead of waiting, if the parent is gone.
    here.close()
    # A child starts no further ones.
    _cores.set(1)
    try:
        # The limit of threads of the parent does not hold after a fork.
        with at_most(lambda: cores if there.poll() else 1), single_thread():
            there.send(work())
    except Exception:
        there.close()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
