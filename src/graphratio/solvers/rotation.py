"""Readable profiles: rotated so that every node uses few of them, most used first."""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray

_ITERATIONS = 100
_TOLERANCE = 1e-8

# Directions of the metric below this share of its largest eigenvalue are left out.
_SMALLEST_SHARE = 1e-9


def readable(profiles: FloatArray, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rotate profiles and coordinates together, so that each node uses few; most used first."""
    rotation = _varimax(coordinates)
    turned = coordinates @ rotation
    order = np.argsort(-np.square(turned).sum(axis=0), kind="stable")
    signs = np.where(turned.sum(axis=0) < 0, -1.0, 1.0)
    rotation = (rotation * signs)[:, order]
    return profiles @ rotation, coordinates @ rotation


def principal(theta: FloatArray, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Profiles and coordinates of any coefficients (n_nodes, m), by a singular value decomposition.

    `metric` (m, m) is the mean second moment of the features.
    """
    values, vectors = np.linalg.eigh(metric.astype(np.float64))
    kept = values > _SMALLEST_SHARE * values[-1]
    root = np.sqrt(values[kept])
    left, sizes, right = np.linalg.svd((theta @ vectors[:, kept]) * root, full_matrices=False)
    signs = np.where((left * sizes).sum(axis=0) < 0, -1.0, 1.0)
    return (vectors[:, kept] / root) @ (right.T * signs), left * (sizes * signs)


def _varimax(coordinates: FloatArray) -> FloatArray:
    rotation = np.eye(coordinates.shape[1])
    objective = 0.0
    for _ in range(_ITERATIONS):
        turned = coordinates @ rotation
        target = turned**3 - turned * np.square(turned).mean(axis=0)
        left, values, right = np.linalg.svd(coordinates.T @ target)
        if values.sum() <= objective * (1 + _TOLERANCE):
            break
        rotation, objective = left @ right, float(values.sum())
    return rotation
