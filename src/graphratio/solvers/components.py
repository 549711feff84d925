"""The means over separate parts of a graph, solved with the parts' own second moments.

Nothing couples the connected components of a graph, so the mean of the coefficients over a
component is settled by the data of that component and the node penalty alone. The mean field
puts the average over all nodes in place of those data. For a component that holds most of the
nodes that is right; a handful of nodes may have many times as much to say about a direction of
the features as the average node has, and each such direction costs conjugate gradients an
iteration or more. Here the means over the components are solved for exactly, and the mean field
is left with what differs from them.

Symbols
-------
P           normalised indicators of the components, shape (n_nodes, n_components)
C_c         mean of A_v over component c, plus N lam gam I
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from graphratio.objectives import GraphObjective
from graphratio.second_moments import SecondMoment
from graphratio.solvers.bases import Basis
from graphratio.solvers.block_multigrid import NodeInverses
from graphratio.solvers.stacks import Linear, Selection, times
from graphratio.typing import FloatArray, IntArray

# Share of the nodes from which on a component is what the average over all nodes describes.
LARGE_SHARE = 0.5

# Nodes whose blocks are added up at once.
CHUNK = 2048


@dataclass(frozen=True, eq=False)
class ComponentMeans:
    """(I - P P') inner (I - P P') + P C^{-1} P'.

    Attributes
    ----------
    inner : Linear
        What to use away from the means.
    rows : ndarray of shape (n_rows,)
        Coordinates that the components in question have a part in; the rest is left to `inner`.
    indicators : sparse or dense matrix of shape (n_rows, n_components)
        P, of these coordinates.
    inverses : NodeInverses
        C^{-1} of every component.
    """

    inner: Linear
    rows: IntArray
    indicators: Any
    inverses: NodeInverses

    def apply(self, x: FloatArray) -> FloatArray:
        """Both parts."""
        own = x[self.rows]
        means = times(self.indicators.T, own)
        rest = x.copy()
        rest[self.rows] = own - times(self.indicators, means)
        result = self.inner.apply(rest)
        own = result[self.rows]
        solved = self.inverses.apply(means.astype(np.float32, copy=False))
        result[self.rows] = own + times(
            self.indicators, solved - times(self.indicators.T, own)
        ).astype(x.dtype, copy=False)
        return result

    def restrict(self, candidates: Selection) -> ComponentMeans:
        """Keep some of the candidates."""
        return replace(
            self,
            inner=self.inner.restrict(candidates),
            inverses=self.inverses.restrict(candidates),
        )


def with_component_means(inner: Linear, objective: GraphObjective, basis: Basis) -> Linear:
    """Correct a mean field in the coordinates of the basis.

    Nothing to do for a connected graph, nor for a component that holds most of the nodes.
    """
    member = basis.components
    sizes = np.bincount(member)
    small = np.flatnonzero(sizes <= LARGE_SHARE * len(member))
    if not small.size:
        return inner
    rank = np.full(len(sizes), -1)
    rank[small] = np.arange(small.size)
    nodes = np.flatnonzero(rank[member] >= 0)
    # Component by component, so that a chunk of nodes touches few of them.
    nodes = nodes[np.argsort(rank[member[nodes]], kind="stable")]
    part = rank[member[nodes]]
    blocks = _means(objective.moments.second, nodes, part, sizes[small])
    ridge = np.tile(len(member) * objective.lam * objective.gam, (small.size, 1))
    size = (1 / np.sqrt(sizes[small][part])).astype(objective.moments.second.dtype)
    shape = (len(member), small.size)
    rows, indicators = basis.in_null_space(sparse.csr_array((size, (nodes, part)), shape=shape))
    return ComponentMeans(inner, rows, indicators, NodeInverses.of(blocks, ridge, 1.0))


def _means(second: SecondMoment, nodes: IntArray, part: IntArray, sizes: IntArray) -> FloatArray:
    """Mean of A_v over every component, shape (n_components, m, m), in single precision."""
    m = second.shape[1]
    means = np.zeros((len(sizes), m * m), dtype=np.float32)
    for begin in range(0, len(nodes), CHUNK):
        some = slice(begin, begin + CHUNK)
        blocks = second.take(nodes[some]).dense(compact=True).reshape(-1, m * m)
        first = part[some][0]
        within = sparse.csr_array(
            (1 / sizes[part[some]], (part[some] - first, np.arange(len(blocks))))
        )
        means[first : first + within.shape[0]] += within @ blocks
    return means.reshape(-1, m, m)
