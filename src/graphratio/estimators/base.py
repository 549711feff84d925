"""The base class of all estimators: ratios, divergences, weights, tables, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import (
    DataWarning,
    InputError,
    Spelling,
    Words,
    listing,
    spelled,
    warn_caller,
)
from graphratio._utils.html import model_html
from graphratio._utils.jobs import working
from graphratio._utils.parameters import check_flag, check_real
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data.alignment import align, as_graph, as_samples, warn_of_scales
from graphratio.data.encoding import Encoding
from graphratio.data.geography import Mappable
from graphratio.data.graph import Graph
from graphratio.data.node_scales import said_apart
from graphratio.data.sample_input import default_names
from graphratio.data.samples import NodeSamples
from graphratio.data.scaling import Scaling
from graphratio.estimators import persistence
from graphratio.estimators.new_points import ratios_at_all, scaled_points
from graphratio.estimators.notes import ceiling_notes, levels_note
from graphratio.estimators.weights import ImportanceWeights, weights_from_ratios
from graphratio.moments.losses import PEARSON, Loss, loss_of_divergence
from graphratio.moments.objective import effect_sizes, near_ceiling, ranked

Fitted = TypeVar("Fitted", bound=BaseEstimator)


def all_or_nothing(fit: Callable[..., Fitted]) -> Callable[..., Fitted]:
    """Restore the estimator if its fit fails; its `n_jobs` holds during the whole fit."""

    @wraps(fit)
    def guarded(self: Fitted, *args: Any, **kwargs: Any) -> Fitted:
        before = dict(self.__dict__)
        try:
            with working(getattr(self, "n_jobs", None)):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded


class NodeRatioEstimator(Mappable, BaseEstimator):
    """An estimate of the ratio = target / reference at every node of a graph."""

    nodes_: tuple[Label, ...]
    graph_: Graph
    n_features_in_: int
    feature_names_in_: np.ndarray
    divergence_: FloatArray
    divergence_name_: str
    effect_size_: FloatArray
    # The sentence of `Blocks.describe`; empty without times and blocks.
    dependence_: str
    # How neighbours differ in level or spread, if so much that they share little.
    apart_: str
    scaling_: Scaling | None
    encoding_: Encoding | None
    sizes_: IntArray
    alpha_: float

    # Copies that repeat a fit on parts of the data do not warn about the data again. Copies of
    # which only the ratios are used do not describe their nodes.
    _is_copy = _ratios_only = False

    # `save` writes these besides the parameters; subclasses add their own.
    _fitted_names: tuple[str, ...] = tuple(persistence.COMMON)

    @abstractmethod
    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the ratios of all nodes."""

    @abstractmethod
    def _ratios_everywhere(self, points: FloatArray) -> FloatArray:
        """Unclipped ratios of all nodes at scaled points, shape (n_points, n_nodes)."""

    @abstractmethod
    def _ratios_at_nodes(self, points: FloatArray, node: IntArray) -> FloatArray:
        """Unclipped ratio of the given node at each scaled point, shape (n_points,)."""

    @property
    def _loss(self) -> Loss:
        """The loss of the fit, which names the divergence."""
        return PEARSON

    @property
    def _couples(self) -> bool:
        """Whether neighbours in the graph enter the fit of a node."""
        return False

    @property
    def _over_data(self) -> bool:
        """Whether the graph penalty measures differences over the data, not in the kernel space."""
        return False

    @property
    def _is_quadratic(self) -> bool:
        """Whether the fit is one quadratic problem in features that all nodes share."""
        return False

    @property
    def _chosen(self) -> dict[str, Any]:
        """The hyperparameters that the fit chose for all nodes, as parameters of a copy."""
        return {}

    def _again(self, *, fixed: bool) -> Self:
        """An unfitted copy that runs in this process; with `fixed`, at the chosen values."""
        copy: Self = clone(self)
        names = copy.get_params(deep=False)
        wanted = {"engine": None, "progress": False, **(self._chosen if fixed else {})}
        copy.set_params(**{name: wanted[name] for name in wanted if name in names})
        copy._is_copy = True
        return copy

    def _rows_to_share(self, samples: NodeSamples) -> FloatArray | None:
        """Features of all observations, if copies with `fixed` use the same and memory allows."""
        return None

    def _take_rows(self, psi: FloatArray | None) -> None:
        """Take the features of the data of the next fit, or drop them after it."""

    @property
    def _relative(self) -> float:
        """The alpha that the model was fitted with; 0 for the plain ratio."""
        return self.alpha_

    def _prepare(self, samples: Any, graph: Graph | None, *, borrow: bool) -> NodeSamples:
        """Check and align the data, and set the attributes that every estimator has."""
        alpha = getattr(self, "alpha", 0.0)
        self.alpha_ = check_real(alpha, "alpha", low=0, high=1, include_low=True)
        read = as_samples(samples)
        graph = as_graph(graph, read)
        aligned = align(read, graph, borrow=borrow)
        if not self._is_copy:
            warn_of_scales(aligned)
        self.apart_ = "" if self._is_copy or not self._couples else said_apart(aligned, graph)
        self.nodes_, self.graph_ = aligned.nodes, graph
        self.n_features_in_ = aligned.n_features
        self.feature_names_in_ = np.array(aligned.feature_names, dtype=object)
        self.scaling_, self.encoding_ = aligned.scaling, aligned.encoding
        self.sizes_ = aligned.sizes
        self.backend_ = aligned.backend
        self.divergence_name_ = self._loss.divergence_name
        if not self._ratios_only:
            self.effect_size_ = effect_sizes(aligned)
        self.dependence_ = aligned.blocks.describe() if aligned.has_blocks else ""
        return aligned

    @property
    def notes_(self) -> list[str]:
        """What deserves a look, in plain language."""
        return self._told(str)

    def _told(self, spelling: Spelling) -> list[str]:
        """The notes, with arguments as an interface spells them."""
        check_is_fitted(self, "nodes_")
        near = [self.nodes_[i] for i in np.flatnonzero(self._near_ceiling)]
        notes = [*self._notes(), *ceiling_notes(near, self.divergence_ceiling_)]
        notes += [self.dependence_] if self.dependence_ else []
        notes += [levels_note(self.apart_)] if self.apart_ else []
        return [spelled(words, spelling) for words in notes]

    @property
    def divergence_ceiling_(self) -> float:
        """Largest possible divergence.

        For the Pearson divergence (1 / alpha - 1) / 2, for Kullback-Leibler log(1 / alpha), both
        infinite for the plain ratio; for Jensen-Shannon log 2.
        """
        check_is_fitted(self, "divergence_")
        return loss_of_divergence(self.divergence_name_).ceiling(self._relative)

    @property
    def ranking_(self) -> IntArray:
        """Positions of the nodes with a divergence, most changed first.

        Near the ceiling of the divergence the effect size decides.
        """
        return ranked(self.divergence_, self.effect_size_, self.divergence_ceiling_)

    @property
    def _near_ceiling(self) -> BoolArray:
        return near_ceiling(self.divergence_, self.divergence_ceiling_)

    def _notes(self) -> list[Words]:
        """Notes of the subclass about its own fit."""
        return []

    def predict(
        self, x: Any, node: Label | None = None, *, clip: bool = True, standardized: bool = False
    ) -> FloatArray:
        """Ratio = target / reference at given points.

        Parameters
        ----------
        x : array of shape (n_points, n_features), or 1-D for one feature
            If the features have names, the columns of a data frame are matched by name. A model
            with categorical features takes them from a frame, as they were read.
        node : label, optional
            One node; default all.
        clip : bool, default True
            Clip to [0, 1 / alpha], the range of the true relative ratio (no upper bound at
            alpha = 0).
        standardized : bool, default False
            The points are in the units of the fit: those that `standardized` gave the samples.

        Returns
        -------
        ratios : ndarray of shape (n_points,), or (n_points, n_nodes) for all nodes
        """
        check_is_fitted(self, "nodes_")
        check_flag(standardized, "standardized")
        if node is None:
            ratios = ratios_at_all(self, x, standardized=standardized)
        else:
            points = scaled_points(self, x, node, standardized=standardized)
            position = self.graph_.position(node)
            ratios = self._ratios_at_nodes(points, np.full(len(points), position))
        return self._clipped(ratios) if check_flag(clip, "clip") else ratios

    def divergence(self, samples: Any) -> FloatArray:
        """Divergence of the fitted ratios on other samples, shape (n_nodes,).

        NaN, with a warning, at nodes that have no reference or no target observations there.
        """
        aligned = self._align(samples)
        lacking = [self.nodes_[i] for i in np.flatnonzero(~aligned.complete)]
        if lacking:
            warn_caller(
                f"the divergence is undefined (NaN) at nodes without reference or target "
                f"observations: {listing(lacking)}",
                DataWarning,
            )
        return self._divergences(aligned)

    def score(self, samples: Any, y: None = None) -> float:
        """Minus the mean loss over the nodes that have both samples: higher is better."""
        aligned = self._align(samples)
        losses = self._losses(aligned)
        if np.isnan(losses).all():
            raise InputError(
                "no node has both reference and target observations", "Pass samples with both"
            )
        return -float(np.nanmean(losses))

    def importance_weights(self, samples: Any, *, relative: bool = True) -> ImportanceWeights:
        """Weights for the reference observations of every node, with mean one.

        Warns (`OverlapWarning`) where the weights rest on very few observations.

        Parameters
        ----------
        samples : NodeSamples or (reference, target)
            The target samples serve only the diagnostics.
        relative : bool, default True
            True for the relative ratio r^alpha. False for the plain ratio
            q / p = (1 - alpha) r / (1 - alpha r), where the weight of an observation is at most
            the size of the sample.

        Returns
        -------
        weights : ImportanceWeights, a mapping of label to ndarray of shape (n_reference,)
        """
        weights = self._weights(samples, relative=relative)
        weights.warn()
        return weights

    def _weights(self, samples: Any, *, relative: bool = True) -> ImportanceWeights:
        """`importance_weights` without the warning."""
        aligned = self._align(samples)
        ratios = self._ratios_at_nodes(aligned.values, aligned.node_index)
        return weights_from_ratios(
            ratios, aligned, self._relative, check_flag(relative, "relative")
        )

    def to_frame(self) -> Any:
        """One row per node: sizes, divergence, effect size, degree, neighbours and component.

        The effect size is the mean distance between the quantiles of the two samples, in standard
        deviations within them, the largest over features. Unlike the divergence it has no ceiling.

        A polars frame if the samples came from one, otherwise pandas.
        """
        check_is_fitted(self, "nodes_")
        return frames.make_frame(self._table(), self.backend_)

    def _table(self) -> dict[str, Any]:
        return {
            "node": list(self.nodes_),
            "n_reference": self.sizes_[:, 0],
            "n_target": self.sizes_[:, 1],
            "divergence": self.divergence_,
            "near_ceiling": self._near_ceiling,
            "effect_size": self.effect_size_,
            "degree": self.graph_.degrees,
            "n_neighbors": self.graph_.n_neighbors,
            "component": self.graph_.components,
        }

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, without pickle; `graphratio.load` reads it.

        The file appears only when it is complete.
        """
        check_is_fitted(self, "nodes_")
        persistence.write_model(path, self, self._fitted_names)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "divergence_"):
            return str(text)
        return f"{text}\n{self._summary()}"

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """HTML for notebooks; a property as in scikit-learn, which can switch to plain text."""
        plain: Callable[[], str] = super()._repr_html_
        return self._html_summary if hasattr(self, "divergence_") else plain

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "divergence_"):
            bundle["text/html"] = self._html_summary()
        return bundle

    def _html_summary(self) -> str:
        return model_html(self, str(super().__repr__()))

    def _summary(self) -> str:
        lines = [
            f"  ratio = target / reference at {len(self.nodes_)} nodes, "
            f"{self.n_features_in_} feature{'s' if self.n_features_in_ > 1 else ''}"
        ]
        top = self.ranking_[:3]
        if top.size:
            largest = ", ".join(f"{self.nodes_[i]!r} {self.divergence_[i]:.3g}" for i in top)
            lines.append(f"  largest {self.divergence_name_} divergence: {largest}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes_])

    def _align(self, samples: Any) -> NodeSamples:
        """Bring new samples into the order and scale of the fit."""
        check_is_fitted(self, "nodes_")
        read = as_samples(samples)
        remedy = "Pass the same features in the same order as in fit"
        if self.encoding_ is not None:
            remedy += "; read them with from_frame(..., categorical=model.encoding_.levels)"
        if read.n_features != self.n_features_in_:
            raise InputError(
                f"the samples have {read.n_features} features, "
                f"but the model was fitted with {self.n_features_in_}",
                remedy,
            )
        names, fitted = read.feature_names, tuple(self.feature_names_in_)
        unnamed = default_names(self.n_features_in_)
        if names != fitted and unnamed not in (names, fitted):
            raise InputError(
                f"the samples have the features {listing(names)}, "
                f"but the model was fitted with {listing(fitted)}",
                remedy,
            )
        return read.aligned(self.nodes_).scaled(self.scaling_)

    def _clipped(self, ratios: FloatArray) -> FloatArray:
        alpha = self._relative
        return np.clip(ratios, 0.0, 1 / alpha if alpha > 0 else None)

    def _losses(self, samples: NodeSamples) -> FloatArray:
        ratios = self._ratios_at_nodes(samples.values, samples.node_index)
        return self._loss.of_nodes(ratios, samples.sizes, self._relative)

    def _divergences(self, samples: NodeSamples) -> FloatArray:
        ratios = self._ratios_at_nodes(samples.values, samples.node_index)
        return self._loss.divergences(ratios, samples.sizes, self._relative)
