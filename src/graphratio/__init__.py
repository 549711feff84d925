"""graphratio: which nodes of a graph changed, by how much, in what way.

Two samples at every node of a graph, a reference and a target; the library estimates at all
nodes together the relative likelihood-ratio = target / reference, and from it divergences and
importance weights.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphratio._version import __version__

if TYPE_CHECKING:
    from graphratio import datasets, exceptions, theory
    from graphratio.changepoints import GraphChangePointDetector
    from graphratio.data.graph import Graph
    from graphratio.data.samples import NodeSamples
    from graphratio.distributed import DaskEngine
    from graphratio.estimators import GRULSIF, KLIEP, RULSIF, ULSIF, GraphRatio, Pool, load
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

# Names are looked up when they are used: importing NumPy, SciPy and scikit-learn takes a second.
_HOMES = {
    "graphratio.changepoints": ["GraphChangePointDetector"],
    "graphratio.data.graph": ["Graph"],
    "graphratio.data.samples": ["NodeSamples"],
    "graphratio.distributed": ["DaskEngine"],
    "graphratio.estimators": ["GRULSIF", "KLIEP", "RULSIF", "ULSIF", "GraphRatio", "Pool", "load"],
    "graphratio.evaluation": [
        "compare_graphs", "divergence_bounds", "expected_ratio_interval", "mean_changes",
    ],
    "graphratio.plotting": [
        "plot_graph", "plot_learned_graph", "plot_node", "plot_profiles", "plot_selection",
    ],
    "graphratio.testing": ["kinds_of_change", "observations_needed", "two_sample_test"],
    "graphratio.transfer": ["NodewiseTransfer"],
}  # fmt: skip
_FOLDERS = ("datasets", "exceptions", "theory")


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    if name in _FOLDERS:
        return import_module(f"graphratio.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
