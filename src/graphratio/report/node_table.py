"""One row per node: sizes, divergence, effective sample size, changes of each feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError
from graphratio._utils.typing import BoolArray, FloatArray, Label
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation.smooth_changes import mean_changes

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange


# Differences and spreads below this share of the values are rounding.
NO_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class Subject:
    """What a page is about: a model, its samples in its order and original units, node names.

    Mean and standard deviation of every feature in both samples, reference first, have shape
    (n_nodes, 2, n_features); NaN where a sample is missing. `change`, shape (n_nodes, n_features),
    is the change of the mean: with the help of neighbours if the page has `smoothed` changes, else
    that of the node's own observations.
    """

    model: Any
    samples: NodeSamples
    names: list[str]
    mean: FloatArray
    spread: FloatArray
    change: FloatArray

    @classmethod
    def of(
        cls,
        model: NodeRatioEstimator,
        samples: NodeSamples,
        names: Mapping[Label, str] | None = None,
    ) -> Subject:
        """Check that the samples are those of the model and not transformed, and align them."""
        check_is_fitted(model, "divergence_")
        if samples.scaling is not None:
            raise InputError(
                "the samples are standardised, so their original units are unknown",
                "Pass the samples as they were before standardized(); the model rescales them",
            )
        if samples.n_features != model.n_features_in_:
            raise InputError(
                f"the samples have {samples.n_features} features, "
                f"but the model was fitted with {model.n_features_in_}",
                "Pass the samples that the model was fitted on",
            )
        aligned = samples.aligned(model.nodes_)
        mean = np.full((2 * aligned.n_nodes, aligned.n_features), np.nan)
        spread = mean.copy()
        for segment, (begin, end) in enumerate(pairwise(aligned.offsets)):
            if end > begin:
                part = aligned.values[begin:end]
                mean[segment], spread[segment] = part.mean(axis=0), part.std(axis=0)
        shape = (aligned.n_nodes, 2, aligned.n_features)
        readable = [str((names or {}).get(node, node)) for node in model.nodes_]
        graph = model.graph_ if _uses_graph(model) else None
        change = mean_changes(aligned, graph).estimate
        return cls(model, aligned, readable, mean.reshape(shape), spread.reshape(shape), change)

    @property
    def smoothed(self) -> bool:
        """Whether neighbours help to estimate changes of the mean."""
        return _uses_graph(self.model)

    @property
    def within(self) -> FloatArray:
        """Standard deviation within the two samples of a node, shape (n_nodes, n_features)."""
        return np.asarray(np.sqrt((self.spread**2).mean(axis=1)))

    @property
    def own_scales(self) -> BoolArray:
        """True for features that nodes have scales of their own in, shape (n_features,)."""
        scaling = self.model.scaling_
        if scaling is None:
            return np.zeros(self.samples.n_features, dtype=bool)
        return np.asarray(scaling.own_mask)

    def comparable(self, change: FloatArray) -> FloatArray:
        """Changes at all nodes in units that they share, shape (n_nodes, n_features).

        Standard deviations within the node where nodes have scales of their own; that of both
        samples together where each is constant.
        """
        if not self.own_scales.any():
            return change
        varies = self.within > NO_SPREAD * np.abs(self.mean).max(axis=1)
        unit = np.where(varies, self.within, self.model.scaling_.scale)
        return np.asarray(change / np.where(self.own_scales, unit, 1.0))

    @property
    def own_change(self) -> FloatArray:
        """Change of the mean of the node's own observations, shape (n_nodes, n_features)."""
        return np.asarray(self.mean[:, 1] - self.mean[:, 0])


def node_summary(
    model: NodeRatioEstimator, samples: NodeSamples, *, kinds: KindsOfChange | None = None
) -> dict[str, list[Any]]:
    """Table of all nodes, in the order of the model.

    Parameters
    ----------
    model : fitted estimator
    samples : NodeSamples
        In original units, in any order of the nodes.
    kinds : KindsOfChange, optional
        Result of `kinds_of_change` with this model.

    Returns
    -------
    columns : dict of str to list of length n_nodes
        node, n_reference, n_target, divergence, divergence_held_out if it was computed,
        near_ceiling, effect_size, degree, component, effective_sample_size ((sum w)^2 / sum w^2
        of the importance weights w), kind if kinds are given, and for each feature f the columns
        f_mean_change and f_spread_change: target minus reference, of the mean and of the standard
        deviation of its own observations. None where a sample is missing. If the model uses
        a graph, f_mean_change_with_neighbors is the change of `graphratio.mean_changes`.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.report import node_summary
    >>> rng = np.random.default_rng(0)
    >>> samples = gr.NodeSamples.from_arrays(
    ...     {"a": rng.normal(0, 1, 50), "b": rng.normal(0, 1, 50)},
    ...     {"a": rng.normal(0, 1, 40), "b": rng.normal(2, 1, 40)},
    ...     feature_names=["speed"],
    ... )
    >>> model = gr.Pool(random_state=0).fit(samples)
    >>> table = node_summary(model, samples)
    >>> [column for column in table if column.startswith("speed")]
    ['speed_mean_change', 'speed_spread_change']
    >>> [round(change) for change in table["speed_mean_change"]]
    [0, 2]
    """
    subject = Subject.of(model, samples)
    aligned = subject.samples
    held_out = getattr(model, "divergence_held_out_", None)
    columns: dict[str, list[Any]] = {
        "node": list(model.nodes_),
        "n_reference": aligned.n_reference.tolist(),
        "n_target": aligned.n_target.tolist(),
        "divergence": _or_none(model.divergence_),
        **({} if held_out is None else {"divergence_held_out": _or_none(held_out)}),
        "near_ceiling": model._near_ceiling.tolist(),
        "effect_size": _or_none(model.effect_size_),
        "degree": model.graph_.degrees.tolist(),
        "component": model.graph_.components.tolist(),
        "effective_sample_size": _or_none(model._weights(aligned).effective_sample_size),
    }
    if kinds is not None:
        columns["kind"] = kinds_of_nodes(kinds, model).tolist()
    own, spread_change = subject.own_change, subject.spread[:, 1] - subject.spread[:, 0]
    for position, name in enumerate(aligned.feature_names):
        columns[f"{name}_mean_change"] = _or_none(own[:, position])
        if subject.smoothed:
            columns[f"{name}_mean_change_with_neighbors"] = _or_none(subject.change[:, position])
        columns[f"{name}_spread_change"] = _or_none(spread_change[:, position])
    return columns


def _uses_graph(model: Any) -> bool:
    """Whether nodes learn from neighbours; a fit may leave out the graph that it was given."""
    return bool(model._couples and model._coupling.n_edges)


def kinds_of_nodes(kinds: KindsOfChange, model: NodeRatioEstimator) -> np.ndarray:
    """Kind of every node in the model's order, shape (n_nodes,)."""
    if kinds.nodes != model.nodes_:
        raise InputError(
            "the kinds of change and the model have different nodes",
            "Pass the result of kinds_of_change with this model",
        )
    return kinds.kinds


def _or_none(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
