"""Partitions as actors on Dask workers.

One actor holds one partition, and the driver talks to its worker directly. Whatever goes wrong
between the two counts as a lost partition, which is rebuilt elsewhere: the connection breaks,
Dask drops the worker, pings get no answer for the time-out, or the answer takes too long.
"""

from __future__ import annotations

import asyncio
import pickle
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any
from weakref import WeakValueDictionary, finalize

from graphratio._utils.errors import GraphRatioError
from graphratio._utils.threads import single_thread
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.protocol import (
    Call,
    Engine,
    Mail,
    Message,
    PartitionFailed,
    Reply,
    Source,
    WorkerLost,
)
from graphratio.distributed.worker import Partition

# A worker that is alive may take this many time-outs for a step.
TIMEOUTS_OF_A_STEP = 10.0

# While an answer is outstanding its worker is pinged at intervals of this many seconds, or this
# share of the time-out. It is lost when it misses this many pings in a row, not one: this process
# may have been asleep itself.
PING_SECONDS = 1.0
PING_SHARE = 0.1
MISSED_PINGS = 4

# The answer of an actor: the outcome of the call, and a value.
Answer = tuple[str, Any]
Send = Callable[[], Awaitable[Answer]]


class PartitionHost:
    """The actor: runs a partition and returns its errors, so exceptions mean a lost connection.

    The hosts of one fit share a thread on a worker. Dask has one thread for all actors, in which a
    loader that hangs would hold up every later fit.
    """

    def __init__(self, fit: str) -> None:
        self.partition: Partition | None = None
        self.thread = _THREADS.get(fit) or _THREADS.setdefault(fit, _Thread())

    async def build(self, plan: PartitionPlan, source: Source) -> Answer:
        """Make the partition and load its data."""
        kind, made = await self._work(Partition, plan, source)
        if kind != "done":
            return kind, made
        self.partition = made
        return "done", None

    async def call(self, method: str, inbox: Mail, arguments: dict[str, Any]) -> Answer:
        """Run a method of the partition."""
        if self.partition is None:
            # Dask restarted the actor by itself, without the state of the lost one.
            return "empty", None
        return await self._work(self.partition.run, method, inbox, arguments)

    async def _work(self, *work: Any) -> Answer:
        return await asyncio.wrap_future(self.thread.submit(*work))


class _Thread:
    """A thread that does one piece of work after the other, and ends when nothing uses it.

    A ThreadPoolExecutor would keep a process from ending as long as a loader hangs.
    """

    def __init__(self) -> None:
        self.todo: SimpleQueue[tuple[Future[Answer], tuple[Any, ...]] | None] = SimpleQueue()
        Thread(target=_serve, args=(self.todo,), name="graphratio", daemon=True).start()
        finalize(self, self.todo.put, None)

    def submit(self, *work: Any) -> Future[Answer]:
        answer: Future[Answer] = Future()
        self.todo.put((answer, work))
        return answer


def _serve(todo: SimpleQueue[tuple[Future[Answer], tuple[Any, ...]] | None]) -> None:
    while (one := todo.get()) is not None:
        answer, work = one
        # Skip work that was cancelled before it began.
        if answer.set_running_or_notify_cancel():
            answer.set_result(_guarded(*work))
        # Otherwise the last partition would stay in memory until the next call.
        del one, answer, work


# Threads of the fits on this worker.
_THREADS: WeakValueDictionary[str, _Thread] = WeakValueDictionary()


def _guarded(work: Callable[..., Any], *arguments: Any) -> Answer:
    try:
        with single_thread():
            return "done", work(*arguments)
    except GraphRatioError as error:
        with suppress(Exception):
            return "refused", pickle.loads(pickle.dumps(error))
        return "refused", GraphRatioError(error.problem, error.remedy)
    except BaseException:
        # Whatever a loader raises must reach the driver, also an exit.
        return "failed", _report()


def _report() -> str:
    """The error at hand as text that can be sent."""
    return traceback.format_exc().encode("utf-8", "backslashreplace").decode()


class DaskPartitions(Engine):
    """Partitions of one fit on the workers of a Dask cluster; closes its client in the end.

    A worker is lost after `timeout` seconds without a sign of life; a longer call may take
    `load_timeout` seconds. Only the addresses in `workers` are used, by default all.
    """

    def __init__(
        self,
        client: Any,
        plans: Sequence[PartitionPlan],
        sources: Sequence[Source],
        timeout: float,
        load_timeout: float,
        observe: Callable[[Message], None] | None = None,
        workers: Iterable[str] | None = None,
    ) -> None:
        super().__init__(len(plans), observe)
        self.client = client
        self.workers = None if workers is None else set(workers)
        self.plans, self.sources = plans, sources
        self.timeout, self.load_timeout = timeout, load_timeout
        self.every = min(PING_SECONDS, PING_SHARE * timeout)
        # The actor of every partition, and the future that Dask made it with.
        self.hosts: dict[int, tuple[Any, Any]] = {}
        self.address: dict[int, str] = {}
        # Name of the thread that this fit has on a worker.
        self.fit = secrets.token_hex(8)
        # Workers that failed.
        self.shunned: set[str] = set()

    def close(self) -> None:
        """Release the actors and disconnect."""
        self.hosts.clear()
        # The fit is over, so it does not matter whether the scheduler notices.
        with suppress(OSError):
            self.client.close(timeout=self.timeout)

    def _make(self, partitions: Sequence[int]) -> None:
        for p in partitions:
            self.hosts.pop(p, None)
            self.address.pop(p, None)
        # Every partition goes to the worker that has the fewest.
        workers = self._room(partitions)
        load = dict.fromkeys(workers, 0)
        for address in self.address.values():
            load[address] = load.get(address, 0) + 1
        for p in partitions:
            self.address[p] = min(workers, key=lambda worker: load[worker])
            load[self.address[p]] += 1
        creations = {p: partial(self._create, self.address[p]) for p in partitions}
        self.hosts.update(self._collect(creations, slow=False))
        builds = {
            p: partial(self._send, p, "build", self.plans[p], self.sources[p]) for p in partitions
        }
        self._collect(builds, slow=True)

    def _room(self, partitions: Sequence[int]) -> list[str]:
        """Workers to use; waits for one if there is none."""
        deadline = time.monotonic() + self.timeout
        while True:
            if self.client.scheduler is None:
                # The client has given up on its scheduler for good.
                raise WorkerLost(partitions, "the scheduler is gone")
            if workers := self.client.sync(self._usable):
                return list(workers)
            if time.monotonic() > deadline:
                raise WorkerLost(partitions, "no worker is left")
            time.sleep(self.every)

    async def _usable(self) -> list[str]:
        """Workers without a failure; if there are none, those that answer a ping now."""
        try:
            known = set(await asyncio.wait_for(self.client.scheduler.ncores(), self.timeout))
        except OSError:
            return []
        if self.workers is not None:
            known &= self.workers
        if unblamed := sorted(known - self.shunned):
            return unblamed
        pings = await asyncio.gather(*map(self._ping, sorted(known)), return_exceptions=True)
        return [a for a, ping in zip(sorted(known), pings, strict=True) if ping is None]

    async def _create(self, address: str) -> Answer:
        where = {"workers": [address], "allow_other_workers": False, "pure": False}
        # An actor takes the current client for its own. Dask fetches the results that several
        # coroutines wait for at once, and whichever began has to be in the context.
        with self.client.as_current():
            # Workers unpickle in the thread that answers pings. The import that this needs takes
            # seconds on a busy machine, so a task does it first.
            await self.client.submit(exec, f"import {__name__}", **where)
            future = self.client.submit(PartitionHost, self.fit, actor=True, **where)
            return "done", (await future, future)

    async def _send(self, p: int, method: str, *arguments: Any) -> Answer:
        if p not in self.hosts:
            return "empty", None
        actor, _ = self.hosts[p]
        answer: Answer = await getattr(actor, method)(*arguments)
        return answer

    def _deliver(self, partitions: Sequence[int], calls: Sequence[Call], slow: bool) -> list[Reply]:
        sends = {
            p: partial(self._send, p, "call", call.method, call.inbox, call.arguments)
            for p, call in zip(partitions, calls, strict=True)
        }
        replies = self._collect(sends, slow)
        return [replies[p] for p in partitions]

    def _collect(self, sends: Mapping[int, Send], slow: bool) -> dict[int, Any]:
        """Send, and wait for answers; partitions that do not answer are lost."""
        allowed = self.load_timeout
        if not slow:
            allowed = min(allowed, TIMEOUTS_OF_A_STEP * self.timeout)
        # One visit to the event loop for all, since a visit costs as much as a message.
        answers: dict[int, Answer | BaseException] = self.client.sync(self._answers, sends, allowed)
        missing, reason = set(), "the worker no longer has the partition"
        replies: dict[int, Any] = {}
        for p, answer in answers.items():
            if isinstance(answer, BaseException):
                self.shunned.add(self.address[p])
                missing.add(p)
                text = str(answer).strip().partition("\n")[0]
                reason = f"{type(answer).__name__}: {text}" if text else type(answer).__name__
                continue
            kind, value = answer
            if kind == "empty":
                missing.add(p)
            elif kind == "refused":
                raise value
            elif kind == "failed":
                raise PartitionFailed(f"partition {p} failed:\n{value}", "Please report this")
            else:
                replies[p] = value
        if missing:
            # Partitions on the same worker as a lost one are lost too.
            gone = {self.address[p] for p in missing if p in self.address}
            missing |= {p for p, address in self.address.items() if address in gone}
            raise WorkerLost(sorted(missing), reason)
        return replies

    async def _answers(
        self, sends: Mapping[int, Send], allowed: float
    ) -> dict[int, Answer | BaseException]:
        """The answer of every partition, or the exception in its place."""
        waits = [self._answer(p, send, allowed) for p, send in sends.items()]
        answers = await asyncio.gather(*waits, return_exceptions=True)
        return dict(zip(sends, answers, strict=True))

    async def _answer(self, p: int, send: Send, allowed: float) -> Answer:
        """Wait for an answer, until its worker is lost or the time is over."""
        answer, loss = asyncio.ensure_future(send()), asyncio.ensure_future(self._loss(p))
        try:
            await asyncio.wait([answer, loss], timeout=allowed, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
        finally:
            # Also if the wait is interrupted, so that no task remains.
            loss.cancel()
            answer.cancel()
        # Cancels the pending message, which would otherwise wait until the fit ends.
        self.client.rpc.remove(self.address[p])
        raise loss.result() if loss.done() else TimeoutError(f"no answer within {allowed:g} s")

    async def _loss(self, p: int) -> OSError:
        """Return as soon as the worker of a partition is known to be lost.

        The future of the actor says so at once when a connection breaks. A frozen worker keeps its
        connection, and Dask drops it only after minutes; pings find out within our own time-out.
        Workers answer pings in a thread that does not compute, so a slow worker is not lost.
        """
        missed = 0
        while missed < MISSED_PINGS:
            if not missed:
                await asyncio.sleep(self.every)
            if p in self.hosts and self.hosts[p][1].status != "finished":
                return ConnectionError("Dask has lost the worker")
            try:
                await self._ping(self.address[p])
                missed = 0
            except OSError:
                missed += 1
        return TimeoutError(f"no answer to {MISSED_PINGS} pings in a row")

    async def _ping(self, address: str) -> None:
        """Raise an OSError unless the worker answers within its share of the time-out."""
        share = (self.timeout - self.every) / MISSED_PINGS
        await asyncio.wait_for(self.client.rpc(address).echo(), share)
