"""`GraphRatio` on an engine: the search and the fit of one process, with moments on partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.parameters import as_generator, check_integer
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.distributed import EngineSettings
from graphratio.distributed.conjugate import solve_conjugate
from graphratio.distributed.profiles import PartitionedProfiles, held_out_losses
from graphratio.distributed.scores import rotate_features, share_folds
from graphratio.distributed.session import Session
from graphratio.estimators.partitioned import (
    fit_partitioned,
    keep_directions,
    keep_divergences,
    prepare,
    solve_quadratic,
)
from graphratio.features.kernels import Kernel, get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.losses import PEARSON, Loss
from graphratio.selection.cross_validation import (
    FEATURE_FLOOR,
    FOLD_RANK_TOLERANCE,
    SOLVE_ITERATIONS,
    SOLVE_TOLERANCE,
    Coupling,
    precision_for,
)
from graphratio.selection.held_out_data import Fold
from graphratio.selection.profile_search import ProfileSettings
from graphratio.solvers.alternating import Profiles
from graphratio.solvers.learned_edges import Edges
from graphratio.solvers.profile_problem import ProfileData

if TYPE_CHECKING:
    from graphratio.estimators.graph_ratio import GraphRatio


def fit_profiles_on_engine(model: GraphRatio, samples: Any, graph: Graph | None) -> None:
    """Fit on the engine of the model."""
    fit_partitioned(model, samples, graph, _fit)


def _fit(model: GraphRatio, session: Session, settings: EngineSettings) -> None:
    kernel = get_kernel(model.kernel)
    rng = as_generator(model.random_state)
    widths = prepare(model, session, kernel, rng)
    data = PartitionedFolds(model, session, kernel, rng)
    chosen = model._choose(data, widths, session.graph, None)
    model._take_settings(chosen)
    if not model.shared_:
        metric = solve_quadratic(model, session, settings, kernel)
        model._describe_by_profiles(model.coef_, metric)
        return
    _fit_shared(model, session, kernel, chosen)


def _fit_shared(
    model: GraphRatio, session: Session, kernel: Kernel, settings: ProfileSettings
) -> None:
    model.features_ = NystromMap.build(kernel, model.dictionary_, model.bandwidth_)
    rotation = _rotated(model, session, model.features_, 0.0, np.float64, folded=False)
    model._share(PartitionedProfiles(session.fleet, Edges.of(session.graph), np.float64), settings)
    # Back from the rotated features to those of the model.
    model.profiles_ = rotation @ model.profiles_
    model.coef_ = model.coordinates_ @ model.profiles_.T
    model.solution_ = replace(model.solution_, theta=model.coef_, **session.facts)
    # Data of other nodes reach a node through its coordinates.
    session.fleet.setup(
        "project_features",
        features=model.features_,
        profiles=model.profiles_,
        alpha=model.alpha_,
        prior_ratio=model.prior_ratio_,
    )
    keep_directions(model, session, np.eye(model.n_profiles_))
    keep_divergences(model, session)


def _rotated(
    model: GraphRatio,
    session: Session,
    features: NystromMap,
    floor: float,
    dtype: type[np.floating],
    *,
    folded: bool,
) -> FloatArray:
    return rotate_features(
        session.fleet,
        features,
        session.sizes,
        model.alpha_,
        model.prior_ratio_,
        floor=floor,
        dtype=dtype,
        folded=folded,
    )


@dataclass(frozen=True)
class Independent:
    """Folds of single observations, the only ones on an engine."""

    n_blocks: int | None = None
    run: int = 1
    few_blocks: bool = False
    loss: Loss = PEARSON


class PartitionedFolds:
    """Folds whose moments are on the partitions, of one bandwidth at a time."""

    split = Independent()

    def __init__(
        self, model: GraphRatio, session: Session, kernel: Kernel, rng: np.random.Generator
    ) -> None:
        self.model, self.session, self.kernel, self.rng = model, session, kernel, rng
        self.n_folds = check_integer(model.cv, "cv", low=2)
        self.dtype = precision_for([session.graph])
        self.edges = Edges.of(session.graph)
        self.bandwidth: float | None = None
        self.folds: list[PartitionedFold] = []

    def at(self, bandwidth: float) -> PartitionedFolds:
        """All folds of a bandwidth."""
        if self.bandwidth is None:
            share_folds(self.session.fleet, self.session.sizes, self.n_folds, self.rng)
        if bandwidth != self.bandwidth:
            features = NystromMap.build(
                self.kernel, self.model.dictionary_, bandwidth, FOLD_RANK_TOLERANCE
            )
            _rotated(self.model, self.session, features, FEATURE_FLOOR, self.dtype, folded=True)
            self.bandwidth = bandwidth
            self.folds = [
                PartitionedFold(self.session, self.edges, self.dtype) for _ in range(self.n_folds)
            ]
        return self

    def forget(self, bandwidth: float) -> None:
        """Do nothing: the next bandwidth takes the place of this one."""

    def __len__(self) -> int:
        return self.n_folds

    def __getitem__(self, number: int) -> Fold:
        """A fold, with its moments in place until another one is taken."""
        self.session.fleet.setup("take_fold", fold=number)
        return self.folds[number]


class PartitionedFold(Fold):
    """A fold whose moments are on partitions."""

    def __init__(self, session: Session, edges: Edges, dtype: type[np.floating]) -> None:
        self.session, self.edges, self.dtype = session, edges, dtype

    def _made(self) -> ProfileData:
        return PartitionedProfiles(self.session.fleet, self.edges, self.dtype)

    def profile_losses(self, path: Sequence[Profiles]) -> FloatArray:
        """Held-out loss at every node of several fits, shape (n_nodes, n_fits)."""
        profiles, coordinates = zip(*((fit.profiles, fit.coordinates) for fit in path), strict=True)
        return held_out_losses(self.session.fleet, list(profiles), list(coordinates))

    def plain_losses(self, coupling: Coupling, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Held-out loss of fits without profiles, shape (n_nodes, n_pairs); pairs of penalties."""
        fleet = self.session.fleet
        # Without coupling every penalty on the graph is 0.
        system = self.session.system(lam if coupling.graph.n_edges else np.zeros_like(lam), rho)

        def losses() -> list[FloatArray]:
            # The solution stays on the partitions, so a lost partition loses its rows.
            solve_conjugate(fleet, system, SOLVE_TOLERANCE, SOLVE_ITERATIONS, every=None)
            return list(fleet.engine.gather("held_out_losses"))

        return fleet.whole(fleet.attempt(losses))
