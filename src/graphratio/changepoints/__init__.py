"""Change-points of time series at the nodes of a graph."""

from graphratio.changepoints.detector import GraphChangePointDetector
from graphratio.changepoints.events import (
    ChangeEvent,
    CorrelationChange,
    FeatureChange,
    NodeChange,
)

__all__ = [
    "ChangeEvent",
    "CorrelationChange",
    "FeatureChange",
    "GraphChangePointDetector",
    "NodeChange",
]
