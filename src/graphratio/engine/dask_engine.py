"""Partitions as actors on Dask workers.

One actor holds one partition. The driver talks to the workers directly; every call has a
deadline. Whatever goes wrong between driver and worker counts as a lost partition, which is
made again somewhere else: a worker that did not answer in time gets nothing more in this fit.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from graphratio._optional import import_optional
from graphratio._threads import single_thread
from graphratio.engine.partition import Plan
from graphratio.engine.protocol import (
    Call,
    Mail,
    Message,
    PartitionedEngine,
    PartitionFailed,
    Reply,
    WorkerLost,
)
from graphratio.engine.settings import EngineSettings
from graphratio.engine.worker import Partition, Source
from graphratio.exceptions import EngineError, GraphRatioError, InputError
from graphratio.graph import Graph
from graphratio.typing import FloatArray, Label
from graphratio.validation import check_real

# How often a worker is asked for signs of life while a long call runs, in seconds.
LOOK_EVERY = 1.0


class PartitionHost:
    """The actor: a partition, and errors turned into values.

    Errors of the partition travel as values, so that every exception that reaches the driver
    otherwise is one of the connection.
    """

    def __init__(self) -> None:
        self.partition: Partition | None = None

    def build(self, plan: Plan, source: Source) -> tuple[str, Any]:
        """Make the partition and load its data."""
        return self._guarded(lambda: self._build(plan, source))

    def call(self, method: str, inbox: Mail, arguments: dict[str, Any]) -> tuple[str, Any]:
        """Run a method of the partition."""
        if self.partition is None:
            # An actor that Dask restarted by itself has nothing of what the lost one had.
            return "empty", None
        partition = self.partition
        return self._guarded(lambda: partition.run(method, inbox, arguments))

    def _build(self, plan: Plan, source: Source) -> None:
        self.partition = Partition(plan, source)

    def _guarded(self, work: Callable[[], Any]) -> tuple[str, Any]:
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
    plans : sequence of Plan
    sources : sequence of NodeSamples or callable
    timeout : float
        Seconds without an answer to a step, or without a sign of life during a longer call.
    load_timeout : float
        Seconds that a longer call may take.
    observe : callable, optional
    workers : collection of str, optional
        Addresses of the workers that may be used.
    """

    def __init__(
        self,
        client: Any,
        plans: Sequence[Plan],
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
        self.hosts: dict[int, Any] = {}
        self.address: dict[int, str] = {}
        self.shunned: set[str] = set()

    def close(self) -> None:
        """Release the actors and disconnect."""
        self.hosts.clear()
        self.client.close()

    def _make(self, partitions: Sequence[int]) -> None:
        for p in partitions:
            self.hosts.pop(p, None)
            self.address.pop(p, None)
        self._place(partitions)
        sends = {
            p: partial(self._send, p, "build", self.plans[p], self.sources[p]) for p in partitions
        }
        self._collect(sends, slow=True)

    def _place(self, partitions: Sequence[int]) -> None:
        """Create an actor for every partition on the workers that have the fewest."""
        futures = {}
        deadline = time.monotonic() + self.timeout
        while not (workers := self._usable()):
            if time.monotonic() > deadline:
                raise WorkerLost(partitions, "no worker is left")
            time.sleep(0.1)
        load = dict.fromkeys(workers, 0)
        for address in self.address.values():
            load[address] = load.get(address, 0) + 1
        for p in partitions:
            address = min(workers, key=lambda worker: load[worker])
            load[address] += 1
            self.address[p] = address
            futures[p] = self.client.submit(
                PartitionHost, actor=True, workers=[address], allow_other_workers=False, pure=False
            )
        lost = []
        for p, future in futures.items():
            try:
                # An actor takes the current client for its own.
                with self.client.as_current():
                    self.hosts[p] = future.result(timeout=max(deadline - time.monotonic(), 0.1))
            except Exception:
                # Whatever it is, it is not an error of ours: creating an actor runs no code.
                self.shunned.add(self.address[p])
                lost.append(p)
        if lost:
            raise WorkerLost(lost, "no actor could be created")

    def _usable(self) -> list[str]:
        known = set(self.client.scheduler_info()["workers"])
        allowed = known if self.workers is None else known & self.workers
        return sorted(allowed - self.shunned)

    def _deliver(self, partitions: Sequence[int], calls: Sequence[Call], slow: bool) -> list[Reply]:
        sends = {
            p: partial(self._send, p, "call", call.method, call.inbox, call.arguments)
            for p, call in zip(partitions, calls, strict=True)
        }
        replies = self._collect(sends, slow)
        return [replies[p] for p in partitions]

    def _send(self, p: int, method: str, *arguments: Any) -> Any:
        if p not in self.hosts:
            raise ConnectionError("the partition has no worker")
        return getattr(self.hosts[p], method)(*arguments)

    def _collect(self, sends: Mapping[int, Callable[[], Any]], slow: bool) -> dict[int, Any]:
        """Send, and wait for answers until the deadline; what does not come is lost."""
        answers = self._answers(sends, self.load_timeout if slow else self.timeout)
        missing, reason = [], "the worker has nothing of it"
        replies: dict[int, Any] = {}
        for p, answer in answers.items():
            if isinstance(answer, Exception):
                self.shunned.add(self.address.get(p, ""))
                missing.append(p)
                reason = _words(answer)
                continue
            kind, value = answer
            if kind == "empty":
                missing.append(p)
            elif kind == "refused":
                raise value
            elif kind == "failed":
                raise PartitionFailed(f"partition {p} failed:\n{value}", "Please report this")
            else:
                replies[p] = value
        if missing:
            # Whoever shares a worker with a lost partition is lost as well.
            gone = {self.address[p] for p in missing if p in self.address}
            missing += [p for p, address in self.address.items() if address in gone]
            raise WorkerLost(sorted(set(missing)), reason)
        return replies

    def _answers(self, sends: Mapping[int, Callable[[], Any]], allowed: float) -> dict[int, Any]:
        """What came back for every partition: an answer, or the exception in its place."""
        tasks: dict[int, asyncio.Task[Any]] = {}
        waiting = [*sends]
        given_up: dict[int, Exception] = {}
        deadline = time.monotonic() + allowed

        async def wait(seconds: float) -> None:
            # All in one visit to the event loop, since a visit costs as much as a message.
            for p, send in sends.items():
                if p not in tasks:
                    tasks[p] = asyncio.ensure_future(_answer(send))
            await asyncio.wait([tasks[p] for p in waiting], timeout=seconds)

        while waiting:
            left = deadline - time.monotonic()
            self.client.sync(wait, max(min(left, LOOK_EVERY), 0.0))
            waiting = [p for p in waiting if not tasks[p].done()]
            for p in waiting:
                try:
                    if left <= 0:
                        raise TimeoutError(f"no answer within {allowed:g} s")
                    self._look(p)
                except OSError as error:
                    given_up[p] = error
            waiting = [p for p in waiting if p not in given_up]
        for p in given_up:
            self.client.loop.add_callback(tasks[p].cancel)
        return {p: given_up.get(p) or tasks[p].result() for p in sends}

    def _look(self, p: int) -> None:
        """Raise if the worker of a partition is gone or has been silent for too long."""
        worker = self.client.scheduler_info()["workers"].get(self.address[p])
        if worker is None:
            raise ConnectionError("the scheduler has lost the worker")
        silent = time.time() - float(worker["last_seen"])
        if silent > self.timeout:
            raise TimeoutError(f"no sign of life for {silent:.0f} s")


class DaskEngine(EngineSettings):
    """Run a fit on the workers of a Dask cluster, one partition of the graph on each.

    Every partition keeps its samples, features, moments and coefficients. Observations travel
    only as candidates of the dictionary; an iteration exchanges the coefficients of boundary
    nodes and a few sums. That is a statement about volume, not a guarantee of privacy.

    Parameters
    ----------
    client : distributed.Client or str
        The cluster, or the address of its scheduler.
    partitions : int, or sequence of collections of labels, optional
        How many, or which nodes are together because their data are. Default one per worker.
    loader : callable, optional
        A function of a list of labels that returns the `NodeSamples` of these nodes. It runs on
        the worker, for its partition, and again if the partition has to be made anew. Without
        one the samples given to `fit` are sent to the workers.
    partitioner : {"bisection", "metis"}
        How the graph is split when a number is given; METIS needs the package pymetis.
    timeout : float, default 60
        Seconds without an answer in an iteration, or without a sign of life in longer calls,
        after which a worker counts as lost. Larger than the time of an iteration.
    load_timeout : float, default 3600
        Seconds that loading or computing features and moments may take.
    retries : int, default 3
        How many recoveries in a row without progress are attempted.
    checkpoint_every : int, default 10
        Iterations between copies of the coefficients to this process.
    checkpoint : path, optional
        File that the copies are also written to, in NumPy's format.
    start : array of shape (n_nodes, 1, m), or path of a checkpoint, optional
        Where the final solve starts: the checkpoint of an `EngineError`, or its file.
    workers : collection of str, optional
        Addresses of the workers to use. Default all that the scheduler knows.
    observe : callable, optional
        Called with every `Message` that crosses the border of a partition.

    Examples
    --------
    ::

        from distributed import Client

        engine = gr.DaskEngine(Client("tcp://scheduler:8786"), partitions=8, loader=read_nodes)
        model = gr.GRULSIF(engine=engine).fit(None, graph)
    """

    def __init__(
        self,
        client: Any,
        partitions: int | Sequence[Iterable[Label]] | None = None,
        *,
        loader: Callable[[list[Label]], Any] | None = None,
        partitioner: str = "bisection",
        timeout: float = 60.0,
        load_timeout: float = 3600.0,
        retries: int = 3,
        checkpoint_every: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
        start: FloatArray | str | os.PathLike[str] | None = None,
        workers: Iterable[str] | None = None,
        observe: Callable[[Message], None] | None = None,
    ) -> None:
        self._distributed = import_optional("distributed", "dask", "DaskEngine")
        super().__init__(
            partitions,
            loader=loader,
            partitioner=partitioner,
            retries=retries,
            checkpoint_every=checkpoint_every,
            checkpoint=checkpoint,
            start=start,
        )
        if not isinstance(client, str | self._distributed.Client):
            raise InputError(
                f"client of type {type(client).__name__} is not a cluster",
                "Pass a distributed.Client, or the address of a scheduler",
            )
        self.client = client
        self.timeout = check_real(timeout, "timeout", low=0)
        self.load_timeout = check_real(load_timeout, "load_timeout", low=0)
        self.workers = None if workers is None else list(workers)
        self.observe = observe
        if loader is not None:
            _check_pickle(loader)

    def planned(self, graph: Graph) -> int | Sequence[Iterable[Label]]:
        """The partitions asked for; by default one for every worker there is now."""
        if self.partitions is not None:
            return self.partitions
        client = self._connect()
        try:
            count = len(client.scheduler_info()["workers"])
        finally:
            client.close()
        if not count:
            raise EngineError("the cluster has no workers", "Start some, or pass partitions=")
        return min(count, graph.n_nodes)

    def open(self, plans: Sequence[Plan], sources: Sequence[Source]) -> DaskPartitions:
        """Connect; the partitions are still empty."""
        return DaskPartitions(
            self._connect(),
            plans,
            sources,
            self.timeout,
            self.load_timeout,
            self.observe,
            self.workers,
        )

    def _connect(self) -> Any:
        """A client of our own, which talks to workers directly and is nobody's default."""
        given = self.client
        address, security = given, None
        if not isinstance(given, str):
            address, security = given.scheduler.address, given.security
        try:
            return self._distributed.Client(
                address,
                security=security,
                direct_to_workers=True,
                set_as_default=False,
                timeout=self.timeout,
            )
        except (OSError, ValueError) as error:
            raise EngineError(
                f"there is no Dask scheduler at {address!r} ({error})",
                "Start a cluster first, or correct the address",
            ) from error


def _check_pickle(loader: Callable[[list[Label]], Any]) -> None:
    """Refuse a loader that cannot travel, here rather than on the way."""
    cloudpickle = import_optional("cloudpickle", "dask", "DaskEngine")
    try:
        cloudpickle.dumps(loader)
    except Exception as error:
        raise InputError(
            f"the loader {loader!r} cannot be sent to workers ({type(error).__name__}: {error})",
            "Let it open files and connections itself when it is called, and not hold open ones",
        ) from error


async def _answer(send: Callable[[], Any]) -> Any:
    """Wait for an answer; whatever goes wrong with the connection is a value."""
    try:
        return await send()
    except Exception as error:
        return error


def _words(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
