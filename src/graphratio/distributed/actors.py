"""Partitions as actors on Dask workers.

One actor holds one partition, and the driver talks to its worker directly. Whatever goes wrong
between the two counts as a lost partition, which is made again somewhere else: the connection
breaks, the scheduler drops the worker, there is no sign of life for the time-out, or the answer
takes too long altogether.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from graphratio._utils.allocator import keep_freed_memory
from graphratio._utils.exceptions import GraphRatioError
from graphratio._utils.threads import single_thread
from graphratio.distributed.lifesigns import LifeSigns
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.protocol import (
    Call,
    Mail,
    Message,
    PartitionedEngine,
    PartitionFailed,
    Reply,
    WorkerLost,
)
from graphratio.distributed.worker import Partition, Source

# A worker that is alive may take this many time-outs for a step.
PATIENCE = 10.0

# What comes back from an actor: what became of the call, and a value.
Answer = tuple[str, Any]
Send = Callable[[], Awaitable[Answer]]


class PartitionHost:
    """The actor: a partition, and errors turned into values.

    Errors of the partition travel as values, so that every exception that reaches the driver
    otherwise is one of the connection.
    """

    def __init__(self) -> None:
        keep_freed_memory()
        self.partition: Partition | None = None

    def build(self, plan: PartitionPlan, source: Source) -> Answer:
        """Make the partition and load its data."""
        return self._guarded(lambda: self._build(plan, source))

    def call(self, method: str, inbox: Mail, arguments: dict[str, Any]) -> Answer:
        """Run a method of the partition."""
        if self.partition is None:
            # An actor that Dask restarted by itself has nothing of what the lost one had.
            return "empty", None
        partition = self.partition
        return self._guarded(lambda: partition.run(method, inbox, arguments))

    def _build(self, plan: PartitionPlan, source: Source) -> None:
        self.partition = Partition(plan, source)

    def _guarded(self, work: Callable[[], Any]) -> Answer:
        try:
            with single_thread():
                return "done", work()
        except GraphRatioError as error:
            return "refused", error
        except Exception:
            return "failed", traceback.format_exc()


class DaskPartitions(PartitionedEngine):
    """Partitions of one fit on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Closed with the engine.
    plans : sequence of PartitionPlan
    sources : sequence of NodeSamples or callable
    timeout : float
        Seconds without a sign of life.
    load_timeout : float
        Seconds that a longer call may take.
    observe : callable, optional
    workers : collection of str, optional
        Addresses of the workers that may be used.
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
        self.signs = LifeSigns(client, timeout)
        self.hosts: dict[int, Any] = {}
        self.address: dict[int, str] = {}
        # Workers that failed, with their last heartbeat at the time if it was known.
        self.shunned: dict[str, float | None] = {}

    def close(self) -> None:
        """Release the actors and disconnect."""
        self.hosts.clear()
        # Whether the scheduler takes notice changes nothing for the fit.
        with suppress(OSError):
            self.client.close(timeout=self.timeout)

    def _make(self, partitions: Sequence[int]) -> None:
        for p in partitions:
            self.hosts.pop(p, None)
            self.address.pop(p, None)
        self._place(partitions)
        creations = {p: partial(self._create, self.address[p]) for p in partitions}
        self.hosts.update(self._collect(creations, slow=False))
        builds = {
            p: partial(self._send, p, "build", self.plans[p], self.sources[p]) for p in partitions
        }
        self._collect(builds, slow=True)

    def _place(self, partitions: Sequence[int]) -> None:
        """Choose for every partition the worker that has the fewest."""
        workers = self._room(partitions)
        load = dict.fromkeys(workers, 0)
        for address in self.address.values():
            load[address] = load.get(address, 0) + 1
        for p in partitions:
            self.address[p] = min(workers, key=lambda worker: load[worker])
            load[self.address[p]] += 1

    def _room(self, partitions: Sequence[int]) -> list[str]:
        """Workers to use; waits for one if there is none."""
        deadline = time.monotonic() + self.timeout
        while True:
            self.client.sync(self.signs.look)
            if self.signs.cut_off:
                raise WorkerLost(partitions, "the scheduler is gone")
            if workers := self._usable():
                return workers
            if time.monotonic() > deadline:
                raise WorkerLost(partitions, "no worker is left")
            time.sleep(self.signs.every)

    def _usable(self) -> list[str]:
        """Workers without a failure; if there are none, those with a heartbeat since then."""
        known = set(self.signs.stamps)
        if self.workers is not None:
            known &= self.workers
        if unblamed := known - set(self.shunned):
            return sorted(unblamed)
        alive = []
        for address in sorted(known):
            stamp = self.signs.stamps[address]
            before = self.shunned[address]
            if before is None:
                self.shunned[address] = stamp
            elif stamp != before:
                alive.append(address)
        return alive

    async def _create(self, address: str) -> Answer:
        submit = partial(
            self.client.submit, workers=[address], allow_other_workers=False, pure=False
        )
        # Workers unpickle in the thread that sends the heartbeats, so what that would import,
        # which takes seconds on a busy machine, is imported by a task before.
        await submit(exec, f"import {__name__}")
        # An actor takes the current client for its own.
        with self.client.as_current():
            return "done", await submit(PartitionHost, actor=True)

    async def _send(self, p: int, method: str, *arguments: Any) -> Answer:
        if p not in self.hosts:
            return "empty", None
        answer: Answer = await getattr(self.hosts[p], method)(*arguments)
        return answer

    def _deliver(self, partitions: Sequence[int], calls: Sequence[Call], slow: bool) -> list[Reply]:
        sends = {
            p: partial(self._send, p, "call", call.method, call.inbox, call.arguments)
            for p, call in zip(partitions, calls, strict=True)
        }
        replies = self._collect(sends, slow)
        return [replies[p] for p in partitions]

    def _collect(self, sends: Mapping[int, Send], slow: bool) -> dict[int, Any]:
        """Send, and wait for answers; what does not come is lost."""
        allowed = self.load_timeout if slow else min(self.load_timeout, PATIENCE * self.timeout)
        # One visit to the event loop for all, since a visit costs as much as a message.
        answers: dict[int, Answer | BaseException] = self.client.sync(self._answers, sends, allowed)
        missing, reason = set(), "the worker has nothing of it"
        replies: dict[int, Any] = {}
        for p, answer in answers.items():
            if isinstance(answer, BaseException):
                self.shunned[self.address[p]] = self.signs.stamps.get(self.address[p])
                missing.add(p)
                reason = _words(answer)
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
            # Whoever shares a worker with a lost partition is lost as well.
            gone = {self.address[p] for p in missing if p in self.address}
            missing |= {p for p, address in self.address.items() if address in gone}
            raise WorkerLost(sorted(missing), reason)
        return replies

    async def _answers(
        self, sends: Mapping[int, Send], allowed: float
    ) -> dict[int, Answer | BaseException]:
        """What came back for every partition: an answer, or the exception in its place."""
        began = time.monotonic()
        tasks = {p: asyncio.ensure_future(_answer(send)) for p, send in sends.items()}
        given_up: dict[int, BaseException] = {}
        waiting = dict(tasks)
        while waiting:
            left = began + allowed - time.monotonic()
            await asyncio.wait(waiting.values(), timeout=max(min(left, self.signs.every), 0.0))
            waiting = {p: task for p, task in waiting.items() if not task.done()}
            if not waiting:
                break
            await self.signs.look()
            for p in waiting:
                trouble = self.signs.trouble(self.address[p], began)
                if trouble is None and left <= 0:
                    trouble = TimeoutError(f"no answer within {allowed:g} s")
                if trouble is not None:
                    given_up[p] = trouble
            waiting = {p: task for p, task in waiting.items() if p not in given_up}
        for p in given_up:
            tasks[p].cancel()
            # Ends the message under way, which would else wait for as long as the fit lasts.
            self.client.rpc.remove(self.address[p])
        return {p: given_up[p] if p in given_up else task.result() for p, task in tasks.items()}


async def _answer(send: Send) -> Answer | BaseException:
    """Wait for an answer; whatever goes wrong with the connection is a value."""
    try:
        return await send()
    # Futures of lost workers are cancelled, which is no ordinary exception.
    except (Exception, asyncio.CancelledError) as error:
        return error


def _words(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
