"""What a graph is worth: how many observations per node it replaces.

Each node alone (no coupling) is fitted to the training observations of a sample. The fit with the
graph is fitted to subsets of m of them, and both are judged on the same held-out observations. At
some m the fit with the graph reaches the loss of each node alone: the worth of the graph is n / m.
The other direction, how many observations alone would reach the fit with the graph, would need
more data than there are.

Both fits give every node its own ratio, without shared profiles, and choose their penalties inside
the subset. Where nodes have samples of different size, a subset has the same share of each.

The worth of a node is that of its region: the region's curve is drawn towards that of the network,
the more the less regions differ beyond noise (empirical Bayes).

Symbols
-------
n           typical number of observations in a sample; folds train on a little less, and the
            losses of both fits are continued from there to n
m           size of a subset
K           number of folds
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from graphratio._utils.jobs import each
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.evaluation.node_means import loss_terms
from graphratio.evaluation.recipe import Recipe
from graphratio.evaluation.regions import (
    regions_of,
    resampled_regions,
    shown_regions,
    variances_by_region,
)
from graphratio.evaluation.worth_result import Worth
from graphratio.moments.folds import FoldedMoments
from graphratio.moments.objective import moment_losses
from graphratio.selection.cross_validation import Coupling, Split, defined_means, mean_losses
from graphratio.selection.nested import Contender, draw_folds
from graphratio.selection.patches import choose_patches

# The smallest subset, which can be split once.
SMALLEST_SUBSET = 2
# Smaller samples get more folds: one per observation, within FEWEST_FOLDS and MOST_FOLDS.
SMALL_SAMPLE = 20
MOST_FOLDS, FEWEST_FOLDS = 8, 5
# Numbers of sizes, and of folds by which the penalties of a subset are chosen, of few observations
# and of more.
N_SIZES = (8, 6)
INNER_FOLDS = (4, 3)
# Relative residual of the solves by which the penalties of a subset are chosen.
CHOICE_TOLERANCE = 1e-2
# Directions with a smaller share of the second moment are dropped: they do not change the worth.
WORTH_FLOOR = 1e-5
# The differences of this many nodes at either end are replaced by the next ones.
WINSORISED = 5
# Subsets of different folds overlap, so that their mean varies more than if they were independent.
OVERLAP = 1.5
# Draws of the bootstrap, and nodes of a region.
BOOTSTRAP_DRAWS = 2000
REGION_NODES = 5
# Fewer measured nodes of a region say nothing about it.
FEWEST_OF_REGION = 4
# Larger networks are represented by patches of WORTH_NODES nodes, and at least FEWEST_NODES.
WORTH_NODES = 400
FEWEST_NODES = 60


def worth_of(
    recipe: Recipe,
    graphs: Mapping[str, Graph],
    level: float,
    rng: np.random.Generator,
    most_observations: int | None = None,
) -> dict[str, Worth]:
    """Worth of every graph, from patches of each graph if the network is large.

    Patches have about `most_observations`, but no fewer than `FEWEST_NODES` nodes.
    """
    regions = {name: shown_regions(graph) for name, graph in graphs.items()}
    data, n_nodes = recipe.samples, WORTH_NODES
    if most_observations is not None:
        share = most_observations / max(data.n_observations, 1)
        n_nodes = min(n_nodes, max(int(share * data.n_nodes), FEWEST_NODES))
    if data.n_nodes <= n_nodes:
        return _worth_of(recipe, graphs, regions, level, rng)
    found: dict[str, Worth] = {}
    for name, graph in graphs.items():
        positions = choose_patches(graph, n_nodes, data.complete, rng)
        labels = [graph.nodes[i] for i in positions]
        part = replace(recipe, samples=data.subset(labels))
        region = {name: regions[name][positions]}
        own = _worth_of(part, {name: graph.subset(labels)}, region, level, rng)[name]
        at_nodes = np.full((3, graph.n_nodes), np.nan)
        at_nodes[:, positions] = own.at_nodes
        found[name] = replace(own, at_nodes=at_nodes)
    return found


def _worth_of(
    recipe: Recipe,
    graphs: Mapping[str, Graph],
    regions: Mapping[str, IntArray],
    level: float,
    rng: np.random.Generator,
) -> dict[str, Worth]:
    """The same on all nodes, with the same subsets for all graphs."""
    subsets = _Subsets.of(recipe, rng)
    alone = subsets.curves(recipe.alone())
    return {
        name: subsets.worth(graph, regions[name], alone, level, rng)
        for name, graph in graphs.items()
    }


@dataclass(frozen=True, eq=False)
class _Subsets:
    """Random subsets of the training observations of every fold; `rank` is (K, n_observations)."""

    recipe: Recipe
    split: Split
    data: FoldedMoments
    rank: IntArray
    sizes: FloatArray
    n: float
    n_training: float

    @classmethod
    def of(cls, recipe: Recipe, rng: np.random.Generator) -> _Subsets:
        """Draw folds, and in each the order in which observations join; choose the bandwidth."""
        samples = recipe.samples
        usual = float(np.median(samples.sizes[samples.complete]))
        few = usual < SMALL_SAMPLE
        wanted = int(np.clip(usual, FEWEST_FOLDS, MOST_FOLDS)) if few else FEWEST_FOLDS
        folds = draw_folds(samples, wanted, rng, by_node=False)
        n_folds = int(folds.max()) + 1
        typical = usual * (1 - 1 / n_folds)
        wished = np.geomspace(min(SMALLEST_SUBSET, typical), typical, N_SIZES[not few])
        split = replace(recipe.split(folds, n_folds, np.float32), floor=WORTH_FLOOR)
        # Blocks that depend on each other join as a whole.
        blocked = samples.has_blocks and samples.blocks.exist
        unit = samples.blocks.number if blocked else np.arange(samples.n_observations)
        rank = np.stack([rng.permutation(int(unit.max()) + 1)[unit] for _ in range(n_folds)])
        width = _bandwidth(split, recipe)
        data, sizes = split.at(width)[1], np.unique(np.round(wished))
        return cls(recipe, split, data, rank, sizes, usual, typical)

    def worth(
        self,
        graph: Graph,
        shown: IntArray,
        alone: _Curves,
        level: float,
        rng: np.random.Generator,
    ) -> Worth:
        """Where the curve of the graph reaches that of each node alone, with a bootstrap.

        The bootstrap draws regions of the graph, since neighbours are alike, and adds the luck of
        the subsets, of which every fold has its own. `shown` regions get a worth of their own.
        """
        known = self.recipe.samples.complete
        found = self.curves(self.recipe.coupled(graph))
        if self.recipe.template.graph_penalty is None:
            found = found.or_better(alone)
        joined, apart = found.losses[:, known], alone.losses[:, known]
        curve, own = joined.sum(axis=0).mean(axis=0), apart.sum(axis=0).mean(axis=0)
        ahead = (joined - apart[:, :, -1:]).sum(axis=0) - self._still_to_gain(own)
        ahead = np.column_stack([ahead, ahead[:, -1] + self._still_to_gain(curve)])
        # A single large ratio at a held-out observation would outweigh all other nodes.
        tail = min(WINSORISED / len(ahead), 0.1)
        ahead = np.clip(ahead, *np.quantile(ahead, [tail, 1 - tail], axis=0))
        draws = resampled_regions(
            ahead, regions_of(graph, REGION_NODES)[known], BOOTSTRAP_DRAWS, rng
        )
        # Few folds give the standard error, so that its tails are those of Student's law.
        draws += rng.standard_t(len(joined) - 1, size=draws.shape) * self._luck(joined)
        estimate, low, high = self._interval(ahead.mean(axis=0), draws, level)
        at_nodes = np.full((3, len(known)), np.nan)
        near = (graph.n_neighbors > 0)[known]
        places = np.flatnonzero(known)[near]
        at_nodes[:, places] = self._at_nodes(ahead[near], shown[places], draws, level, rng)
        return Worth(
            estimate, low, high, self.n, self.sizes.astype(np.float64), curve, own, level, at_nodes
        )

    def _interval(
        self, mean: FloatArray, draws: FloatArray, level: float
    ) -> tuple[float, float, float]:
        """Estimate, low and high from a mean curve and its draws, (n_draws, n_sizes + 1)."""
        ends = [level / 2, 1 - level / 2]
        low, high = np.quantile(self._worth_at(draws), ends, method="inverted_cdf")
        most = self.n / self.sizes[0]
        return float(min(self._worth_at(mean), most)), float(min(low, most)), float(high)

    def _at_nodes(
        self,
        ahead: FloatArray,
        region: IntArray,
        draws: FloatArray,
        level: float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Estimate, low and high of the regions of some nodes, shape (3, n_nodes).

        Curves of regions are drawn towards `draws`, those of the network. NaN where it is open.
        """
        found = np.full((3, len(ahead)), np.nan)
        within, between = variances_by_region(ahead, region)
        for number in np.unique(region):
            own = ahead[region == number]
            if len(own) < FEWEST_OF_REGION:
                continue
            kept = between / max(between + within / len(own), 1e-300)
            even = np.full(len(own), 1 / len(own))
            noise = rng.multinomial(len(own), even, size=len(draws)) @ own / len(own)
            # The posterior variance of a shrunken mean is `kept` times that of the mean itself.
            spread = np.sqrt(kept) * (noise - own.mean(axis=0))
            around = (1 - kept) * draws + kept * own.mean(axis=0) + spread
            mean = (1 - kept) * ahead.mean(axis=0) + kept * own.mean(axis=0)
            estimate, low, high = self._interval(mean, around, level)
            if low > 1 or np.isfinite(high):
                found[:, region == number] = np.array([[estimate], [low], [high]])
        return found

    def _still_to_gain(self, own: FloatArray) -> float:
        """How far a mean loss falls to n, with the slope of the last doubling; at most 0."""
        half = int(np.argmin(np.abs(np.log(2 * self.sizes / self.sizes[-1]))))
        if half == len(self.sizes) - 1:
            return 0.0
        slope = (own[-1] - own[half]) / np.log(self.sizes[-1] / self.sizes[half])
        return float(min(slope, 0.0) * np.log(self.n / self.n_training))

    def _luck(self, joined: FloatArray) -> FloatArray:
        """Standard error of the curve that the choice of subsets adds, shape (n_sizes + 1,)."""
        extra = (joined - joined[:, :, -1:]).mean(axis=1)
        error = OVERLAP * extra.std(axis=0, ddof=1) * np.sqrt(len(extra))
        return np.append(error, error[-1])

    def _worth_at(self, ahead: FloatArray) -> FloatArray:
        """Where curves fall to 0; infinite if they begin there, 1 if they do not.

        They have shape (..., n_sizes + 1): at the sizes of subsets, and at n.
        """
        falling = np.minimum.accumulate(ahead, axis=-1)
        after = np.argmax(falling <= 0, axis=-1)[..., np.newaxis]
        before, behind = (
            np.take_along_axis(falling, np.maximum(place, 0), -1)[..., 0]
            for place in (after - 1, after)
        )
        logs = np.log(np.append(self.sizes, self.n).astype(np.float64))
        first, second = (logs[np.maximum(place, 0)][..., 0] for place in (after - 1, after))
        share = before / np.where(before > behind, before - behind, 1.0)
        worth = np.maximum(self.n / np.exp(first + share * (second - first)), 1.0)
        worth = np.where(falling[..., -1] > 0, 1.0, np.where(falling[..., 0] <= 0, np.inf, worth))
        # Equal losses throughout: there is nothing that a graph could replace.
        return np.where(ahead.any(axis=-1), worth, 1.0)

    def curves(self, contender: Contender[Coupling]) -> _Curves:
        """Fit every subset of every fold, and evaluate it on the fold."""
        samples, alpha = self.recipe.samples, self.recipe.template.alpha
        limit = 1 / float(alpha) if alpha else None

        def parts(case: tuple[int, float]) -> tuple[FloatArray, float]:
            fold, size = case
            held = np.flatnonzero(self.split.folds == fold)
            weight = 1 / samples.sizes.ravel()[samples.segments[held]]
            theta, score = self._fit(contender, fold, int(size))
            clipped = np.clip(self.data.ratios(held, theta), 0.0, limit)[np.newaxis]
            terms = loss_terms(clipped, samples.is_target[held], float(alpha))
            sums = np.bincount(samples.node_index[held], terms * weight, samples.n_nodes)
            return sums.astype(np.float64, copy=False), score

        cases = list(product(range(self.split.n_folds), self.sizes.tolist()))
        found = each(parts, cases)
        shape = (self.split.n_folds, len(self.sizes))
        losses = np.array([loss for loss, _ in found]).reshape(*shape, -1).transpose(0, 2, 1)
        return _Curves(losses, np.array([score for _, score in found]).reshape(shape))

    @computed_once
    def _training(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Rows outside each fold as they join, their position, and numbers of rows, by sample."""
        segment, found = self.data.segment, list[tuple[IntArray, IntArray, IntArray]]()
        for fold in range(self.split.n_folds):
            train = np.flatnonzero(self.split.folds != fold)
            order = train[np.lexsort((self.rank[fold, train], segment[train]))]
            counts = np.bincount(segment[order], minlength=self.data.sizes.size)
            position = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
            found.append((order, position, counts))
        return found

    def _fit(
        self, contender: Contender[Coupling], fold: int, size: int
    ) -> tuple[FloatArray, float]:
        """Choose penalties inside a subset by their loss, and fit it: coefficients (n_nodes, m)."""
        data, segment = self.data, self.data.segment
        order, position, counts = self._training[fold]
        if size < self.sizes[-1]:
            kept = position < subset_sizes(counts, size / self.sizes[-1])[segment[order]]
            order, position = order[kept], position[kept]
        n_inner = min(INNER_FOLDS[size >= SMALL_SAMPLE], size)
        # Both samples of a node begin with the same fold, and nodes with different ones.
        inner = (position + segment[order] // 2) % n_inner
        rows = np.argsort(order)
        sizes = np.bincount(segment[order], minlength=data.sizes.size).reshape(data.sizes.shape)
        psi = data.psi[order[rows]]
        subset = FoldedMoments(psi, sizes, inner[rows], data.alpha, data.prior_ratio)
        lam, rho = contender.candidates.pairs
        best, score = 0, np.nan
        if len(lam) > 1:
            rough = replace(contender, fit=replace(contender.fit, tolerance=CHOICE_TOLERANCE))
            scores = _fold_losses(subset, rough, n_inner)
            best = int(np.nanargmin(scores))
            score = float(scores[best])
        theta = contender.fit.solve(subset.without(), lam[[best]], rho[[best]])[:, 0]
        return theta, score


@dataclass(frozen=True, eq=False)
class _Curves:
    """Losses of fits to subsets, by fold and size.

    `losses`, shape (K, n_nodes, n_sizes), are the parts of the held-out loss of every node that the
    folds add. `scores`, shape (K, n_sizes), are the losses inside the subsets that chose the
    penalties; NaN without a choice.
    """

    losses: FloatArray
    scores: FloatArray

    def or_better(self, other: _Curves) -> _Curves:
        """Take the other fits where the subsets themselves prefer them."""
        chosen = other.scores < self.scores
        losses = np.where(chosen[:, np.newaxis], other.losses, self.losses)
        return _Curves(losses, np.where(chosen, other.scores, self.scores))


def subset_sizes(counts: IntArray, share: float) -> IntArray:
    """Observations of every sample in a subset: the same share of each, but two at least.

    Examples
    --------
    >>> subset_sizes(np.array([7, 70, 3, 1]), 3 / 7)
    array([ 3, 30,  2,  2])
    """
    return np.maximum(np.round(counts * share), SMALLEST_SUBSET).astype(np.intp)


def _fold_losses(data: FoldedMoments, contender: Contender[Coupling], n_folds: int) -> FloatArray:
    """Mean held-out loss of every pair of penalties over folds and nodes, shape (n_pairs,)."""
    lam, rho = contender.candidates.pairs

    def losses(fold: int) -> FloatArray:
        theta = np.ascontiguousarray(contender.fit.solve(data.without(fold), lam, rho))
        return mean_losses(moment_losses(data.only(fold), theta))

    return defined_means(np.stack(each(losses, range(n_folds))), 0)


def _bandwidth(split: Split, recipe: Recipe) -> float:
    """The bandwidth with which each node alone does best."""
    if len(recipe.bandwidths) == 1:
        return float(recipe.bandwidths[0])
    alone = recipe.alone()
    best = {
        float(width): float(np.nanmin(_fold_losses(split.at(width)[1], alone, split.n_folds)))
        for width in recipe.bandwidths
    }
    return min(best, key=lambda width: best[width])
