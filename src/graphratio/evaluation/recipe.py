"""Fits on folds with the parameters of an estimator: dictionary, candidates, rivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.threads import suitable_threads
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import as_samples
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GRULSIF, Pool
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, bandwidth_grid, get_kernel, median_bandwidths
from graphratio.selection.fold_fits import Coupling, Fit, SharedFit, Split, precision_for
from graphratio.selection.grids import (
    NODE_PENALTIES,
    Candidates,
    default_graph_penalties,
    positive_candidates,
)
from graphratio.selection.nested import Contender, FoldFit, HeldOut, draw_folds, held_out_ratios


@dataclass(frozen=True, eq=False)
class Recipe:
    """Data, kernel, dictionary and bandwidths that all fits on folds share.

    Attributes
    ----------
    samples : NodeSamples
        In the order of the graphs.
    template : GRULSIF or Pool
        Gives alpha, prior ratio and penalties.
    kernel : Kernel
    dictionary : ndarray of shape (n_atoms, n_features)
    bandwidths : ndarray of shape (n_bandwidths,)
    """

    samples: NodeSamples
    template: NystromEstimator
    kernel: Kernel
    dictionary: FloatArray
    bandwidths: FloatArray

    @classmethod
    def of(cls, template: Any, samples: NodeSamples, random_state: np.random.Generator) -> Recipe:
        """Read the parameters of an estimator, fitted or not.

        The dictionary of a fitted one is used as it is.
        """
        if not isinstance(template, GRULSIF | Pool):
            raise InputError(
                f"a model of type {type(template).__name__} cannot be fitted on folds here",
                "Pass a GRULSIF or a Pool",
            )
        if getattr(template, "adaptive", False):
            raise InputError(
                "adaptive=True learns the graph, and is not available for fits on folds",
                "Pass a model with adaptive=False",
            )
        kernel = get_kernel(template.kernel)
        sigma = median_bandwidths(samples, kernel)
        dictionary = getattr(template, "dictionary_", None)
        if dictionary is None:
            dictionary = DictionaryRecipe.of(template).build(samples, kernel, sigma, random_state)
        widths = positive_candidates(template.bandwidth, "bandwidth", bandwidth_grid(sigma))
        return cls(samples, template, kernel, dictionary, widths)

    @property
    def node_penalties(self) -> FloatArray:
        """Candidates of the node penalty."""
        return positive_candidates(
            self.template.node_penalty, "node_penalty", np.array(NODE_PENALTIES)
        )

    def coupled(self, graph: Graph) -> Contender[Coupling]:
        """The fit of the template: neighbours in a graph together; Pool uses no edges."""
        if isinstance(self.template, Pool):
            graph = Graph.empty(self.samples.nodes)
        penalties = positive_candidates(
            getattr(self.template, "graph_penalty", None),
            "graph_penalty",
            default_graph_penalties(graph),
        )
        candidates = Candidates(self.bandwidths, penalties, self.node_penalties)
        return Contender(Coupling(graph), candidates)

    def alone(self) -> Contender[Coupling]:
        """Every node by itself, with its own candidates instead of the template's penalties."""
        return Contender(Coupling(Graph.empty(self.samples.nodes)), self._without_graph())

    def shared(self) -> Contender[SharedFit]:
        """One ratio for all nodes."""
        return Contender(SharedFit(), self._without_graph())

    def _without_graph(self) -> Candidates:
        return Candidates(self.bandwidths, np.ones(1), np.array(NODE_PENALTIES))

    def split(self, folds: IntArray, n_folds: int, dtype: type[np.floating]) -> Split:
        """The samples split by the given folds, shape (n_observations,)."""
        return Split(
            samples=self.samples,
            folds=folds,
            n_folds=n_folds,
            kernel=self.kernel,
            dictionary=self.dictionary,
            alpha=float(self.template.alpha),
            prior_ratio=float(self.template.prior_ratio),
            dtype=dtype,
        )

    def run(
        self,
        contenders: Mapping[str, Contender[Fit]],
        n_folds: int,
        n_repeats: int,
        random_state: np.random.Generator,
        *,
        by_node: bool = False,
        look: Callable[[FoldFit], None] | None = None,
        progress: bool = False,
    ) -> dict[str, HeldOut]:
        """Fit on folds; `by_node` holds out whole nodes, other options as `held_out_ratios`."""
        data = self.samples
        if data.sizes.min(axis=1).max() < n_folds:
            raise InputError(
                f"no node has {n_folds} observations in both samples, so that they cannot be "
                f"split into {n_folds} folds",
                "Collect more observations per node, or pass a smaller n_folds (3 or more)",
            )
        fits = [contender.fit for contender in contenders.values()]
        dtype = precision_for(fit.graph for fit in fits if isinstance(fit, Coupling))
        folds = [draw_folds(data, n_folds, random_state, by_node=by_node) for _ in range(n_repeats)]
        splits = [self.split(one, n_folds, dtype) for one in folds]
        with suitable_threads(data.n_observations, len(self.dictionary)):
            return held_out_ratios(splits, contenders, look=look, progress=progress)


def in_scale_of(template: Any, samples: Any) -> NodeSamples:
    """Read samples, and scale them as a fitted model does."""
    read = as_samples(samples)
    return read.scaled(template.scaling_) if hasattr(template, "coef_") else read
