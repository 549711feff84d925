"""The candidates of a selection: the paper's grids in the library's units, or those of the user.

The paper's objective has the data term (1/N) sum_v loss_v, the graph penalty lambda and the ridge
lambda gamma; ours is N times that. Its grids, l = 1e-3, ..., 10 for lambda times the mean degree
and gamma, become pairs

    graph_penalty = l M / d_w,      ridge = l gamma M / k

with d_w the mean weighted degree, k the mean number of neighbours and M = min(N, 2000). So no
result depends on the unit of the edge weights, nor, on large graphs, on the number of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_choice, check_integer, check_real
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph

# The grids of the paper's appendix: lambda times the mean degree, and gamma.
LAMBDAS = (1e-3, 1e-2, 0.1, 1.0, 10.0)
GAMMAS = (1e-5, 1e-3, 0.1, 1.0)

# A selection uses at most this many nodes by default, and the paper's grids are those of a graph
# of at most this size.
SELECTION_NODES = 2000

# Bandwidths that differ by a smaller factor give nearly the same ratios.
APART = 1.1

# Outside this range a sum of penalty and data rounds to one of the two, or overflows.
PENALTY_SPAN = (1e-15, 1e15)


@dataclass(frozen=True)
class Candidates:
    """Bandwidths (n_bandwidths,), each tried with every pair of penalties (n_pairs,)."""

    bandwidth: FloatArray
    graph_penalty: FloatArray
    ridge: FloatArray

    @property
    def pairs(self) -> tuple[FloatArray, FloatArray]:
        """Graph penalties and ridges."""
        return self.graph_penalty, self.ridge

    @property
    def middle(self) -> tuple[float, float, float]:
        """The middle bandwidth and graph penalty, and the middle ridge that goes with it."""
        penalties = np.unique(self.graph_penalty)
        penalty = penalties[penalties.size // 2]
        ridges = self.ridge[self.graph_penalty == penalty]
        bandwidth = self.bandwidth[self.bandwidth.size // 2]
        return float(bandwidth), float(penalty), float(ridges[ridges.size // 2])

    def __len__(self) -> int:
        return self.bandwidth.size * self.ridge.size


def penalty_pairs(
    graph: Graph, graph_penalty: Any = None, ridge: Any = None, *, scale: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Pairs of penalties for a graph, each of shape (n_pairs,), in increasing order.

    None stands for the paper's candidates, times `scale`. Without edges the graph penalty is 0.
    """
    degree, neighbors = graph.mean_degree, graph.mean_neighbors
    if not graph.n_edges:
        candidates_of(graph_penalty, "graph_penalty", np.zeros(1))
        degree, neighbors, graph_penalty = 1.0, 1.0, 0.0
    return pairs_by_degree(graph.n_nodes, degree, neighbors, graph_penalty, ridge, scale)


def pairs_by_degree(
    n_nodes: int,
    mean_degree: float,
    mean_neighbors: float,
    graph_penalty: Any,
    ridge: Any,
    scale: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Pairs as in `penalty_pairs`, for any graph with these average degrees."""
    nodes = scale * min(n_nodes, SELECTION_NODES)
    usual = np.array(LAMBDAS) * nodes / mean_degree
    penalties = candidates_of(graph_penalty, "graph_penalty", usual)
    low, high = (end / mean_degree for end in PENALTY_SPAN)
    beyond = penalties[(penalties > 0) & ((penalties < low) | (penalties > high))]
    if beyond.size:
        raise InputError(
            f"graph_penalty={beyond[0]:g} times the mean degree {mean_degree:g} is not between "
            f"{PENALTY_SPAN[0]:g} and {PENALTY_SPAN[1]:g}",
            "Pass None to select it, or a number in units of 1 / mean degree",
        )
    units = np.where(penalties > 0, penalties * mean_degree / mean_neighbors, nodes)
    ridges = [candidates_of(ridge, "ridge", np.array(GAMMAS) * unit) for unit in units]
    return np.repeat(penalties, [own.size for own in ridges]), np.concatenate(ridges)


def paper_gammas(graph_penalty: FloatArray, ridge: FloatArray, n_nodes: int) -> FloatArray:
    """The paper's gamma: ridge / graph penalty, or ridge / N; rounded to remove rounding errors."""
    coupled = graph_penalty > 0
    gammas = ridge / np.where(coupled, graph_penalty, n_nodes)
    return np.array([float(f"{gamma:.10g}") for gamma in gammas.ravel()]).reshape(gammas.shape)


def candidates_of(value: Any, name: str, default: FloatArray) -> FloatArray:
    """Candidates of a hyperparameter: None gives the default, a number or a sequence itself."""
    if value is None:
        return np.asarray(default, dtype=np.float64)
    if np.ndim(value) == 0:
        return np.array([_candidate(value, name)])
    if np.ndim(value) != 1 or not len(value):
        raise InputError(
            f"{name}={value!r} is neither a number nor a sequence of numbers",
            "Pass None to select it, a number to fix it, or a sequence of candidates",
        )
    return np.array(sorted({_candidate(item, name) for item in value}))


def _candidate(value: Any, name: str) -> float:
    if name == "graph_penalty":
        # Its span depends on the weights of the edges.
        return check_real(value, name, low=0.0, include_low=True)
    low, high = (0.0, np.inf) if name == "bandwidth" else PENALTY_SPAN
    return check_real(value, name, low=low, high=high)


def apart(widths: FloatArray) -> FloatArray:
    """Bandwidths without those that are hardly different from others.

    The smallest and the largest stay. Every one that goes is within the factor `APART` of one that
    stays.

    Examples
    --------
    >>> apart(np.array([2.0, 2.1, 2.3, 2.9, 3.0]))
    array([2. , 2.3, 3. ])
    """
    kept = [float(widths[0])]
    for width in map(float, widths[1:-1]):
        if width >= APART * kept[-1] and widths[-1] >= APART * width:
            kept.append(width)
    return np.unique([*kept, float(widths[-1])])


def selection_size(selection_nodes: object, n_nodes: int) -> int:
    """Number of nodes that a selection uses: the default, all, or the requested number."""
    if selection_nodes is None:
        return min(n_nodes, SELECTION_NODES)
    if isinstance(selection_nodes, str):
        check_choice(selection_nodes, "selection_nodes", ("all",))
        return n_nodes
    return min(n_nodes, check_integer(selection_nodes, "selection_nodes", low=2))
