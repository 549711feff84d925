"""Tasks side by side in threads, as `n_jobs` asks for.

NumPy releases the lock of the interpreter while it computes, so threads share a fit without copies
of the data. Every task uses one thread of the linear algebra library, and results are kept in the
order of the tasks: the same call gives the same bits whatever `n_jobs` is.

Tasks do not start further threads. So `n_jobs` of an estimator that is fitted inside a task, or
inside a function with its own `n_jobs`, changes nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np
from sklearn import config_context, get_config

from graphratio._utils.errors import InputError
from graphratio._utils.progress import ProgressBar
from graphratio._utils.threads import single_thread

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part")
Made = TypeVar("Made")
Result = TypeVar("Result")

# Tasks, and where their results go.
Tasks = deque[tuple[Future[Any], Callable[[], Any]]]

# Tasks on fewer numbers run one after the other.
SMALL_TASK = 2**17

# Tasks side by side, or a function that says how many there may be now; None outside of any call
# with `n_jobs`.
_jobs: ContextVar[int | Callable[[], int] | None] = ContextVar("graphratio_jobs", default=None)


def check_jobs(n_jobs: Any) -> int | None:
    """Return a valid `n_jobs`: None, or a whole number other than 0."""
    if n_jobs is None:
        return None
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0:
        raise InputError(
            f"n_jobs={n_jobs!r} is neither None nor a whole number other than 0",
            "Pass 1 for one thread, 2 for two, or -1 for all cores",
        )
    return int(n_jobs)


@contextmanager
def working(n_jobs: Any) -> Iterator[None]:
    """Context in which `each` and `in_stages` use `n_jobs` threads, with scikit-learn's meaning.

    None stands for 1, unless joblib's `parallel_config` says otherwise; -1 for all cores. Linear
    algebra has one thread, between the tasks too.
    """
    count = check_jobs(n_jobs)
    if _jobs.get() is not None:
        with single_thread():
            yield
        return
    # scikit-learn depends on joblib, which knows about containers and about its own workers.
    from joblib import effective_n_jobs

    effective = int(effective_n_jobs(count))
    token = _jobs.set(None if count is None and effective == 1 else effective)
    try:
        with single_thread():
            yield
    finally:
        _jobs.reset(token)


@contextmanager
def at_most(tasks: int | Callable[[], int]) -> Iterator[None]:
    """Context in which so many tasks run side by side, whatever `n_jobs` says around it.

    A function is asked whenever tasks begin.
    """
    token = _jobs.set(tasks)
    try:
        yield
    finally:
        _jobs.reset(token)


def if_worth_it(size: int) -> AbstractContextManager[None]:
    """Context for tasks that work on arrays of this size: small ones run one after the other.

    Threads hand the interpreter to each other around every call of NumPy. On small arrays they
    wait for it longer than they work.
    """
    return at_most(1) if size < SMALL_TASK and n_tasks() > 1 else nullcontext()


def across_jobs(function: Callable[P, Result]) -> Callable[P, Result]:
    """Let the keyword argument `n_jobs` of a function hold for everything that it calls."""

    @wraps(function)
    def spread(*args: P.args, **kwargs: P.kwargs) -> Result:
        with working(kwargs.get("n_jobs")):
            return function(*args, **kwargs)

    return spread


def n_tasks() -> int:
    """How many tasks run side by side here."""
    return _allowed() or 1


def _allowed() -> int | None:
    tasks = _jobs.get()
    return tasks() if callable(tasks) else tasks


def each(
    work: Callable[[T], Result], items: Sequence[T], bar: ProgressBar | None = None
) -> list[Result]:
    """Results of `work` on every item, in order; the bar advances by one for each.

    Examples
    --------
    >>> with working(2):
    ...     each(lambda x: x * x, [1, 2, 3])
    [1, 4, 9]
    """
    return in_stages(lambda _: None, [None], lambda _, item: work(item), items, bar)[0]


def in_stages(
    make: Callable[[Part], Made],
    parts: Sequence[Part],
    work: Callable[[Made, T], Result],
    items: Sequence[T],
    bar: ProgressBar | None = None,
    finished: Callable[[Part, list[Result]], None] | None = None,
) -> list[list[Result]]:
    """Results of work(make(part), item), by part and item.

    The next part is made while the items of the current one are worked on, so at most three parts
    are in memory. The bar advances by one for each item of each part. `finished` is called with
    the results of every part as soon as they are there, in the order of the parts.
    """
    workers = min(n_tasks(), max(len(parts) * len(items), 1))
    results: list[list[Result]] = [[] for _ in parts]
    if workers <= 1:
        # Sums depend on the threads of the linear algebra library, so one task limits them too.
        with single_thread():
            for found, part in zip(results, parts, strict=True):
                ready = make(part)
                for item in items:
                    found.append(work(ready, item))
                    _advance(bar)
                _tell(finished, part, found)
        return results
    made: list[Future[Made]] = [Future() for _ in parts]
    alone = len(parts) == 1
    if alone:
        # All items wait for the only part, so it may use all threads.
        made[0].set_result(make(parts[0]))
    found_at: list[list[Future[Result]]] = [[Future() for _ in items] for _ in parts]
    left, lock = [len(items)] * len(parts), Lock()

    def worked(k: int, item: T) -> Result:
        try:
            return work(made[k].result(), item)
        finally:
            with lock:
                left[k] -= 1
                if not left[k]:
                    made[k] = Future()  # the last item releases the part

    # Tasks begin in this order, and none waits for a later one.
    todo: Tasks = deque()
    for k in range(len(parts)):
        ahead = range(int(alone), 2) if k == 0 else (k + 1,)
        todo += [(made[j], partial(make, parts[j])) for j in ahead if j < len(parts)]
        todo += [
            (one, partial(worked, k, item)) for one, item in zip(found_at[k], items, strict=True)
        ]
    with _runners(workers, todo, {one for row in found_at for one in row}):
        for part, found, row in zip(parts, results, found_at, strict=True):
            found += _collected(row, bar)
            _tell(finished, part, found)
    return results


def in_parallel(work: Callable[[int], None], count: int) -> None:
    """Call work(0), ..., work(count - 1), several at a time.

    Each must write to its own memory. Outside of calls with `n_jobs` large arrays use the threads
    that linear algebra would use.
    """
    workers = min(n_threads(), count)
    if workers <= 1:
        with single_thread():
            for i in range(count):
                work(i)
        return
    done: list[Future[None]] = [Future() for _ in range(count)]
    todo: Tasks = deque((one, partial(work, i)) for i, one in enumerate(done))
    with _runners(workers, todo, set(done)):
        _collected(done, None)


def n_threads() -> int:
    """Threads of `in_parallel`: those of `n_jobs`, or OMP_NUM_THREADS, or the number of cores."""
    if (given := _allowed()) is not None:
        return given
    variable = os.environ.get("OMP_NUM_THREADS", "")
    if variable.isdigit() and int(variable) > 0:
        return int(variable)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _runners(workers: int, todo: Tasks, last: set[Future[Any]]) -> Iterator[None]:
    """Threads that take tasks in order until none is left.

    They begin no further task after an interruption, or after an error of one of the `last` tasks,
    for which no other waits. Submitting every task to a pool would take longer, and an interruption
    in between could leave a lock of the pool behind.
    """

    def run() -> None:
        while True:
            try:
                future, task = todo.popleft()
            except IndexError:
                return
            try:
                future.set_result(task())
            except BaseException as error:
                # The items of a part that cannot be made raise its error when it is their turn.
                if future in last:
                    todo.clear()
                future.set_exception(error)

    # Each task has its own core, so BLAS must not use more.
    with single_thread(), ThreadPoolExecutor(workers) as pool:
        try:
            if not _started(pool, run, workers):
                # The system allows no further thread.
                with at_most(1):
                    run()
            yield
        finally:
            todo.clear()


def _started(pool: ThreadPoolExecutor, run: Callable[[], None], workers: int) -> int:
    """Begin in as many threads as the system allows, and return their number."""
    for number in range(workers):
        try:
            _begin(pool, run)
        except RuntimeError:
            return number
    return workers


def _begin(
    pool: ThreadPoolExecutor, work: Callable[..., Result], *arguments: Any
) -> Future[Result]:
    # Settings of NumPy and others are variables of a context, and hold in the task too; those of
    # scikit-learn, which predictors of the user may need, belong to a thread.
    return pool.submit(copy_context().run, _alone, get_config(), work, *arguments)


def _alone(settings: dict[str, Any], work: Callable[..., Result], *arguments: Any) -> Result:
    _jobs.set(1)
    with config_context(**settings):
        return work(*arguments)


def _collected(tasks: list[Future[Result]], bar: ProgressBar | None) -> list[Result]:
    found = []
    for task in tasks:
        found.append(task.result())
        _advance(bar)
    return found


def _tell(
    finished: Callable[[Part, list[Result]], None] | None, part: Part, found: list[Result]
) -> None:
    if finished is not None:
        finished(part, found)


def _advance(bar: ProgressBar | None) -> None:
    if bar is not None:
        bar.advance()
