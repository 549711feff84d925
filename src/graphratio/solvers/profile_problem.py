"""The data of shared profiles: the sums over moments that the alternating steps need.

The steps need a few sums over nodes and small blocks per node, never the moments themselves. So
the moments may be in this process or on partitions. Symbols as in `alternating`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray
from graphratio.moments.node_moments import Moments
from graphratio.moments.second_moments import DenseSecond, FactoredSecond, SecondMoment
from graphratio.solvers.learned_edges import Edges

# Entries of the blocks that are formed from features to be summed in every round.
LARGEST_BLOCKS = 2**25


class ProfileData(Protocol):
    """The sums that the steps need; `metric` is the matrix M, shape (m, m)."""

    @property
    def metric(self) -> FloatArray:
        """Mean of the second moments over nodes with both samples."""

    @property
    def edges(self) -> Edges:
        """Edges of the graph."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the moments."""

    @property
    def first(self) -> FloatArray:
        """First moments of all nodes, shape (n_nodes, m)."""

    def projected(self, profiles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """B' A_v B and B' b_v of all nodes, shapes (n_nodes, r, r) and (n_nodes, r)."""

    def pooled(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums over nodes of c_k c_l A_v and of c_k b_v, shapes (n_pairs, m, m) and (r, m)."""

    def loss(self, profiles: FloatArray, coordinates: FloatArray) -> float:
        """Sum of the losses of all nodes."""


class ProfileSums:
    """The sums that the steps need, from the moments of some nodes."""

    moments: Moments

    def projected(self, profiles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """B' A_v B, shape (n_nodes, r, r), and B' b_v, shape (n_nodes, r)."""
        second, first = self.moments.second, self.moments.first
        tiled = np.broadcast_to(profiles.T, (len(first), *profiles.T.shape))
        blocks = second.apply(np.ascontiguousarray(tiled)) @ profiles
        return blocks, (first @ profiles).astype(second.dtype, copy=False)

    def pooled(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums over nodes of c_k c_l A_v for k <= l, (n_pairs, m, m), and of c_k b_v, (r, m)."""
        first, second = np.triu_indices(coordinates.shape[1])
        pairs = (coordinates[:, first] * coordinates[:, second]).T
        sums = self._summed.combinations(np.ascontiguousarray(pairs))
        return sums, np.asarray(coordinates.T @ self.moments.first)

    @property
    def _summed(self) -> SecondMoment:
        """The second moments that are summed over nodes."""
        return self.moments.second

    def loss(self, profiles: FloatArray, coordinates: FloatArray) -> float:
        """Sum over nodes of 1/2 theta' A_v theta - b_v' theta, with theta = B c_v."""
        theta = coordinates @ profiles.T
        loss = 0.5 * self.moments.second.quadratic(theta[:, np.newaxis]).sum()
        return float(loss - np.einsum("vm,vm->", theta, self.moments.first))


@dataclass(frozen=True, eq=False)
class ProfileProblem(ProfileSums):
    """The moments of all nodes in this process; see `ProfileData`."""

    moments: Moments
    metric: FloatArray
    edges: Edges

    @classmethod
    def of(cls, moments: Moments, edges: Edges) -> ProfileProblem:
        """Set up from moments; nodes without one of the samples do not enter the metric."""
        share = max(float(moments.complete.mean()), 1 / len(moments.complete))
        return cls(moments, moments.second.mean() / moments.first.dtype.type(share), edges)

    @computed_once
    def _summed(self) -> SecondMoment:
        """The second moments, as blocks if these fit: every round of a fit sums them again."""
        second = self.moments.second
        n_nodes, m = second.shape
        if isinstance(second, FactoredSecond) and n_nodes * m**2 <= LARGEST_BLOCKS:
            return DenseSecond(second.dense())
        return second

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the moments."""
        return self.moments.second.dtype

    @property
    def first(self) -> FloatArray:
        """First moments of all nodes, shape (n_nodes, m)."""
        return self.moments.first
