"""graphratio: which nodes of a graph changed, by how much, in what way.

Two samples at every node of a graph, a reference and a target; the library estimates at all
nodes together the relative likelihood-ratio = target / reference, and from it divergences and
importance weights.
"""

from graphratio import datasets, exceptions, theory
from graphratio._version import __version__
from graphratio.estimators import GRULSIF, KLIEP, RULSIF, ULSIF, Pool, load
from graphratio.graph import Graph
from graphratio.samples import NodeSamples

__all__ = [
    "GRULSIF",
    "KLIEP",
    "RULSIF",
    "ULSIF",
    "Graph",
    "NodeSamples",
    "Pool",
    "__version__",
    "datasets",
    "exceptions",
    "load",
    "theory",
]
