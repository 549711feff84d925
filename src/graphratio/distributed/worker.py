"""A partition: some nodes with their samples, features, moments and rows of the iterates.

It is a plain object whose methods are called by name. Observations leave it only as candidates of
the dictionary "coherence"; with the other dictionaries of an engine none leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphratio._utils.errors import GraphRatioError, InputError, listing
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import as_samples
from graphratio.data.samples import NodeSamples
from graphratio.distributed.fold_keys import FoldKeys
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.profiles import ProfileRows
from graphratio.distributed.protocol import Mail, Reply, Source
from graphratio.distributed.rows import ConjugateRows, SystemRows
from graphratio.features.dictionary import largest_free, node_filter
from graphratio.features.kernels import Kernel, node_medians
from graphratio.features.nystrom import NystromMap, weighted_moment
from graphratio.features.unobserved import group_centres
from graphratio.moments.folds import LARGEST_KEPT, FoldedMoments, row_weights
from graphratio.moments.losses import PEARSON
from graphratio.moments.node_moments import Moments, node_moments
from graphratio.moments.objective import effect_sizes, moment_losses
from graphratio.moments.second_moments import Leading


class Partition:
    """One partition; `source` is NodeSamples, or a function of labels that returns them."""

    def __init__(self, plan: PartitionPlan, source: Source) -> None:
        self.plan = plan
        samples = read_source(plan, source)
        if samples.encoding is not None:
            names = listing(list(samples.encoding.levels))
            raise InputError(
                f"the categorical features {names} cannot be used with an engine",
                "Work in one process, or let the loader return indicators as numeric features",
            )
        self.take(samples)

    def take(self, samples: NodeSamples) -> None:
        """Use these samples, of the same nodes, from now on."""
        self.samples, self.sizes = samples, samples.sizes
        self.splits: dict[int, tuple[Moments, Moments]] = {}

    def attach(self, name: str, make: Callable[..., Any], **arguments: Any) -> None:
        """Make an object from this partition, whose methods are then called as "name.method"."""
        setattr(self, name, make(self, **arguments))

    def run(self, method: str, inbox: Mail, arguments: dict[str, Any]) -> Reply:
        """Call a method: its own, or "conjugate.method" and the like of an object that it has."""
        *part, name = method.split(".")
        target: Any = getattr(self, part[0]) if part else self
        target.inbox, target.outbox = inbox, {}
        return Reply(getattr(target, name)(**arguments), target.outbox)

    def describe(self) -> tuple[Any, ...]:
        """Description of the samples for the driver."""
        own = self.samples
        return self.sizes, own.feature_names, own.scaling, own.backend

    def medians(self, kernel: Kernel) -> FloatArray:
        """Bandwidth of every own node, NaN where its samples give none."""
        return node_medians(self.samples, kernel)

    def filter_nodes(self, kernel: Kernel, sigma: FloatArray, coherence: float) -> int:
        """Node stage of the dictionary: the candidates of every own node, kept here."""
        rows = node_filter(self.samples, kernel, sigma, coherence)
        return self._take_candidates(self.samples.values[rows], self.samples.node_index[rows])

    def group_nodes(self, group_size: int) -> int:
        """Node stage with centres of groups of observations as candidates, kept here."""
        centres = group_centres(self.samples, group_size)
        return self._take_candidates(centres.values, centres.node_index)

    def _take_candidates(self, points: FloatArray, node: IntArray) -> int:
        self.candidates = points
        # Position of the node of each candidate in the graph.
        self.order = self.plan.nodes[node]
        return len(points)

    def uncovered(
        self,
        kernel: Kernel,
        bandwidth: float,
        coherence: float,
        atoms: FloatArray,
        after: int,
        limit: int,
    ) -> tuple[FloatArray, IntArray, bool]:
        """Drop candidates that are done or that new atoms cover; return the first of the rest.

        Candidates of nodes up to `after` are done. Returns `limit` candidates and the rest of the
        last node, the positions of their nodes, and whether there are more.
        """
        left = self.order > after
        if len(atoms) and left.any():
            similarity = kernel(self.candidates[left], atoms, bandwidth)
            left[left] = similarity.max(axis=1) <= largest_free(coherence)
        self.candidates, self.order = self.candidates[left], self.order[left]
        if len(self.order) <= limit:
            return self.candidates, self.order, False
        count = int(np.searchsorted(self.order, self.order[limit - 1], side="right"))
        more = count < len(self.order)
        return self.candidates[:count], self.order[:count], more

    def assign_folds(
        self,
        generator: np.random.Generator,
        starts: IntArray,
        total: int,
        offset: IntArray,
        n_folds: int,
    ) -> None:
        """Fold of every own observation, the same as in a single process: see `FoldKeys`."""
        keys = FoldKeys(generator, starts, offset, total, n_folds)
        self.folds = keys.folds(self.samples)

    def moment_of_rows(
        self, features: NystromMap, rows: IntArray, alpha: float | FloatArray
    ) -> FloatArray:
        """Weighted second moment of some own observations."""
        psi = features(self.samples.values[rows])
        return weighted_moment(psi, row_weights(self.sizes, alpha)[rows])

    def set_features(
        self, features: NystromMap, alpha: float | FloatArray, dtype: type[np.floating]
    ) -> FloatArray:
        """Compute the features of own observations; returns their weighted second moment."""
        self.psi = features(self.samples.values, dtype)
        moment = weighted_moment(self.psi, row_weights(self.sizes, alpha))
        return moment.astype(np.float64)

    def rotate_features(
        self, rotation: FloatArray, alpha: float | FloatArray, prior_ratio: float, folded: bool
    ) -> None:
        """Rotate the features and sum the moments."""
        psi = self.psi @ rotation.astype(self.psi.dtype)
        if folded:
            self.folded = FoldedMoments(psi, self.sizes, self.folds, alpha, prior_ratio)
            self.splits = {}
        else:
            self.moments = node_moments(psi, self.sizes, alpha, prior_ratio)

    def take_fold(self, fold: int) -> None:
        """Training moments without a fold, and the moments of the fold."""
        if fold not in self.splits:
            self.splits[fold] = self.folded.split(fold)
        self.moments, self.held_out = self.splits[fold]
        n_nodes, m = self.moments.second.shape
        if (int(self.folds.max(initial=0)) + 1) * n_nodes * m**2 > LARGEST_KEPT:
            self.splits.clear()

    def set_problem(
        self, lam: FloatArray, rho: FloatArray, preconditioner: str
    ) -> tuple[float, FloatArray]:
        """Own rows of the system; returns the square of b and the blocks of the coarse space."""
        system = SystemRows(self.plan, self.moments, lam, rho)
        self.conjugate = ConjugateRows(system, preconditioner)
        norm = float(np.sum(np.square(system.rhs.astype(np.float64))))
        return norm, system.coarse_blocks()

    @property
    def profiles(self) -> ProfileRows:
        """The sums for shared profiles, from the current moments."""
        return ProfileRows(self.moments, getattr(self, "held_out", None))

    def project_features(
        self,
        features: NystromMap,
        profiles: FloatArray,
        alpha: float,
        prior_ratio: float,
    ) -> None:
        """Use the values of profiles, with coefficients (m, r), as features."""
        self.psi = features(self.samples.values) @ profiles
        self.moments = node_moments(self.psi, self.sizes, alpha, prior_ratio)

    def held_out_losses(self) -> FloatArray:
        """Losses of own nodes on the fold, shape (n_own, n_candidates); NaN where it has none."""
        return moment_losses(self.held_out, self.conjugate.coefficients())

    def held_out_loss(self) -> tuple[FloatArray, int]:
        """Sum of the losses of own nodes on the fold, and the number of nodes that have one."""
        losses = moment_losses(self.held_out, self.conjugate.coefficients())[self.held_out.complete]
        return losses.sum(axis=0, dtype=np.float64), len(losses)

    def feature_sums(self) -> tuple[FloatArray, FloatArray]:
        """Sum of the second moments of own nodes, and of the features before the rotation."""
        second = len(self.sizes) * self.moments.second.mean().astype(np.float64)
        return second, self.psi.sum(axis=0, dtype=np.float64)

    def direction_moments(self, leading: Leading) -> FloatArray:
        """Information of own nodes about leading directions, shape (n_own, n_directions)."""
        return leading.moments(self.moments.second)

    def divergences(
        self, features: NystromMap, theta: FloatArray, alpha: float, prior_ratio: float
    ) -> FloatArray:
        """Pearson divergence of every own node on its samples."""
        values = np.einsum(
            "im,im->i", features(self.samples.values), theta[self.samples.node_index]
        )
        return PEARSON.divergences(values + prior_ratio, self.sizes, alpha)

    def apply(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Call a function of the library with own samples."""
        return function(self.samples, **arguments)

    def effect_sizes(self) -> FloatArray:
        """Effect size of every own node."""
        return effect_sizes(self.samples)


def read_source(plan: PartitionPlan, source: Source) -> NodeSamples:
    """Get the samples of a partition and bring them into the order of its nodes."""
    if isinstance(source, NodeSamples):
        return source
    where = f"the loader, for partition {plan.index} (nodes {listing(plan.labels, 3)})"
    try:
        loaded = source(list(plan.labels))
    except GraphRatioError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{where}, raised {type(error).__name__}: {error}",
            "Try it by itself: loader(list of labels)",
        ) from error
    try:
        if isinstance(loaded, tuple) and len(loaded) == 2 and not isinstance(loaded[0], Mapping):
            # Samples without labels come in the order of the labels that the loader was given.
            return NodeSamples.from_arrays(*loaded, nodes=plan.labels)
        return as_samples(loaded).aligned(plan.labels)
    except GraphRatioError as error:
        raise InputError(
            f"{where}, did not return the samples of its nodes: {error}",
            "Let it return NodeSamples of the nodes in its argument",
        ) from error
