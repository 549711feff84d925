"""Kinds of change: nodes grouped by their coordinates, "unchanged" being the origin.

Symbols
-------
C           coordinates of the nodes, shape (n_nodes, r); the origin is the ratio 1
K           number of kinds besides "unchanged"

K-means with one centre held at the origin. How many kinds there are is decided on held-out
data: in every training fold the nodes are grouped, each gets the ratio of its kind, and the
number grows as long as one kind more, or two, lower the held-out loss by a standard error. A
kind whose ratio does not beat the ratio 1 on held-out data by a standard error is "unchanged".
Nodes near the origin that clearly beat it, together and each by itself, are "other": they
changed, but like none of the kinds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphratio.estimators._profiles.search import advantage, node_means
from graphratio.typing import BoolArray, FloatArray, IntArray

UNCHANGED = "unchanged"
OTHER = "other"
MOST_KINDS = 6

# Standard errors by which nodes near "no change" must be better than it to count as changed.
CLEARLY = 3.0
_ITERATIONS = 50


def group(coordinates: FloatArray, n_kinds: int) -> tuple[IntArray, FloatArray]:
    """Kind of every node, 0 for unchanged, and the centres, the origin first.

    Examples
    --------
    >>> points = np.array([[0.0, 0.1], [0.1, 0.0], [2.0, 2.0], [2.1, 2.0], [-3.0, 0.0]])
    >>> group(points, 2)[0]
    array([0, 0, 2, 2, 1])
    """
    centres: FloatArray = np.zeros((1, coordinates.shape[1]))
    for _ in range(n_kinds):
        # The node farthest from all centres so far, then settle.
        far = _squared_distances(coordinates, centres).min(axis=1).argmax()
        centres = np.vstack([centres, coordinates[far]])
        centres = _settle(coordinates, centres)
    return _squared_distances(coordinates, centres).argmin(axis=1), centres


def _settle(coordinates: FloatArray, centres: FloatArray) -> FloatArray:
    kinds = np.full(len(coordinates), -1)
    for _ in range(_ITERATIONS):
        nearest = _squared_distances(coordinates, centres).argmin(axis=1)
        if (nearest == kinds).all():
            break
        kinds = nearest
        for k in range(1, len(centres)):
            if (kinds == k).any():
                centres[k] = coordinates[kinds == k].mean(axis=0)
    return centres


def _squared_distances(coordinates: FloatArray, centres: FloatArray) -> FloatArray:
    difference = coordinates[:, np.newaxis] - centres
    return np.asarray(np.einsum("vkr,vkr->vk", difference, difference))


def number_of_kinds(losses: Sequence[FloatArray]) -> int:
    """Choose from held-out losses of 0, 1, 2, ... kinds, each of shape (n_folds, n_nodes)."""
    by_node = [node_means(found) for found in losses]
    chosen = 0
    for k in range(1, len(by_node)):
        gain, error = advantage(by_node[k], by_node[chosen])
        if gain > error:
            chosen = k
        elif k > chosen + 1:
            break
    return chosen


def named(kinds: IntArray, gains: FloatArray) -> np.ndarray:
    """Names of the kinds of all nodes, the largest kind first.

    Parameters
    ----------
    kinds : ndarray of shape (n_nodes,)
        From `group`.
    gains : ndarray of shape (n_folds, n_nodes)
        Held-out loss of the ratio 1 minus that of the fitted one; NaN where unknown.

    Examples
    --------
    >>> gains = np.array([[0.0, 1.0, 1.1, 1.0, -1.0], [0.1, 0.9, 1.0, 1.0, -1.0]])
    >>> named(np.array([0, 1, 1, 2, 2]), gains)
    array(['unchanged', 'kind 1', 'kind 1', 'unchanged', 'unchanged'], dtype='<U9')
    """
    by_node = node_means(gains)
    clear = _clear_by_itself(gains, by_node)
    believed = [
        k
        for k in range(1, kinds.max() + 1)
        # A single node has no others to compare with.
        if _beats_no_change(by_node[kinds == k])
        and ((kinds == k).sum() > 1 or clear[kinds == k].all())
    ]
    names = np.full(len(kinds), UNCHANGED, dtype=f"U{len(UNCHANGED)}")
    sizes = [int((kinds == k).sum()) for k in believed]
    for number, i in enumerate(np.argsort([-size for size in sizes], kind="stable"), start=1):
        names[kinds == believed[i]] = f"kind {number}"
    # Where there are more ways to change than kinds, nodes near no change need not be unchanged.
    rest = names == UNCHANGED
    if _beats_no_change(by_node[rest], CLEARLY):
        names[rest & clear] = OTHER
    return names


def _beats_no_change(gains: FloatArray, errors: float = 1.0) -> bool:
    gain, error = advantage(np.zeros(len(gains)), gains)
    return gain > errors * error


def _clear_by_itself(gains: FloatArray, by_node: FloatArray) -> BoolArray:
    """Nodes whose own gain is well above its spread over the folds."""
    counted = np.isfinite(gains)
    number = counted.sum(axis=0)
    squares = np.where(counted, np.square(gains - by_node), 0.0).sum(axis=0)
    error = np.sqrt(squares / np.maximum(number - 1, 1) / np.maximum(number, 1))
    return np.asarray((number > 1) & (np.nan_to_num(by_node) > CLEARLY * error))
