"""Training and held-out moments of every fold, by bandwidth, kept while memory allows."""

from __future__ import annotations

from typing import cast

from graphratio._utils.jobs import each
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray
from graphratio.moments.folds import FoldedMoments, FoldedRows
from graphratio.moments.node_moments import Moments
from graphratio.moments.node_rows import NodeRows
from graphratio.selection.cross_validation import Split, losses_on
from graphratio.solvers.alternating import ProfileProblem, first_profiles
from graphratio.solvers.learned_edges import Edges

# Entries of second moments that are kept between visits: 1 GB.
LARGEST_KEPT = 2**28

# The first profiles are computed at once, up to this number; a search needs fewer.
MOST_PROFILES = 12


class FoldProblems:
    """One fold of one bandwidth: the problem of the other folds, and the held-out data."""

    def __init__(
        self, train: Moments | NodeRows, held_out: Moments | NodeRows, edges: Edges
    ) -> None:
        self.train, self.held_out, self.edges = train, held_out, edges
        self._starts: dict[bool, FloatArray] = {}

    @computed_once
    def problem(self) -> ProfileProblem:
        """The problem of shared profiles; plain fits do not need it."""
        return ProfileProblem.of(cast(Moments, self.train), self.edges)

    def start(self, n_profiles: int, *, smooth: bool) -> FloatArray:
        """Initial profiles, shape (m, n_profiles); see `first_profiles`."""
        if smooth not in self._starts:
            most = min(MOST_PROFILES, *self.problem.moments.first.shape)
            self._starts[smooth] = first_profiles(self.problem, most, smooth=smooth)
        return self._starts[smooth][:, :n_profiles]

    def losses(self, theta: FloatArray) -> FloatArray:
        """Held-out loss at every node of several candidates, shape (n_nodes, n_candidates)."""
        return losses_on(self.held_out, theta)


class Folds:
    """All folds of one bandwidth; made again at every visit if they do not fit into memory."""

    def __init__(
        self, data: FoldedMoments | FoldedRows, held_out: list[range], edges: Edges
    ) -> None:
        self.data, self.held_out, self.edges = data, held_out, edges
        self.size = len(held_out) * edges.n_nodes * data.psi.shape[1] ** 2
        fits = self.size <= LARGEST_KEPT
        self._kept = each(self._made, range(len(held_out))) if fits else None

    def _made(self, number: int) -> FoldProblems:
        train, held_out = self.data.split(*self.held_out[number])
        return FoldProblems(train, held_out, self.edges)

    def __len__(self) -> int:
        return len(self.held_out)

    def __getitem__(self, number: int) -> FoldProblems:
        return self._made(number) if self._kept is None else self._kept[number]


class HeldOutData:
    """Folds of all bandwidths; those of the latest bandwidths are kept."""

    def __init__(self, split: Split, edges: Edges) -> None:
        self.split, self.edges = split, edges
        self._kept: dict[float, Folds] = {}

    def at(self, bandwidth: float) -> Folds:
        """All folds of a bandwidth."""
        if bandwidth in self._kept:
            return self._kept[bandwidth]
        data = self.split.by_fold(bandwidth).summed()
        found = Folds(data, self.split.held_out, self.edges)
        while self._kept and (len(self._kept) + 1) * found.size > LARGEST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[bandwidth] = found
        return found
