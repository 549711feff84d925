"""Partitions in this process, for tests and to watch their messages."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from graphratio._utils.threads import single_thread
from graphratio.distributed.engine_settings import EngineSettings
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.protocol import Call, Engine, Message, Reply, Source
from graphratio.distributed.worker import Partition


class LocalPartitions(Engine):
    """Partitions of this process; what crosses a border is pickled, so they share no memory."""

    def __init__(
        self,
        plans: Sequence[PartitionPlan],
        sources: Sequence[Source],
        observe: Callable[[Message], None] | None = None,
    ) -> None:
        super().__init__(len(plans), observe)
        self.plans, self.sources = plans, sources
        self.parts: dict[int, Partition] = {}

    def _make(self, partitions: Sequence[int]) -> None:
        for p in partitions:
            self.parts[p] = Partition(self.plans[p], self.sources[p])

    def _deliver(self, partitions: Sequence[int], calls: Sequence[Call], slow: bool) -> list[Reply]:
        replies = []
        with single_thread():
            for p, call in zip(partitions, calls, strict=True):
                inbox, arguments = _crossed((call.inbox, call.arguments))
                replies.append(_crossed(self.parts[p].run(call.method, inbox, arguments)))
        return replies


class LocalEngine(EngineSettings):
    """Run a fit on partitions within this process.

    The results equal those of `DaskEngine` with the same partitions bit for bit.

    Parameters
    ----------
    partitions : int, or sequence of collections of labels, optional
        Default two.
    loader, partitioner, retries, checkpoint_every, checkpoint, start, observe :
        As in `DaskEngine`.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.distributed import LocalEngine
    >>> rng = np.random.default_rng(0)
    >>> data = list(rng.normal(size=(6, 40))), list(rng.normal(size=(6, 40)) + 1)
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> settings = dict(bandwidth=1.0, graph_penalty=0.04, ridge=0.004)
    >>> parted = gr.GRULSIF(**settings, engine=LocalEngine(2)).fit(data, graph)
    >>> whole = gr.GRULSIF(**settings).fit(data, graph)
    >>> bool(np.allclose(parted.coef_, whole.coef_, atol=1e-5))
    True
    """

    def open(self, plans: Sequence[PartitionPlan], sources: Sequence[Source]) -> LocalPartitions:
        """Start with empty partitions."""
        return LocalPartitions(plans, sources, self.observe)


def _crossed(payload: Any) -> Any:
    return pickle.loads(pickle.dumps(payload, protocol=5))
