"""Labels of the reference observations, and models that take weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import Label
from graphratio.data.samples import NodeSamples


def read_labels(
    y: Any, samples: NodeSamples, nodes: tuple[Label, ...], numeric: bool
) -> list[np.ndarray]:
    """Labels by node, in the order of `nodes`, each checked against its reference sample.

    `y` is a mapping, or a sequence in the order of the samples as given; `numeric` for regression.
    """
    given = samples if samples.labelled else samples.aligned(nodes)
    by_node = by_label(y, given.nodes, "y")
    common = by_node.keys() & set(nodes)
    if odd := [node for node in (*by_node, *nodes) if node not in common]:
        raise InputError(
            f"y and the samples do not have the same nodes: {listing(odd)}",
            "Give the labels of every node by its name",
        )
    return [
        checked_labels(by_node[node], node, len(given.reference(node)), numeric) for node in nodes
    ]


def by_label(values: Any, nodes: tuple[Label, ...], name: str) -> dict[Label, Any]:
    """Entries of a mapping, or of a sequence with one entry per node; `name` is the argument."""
    if isinstance(values, Mapping):
        return dict(values)
    if not hasattr(values, "__len__") or len(values) != len(nodes):
        count = len(values) if hasattr(values, "__len__") else "no"
        raise InputError(
            f"{name} has {count} entries for {len(nodes)} nodes",
            "Pass a dict by node, or a list with one entry per node",
        )
    return dict(zip(nodes, values, strict=True))


def checked_labels(
    values: Any, node: Label, n: int, numeric: bool, sample: str = "reference"
) -> np.ndarray:
    """Labels of the n observations of a node, shape (n,); numbers if `numeric`, else classes."""
    one_each = f"Give one label for each {sample} observation, in the same order"
    leave_out = "Leave these observations out of samples and y"
    try:
        labels = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"y of node {node!r} has entries of different lengths", one_each
        ) from error
    if labels.shape != (n,):
        problem = f"has shape {labels.shape}, but the node has {n} {sample} observations"
        raise InputError(f"y of node {node!r} {problem}", one_each)
    if numeric:
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"y of node {node!r} is not numeric, and the predictor is not a classifier",
                "Pass numbers, or a classifier",
            ) from error
    if labels.dtype.kind == "f" and (bad := int((~np.isfinite(labels)).sum())):
        raise InputError(f"y of node {node!r} has {bad} missing or infinite values", leave_out)
    if labels.dtype.kind == "O" and any(label is None for label in labels):
        raise InputError(f"y of node {node!r} has missing classes (None)", leave_out)
    if not numeric and labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise InputError(
            f"y of node {node!r} has fractions, and the predictor is a classifier",
            "Pass classes, or a regressor",
        )
    return labels


def weight_parameter(predictor: Any) -> str:
    """Name under which `fit` takes weights; of a pipeline, those of its last step."""
    if isinstance(predictor, type):
        raise InputError(
            f"predictor is the class {predictor.__name__}, not a model",
            f"Pass an instance, such as {predictor.__name__}()",
        )
    if name := _weight_parameter(predictor):
        return name
    raise InputError(
        f"{type(predictor).__name__} takes no sample_weight in fit, so it cannot be reweighted",
        "Use a predictor that does, such as Ridge, LogisticRegression, RandomForestRegressor "
        "or HistGradientBoostingClassifier",
    )


def _weight_parameter(predictor: Any) -> str | None:
    if isinstance(predictor, Pipeline):
        name, last = predictor.steps[-1]
        inner = _weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    if not hasattr(predictor, "fit"):
        return None
    if has_fit_parameter(predictor, "sample_weight"):
        return "sample_weight"
    # Searches and wrappers pass unknown arguments on.
    kinds = {item.kind for item in inspect.signature(predictor.fit).parameters.values()}
    wrapped = getattr(predictor, "estimator", None) or getattr(predictor, "regressor", None)
    if inspect.Parameter.VAR_KEYWORD in kinds and wrapped is not None:
        return _weight_parameter(wrapped)
    return None


def unset_seeds(predictor: Any) -> list[str]:
    """Names of the parameters `random_state` that are None, also of nested models."""
    unset = [name for name, value in predictor.get_params().items() if value is None]
    return [name for name in unset if name.split("__")[-1] == "random_state"]


def pointwise_errors(predictor: Any, y: Any, predicted: Any) -> np.ndarray:
    """Squared errors of a regression, or 1 for each wrong class."""
    if is_classifier(predictor):
        return np.asarray(np.asarray(y) != np.asarray(predicted), dtype=np.float64)
    return np.asarray((np.asarray(y) - np.asarray(predicted)) ** 2, dtype=np.float64)
