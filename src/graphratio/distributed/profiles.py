"""Shared profiles on partitions: the moments stay, small blocks of every node travel.

A partition sends B' A_v B and B' b_v of its nodes, r (r + 1) numbers each for r profiles, and sums
over its nodes for new profiles. The driver, which has the graph, solves for the coordinates and
learns the edge weights as a single process does.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray
from graphratio.distributed.protocol import Mail, ordered_sum
from graphratio.distributed.recovery import Fleet
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import moment_losses
from graphratio.solvers.learned_edges import Edges
from graphratio.solvers.profile_problem import ProfileSums


class ProfileRows(ProfileSums):
    """The sums that a partition computes for shared profiles, from its current moments."""

    inbox: Mail
    outbox: Mail

    def __init__(self, moments: Moments, held_out: Moments | None) -> None:
        self.moments, self.held_out = moments, held_out

    def metric(self) -> tuple[FloatArray, int]:
        """Sum of the second moments of own nodes, and how many have both samples."""
        complete = self.moments.complete
        total = len(complete) * self.moments.second.mean().astype(np.float64)
        return total, int(np.count_nonzero(complete))

    def first(self) -> FloatArray:
        """First moments of own nodes, shape (n_own, m)."""
        return self.moments.first

    def held_out_losses(
        self, profiles: list[FloatArray], coordinates: list[FloatArray]
    ) -> FloatArray:
        """Losses of own nodes on the fold of several fits, shape (n_own, n_fits)."""
        if self.held_out is None:
            raise RuntimeError("no fold was taken")
        theta = [c @ b.T for b, c in zip(profiles, coordinates, strict=True)]
        return moment_losses(self.held_out, np.stack(theta, axis=1))


class PartitionedProfiles:
    """The data of shared profiles on the partitions of a fleet: see `ProfileData`."""

    def __init__(self, fleet: Fleet, edges: Edges, dtype: type[np.floating]) -> None:
        self.fleet, self.edges, self.dtype = fleet, edges, np.dtype(dtype)
        total, n_complete = ordered_sum(fleet.ask("profiles.metric"))
        self.metric = (total / max(n_complete, 1)).astype(dtype)

    @computed_once
    def first(self) -> FloatArray:
        """First moments of all nodes, shape (n_nodes, m)."""
        return self.fleet.whole(self.fleet.ask("profiles.first"))

    def projected(self, profiles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """B' A_v B and B' b_v of all nodes."""
        parts = self.fleet.ask("profiles.projected", profiles=profiles)
        blocks, rhs = zip(*parts, strict=True)
        return self.fleet.whole(blocks), self.fleet.whole(rhs)

    def pooled(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums over nodes of c_k c_l A_v for k <= l, and of c_k b_v."""
        rows = [{"coordinates": own} for own in self.fleet.parts(coordinates)]
        sums, rhs = ordered_sum(self.fleet.ask("profiles.pooled", rows))
        return sums, rhs

    def loss(self, profiles: FloatArray, coordinates: FloatArray) -> float:
        """Sum of the losses of all nodes."""
        rows = [{"coordinates": own} for own in self.fleet.parts(coordinates)]
        return float(ordered_sum(self.fleet.ask("profiles.loss", rows, profiles=profiles)))


def held_out_losses(
    fleet: Fleet, profiles: list[FloatArray], coordinates: list[FloatArray]
) -> FloatArray:
    """Losses of all nodes on the fold of several fits, shape (n_nodes, n_fits)."""
    rows = [{"coordinates": [own[nodes] for own in coordinates]} for nodes in fleet.nodes]
    return fleet.whole(fleet.ask("profiles.held_out_losses", rows, profiles=profiles))
