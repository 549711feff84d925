"""Since when: change-points of time series at the nodes of a graph."""

from graphratio.inference.changepoints.detector import GraphChangePointDetector
from graphratio.inference.changepoints.events import ChangeEvent

__all__ = ["ChangeEvent", "GraphChangePointDetector"]
