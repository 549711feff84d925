"""One fit on partitions: cut the graph, load the data, describe them to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.threads import single_thread
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.frames import Backend
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.data.scaling import Scaling
from graphratio.distributed.conjugate import PartitionedSystem, coarse_modes
from graphratio.distributed.engine_settings import EngineSettings
from graphratio.distributed.partition import Partitioning, make_plans, partition_graph
from graphratio.distributed.protocol import Source
from graphratio.distributed.recovery import Fleet


@dataclass(frozen=True, eq=False)
class Session:
    """Partitions with their data; `modes` are eigenvalues, `sizes` has shape (n_nodes, 2)."""

    fleet: Fleet
    graph: Graph
    partitioning: Partitioning
    modes: FloatArray
    sizes: IntArray
    feature_names: tuple[str, ...]
    scaling: Scaling | None
    backend: Backend

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the partitions, as attributes of a solution."""
        parted = self.partitioning
        return {
            "partitions": parted.n_partitions,
            "cut_edges": parted.n_cut,
            "boundary_rows": parted.n_boundary,
            "recoveries": self.fleet.n_recoveries,
        }

    def system(self, lam: FloatArray, rho: FloatArray) -> PartitionedSystem:
        """The linear system for pairs of penalties."""
        return PartitionedSystem(lam, rho, self.modes, self.graph.mean_degree)


@contextmanager
def open_session(
    settings: EngineSettings, samples: NodeSamples | None, graph: Graph
) -> Iterator[Session]:
    """Start an engine for a fit and close it; `samples` are None if the settings have a loader."""
    partitioning = partition_graph(graph, settings.planned(graph), settings.partitioner)
    modes, vectors = coarse_modes(graph)
    plans = make_plans(graph, partitioning, vectors)
    loader: Any = settings.loader
    sources: list[Source] = [
        loader if samples is None else samples.subset([samples.nodes[i] for i in plan.nodes])
        for plan in plans
    ]
    engine = settings.open(plans, settings.sources(sources))
    try:
        # One thread, so that sums have the same order on every machine.
        with single_thread():
            fleet = Fleet(engine, settings.retries, settings.checkpoint)
            fleet.nodes = [plan.nodes for plan in plans]
            fleet.start()
            replies = fleet.ask("describe")
            names, scaling, backend = _agreed(replies)
            sizes = fleet.whole([reply[0] for reply in replies]).astype(np.intp)
            scaling = scaling if scaling is None else scaling.for_nodes(graph.nodes)
            yield Session(fleet, graph, partitioning, modes, sizes, names, scaling, backend)
    finally:
        engine.close()


def _agreed(replies: list[Any]) -> tuple[tuple[str, ...], Scaling | None, Backend]:
    """Names and backend, which must be the same on all partitions, and the scaling of all."""
    _, names, scaling, backend = replies[0]
    own = scaling is not None and bool(scaling.own_mask.any())
    for p, (_, other_names, other_scaling, _) in enumerate(replies):
        if other_names != names:
            raise InputError(
                f"partition 0 has the features {listing(names)} and partition {p} "
                f"{listing(other_names)}",
                "Let the loader return the same features in the same order everywhere",
            )
        if own:
            same = other_scaling is not None and other_scaling.joins(scaling)
        else:
            same = other_scaling is None if scaling is None else scaling.same_as(other_scaling)
        if not same:
            raise InputError(
                f"partitions 0 and {p} are standardised in different ways",
                "Standardise by numbers that are the same for all nodes, "
                "samples.scaled(Scaling(mean, scale)) in the loader, or standardized(by_node=True) "
                "on all partitions, or not at all",
            )
    if own:
        scaling = Scaling.joined([reply[2] for reply in replies])
    return names, scaling, backend
