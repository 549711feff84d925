"""How a comparison fits: with each graph, without one, with one learned from the data.

`GraphRatio` is compared by the fits of `profile_fit`, with candidates that hold for every graph.
Where its hyperparameters are given, and for other estimators that are not quadratic, the estimator
itself is fitted again. Quadratic estimators have their own candidates, extended to no coupling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.estimators import GraphRatio
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.evaluation.neighbours import LearnedFit, learned_graph
from graphratio.evaluation.profile_fit import (
    ProfileFit,
    own_deviations,
    profile_pairs,
    wide_bandwidths,
)
from graphratio.evaluation.recipe import Recipe
from graphratio.moments.losses import PEARSON
from graphratio.selection.cross_validation import Fit
from graphratio.selection.grids import Candidates, pairs_by_degree
from graphratio.selection.nested import Contender, HeldOut

# Neighbours of a node in a learned graph.
LEARNED_NEIGHBORS = 10

# If one of these is given, the estimator itself is fitted: the fits of `profile_fit` choose them.
_GIVEN = ("n_profiles", "graph_penalty", "ridge", "n_rounds", "engine")


def compares_profiles(template: NystromEstimator) -> bool:
    """Whether the fits of `profile_fit` stand for the estimator."""
    parameters = template.get_params()
    plain = not isinstance(template, GraphRatio) or template.loss != PEARSON.name
    return not plain and all(parameters[name] is None for name in _GIVEN)


@dataclass(frozen=True, eq=False)
class Ways:
    """The contenders of a comparison: with a graph, without one, and with a learned one."""

    recipe: Recipe

    @computed_once
    def by_profiles(self) -> bool:
        """Whether `GraphRatio` chooses everything."""
        return compares_profiles(self.recipe.template)

    @property
    def refits(self) -> bool:
        """Whether the estimator itself must be fitted again."""
        return not self.by_profiles and not self.recipe.template._is_quadratic

    @property
    def bandwidths(self) -> FloatArray:
        """Candidates for the bandwidth."""
        usual = self.recipe.bandwidths
        if self.by_profiles and self.recipe.template.bandwidth is None:
            return wide_bandwidths(usual)
        return usual

    def joined(self, graph: Graph) -> Contender[Fit]:
        """The fit with a graph."""
        if not self.by_profiles:
            return self.recipe.judged(graph)
        return Contender(ProfileFit(graph), self._candidates(graph.mean_degree))

    def alone(self, graphs: Iterable[Graph]) -> Contender[Fit]:
        """The fit without a graph, with every ridge that a fit with one has."""
        if not self.by_profiles:
            return self.recipe.alone(graphs)
        return Contender(ProfileFit(self._no_graph), self._candidates(0.0))

    def average(self) -> Contender[Fit]:
        """The prediction for a held-out node from all other nodes, without a graph."""
        return self.alone(()) if self.by_profiles else self.recipe.shared()

    def learned(self) -> Contender[Fit]:
        """The fit with a graph that every training part learns."""
        recipe, nodes, count = self.recipe, self.recipe.samples.nodes, LEARNED_NEIGHBORS
        if self.by_profiles:
            candidates = Candidates(self._middle, *profile_pairs(recipe.samples.sizes, count))
            return Contender(LearnedFit(nodes, count, ProfileFit), candidates)
        pairs = pairs_by_degree(len(nodes), count, count, None, recipe.template.ridge)
        return Contender(LearnedFit(nodes, count), Candidates(self._middle, *pairs))

    def learn_now(self) -> Graph:
        """Learn the graph from all data."""
        everything = np.zeros(self.recipe.samples.n_observations, dtype=np.intp)
        _, data = self.recipe.split(everything, 1, np.float32).at(float(self._middle[0]))
        return learned_graph(data.without(), self.recipe.samples.nodes, LEARNED_NEIGHBORS)

    def deviations(self) -> FloatArray:
        """How every node, fitted by itself, differs from all nodes, shape (n_nodes, r)."""
        everything = np.zeros(self.recipe.samples.n_observations, dtype=np.intp)
        _, data = self.recipe.split(everything, 1, np.float32).at(float(self.bandwidths[-1]))
        return own_deviations(data.without(), self.recipe.samples.sizes)

    def learned_without(self, folds: IntArray) -> Callable[[int], Graph]:
        """Learn the graph from all folds but one."""
        split = self.recipe.split(folds, int(folds.max()) + 1, np.float32)
        _, data = split.at(float(self._middle[0]))
        nodes = self.recipe.samples.nodes
        return lambda fold: learned_graph(data.without(fold), nodes, LEARNED_NEIGHBORS)

    @property
    def _middle(self) -> FloatArray:
        """The learned graph hardly depends on the bandwidth: use one in the middle."""
        return self.recipe.bandwidths[len(self.recipe.bandwidths) // 2 :][:1]

    @property
    def _no_graph(self) -> Graph:
        return Graph.empty(self.recipe.samples.nodes)

    def _candidates(self, mean_degree: float) -> Candidates:
        pairs = profile_pairs(self.recipe.samples.sizes, mean_degree)
        return Candidates(self.bandwidths, *pairs)


def at_strongest(
    found: Mapping[str, HeldOut], contenders: Mapping[str, Contender[Fit]]
) -> tuple[str, ...]:
    """Contenders that chose the strongest coupling of several in most folds."""
    names = []
    for name, part in found.items():
        grid = np.unique(contenders[name].candidates.graph_penalty)
        chosen = np.array([penalty for _, penalty, _ in part.chosen])
        if len(grid) > 1 and np.mean(chosen == grid[-1]) > 0.5:
            names.append(name)
    return tuple(names)
