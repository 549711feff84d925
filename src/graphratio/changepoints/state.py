"""A running detector in a file, so that it can be resumed elsewhere."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio.changepoints.calibration import Calibration, TailTable
from graphratio.changepoints.events import Found
from graphratio.changepoints.panel_features import PanelFeatures
from graphratio.changepoints.scan import N_CURVES, GraphScan
from graphratio.changepoints.stream import ChangeStream, PeakTracker
from graphratio.changepoints.windows import KEPT_WINDOWS
from graphratio.data.graph import Graph
from graphratio.estimators.archive import Format, lasting
from graphratio.estimators.persistence import estimators_by_name

if TYPE_CHECKING:
    from graphratio.changepoints.detector import GraphChangePointDetector

DETECTOR = Format(
    "graphratio-detector",
    2,
    "graphratio change-point detector",
    "Save the detector again with detector.save(path)",
)

_FITTED = ("graph_", "feature_names_in_", "n_features_in_", "backend_", "times_", "p_value_")
_SCAN = ("variance", "own_mean", "graph_mean", "mode_weights")
_CALIBRATION = ("spread", "levels", "largest", "block", "inflation", "marginal")
_TAILS = ("own_tail", "witness_tail")
_WINDOWS = ("n_seen", "recent", "reference", "target")


def write_detector(path: str | Path, detector: GraphChangePointDetector) -> None:
    """Write a fitted detector; the file appears only when it is complete."""
    parameters = lasting(detector.get_params(deep=False))
    estimator = parameters.pop("estimator")
    stream, features = detector._stream, detector.features_
    calibration = stream.calibration
    parts = {
        "parameters": parameters,
        "estimator": {}
        if estimator is None
        else {"kind": type(estimator).__name__, **lasting(estimator.get_params(deep=False))},
        "fitted": {name: getattr(detector, name) for name in _FITTED} | {"panel": detector.panel_},
        "features": {field.name: getattr(features, field.name) for field in fields(features)},
        "scan": {name: getattr(calibration.scan, name) for name in _SCAN},
        "calibration": {name: getattr(calibration, name) for name in _CALIBRATION}
        | {name: asdict(getattr(calibration, name)) for name in _TAILS},
        "windows": {name: getattr(stream.windows, name) for name in _WINDOWS},
        "tracker": asdict(stream.tracker),
        "found": {
            "settled": [asdict(found) for found in stream.settled],
            "statistic": np.array(stream.statistic),
            "gain": stream.gain,
        },
    }
    DETECTOR.write(path, {}, parts)


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
    detector = kind(**document["parameters"], estimator=estimator)
    detector._check_parameters()
    fitted = document["fitted"]
    detector._values = [fitted.pop("panel")]
    if set(fitted) != set(_FITTED):
        raise ValueError("fitted attributes are missing or unknown")
    for name, value in fitted.items():
        setattr(detector, name, value)
    detector.nodes_ = detector.graph_.nodes
    detector._watch(PanelFeatures(**document["features"]))
    detector._stream = _stream(document, detector)
    _check(detector)
    return detector


def _stream(document: dict[str, Any], detector: GraphChangePointDetector) -> ChangeStream:
    smoother = detector._smoother()
    stored = document["calibration"]
    for name in _TAILS:
        stored[name] = TailTable(**stored[name])
    calibration = Calibration(scan=GraphScan(smoother=smoother, **document["scan"]), **stored)
    shape = (detector.n_components_, len(detector.nodes_))
    stream = ChangeStream(calibration, detector.window, detector.step, detector.level, shape)
    for name in _WINDOWS:
        # A copy, since these arrays are updated in place.
        value = document["windows"][name]
        setattr(stream.windows, name, np.array(value) if name != "n_seen" else int(value))
    stream.tracker = PeakTracker(**document["tracker"])
    stream.settled = [Found(**found) for found in document["found"]["settled"]]
    stream.statistic = document["found"]["statistic"].tolist()
    stream.gain = np.array(document["found"]["gain"])
    return stream


def _check(detector: GraphChangePointDetector) -> None:
    """Refuse arrays that no fit can have written, instead of failing in a later call."""
    graph, stream = detector.graph_, detector._stream
    if not isinstance(graph, Graph):
        raise ValueError("graph_ is not a graph")
    n, m, seen = graph.n_nodes, detector.n_components_, stream.windows.n_seen
    scan, calibration = stream.calibration.scan, stream.calibration
    expected = {
        "panel": (detector._values[0], (seen, n, detector.n_features_in_)),
        "shift": (detector.features_.shift, (n, detector.n_features_in_)),
        "scale": (detector.features_.scale, (n, detector.n_features_in_)),
        "centre": (detector.features_.centre, (m,)),
        "variance": (scan.variance, (m, n)),
        "own_mean": (scan.own_mean, (n,)),
        "graph_mean": (scan.graph_mean, (n,)),
        "gain": (stream.gain, (m, n)),
        "marginal": (calibration.marginal, (m, n)),
        "spread": (calibration.spread, (m,)),
        "levels": (calibration.levels, (N_CURVES,)),
        "recent": (stream.windows.recent, (m, KEPT_WINDOWS * detector.window, n)),
        "reference": (stream.windows.reference, (m, n)),
        "target": (stream.windows.target, (m, n)),
        "statistic": (np.array(stream.statistic), detector.scan_times_.shape),
        "features": (np.empty(detector.features_.features.n_components), (m,)),
    }
    for name, (array, shape) in expected.items():
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ValueError(f"{name} is not what a fit leaves")
    if detector.times_ is not None and len(detector.times_) != seen:
        raise ValueError("times_ is not what a fit leaves")
