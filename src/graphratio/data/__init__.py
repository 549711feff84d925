"""The data: samples and graphs, every way to read them, and every check on them."""

from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples

__all__ = ["Graph", "NodeSamples"]
