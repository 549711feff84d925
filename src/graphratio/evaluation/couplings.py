"""Ways of fitting all nodes on a part of the data: with a graph, each by itself, all as one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import DenseSecond, Moments
from graphratio.moments.objective import GraphObjective
from graphratio.selection.cross_validation import SOLVE_ITERATIONS, SOLVE_TOLERANCE, Candidates
from graphratio.solvers import basis_of, solve_nodes, solve_path
from graphratio.solvers.bases import Basis

# Nodes up to which the answer of the whole graph is computed, from all of its modes.
LARGEST_EXACT = 800


class Fit(Protocol):
    """A way of fitting all nodes at once."""

    @property
    def candidates(self) -> Candidates:
        """What is tried."""

    def solve(self, moments: Moments, lam: FloatArray, gam: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""


@dataclass(frozen=True, eq=False)
class Coupling:
    """Neighbours in a graph are fitted together; without edges every node by itself.

    Attributes
    ----------
    graph : Graph
    candidates : Candidates
        Bandwidths and penalties that are tried.
    """

    graph: Graph
    candidates: Candidates

    @cached_property
    def _bases(self) -> dict[np.dtype[np.floating], Basis]:
        return {}

    def solve(self, moments: Moments, lam: FloatArray, gam: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""
        objective = GraphObjective.of(moments, self.graph.laplacian, lam, gam)
        if not self.graph.n_edges:
            return solve_nodes(objective)
        dtype = moments.second.dtype
        if dtype not in self._bases:
            self._bases[dtype] = basis_of(self.graph, dtype)
        return solve_path(objective, self._bases[dtype], SOLVE_TOLERANCE, SOLVE_ITERATIONS).theta

    def stiffness(self, w: FloatArray, lam: float, gam: float) -> FloatArray:
        """How strongly the rest of the graph holds the ratio of a node, shape (n_nodes, m).

        The inverse of the (v, v) entry of (w / N + lam (lap + gam I))^{-1}, minus w / N, for
        every eigenvalue w of the mean second moment: the others answer as the average node
        does. On large graphs the neighbours are taken as fixed.
        """
        n_nodes = self.graph.n_nodes
        if n_nodes > LARGEST_EXACT or not self.graph.n_edges:
            own = lam * (self.graph.degrees + gam)
            return np.repeat(own[:, np.newaxis], len(w), axis=1)
        modes, vectors = self.graph.spectrum
        data = np.maximum(w, 0.0) / n_nodes
        response = vectors**2 @ (1.0 / (data + lam * (modes[:, np.newaxis] + gam)))
        return np.asarray(1.0 / response - data)


@dataclass(frozen=True, eq=False)
class SharedFit:
    """One ratio for all nodes.

    Attributes
    ----------
    candidates : Candidates
        The ridge is the product of the two penalties.
    """

    candidates: Candidates

    def solve(self, moments: Moments, lam: FloatArray, gam: FloatArray) -> FloatArray:
        """The same coefficients at every node, shape (n_nodes, C, m)."""
        one = Graph.empty(1).laplacian
        theta = solve_nodes(GraphObjective.of(_averaged(moments), one, lam, gam))
        return np.broadcast_to(theta, (len(moments.complete), *theta.shape[1:]))


def _averaged(moments: Moments) -> Moments:
    """All nodes as one, each with the same weight."""
    n_complete = max(int(moments.complete.sum()), 1)
    share = len(moments.complete) / n_complete
    second = moments.second.mean()[np.newaxis] * share
    first = moments.first.mean(axis=0, keepdims=True) * share
    return Moments(
        DenseSecond(second.astype(moments.second.dtype)),
        first.astype(moments.second.dtype),
        np.array([True]),
        moments.prior_ratio,
    )
