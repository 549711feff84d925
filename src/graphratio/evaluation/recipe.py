"""Fits on folds with the parameters of an estimator: dictionary, candidates, rivals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import Argument, InputError
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import as_samples, warn_of_scales
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, bandwidth_grid, get_kernel
from graphratio.selection.cross_validation import Coupling, Fit, SharedFit, Split, precision_for
from graphratio.selection.grids import GAMMAS, Candidates, candidates_of, penalty_pairs
from graphratio.selection.nested import Contender, FoldFit, HeldOut, draw_folds, held_out_ratios

# Fewest folds of a held-out comparison or bound.
SMALLEST_SPLIT = 3
# How often the smallest graph penalty is divided by ten before it becomes 0.
WEAKER = 2


@dataclass(frozen=True, eq=False)
class Recipe:
    """Data, kernel, dictionary and bandwidths that all fits on folds share.

    The samples are in the order of the graphs; `template` gives alpha, prior ratio and penalties.
    `dictionary` has shape (n_atoms, n_features), `bandwidths` (n_bandwidths,).
    """

    samples: NodeSamples
    template: NystromEstimator
    kernel: Kernel
    dictionary: FloatArray
    bandwidths: FloatArray

    @classmethod
    def of(
        cls, template: NystromEstimator, samples: NodeSamples, random_state: np.random.Generator
    ) -> Recipe:
        """Read the parameters of an estimator with shared features, fitted or not.

        The dictionary of a fitted one is used as it is.
        """
        template._check_parameters()
        kernel = get_kernel(template.kernel)
        sigma = template._median_bandwidths(samples, kernel)
        dictionary = getattr(template, "dictionary_", None)
        if dictionary is None:
            dictionary = DictionaryRecipe.of(template).build(samples, kernel, sigma, random_state)
        widths = candidates_of(template.bandwidth, "bandwidth", bandwidth_grid(sigma))
        return cls(samples, template, kernel, dictionary, widths)

    def coupled(self, graph: Graph) -> Contender[Coupling]:
        """The fit of a quadratic template: neighbours in a graph together, if it couples them."""
        used = graph if self.template._couples else Graph.empty(graph.nodes)
        pairs = self.template._pairs_for(used)
        return Contender(Coupling(used), Candidates(self.bandwidths, *pairs))

    def judged(self, graph: Graph) -> Contender[Coupling]:
        """The same for a verdict about the graph: candidates reach down to no coupling.

        The smallest penalty of the paper may be too strong, and then the grid would be judged, not
        the graph. So at every ridge there are weaker penalties, and 0. A given penalty is kept.
        """
        lam, rho = self.template._pairs_for(graph)
        if self.template.graph_penalty is None and graph.n_edges:
            ridges = np.unique(np.concatenate([rho, self._ridges_alone]))
            more = lam[lam > 0].min() * 10.0 ** -np.arange(1, WEAKER + 1)
            lam = np.concatenate([lam, np.repeat(more, ridges.size), np.zeros(ridges.size)])
            rho = np.concatenate([rho, np.tile(ridges, WEAKER + 1)])
        return Contender(Coupling(graph), Candidates(self.bandwidths, lam, rho))

    def alone(self, graphs: Iterable[Graph] = ()) -> Contender[Coupling]:
        """Every node by itself, with its own ridges and those that any of the graphs has."""
        empty = Graph.empty(self.samples.nodes)
        given = [self.template._pairs_for(graph)[1] for graph in graphs]
        ridges = np.unique(np.concatenate([self._ridges_alone, *given]))
        return Contender(
            Coupling(empty), Candidates(self.bandwidths, np.zeros(ridges.size), ridges)
        )

    @property
    def _ridges_alone(self) -> FloatArray:
        return penalty_pairs(Graph.empty(self.samples.nodes))[1]

    def shared(self) -> Contender[SharedFit]:
        """One ratio for all nodes."""
        ridges = np.array(GAMMAS)
        return Contender(SharedFit(), Candidates(self.bandwidths, np.zeros(ridges.size), ridges))

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
        folds: list[IntArray],
        *,
        look: Callable[[FoldFit], Any] | None = None,
        progress: bool = False,
    ) -> dict[str, HeldOut]:
        """Fit on folds, one array of shape (n_observations,) per repeat."""
        fits = [contender.fit for contender in contenders.values()]
        dtype = precision_for(fit.graph for fit in fits if isinstance(fit, Coupling))
        splits = [self.split(one, int(one.max()) + 1, dtype) for one in folds]
        return held_out_ratios(splits, contenders, look=look, progress=progress)


def in_scale_of(estimator: Any, samples: Any) -> NodeSamples:
    """Read samples, and scale them as the estimator does if it is fitted."""
    read = as_samples(samples)
    if hasattr(estimator, "coef_"):
        return read.scaled(estimator.scaling_)
    warn_of_scales(read)
    return read


def repeated_folds(
    samples: NodeSamples,
    n_folds: int,
    n_repeats: int,
    random_state: np.random.Generator,
    *,
    by_node: bool = False,
) -> list[IntArray]:
    """Folds of every repeat; `by_node` holds out whole nodes."""
    check_split(samples.sizes, n_folds)
    return [draw_folds(samples, n_folds, random_state, by_node=by_node) for _ in range(n_repeats)]


def check_split(sizes: IntArray, n_folds: int) -> None:
    """Refuse samples (n_nodes, 2) of which no node has an observation for every fold."""
    most = int(sizes.min(axis=1).max())
    if most < n_folds:
        fewer = (", or pass ", Argument("n_folds", most)) if most >= SMALLEST_SPLIT else ()
        raise InputError(
            f"no node has {n_folds} observations in both samples, so they cannot be split into "
            f"{n_folds} folds",
            ("Collect more observations per node", *fewer),
        )
