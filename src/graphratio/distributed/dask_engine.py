"""The Dask engine that users create: its cluster, partitions and time-outs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphratio._utils.errors import EngineError, InputError
from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import check_real
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.graph import Graph
from graphratio.distributed.actors import DaskPartitions
from graphratio.distributed.engine_settings import EngineSettings
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.protocol import Message, Source


class DaskEngine(EngineSettings):
    """Run a fit on the workers of a Dask cluster, one partition of the graph on each.

    Observations travel only as candidates of the dictionary; an iteration exchanges the
    coefficients of boundary nodes and a few sums. That is a statement about volume, not a
    guarantee of privacy.

    Parameters
    ----------
    client : distributed.Client or str
        The cluster, or the address of its scheduler.
    partitions : int, or sequence of collections of labels, optional
        Number of partitions, or the nodes of each, such as those whose data are in one place.
        Default one per worker.
    loader : callable, optional
        A function of a list of labels that returns the `NodeSamples` of these nodes. It runs on
        the worker, for its partition, and again if the partition is rebuilt. Without a loader
        the samples given to `fit` are sent to the workers.
    partitioner : {"bisection", "metis"}
        How the graph is split when a number is given; METIS needs the package pymetis.
    timeout : float, default 60
        Seconds without an answer to a ping after which a worker counts as lost. One that
        answers may take ten times as long for a step of an iteration.
    load_timeout : float, default 3600
        Seconds that loading or computing features and moments may take.
    retries : int, default 3
        How many recoveries in a row without progress are attempted.
    checkpoint_every : int, default 10
        Iterations between copies of the coefficients to this process.
    checkpoint : path, optional
        File for these copies, in NumPy's format.
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
            observe=observe,
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
        if loader is not None:
            cloudpickle = import_optional("cloudpickle", "dask", "DaskEngine")
            try:
                cloudpickle.dumps(loader)
            except Exception as error:
                raise InputError(
                    f"the loader {loader!r} cannot be sent to workers "
                    f"({type(error).__name__}: {error})",
                    "Let it open files and connections when it is called, not before",
                ) from error

    def planned(self, graph: Graph) -> int | Sequence[Iterable[Label]]:
        """The partitions asked for; by default one for every worker that may be used now."""
        if self.partitions is not None:
            return self.partitions
        client = self._connect()
        try:
            count = len(client.nthreads(self.workers))
        finally:
            client.close()
        if not count:
            raise EngineError("the cluster has no workers", "Start some, or pass partitions=")
        return min(count, graph.n_nodes)

    def open(self, plans: Sequence[PartitionPlan], sources: Sequence[Source]) -> DaskPartitions:
        """Connect; the partitions are still empty."""
        limits = (self.timeout, self.load_timeout)
        return DaskPartitions(self._connect(), plans, sources, *limits, self.observe, self.workers)

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
