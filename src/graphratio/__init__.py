"""graphratio: which nodes of a graph changed, by how much, in what way.

Two samples at every node of a graph, a reference and a target; the library estimates at all
nodes together the relative likelihood-ratio = target / reference, and from it divergences and
importance weights.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphratio import datasets, exceptions, theory
from graphratio._version import __version__
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import (
    GRULSIF,
    KLIEP,
    RULSIF,
    ULSIF,
    GraphRatio,
    Pool,
    load,
)

if TYPE_CHECKING:
    from graphratio.changepoints import GraphChangePointDetector
    from graphratio.distributed import DaskEngine
    from graphratio.evaluation import (
        compare_graphs,
        divergence_bounds,
        expected_ratio_interval,
        mean_changes,
    )
    from graphratio.plotting import (
        plot_graph,
        plot_learned_graph,
        plot_node,
        plot_profiles,
        plot_selection,
    )
    from graphratio.testing import kinds_of_change, observations_needed, two_sample_test
    from graphratio.transfer import NodewiseTransfer

__all__ = [
    "GRULSIF",
    "KLIEP",
    "RULSIF",
    "ULSIF",
    "DaskEngine",
    "Graph",
    "GraphChangePointDetector",
    "GraphRatio",
    "NodeSamples",
    "NodewiseTransfer",
    "Pool",
    "__version__",
    "compare_graphs",
    "datasets",
    "divergence_bounds",
    "exceptions",
    "expected_ratio_interval",
    "kinds_of_change",
    "load",
    "mean_changes",
    "observations_needed",
    "plot_graph",
    "plot_learned_graph",
    "plot_node",
    "plot_profiles",
    "plot_selection",
    "theory",
    "two_sample_test",
]

# Where names live that are looked up only when used, since most programs need none of them.
_ON_USE = {
    "DaskEngine": "graphratio.distributed",
    "NodewiseTransfer": "graphratio.transfer",
    "GraphChangePointDetector": "graphratio.changepoints",
    "compare_graphs": "graphratio.evaluation",
    "divergence_bounds": "graphratio.evaluation",
    "expected_ratio_interval": "graphratio.evaluation",
    "kinds_of_change": "graphratio.testing",
    "mean_changes": "graphratio.evaluation",
    "observations_needed": "graphratio.testing",
    "plot_graph": "graphratio.plotting",
    "plot_learned_graph": "graphratio.plotting",
    "plot_node": "graphratio.plotting",
    "plot_profiles": "graphratio.plotting",
    "plot_selection": "graphratio.plotting",
    "two_sample_test": "graphratio.testing",
}


def __getattr__(name: str) -> Any:
    if name in _ON_USE:
        return getattr(import_module(_ON_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
