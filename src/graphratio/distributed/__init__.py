"""Where a fit runs: partitions of the graph in this process or on Dask workers."""

from graphratio.distributed.dask_engine import DaskEngine
from graphratio.distributed.engine_settings import EngineSettings
from graphratio.distributed.local import LocalEngine
from graphratio.distributed.partition import Partitioning, partition_graph
from graphratio.distributed.protocol import Engine, Message, WorkerLost

__all__ = [
    "DaskEngine",
    "Engine",
    "EngineSettings",
    "LocalEngine",
    "Message",
    "Partitioning",
    "WorkerLost",
    "partition_graph",
]
