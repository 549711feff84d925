"""From an estimator to what is fitted on folds: dictionary, candidates, couplings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.exceptions import InputError
from graphratio._utils.threads import suitable_threads
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.alignment import as_samples
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GRULSIF, Pool
from graphratio.estimators.dictionary_based import NystromEstimator, positive_candidates
from graphratio.estimators.grulsif import default_graph_penalties
from graphratio.evaluation.couplings import Coupling, Fit, SharedFit
from graphratio.evaluation.folded import Setting
from graphratio.evaluation.held_out import HeldOut, held_out_ratios
from graphratio.features.dictionary import build_dictionary
from graphratio.features.kernels import Kernel, bandwidth_grid, get_kernel, median_bandwidths
from graphratio.moments.node_moments import segment_indicator
from graphratio.selection.cross_validation import NODE_PENALTIES, Candidates
from graphratio.solvers import selection_precision


@dataclass(frozen=True, eq=False)
class Plan:
    """What all fits on folds have in common.

    Attributes
    ----------
    samples : NodeSamples
        In the order of the graphs.
    template : GRULSIF or Pool
        Its parameters say what is tried.
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
    def of(cls, template: Any, samples: NodeSamples, random_state: np.random.Generator) -> Plan:
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
            dictionary = build_dictionary(
                template.dictionary,
                samples,
                kernel,
                sigma,
                node_coherence=template.node_coherence,
                graph_coherence=template.graph_coherence,
                max_atoms=template.max_atoms,
                random_state=random_state,
            )
        widths = positive_candidates(template.bandwidth, "bandwidth", bandwidth_grid(sigma))
        return cls(samples, template, kernel, dictionary, widths)

    @property
    def node_penalties(self) -> FloatArray:
        """Candidates of the node penalty."""
        return positive_candidates(
            self.template.node_penalty, "node_penalty", np.array(NODE_PENALTIES)
        )

    def coupled(self, graph: Graph) -> Coupling:
        """What the template fits: neighbours in a graph together, with Pool none."""
        if isinstance(self.template, Pool):
            graph = Graph.empty(self.samples.nodes)
        penalties = positive_candidates(
            getattr(self.template, "graph_penalty", None),
            "graph_penalty",
            default_graph_penalties(graph),
        )
        return Coupling(graph, Candidates(self.bandwidths, penalties, self.node_penalties))

    def alone(self) -> Coupling:
        """Every node by itself, with penalties chosen for that whatever the template's are."""
        graph = Graph.empty(self.samples.nodes)
        return Coupling(graph, self._without_graph())

    def shared(self) -> SharedFit:
        """One ratio for all nodes."""
        return SharedFit(self._without_graph())

    def _without_graph(self) -> Candidates:
        return Candidates(self.bandwidths, np.ones(1), np.array(NODE_PENALTIES))

    def run(
        self,
        fits: Mapping[str, Fit],
        n_folds: int,
        n_repeats: int,
        random_state: np.random.Generator,
        **options: bool,
    ) -> dict[str, HeldOut]:
        """Fit on folds; options as in `held_out_ratios`."""
        template, data = self.template, self.samples
        fewest = np.minimum(data.n_reference, data.n_target)
        if fewest.max() < n_folds:
            raise InputError(
                f"no node has {n_folds} observations in both samples, so that they cannot be "
                f"split into {n_folds} folds",
                "Collect more observations per node, or pass a smaller n_folds (3 or more)",
            )
        setting = Setting(
            self.kernel,
            self.dictionary,
            float(template.alpha),
            float(template.prior_ratio),
            n_folds,
            self._precision(fits),
        )
        with suitable_threads(self.samples.n_observations, len(self.dictionary)):
            return held_out_ratios(
                self.samples,
                fits,
                setting,
                n_repeats=n_repeats,
                random_state=random_state,
                **options,
            )

    @staticmethod
    def _precision(fits: Mapping[str, Fit]) -> type[np.floating]:
        """Single, unless the weights of one of the graphs are too uneven for it."""
        graphs = [fit.graph for fit in fits.values() if isinstance(fit, Coupling)]
        uneven = any(selection_precision(graph) is np.float64 for graph in graphs)
        return np.float64 if uneven else np.float32


def in_scale_of(template: Any, samples: Any) -> NodeSamples:
    """Read samples, in the scale of a fitted model, or as they are for one not fitted yet."""
    read = as_samples(samples)
    fitted = hasattr(template, "coef_")
    return read.scaled(template.scaling_) if fitted else read


@dataclass(frozen=True, eq=False)
class NodeMeans:
    """Sum of the means over both samples of every node, and how sure it is.

    Attributes
    ----------
    mean, error : ndarray of shape (n_nodes,)
        And its standard error. NaN with fewer than two observations in a sample.
    third : ndarray of shape (n_nodes,)
        Third central moment of the mean.
    freedom : ndarray of shape (n_nodes,)
        Degrees of freedom of the standard error: those of Welch and Satterthwaite, fewer where
        a few large terms make the variance itself uncertain (positive excess kurtosis).
    """

    mean: FloatArray
    error: FloatArray
    third: FloatArray
    freedom: FloatArray

    @classmethod
    def of(cls, terms: FloatArray, sizes: IntArray) -> NodeMeans:
        """From one term for each observation.

        Parameters
        ----------
        terms : ndarray of shape (n_observations,)
            By node, reference before target.
        sizes : ndarray of shape (n_nodes, 2)

        Examples
        --------
        >>> means = NodeMeans.of(np.array([1.0, 3.0, 2.0, 6.0]), np.array([[2, 2]]))
        >>> float(means.mean[0]), float(means.error[0])
        (6.0, 2.236...)
        """
        indicator = segment_indicator(sizes.ravel(), terms.dtype)
        count = np.maximum(sizes.ravel(), 1)
        left = np.maximum(count - 1, 1)
        means = (indicator @ terms) / count
        deviations = terms - np.repeat(means, sizes.ravel())
        spread = (indicator @ deviations**2) / left / count
        third = (indicator @ deviations**3) / count**3
        known = (sizes > 1).all(axis=1)
        parts = spread.reshape(sizes.shape)
        variance = parts.sum(axis=1)
        tiny = np.finfo(np.float64).tiny
        mean_square = np.maximum((indicator @ deviations**2) / count, np.sqrt(tiny))
        excess = np.maximum((indicator @ deviations**4) / count / mean_square**2 - 3.0, 0.0)
        # Half the relative variance of each sample's variance.
        doubt = (1 / left + excess / (2 * count)).reshape(sizes.shape)
        by_freedom = (parts**2 * doubt).sum(axis=1)
        freedom = np.where(by_freedom > tiny, variance**2 / np.maximum(by_freedom, tiny), 1e6)
        return cls(
            np.where(known, means.reshape(sizes.shape).sum(axis=1), np.nan),
            np.where(known, np.sqrt(variance), np.nan),
            third.reshape(sizes.shape).sum(axis=1),
            freedom,
        )


def loss_terms(ratios: FloatArray, is_target: Any, alpha: float) -> FloatArray:
    """What every observation adds to the loss of its node, averaged over repeats.

    The loss 1/2 E_{p^alpha} f^2 - E_q f is the sum of two means: of (1 - alpha)/2 f^2 over the
    reference and of alpha/2 f^2 - f over the target.

    Parameters
    ----------
    ratios : ndarray of shape (n_repeats, n_observations)
    is_target : ndarray of shape (n_observations,)
    alpha : float
    """
    squares = 0.5 * ratios**2
    terms = np.where(is_target, alpha * squares - ratios, (1 - alpha) * squares)
    return np.asarray(terms.mean(axis=0))
