"""A running detector in a file, so that it can be resumed elsewhere.

The file holds the observations and what `fit` fixed. Sums over the memory are made again from the
observations, in the same order, so they have the same bits.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio.changepoints.common_scale import Evidence
from graphratio.changepoints.detector_parameters import checked_scales
from graphratio.changepoints.events import Found
from graphratio.changepoints.panel_features import PanelFeatures
from graphratio.changepoints.seasons import Adjustment
from graphratio.changepoints.stretch import Lens
from graphratio.changepoints.watch import Alarm, ChangeWatch, WatchSettings
from graphratio.data.graph import Graph
from graphratio.estimators.archive import Format, lasting
from graphratio.estimators.persistence import estimators_by_name

if TYPE_CHECKING:
    from graphratio.changepoints.detector import GraphChangePointDetector

DETECTOR = Format(
    "graphratio-detector",
    3,
    "graphratio change-point detector",
    "Save the detector again with detector.save(path)",
    parts=("parameters", "estimator", "fitted", "adjustment", "features", "watch", "evidence"),
)

_FITTED = (
    "graph_", "feature_names_in_", "n_features_in_", "backend_", "missing_", "times_", "p_value_",
    "too_short_", "block_", "statistic_", "scan_times_",
)  # fmt: skip


def write_detector(path: str | Path, detector: GraphChangePointDetector) -> None:
    """Write a fitted detector; the file appears only when it is complete."""
    parameters = lasting(detector.get_params(deep=False))
    estimator = parameters.pop("estimator")
    watch = detector._watch
    features = watch.settings.lens.features
    parts = {
        "parameters": parameters,
        "estimator": {}
        if estimator is None
        else {"kind": type(estimator).__name__, **lasting(estimator.get_params(deep=False))},
        "fitted": {name: getattr(detector, name) for name in _FITTED} | {"panel": detector.panel_},
        "adjustment": _plain(detector.adjustment_),
        "features": _plain(features) | {"groups": list(features.groups)},
        "watch": {
            "seed": watch.settings.seed,
            "fitted": watch.fitted,
            "regime": watch.regime,
            "reference": None if watch.reference is None else list(watch.reference),
            "settled": [asdict(found) for found in watch.settled],
            "alarm": None if watch.alarm is None else asdict(watch.alarm),
        },
        "evidence": {} if watch.evidence is None else _plain(watch.evidence),
    }
    DETECTOR.write(path, {}, parts)


def _plain(value: Any) -> dict[str, Any]:
    content = {field.name: getattr(value, field.name) for field in fields(value)}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in content.items()}


def _tuples(content: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}


def read(path: str | Path, kind: type[GraphChangePointDetector]) -> GraphChangePointDetector:
    """Build a detector from a file."""
    return DETECTOR.read(path, lambda _, document: _build(document, kind))


def _build(
    document: dict[str, Any], kind: type[GraphChangePointDetector]
) -> GraphChangePointDetector:
    given = document["estimator"]
    estimator = None
    if given:
        estimator = estimators_by_name()[given.pop("kind")](**given)
    parameters = document["parameters"]
    if isinstance(parameters["window"], list):
        parameters["window"] = tuple(parameters["window"])
    detector = kind(**parameters, estimator=estimator)
    shortest, longest = checked_scales(detector)
    fitted = document["fitted"]
    detector._raw = [fitted.pop("panel")]
    if set(fitted) != set(_FITTED):
        raise ValueError("fitted attributes are missing or unknown")
    for name, value in fitted.items():
        setattr(detector, name, value)
    if not isinstance(detector.graph_, Graph):
        raise ValueError("graph_ is not a graph")
    detector.nodes_ = detector.graph_.nodes
    detector.adjustment_ = Adjustment(**_tuples(document["adjustment"]))
    stored = document["features"]
    features = PanelFeatures(**stored | {"groups": tuple(stored["groups"])})
    lens = Lens(features, detector._smoothers(features), detector.standardize, shortest, longest)
    _check(detector, features)
    detector._start(_watch(document, detector, lens))
    return detector


def _watch(document: dict[str, Any], detector: GraphChangePointDetector, lens: Lens) -> ChangeWatch:
    stored = document["watch"]
    settings = WatchSettings(
        lens, detector.memory, detector.block_, detector.level, detector.n_surrogates,
        int(stored["seed"]),
    )  # fmt: skip
    found = [Found(**_tuples(one)) for one in stored["settled"]]
    values = detector.adjustment_(detector._raw[0])
    watch = ChangeWatch(values, found, settings)
    watch.fitted, watch.regime = int(stored["fitted"]), int(stored["regime"])
    watch.alarm = None if stored["alarm"] is None else Alarm(**stored["alarm"])
    watch.past = watch.reference = None
    if stored["reference"] is not None:
        watch.refer(*stored["reference"])
    if document["evidence"]:
        watch.evidence = Evidence(**document["evidence"])
    return watch


def _check(detector: GraphChangePointDetector, features: PanelFeatures) -> None:
    """Refuse arrays that no fit can have written, instead of failing in a later call."""
    panel, n, d = detector._raw[0], detector.graph_.n_nodes, detector.n_features_in_
    m = features.kernel_map.n_components
    one = detector.adjustment_
    expected = {
        "panel": (panel, (len(panel), n, d)),
        "trend": (one.trend, (n, d)),
        "slope": (one.slope, (n, d)),
        "centre": (features.centre, (m,)),
        "damping": (features.damping, (m,)),
        "weights": (features.weights, (len(features.groups), features.weights.shape[1])),
        "statistic": (detector.statistic_, np.shape(detector.scan_times_)),
    }
    for name, (array, shape) in expected.items():
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ValueError(f"{name} is not what a fit leaves")
    if detector.times_ is not None and len(detector.times_) != len(panel):
        raise ValueError("times_ is not what a fit leaves")
