"""Fitted models as files, and checks on what was read; `archive` holds the format.

The checks make a wrong file fail at once, not in a later call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.parameters import check_real
from graphratio.data.encoding import Encoding
from graphratio.data.graph import Graph
from graphratio.data.scaling import Scaling
from graphratio.estimators.archive import Format, lasting
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.losses import LOSSES, PEARSON, get_loss
from graphratio.solvers.solution import Solution

if TYPE_CHECKING:
    from graphratio.estimators.base import NodeRatioEstimator

MODEL = Format(
    "graphratio-model",
    7,
    "graphratio model",
    "Fit and save the model again",
    parts=("parameters", "fitted"),
    head=("estimator",),
)


def write_model(path: str | Path, model: NodeRatioEstimator, names: Iterable[str]) -> None:
    """Write a fitted model; the file appears only when it is complete."""
    kind = type(model).__name__
    if estimators_by_name().get(kind) is not type(model):
        raise InputError(
            f"{kind} is not an estimator of this library, so `load` could not build it again",
            f"Save an instance of one of {', '.join(estimators_by_name())}",
        )
    parts = {
        "parameters": lasting(model.get_params(deep=False)),
        "fitted": {name: getattr(model, name) for name in names},
    }
    MODEL.write(path, {"estimator": kind}, parts)


def estimators_by_name() -> dict[str, type[NodeRatioEstimator]]:
    """Estimators of the library by name; imported late, since they import this module."""
    from graphratio import estimators
    from graphratio.estimators.base import NodeRatioEstimator

    found = {name: getattr(estimators, name) for name in estimators.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type) and issubclass(kind, NodeRatioEstimator)
    }


def load(path: str | Path) -> NodeRatioEstimator:
    """Read a model written by `save` from a path.

    Returns
    -------
    model : the fitted estimator

    Examples
    --------
    >>> import os, tempfile
    >>> import graphratio as gr
    >>> model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.graphratio")
    >>> model.save(path)
    >>> bool((gr.load(path).coef_ == model.coef_).all())
    True
    """
    return MODEL.read(path, _build, _check_names)


def _check_names(document: dict[str, Any]) -> None:
    """Refuse an unknown estimator, and parameters or attributes that it does not have."""
    kinds = estimators_by_name()
    if document["estimator"] not in kinds:
        raise ValueError(f"unknown estimator {document['estimator']!r}")
    kind = kinds[document["estimator"]]
    known = {"parameters": kind().get_params(deep=False), "fitted": kind._fitted_names}
    for part, names in known.items():
        if odd := set(document[part]) ^ set(names):
            raise ValueError(f"{part} are missing or unknown: {listing(sorted(odd))}")


def _build(_: Path, document: dict[str, Any]) -> NodeRatioEstimator:
    parameters, fitted = document["parameters"], document["fitted"]
    _check(parameters, fitted)
    model = estimators_by_name()[document["estimator"]](**parameters)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def _check(parameters: dict[str, Any], fitted: dict[str, Any]) -> None:
    """Raise a ValueError that names the first value that no fit can produce."""
    check_real(parameters.get("alpha", 0.0), "alpha", low=0, high=1, include_low=True)
    get_kernel(parameters["kernel"])
    if "loss" in parameters:
        loss = get_loss(parameters["loss"])
        plain = fitted["intercept_"] is None
        if fitted["divergence_name_"] != loss.divergence_name or plain != (loss is PEARSON):
            raise ValueError(f"the results are not those of a fit with loss={loss.name!r}")
    rules = {**COMMON, **(NYSTROM if "features_" in fitted else _CENTRED)}
    if "graph_learned_" in fitted:
        rules |= LEARNED
    if "profiles_" in fitted:
        rules |= PROFILES
    # All other rules use these two to count nodes and features.
    first = ("graph_", "n_features_in_")
    for name in (*first, *(other for other in rules if other not in first)):
        if not rules[name](fitted[name], fitted):
            raise ValueError(f"{name} is not the result of a fit")


def _is_array(value: Any, kinds: str, *shape: int | None, nan: bool = False) -> bool:
    """Whether a value is a finite array (or with `nan`) of a shape; None for any length."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in kinds
        and len(value.shape) == len(shape)
        and all(want is None or want == have for want, have in zip(shape, value.shape, strict=True))
        and (value.dtype.kind != "f" or not np.isinf(value).any())
        and (value.dtype.kind != "f" or nan or not np.isnan(value).any())
    )


def _is_number(value: Any, low: float = -math.inf) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value) and value > low


def _is_count(value: Any, low: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _are_strings(value: Any) -> bool:
    return all(isinstance(item, str) for item in value)


def _is_scaling(value: Any, fitted: dict[str, Any]) -> bool:
    if value is None:
        return True
    if not isinstance(value, Scaling) or value.nodes not in (None, fitted["graph_"].nodes):
        return False
    n_features = fitted["n_features_in_"]
    if value.own is not None and not (value.nodes and _is_array(value.own, "b", n_features)):
        return False
    shape = (n_features,) if value.nodes is None else (fitted["graph_"].n_nodes, n_features)
    return (
        _is_array(value.mean, "f", *shape)
        and _is_array(value.scale, "f", *shape)
        and (value.log is None or _is_array(value.log, "b", n_features))
        and bool((value.scale > 0).all())
    )


def _is_encoding(value: Any, names: Any) -> bool:
    return value is None or (
        isinstance(value, Encoding)
        and isinstance(value.columns, tuple)
        and all(isinstance(level, tuple) and _are_strings(level) for level in value.levels.values())
        and set(value.levels) <= set(value.columns)
        and value.feature_names == tuple(names)
    )


def _is_feature_map(value: Any, n_features: int) -> bool:
    return (
        isinstance(value, NystromMap)
        and _is_number(value.bandwidth, low=0)
        and _is_array(value.pivots, "f", None, n_features)
        and _is_array(value.transform, "f", len(value.pivots), None)
    )


def _is_solution(value: Any, coef: Any) -> bool:
    return (
        isinstance(value, Solution)
        and _is_array(value.theta, "f", *coef.shape)
        and isinstance(value.converged, bool)
        and _is_count(value.n_iter)
        and isinstance(value.residual, float)
        and isinstance(value.history, list)
        and all(isinstance(item, float) for item in value.history)
        and isinstance(value.method, str)
        and all(
            item is None or isinstance(item, str) for item in (value.reason, value.preconditioner)
        )
        and _is_count(value.partitions, low=1)
        and all(map(_is_count, (value.cut_edges, value.boundary_rows, value.recoveries)))
    )


def _are_scores(value: Any, columns: tuple[str, ...]) -> bool:
    """Tell whether a value is a table of at least one candidate, with these columns."""
    if value is None:
        return True
    return (
        isinstance(value, dict)
        and set(columns) <= set(value)
        and all(_is_array(part, "fiu", None, nan=True) for part in value.values())
        and len({len(part) for part in value.values()}) == 1
        and all(len(part) > 0 for part in value.values())
    )


def _are_own_scores(value: Any, n_nodes: int) -> bool:
    """Tell whether a value is a table with equally many candidates for every node."""
    return value is None or (
        isinstance(value, dict)
        and _is_array(value.get("mean_score"), "f", None, nan=True)
        and len(value["mean_score"]) % n_nodes == 0
    )


_Rule = Callable[[Any, dict[str, Any]], bool]


def _per_node(*columns: int, kinds: str = "f", nan: bool = False, low: float = -math.inf) -> _Rule:
    """Rule for an array with one row per node, without values below `low`."""

    def holds(value: Any, fitted: dict[str, Any]) -> bool:
        shape = (fitted["graph_"].n_nodes, *columns)
        return _is_array(value, kinds, *shape, nan=nan) and not bool((value < low).any())

    return holds


# The keys are the attributes that files hold. First those of every estimator.
COMMON: dict[str, _Rule] = {
    "graph_": lambda value, _: isinstance(value, Graph),
    "n_features_in_": lambda value, _: _is_count(value, low=1),
    "nodes_": lambda value, fitted: isinstance(value, tuple) and value == fitted["graph_"].nodes,
    "feature_names_in_": lambda value, fitted: (
        _is_array(value, "O", fitted["n_features_in_"]) and _are_strings(value)
    ),
    "divergence_": _per_node(nan=True),
    "effect_size_": _per_node(nan=True),
    "dependence_": lambda value, _: isinstance(value, str),
    "apart_": lambda value, _: isinstance(value, str),
    "divergence_name_": lambda value, _: (
        value in [loss.divergence_name for loss in LOSSES.values()]
    ),
    "scaling_": _is_scaling,
    "encoding_": lambda value, fitted: _is_encoding(value, fitted["feature_names_in_"]),
    "sizes_": _per_node(2, kinds="iu", low=0),
    "backend_": lambda value, _: value in ("pandas", "polars"),
    "alpha_": lambda value, _: _is_number(value) and 0 <= value < 1,
}

# Estimators with separate centres and hyperparameters at every node.
_CENTRED: dict[str, _Rule] = {
    "centers_": lambda value, fitted: _is_array(
        value, "f", fitted["graph_"].n_nodes, None, fitted["n_features_in_"]
    ),
    "n_centers_": _per_node(kinds="iu"),
    "coef_": lambda value, fitted: _is_array(value, "f", *fitted["centers_"].shape[:2]),
    "bandwidth_": lambda value, fitted: _per_node()(value, fitted) and bool((value > 0).all()),
    "ridge_": _per_node(),
    "solution_": lambda value, fitted: _is_solution(value, fitted["coef_"]),
    "cv_results_": lambda value, fitted: _are_own_scores(value, fitted["graph_"].n_nodes),
}

# Estimators that share one dictionary among all nodes.
NYSTROM: dict[str, _Rule] = {
    "features_": lambda value, fitted: _is_feature_map(value, fitted["n_features_in_"]),
    "coef_": lambda value, fitted: _per_node(fitted["features_"].n_components)(value, fitted),
    "intercept_": lambda value, fitted: value is None or _per_node()(value, fitted),
    "dictionary_": lambda value, fitted: _is_array(value, "f", None, fitted["n_features_in_"]),
    "bandwidth_": lambda value, _: _is_number(value, low=0),
    "graph_penalty_": lambda value, _: _is_number(value) and value >= 0,
    "ridge_": lambda value, _: _is_number(value, low=0),
    "prior_ratio_": lambda value, _: _is_number(value),
    "direction_weights_": lambda value, _: _is_array(value, "f", None) and bool((value >= 0).all()),
    "direction_moments_": lambda value, fitted: _per_node(len(fitted["direction_weights_"]), low=0)(
        value, fitted
    ),
    "solution_": lambda value, fitted: _is_solution(value, fitted["coef_"]),
    "cv_results_": lambda value, fitted: _are_scores(
        value,
        () if "profiles_" in fitted else ("bandwidth", "graph_penalty", "ridge", "gamma", "rank"),
    ),
    "n_selected_on_": lambda value, _: _is_count(value, low=1),
    "divergence_held_out_": lambda value, fitted: (
        value is None or _per_node(nan=True)(value, fitted)
    ),
}

# Estimators whose nodes share profiles.
PROFILES: dict[str, _Rule] = {
    "n_profiles_": lambda value, _: _is_count(value, low=1),
    "shared_": lambda value, _: isinstance(value, bool),
    "profiles_": lambda value, fitted: _is_array(
        value, "f", fitted["features_"].n_components, fitted["n_profiles_"]
    ),
    "coordinates_": lambda value, fitted: _per_node(fitted["n_profiles_"])(value, fitted),
}

# Estimators that can learn the weights of edges.
LEARNED: dict[str, _Rule] = {
    "n_rounds_": lambda value, _: _is_count(value),
    "graph_learned_": lambda value, fitted: (
        isinstance(value, Graph) and value.nodes == fitted["graph_"].nodes
    ),
}
