"""Training and held-out moments of every fold, by bandwidth, kept while memory allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray
from graphratio.moments.folds import LARGEST_KEPT, FoldedMoments, FoldedRows
from graphratio.moments.losses import Loss
from graphratio.moments.node_moments import Moments
from graphratio.moments.node_rows import NodeRows
from graphratio.selection.cross_validation import Coupling, Split, losses_on
from graphratio.solvers.alternating import Profiles, first_profiles
from graphratio.solvers.learned_edges import Edges
from graphratio.solvers.profile_problem import ProfileData, ProfileProblem

# The first profiles are computed at once, up to this number; a search needs fewer.
MOST_PROFILES = 12


class Fold(ABC):
    """One fold of one bandwidth: the problem of the other folds, and losses on the fold."""

    @computed_once
    def problem(self) -> ProfileData:
        """The problem of shared profiles; plain fits do not need it."""
        return self._made()

    @abstractmethod
    def _made(self) -> ProfileData:
        """Set up the problem of shared profiles."""

    @computed_once
    def _starts(self) -> dict[bool, FloatArray]:
        return {}

    def start(self, n_profiles: int, *, smooth: bool) -> FloatArray:
        """Initial profiles, shape (m, n_profiles); see `first_profiles`."""
        if smooth not in self._starts:
            most = min(MOST_PROFILES, *self.problem.first.shape)
            self._starts[smooth] = first_profiles(self.problem, most, smooth=smooth)
        return self._starts[smooth][:, :n_profiles]

    @abstractmethod
    def profile_losses(self, path: Sequence[Profiles]) -> FloatArray:
        """Held-out loss at every node of several fits, shape (n_nodes, n_fits)."""

    @abstractmethod
    def plain_losses(self, coupling: Coupling, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Held-out loss of fits without profiles, shape (n_nodes, n_pairs); pairs of penalties."""


class FoldProblems(Fold):
    """A fold whose moments are in this process."""

    def __init__(
        self, train: Moments | NodeRows, held_out: Moments | NodeRows, edges: Edges
    ) -> None:
        self.train, self.held_out, self.edges = train, held_out, edges

    def _made(self) -> ProfileData:
        return ProfileProblem.of(cast(Moments, self.train), self.edges)

    def profile_losses(self, path: Sequence[Profiles]) -> FloatArray:
        """Held-out loss at every node of several fits, shape (n_nodes, n_fits)."""
        return self.losses(np.stack([fit.theta for fit in path], axis=1))

    def plain_losses(self, coupling: Coupling, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Held-out loss of fits without profiles, shape (n_nodes, n_pairs); pairs of penalties."""
        return self.losses(coupling.solve(self.train, lam, rho))

    def losses(self, theta: FloatArray) -> FloatArray:
        """Held-out loss at every node of several candidates, shape (n_nodes, n_candidates)."""
        return losses_on(self.held_out, theta)


class Folds:
    """All folds of one bandwidth; made again at every visit if they do not fit into memory."""

    def __init__(
        self, data: FoldedMoments | FoldedRows, held_out: list[range], edges: Edges
    ) -> None:
        self.held_out, self.edges = held_out, edges
        # The rows of all folds, and the training blocks of each.
        self.size = data.psi.size + len(held_out) * edges.n_nodes * data.psi.shape[1] ** 2
        self._data: FoldedMoments | FoldedRows | None = data
        self._kept: dict[int, FoldProblems] = {}

    def _made(self, data: FoldedMoments | FoldedRows, number: int) -> FoldProblems:
        train, held_out = data.split(*self.held_out[number])
        return FoldProblems(train, held_out, self.edges)

    def __len__(self) -> int:
        return len(self.held_out)

    def __getitem__(self, number: int) -> FoldProblems:
        data = self._data
        if number in self._kept or data is None:
            return self._kept[number]
        fold = self._made(data, number)
        if self.size > LARGEST_KEPT:
            return fold
        # If two threads make the same fold, both use the one that was kept first.
        fold = self._kept.setdefault(number, fold)
        if len(self._kept) == len(self.held_out):
            # Folds that are kept hold all rows between them, so the features can go.
            self._data = None
        return fold


class FoldRules(Protocol):
    """How observations were split: see `Split`."""

    @property
    def n_blocks(self) -> int | None:
        """Number of blocks of time, if there are any."""

    @property
    def run(self) -> int:
        """Successive folds that are held out together."""

    @property
    def few_blocks(self) -> bool:
        """Whether a choice must be cautious."""

    @property
    def loss(self) -> Loss:
        """The loss that judges fits."""


class FoldList(Protocol):
    """The folds of one bandwidth."""

    def __len__(self) -> int:
        """Number of folds."""

    def __getitem__(self, number: int) -> Fold:
        """One fold."""


class FoldSource(Protocol):
    """Folds of all bandwidths, wherever their moments are."""

    @property
    def split(self) -> FoldRules:
        """How observations were split."""

    def at(self, bandwidth: float) -> FoldList:
        """All folds of a bandwidth."""

    def forget(self, bandwidth: float) -> None:
        """Release the folds of a bandwidth that will hardly be used again."""


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
        # The next bandwidth may be prepared in another thread meanwhile.
        for oldest in list(self._kept):
            if (len(self._kept) + 1) * found.size > LARGEST_KEPT:
                self._kept.pop(oldest, None)
        self._kept[bandwidth] = found
        return found

    def forget(self, bandwidth: float) -> None:
        """Release the folds of a bandwidth that will hardly be used again."""
        self._kept.pop(bandwidth, None)
