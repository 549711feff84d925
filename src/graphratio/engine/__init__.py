"""Where a fit runs: partitions of the graph in this process or on Dask workers."""

from graphratio.engine.dask_engine import DaskEngine
from graphratio.engine.local import LocalEngine
from graphratio.engine.partition import Partitioning, partition_graph
from graphratio.engine.protocol import Engine, Message, WorkerLost
from graphratio.engine.settings import EngineSettings

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
