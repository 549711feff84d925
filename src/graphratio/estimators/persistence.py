"""Fitted models as files; see `archive` for what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphratio._utils.exceptions import InputError
from graphratio.estimators.archive import Format, lasting
from graphratio.estimators.restored import check_restored

if TYPE_CHECKING:
    from graphratio.estimators.base import NodeRatioEstimator

MODEL = Format(
    "graphratio-model", 2, "graphratio model", "Save the model again with model.save(path)"
)


def write(path: str | Path, model: NodeRatioEstimator, names: Iterable[str]) -> None:
    """Write a fitted model; the file appears only when it is complete."""
    kind = type(model).__name__
    if _estimators().get(kind) is not type(model):
        raise InputError(
            f"{kind} is not an estimator of this library, so `load` could not build it again",
            f"Save an instance of one of {', '.join(_estimators())}",
        )
    parts = {
        "parameters": lasting(model.get_params(deep=False)),
        "fitted": {name: getattr(model, name) for name in names},
    }
    MODEL.write(path, {"estimator": kind}, parts)


def _estimators() -> dict[str, type[NodeRatioEstimator]]:
    """Return the estimators of the library by name; imported late, since they import this."""
    from graphratio import estimators
    from graphratio.estimators.base import NodeRatioEstimator

    found = {name: getattr(estimators, name) for name in estimators.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type) and issubclass(kind, NodeRatioEstimator)
    }


def load(path: str | Path) -> NodeRatioEstimator:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    model : the fitted estimator

    Examples
    --------
    >>> import os, tempfile
    >>> import graphratio as gr
    >>> model = gr.Pool(bandwidth=1.0, node_penalty=0.1).fit(([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.graphratio")
    >>> model.save(path)
    >>> bool((gr.load(path).coef_ == model.coef_).all())
    True
    """
    return MODEL.read(path, _build)


def _build(source: Path, document: dict[str, Any]) -> NodeRatioEstimator:
    kinds = _estimators()
    if document["estimator"] not in kinds:
        raise MODEL.damaged(source, f"unknown estimator {document['estimator']!r}")
    kind = kinds[document["estimator"]]
    parameters, fitted = document["parameters"], document["fitted"]
    if set(fitted) != set(kind._fitted_names):
        odd = sorted(set(fitted) ^ set(kind._fitted_names))
        raise MODEL.damaged(source, f"fitted attributes are missing or unknown: {', '.join(odd)}")
    check_restored(parameters, fitted)
    model = kind(**parameters)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model
