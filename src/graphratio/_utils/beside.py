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
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from threadpoolctl import threadpool_limits

from graphratio._utils.jobs import at_most, n_tasks
from graphratio._utils.threads import computed_once, single_thread

Result = TypeVar("Result")


@dataclass(eq=False)
class _Child:
    """A process that was started, and the end of its pipe that is here."""

    pipe: Connection
    awaited: bool = False


@dataclass(frozen=True, eq=False)
class _Crew:
    """Processes that share some cores: the present one, and its children."""

    cores: int
    children: list[_Child] = field(default_factory=list)

    def busy(self) -> list[Connection]:
        """Pipes of the children that still work, without one that is waited for."""
        # A pipe can be read once there is a result, or the child has ended without one.
        return [each.pipe for each in self.children if not (each.awaited or each.pipe.poll())]

    def free(self) -> int:
        """Cores for this process."""
        return max(self.cores - len(self.busy()), 1)

    def wait_for(self, child: _Child) -> None:
        """Wait until a child has finished; it may use the cores of others that finish before."""
        child.awaited = True
        finished = False
        while not finished:
            others = self.busy()
            # A child that has finished does not hear of it.
            with suppress(OSError):
                child.pipe.send(max(self.cores - len(others), 1))
            finished = child.pipe in wait([child.pipe, *others])


# Those who share the cores; None outside of `beside`.
_crew: ContextVar[_Crew | None] = ContextVar("graphratio_crew", default=None)


class Beside(Generic[Result]):
    """Work that was begun in a child, unless `started` is false; call it for the result."""

    def __init__(self, wait: Callable[[], Result], *, started: bool) -> None:
        self._wait = wait
        self.started = started

    def __call__(self) -> Result:
        """Wait for the result, which is kept."""
        return self._result

    @computed_once
    def _result(self) -> Result:
        return self._wait()


@contextmanager
def beside(
    work: Callable[[], Result],
    *,
    wanted: bool = True,
    quietly: Callable[[], Result] | None = None,
) -> Iterator[Beside[Result]]:
    """Begin `work` in a child; the object that is returned waits for its result.

    Without a second core to use, without forks, or if no result arrives, that object does the work
    itself, so that errors of the work are raised in this process. The child runs `quietly` instead
    of work that shows its progress. A child has one core, and this process those that are left;
    whoever has finished or waits leaves its core to the others.
    """
    around = _crew.get()
    crew = around or _Crew(n_tasks())
    if not wanted or crew.cores < 2 or not sys.platform.startswith("linux"):
        yield Beside(work, started=False)
        return
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_send, args=(quietly or work, here, there), daemon=True)
    started = _started(process)
    there.close()
    child = _Child(here)

    def result() -> Result:
        crew.wait_for(child)
        try:
            found: Result = here.recv()
        except Exception:
            # The child sent nothing, or something that cannot be unpickled.
            return work()
        return found

    crew.children.append(child)
    token = _crew.set(crew)
    try:
        # The limit of a block around this one counts the new child too.
        with at_most(crew.free) if around is None else nullcontext():
            yield Beside(result, started=started)
    finally:
        _crew.reset(token)
        crew.children.remove(child)
        here.close()
        if started:
            # A child has nothing to tidy up, and inherits what the parent does about SIGTERM.
            process.kill()
            process.join()


def _started(child: BaseProcess) -> bool:
    with warnings.catch_warnings():
        # Threads of the linear algebra library count as threads, but end before a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            child.start()
        except OSError:  # the system allows no further process
            return False
    return True


def _send(work: Callable[[], object], here: Connection, there: Connection) -> None:
    """Work in the child, and send the result; send nothing if that fails."""
    # An interruption reaches both processes; the parent ends the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A parent that is killed ends no child, so the child watches it.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # So that sending fails, instead of waiting, if the parent is gone.
    here.close()
    # A child starts no further ones.
    _crew.set(_Crew(1))
    cores = 1

    def allowed() -> int:
        nonlocal cores
        while there.poll():
            cores = there.recv()
        return cores

    try:
        # The limit of threads of the parent does not hold after a fork. OpenMP would wait for ever
        # for the threads that it had in the parent; this limit finds libraries loaded since then.
        with at_most(allowed), single_thread(), threadpool_limits(1, user_api="openmp"):
            there.send(work())
    except Exception:
        there.close()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
