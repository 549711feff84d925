"""The result of a loader of real data, and the search for files of a data package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from graphratio._utils.errors import InputError
from graphratio._utils.html import graph_html, samples_html, titled
from graphratio._utils.optional import missing
from graphratio._utils.typing import Label
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples


@dataclass(frozen=True, eq=False, repr=False)
class NetworkData:
    """Two real samples at every node of a graph, with names and a description.

    Attributes
    ----------
    samples : NodeSamples
        In the units of the source, not standardised.
    graph : Graph
        With coordinates (latitude, longitude) in degrees; nodes are in the order of the samples.
    names : dict of label to str
        A readable name of every node.
    left_out : tuple of labels
        Nodes that belong to the data but could not be placed on the map.
    reference_name, target_name, description : str

    Examples
    --------
    >>> import graphratio as gr
    >>> data = gr.datasets.load_flights()
    >>> data
    NetworkData(n_nodes=67, n_edges=206, 'winter' against 'summer', left out: BQN, SJU, STT)
    >>> data.names["BOS"], data.samples.feature_names
    ('Boston', ('ground_speed',))
    """

    samples: NodeSamples
    graph: Graph
    names: Mapping[Label, str]
    left_out: tuple[Label, ...]
    reference_name: str
    target_name: str
    description: str

    def __repr__(self) -> str:
        parts = [
            f"n_nodes={self.graph.n_nodes}",
            f"n_edges={self.graph.n_edges}",
            f"{self.reference_name!r} against {self.target_name!r}",
        ]
        if self.left_out:
            parts.append(f"left out: {', '.join(map(str, self.left_out))}")
        return f"NetworkData({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return titled(self.description, samples_html(self.samples), graph_html(self.graph))


def package_file(package: str, file: str, purpose: str) -> Path:
    """Find a file of an installed package without importing it; `purpose` names the caller."""
    try:
        found = find_spec(package)
    except ValueError:  # a loaded module of this name has no specification
        found = None
    if found is None or not found.submodule_search_locations:
        raise missing(package, "examples", purpose, "data package")
    places = [Path(folder) / file for folder in found.submodule_search_locations]
    for path in places:
        if path.is_file():
            return path
    raise InputError(
        f"the package {package!r} is installed, but its file {file} is not where it should be "
        f"({places[0]})",
        f"Reinstall it with: pip install --force-reinstall {package.replace('_', '-')}",
    )
