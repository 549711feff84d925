"""Work spread over processes that survives what single pieces of it do.

A piece that raises is an outcome like any other. A piece that kills its process is found and
becomes one, too. Workers end with the process that started them, however that one ends.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")


class Outcome(NamedTuple, Generic[Item]):
    """What came of one piece of work: a result, or an error in one line and its trace."""

    item: Item
    result: Any
    error: str | None = None
    trace: str = ""


def outcomes(
    items: Iterable[Item], work: Callable[[Item], Any], workers: int
) -> Generator[Outcome[Item], None, None]:
    """Call work(item) for every item and yield what came of it, in any order.

    Parameters
    ----------
    items : iterable
    work : callable
        Importable by name, as are the items, unless there is one worker.
    workers : int
        Processes, with one thread of the linear algebra library each; 1 means this process.

    Examples
    --------
    >>> import math
    >>> [outcome.error or outcome.result for outcome in outcomes([4.0, -1.0], math.sqrt, 1)]
    [2.0, 'ValueError: math domain error']
    """
    waiting = deque(items)
    if workers == 1:
        for item in waiting:
            with threadpool_limits(limits=1):
                outcome = _attempt(work, item)
            yield outcome
        return
    while waiting:
        suspects = yield from _in_processes(waiting, work, workers)
        # One of them killed its process and took the others along: each by itself.
        for item in suspects:
            if (yield from _in_processes(deque([item]), work, 1)):
                yield Outcome(item, None, "the process that computed it died: out of memory?")


def _attempt(work: Callable[[Item], Any], item: Item) -> Outcome[Item]:
    try:
        return Outcome(item, work(item))
    except Exception as error:
        return Outcome(item, None, f"{type(error).__name__}: {error}", traceback.format_exc())


def _in_processes(
    waiting: deque[Item], work: Callable[[Item], Any], workers: int
) -> Generator[Outcome[Item], None, list[Item]]:
    """Yield outcomes until all is done, or a process dies; return what was then running."""
    # Processes are started afresh, not forked: forking a process with threads can hang.
    context = get_context("spawn")
    alive, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin_worker, initargs=(alive,)
    )
    running: dict[Future[Outcome[Item]], Item] = {}
    lost: list[Item] = []
    try:
        while waiting or running:
            # One more than there are workers, so that none waits for us.
            while waiting and not lost and len(running) <= workers:
                running[pool.submit(_attempt, work, waiting[0])] = waiting[0]
                waiting.popleft()
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                item = running.pop(future)
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    lost.append(item)
                    continue
                yield outcome
            if lost and not running:
                break
    except BrokenProcessPool:
        # Noticed on submitting: what runs is lost, what waits still waits.
        lost += running.values()
    except BaseException:
        held.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        held.close()
        alive.close()
    return lost


def _begin_worker(alive: Connection) -> None:
    # Control-C reaches every process of a terminal; the one that started us decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(limits=1)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()


def _end_with_parent(alive: Connection) -> None:
    # Nothing is ever sent: the pipe becomes readable when its other end is closed.
    alive.poll(None)
    os._exit(1)
