"""The candidates of a selection: the paper's grids, or those of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_choice, check_integer, check_real
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph

# The grids of the paper's appendix; graph penalties are divided by the mean degree.
NODE_PENALTIES = (1e-5, 1e-3, 0.1, 1.0)
GRAPH_PENALTIES = (1e-3, 1e-2, 0.1, 1.0, 10.0)

# A selection uses at most this many nodes by default. The paper's grid for the graph penalty is
# meant for graphs of up to this size.
SELECTION_NODES = 2000

# Outside this range a sum of penalty and data rounds to one of the two, or overflows.
PENALTY_SPAN = (1e-15, 1e15)


@dataclass(frozen=True)
class Candidates:
    """Candidates in increasing order; every combination is tried."""

    bandwidth: FloatArray
    graph_penalty: FloatArray
    node_penalty: FloatArray

    @property
    def pairs(self) -> tuple[FloatArray, FloatArray]:
        """All (graph penalty, node penalty), each as an array of shape (n_pairs,)."""
        lam, gam = np.meshgrid(self.graph_penalty, self.node_penalty, indexing="ij")
        return lam.ravel(), gam.ravel()

    def __len__(self) -> int:
        return self.bandwidth.size * self.graph_penalty.size * self.node_penalty.size


def positive_candidates(value: Any, name: str, default: FloatArray) -> FloatArray:
    """Candidates of a hyperparameter: None gives the default, a number or a sequence itself.

    Examples
    --------
    >>> positive_candidates([2.0, 1.0], "bandwidth", np.ones(1))
    array([1., 2.])
    """
    if value is None:
        return np.asarray(default, dtype=np.float64)
    low, high = PENALTY_SPAN if name.endswith("penalty") else (0.0, np.inf)
    if np.ndim(value) == 0:
        return np.array([check_real(value, name, low=low, high=high)])
    if np.ndim(value) != 1 or not len(value):
        raise InputError(
            f"{name}={value!r} is neither a number nor a sequence of numbers",
            "Pass None to select it, a number to fix it, or a sequence of candidates",
        )
    return np.array(sorted({check_real(item, name, low=low, high=high) for item in value}))


def default_graph_penalties(graph: Graph) -> FloatArray:
    """The paper's candidates divided by the mean degree; without edges only 1, as in POOL.

    The data term is a mean over nodes. Beyond 2,000 nodes the candidates therefore shrink with
    the number of nodes, which keeps the balance between data and graph at a node.

    Examples
    --------
    >>> default_graph_penalties(Graph.empty(3))
    array([1.])
    """
    if graph.n_edges == 0:
        return np.ones(1)
    share = min(1.0, SELECTION_NODES / graph.n_nodes)
    return np.array(GRAPH_PENALTIES) * share / graph.mean_degree


def selection_size(selection_nodes: object, n_nodes: int) -> int:
    """Number of nodes that a selection uses: the default, all, or the requested number.

    Examples
    --------
    >>> selection_size(None, 500), selection_size(None, 100_000), selection_size("all", 100_000)
    (500, 2000, 100000)
    """
    if selection_nodes is None:
        return min(n_nodes, SELECTION_NODES)
    if isinstance(selection_nodes, str):
        check_choice(selection_nodes, "selection_nodes", ("all",))
        return n_nodes
    return min(n_nodes, check_integer(selection_nodes, "selection_nodes", low=2))
