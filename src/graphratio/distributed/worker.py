"""A partition: some nodes with their samples, features, moments and rows of the iterates.

It is a plain object whose methods are called by name. Observations leave it only as candidates of
the dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphratio._utils.errors import GraphRatioError, InputError, listing
from graphratio._utils.typing import FloatArray, IntArray, Label
from graphratio.data.alignment import as_samples
from graphratio.data.samples import NodeSamples
from graphratio.distributed.partition import PartitionPlan
from graphratio.distributed.protocol import Mail, Reply
from graphratio.distributed.rows import ConjugateRows, SystemRows
from graphratio.features.dictionary import node_filter
from graphratio.features.kernels import Kernel, node_medians
from graphratio.features.nystrom import NystromMap, weighted_moment
from graphratio.moments.folds import FoldedMoments, folds_by_key, row_weights
from graphratio.moments.losses import PEARSON
from graphratio.moments.node_moments import node_moments
from graphratio.moments.objective import effect_sizes, moment_losses
from graphratio.moments.second_moments import Leading

# Random keys are drawn in chunks, so that a partition stores only its own.
KEYS_AT_ONCE = 2**20

Source = NodeSamples | Callable[[list[Label]], Any]


class Partition:
    """One partition; `source` is NodeSamples, or a function of labels that returns them."""

    def __init__(self, plan: PartitionPlan, source: Source) -> None:
        self.plan = plan
        self.samples = read_source(plan, source)
        if self.samples.encoding is not None:
            names = listing(list(self.samples.encoding.levels))
            raise InputError(
                f"the categorical features {names} cannot be fitted with an engine",
                "Fit in one process, or give the loader's indicators as numbers",
            )
        self.sizes = self.samples.sizes

    def run(self, method: str, inbox: Mail, arguments: dict[str, Any]) -> Reply:
        """Call a method, "conjugate.method" for one of the rows of conjugate gradients."""
        *part, name = method.split(".")
        target: Any = self.conjugate if part else self
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
        self.candidates = self.samples.values[rows]
        # Where a candidate stands in the order of the graph.
        self.order = self.plan.nodes[self.samples.node_index[rows]]
        return len(rows)

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
            left[left] = similarity.max(axis=1) <= coherence
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
        """Fold of every own observation, the same as in a single process.

        The generator gives the keys of all `total` observations in the order of the graph; those of
        each own node begin at `starts`.
        """
        if self.samples.has_blocks and self.samples.blocks.exist:
            raise InputError(
                "observations that depend on each other in time cannot be split with an engine",
                "Fit in one process, give all hyperparameters, or build samples with block=None",
            )
        per_node = self.sizes.sum(axis=1)
        first = np.cumsum(per_node) - per_node
        within = np.arange(self.samples.n_observations) - np.repeat(first, per_node)
        position = np.repeat(starts, per_node) + within
        keys = np.empty(position.size)
        for begin in range(0, total, KEYS_AT_ONCE):
            drawn = generator.random(min(KEYS_AT_ONCE, total - begin))
            # Own positions increase, so those of a piece are consecutive.
            low, high = np.searchsorted(position, [begin, begin + drawn.size])
            keys[low:high] = drawn[position[low:high] - begin]
        self.folds = folds_by_key(self.samples, keys, offset, n_folds)

    def moment_of_rows(self, features: NystromMap, rows: IntArray, alpha: float) -> FloatArray:
        """Weighted second moment of some own observations."""
        psi = features(self.samples.values[rows])
        return weighted_moment(psi, row_weights(self.sizes, alpha)[rows])

    def set_features(
        self, features: NystromMap, alpha: float, dtype: type[np.floating]
    ) -> FloatArray:
        """Compute the features of own observations; returns their weighted second moment."""
        self.psi = features(self.samples.values, dtype)
        moment = weighted_moment(self.psi, row_weights(self.sizes, alpha))
        return moment.astype(np.float64)

    def rotate_features(
        self, rotation: FloatArray, alpha: float, prior_ratio: float, folded: bool
    ) -> None:
        """Rotate the features and sum the moments."""
        psi = self.psi @ rotation.astype(self.psi.dtype)
        if folded:
            self.folded = FoldedMoments(psi, self.sizes, self.folds, alpha, prior_ratio)
        else:
            self.moments = node_moments(psi, self.sizes, alpha, prior_ratio)

    def take_fold(self, fold: int) -> None:
        """Training moments without a fold, and the moments of the fold."""
        self.moments, self.held_out = self.folded.split(fold)

    def set_problem(
        self, lam: FloatArray, rho: FloatArray, preconditioner: str
    ) -> tuple[float, FloatArray]:
        """Own rows of the system; returns the square of b and the blocks of the coarse space."""
        system = SystemRows(self.plan, self.moments, lam, rho)
        self.conjugate = ConjugateRows(system, preconditioner)
        norm = float(np.sum(np.square(system.rhs.astype(np.float64))))
        return norm, system.coarse_blocks()

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
        return as_samples(loaded).aligned(plan.labels)
    except GraphRatioError as error:
        raise InputError(
            f"{where}, returned something else than the samples of its nodes: {error}",
            "Return NodeSamples of the nodes it was asked for",
        ) from error
