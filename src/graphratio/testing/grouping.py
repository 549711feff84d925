"""Kinds of change: nodes grouped by their coordinates; the origin is "unchanged".

Symbols
-------
C           coordinates of the nodes, shape (n_nodes, r); the origin is the ratio 1
K           number of kinds besides "unchanged"

The grouping is k-means with one centre fixed at the origin. Held-out data choose the number of
kinds: in every training fold the nodes are grouped, and each gets the ratio of its kind. The
number grows as long as one or two more kinds lower the held-out loss by a standard error. A kind
must beat the ratio 1 on held-out data by a standard error, and at most of its nodes. Otherwise
its nodes go to the nearest other kind or to "unchanged". Nodes near the origin that clearly beat
the ratio 1, together and each by itself, are "other": they changed, but like none of the kinds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.selection.search import advantage, node_means

UNCHANGED = "unchanged"
OTHER = "other"
MOST_KINDS = 6

# More than this share of the nodes of a kind must do better with it than with no change.
MOST_NODES = 2 / 3

# Nodes near "no change" count as changed if they beat it by this many standard errors.
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
        # Start from the node farthest from all centres, then iterate.
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


def named(coordinates: FloatArray, n_kinds: int, gains: FloatArray) -> np.ndarray:
    """Names of the kinds of all nodes, the largest kind first.

    `gains`, shape (n_folds, n_nodes), is the held-out loss of the ratio 1 minus that of the
    fitted ratio; NaN where unknown.

    Examples
    --------
    >>> points = np.array([[0.1], [0.9], [1.0], [-1.0], [-1.1]])
    >>> gains = np.array([[0.0, 1.0, 1.1, 1.0, -1.0], [0.1, 0.9, 1.0, 1.0, -1.0]])
    >>> named(points, 2, gains).tolist()
    ['unchanged', 'kind 1', 'kind 1', 'unchanged', 'unchanged']
    """
    by_node = node_means(gains)
    clear = _clear_by_itself(gains, by_node)
    kinds, centres = group(coordinates, n_kinds)
    while doubted := [
        k for k in range(1, len(centres)) if not _credible(kinds == k, by_node, clear)
    ]:
        # Its nodes may belong to a credible kind, so group them again.
        worst = min(doubted, key=lambda k: float(np.nansum(by_node[kinds == k])))
        centres = np.delete(centres, worst, axis=0)
        kinds = _squared_distances(coordinates, centres).argmin(axis=1)
    names = np.full(len(kinds), UNCHANGED, dtype=f"U{len(UNCHANGED)}")
    sizes = np.bincount(kinds, minlength=len(centres))[1:]
    for number, k in enumerate(np.argsort(-sizes, kind="stable"), start=1):
        names[kinds == k + 1] = f"kind {number}"
    # If there are more ways to change than kinds, nodes near "no change" may have changed.
    rest = names == UNCHANGED
    if _beats_no_change(by_node[rest], CLEARLY):
        names[rest & clear] = OTHER
    return names


def _credible(members: BoolArray, by_node: FloatArray, clear: BoolArray) -> bool:
    """Whether a kind beats no change on average and at most of its nodes.

    A group between changed and unchanged nodes can gain on average although most of its nodes
    are unchanged.
    """
    gains = by_node[members & np.isfinite(by_node)]
    if len(gains) == 1:
        return bool(clear[members].any())  # A single node has no standard error.
    return _beats_no_change(gains) and float((gains > 0).mean()) > MOST_NODES


def _beats_no_change(gains: FloatArray, errors: float = 1.0) -> bool:
    gain, error = advantage(np.zeros(len(gains)), gains)
    return gain > errors * error


def _clear_by_itself(gains: FloatArray, by_node: FloatArray) -> BoolArray:
    """True at nodes whose mean gain exceeds `CLEARLY` standard errors over the folds."""
    counted = np.isfinite(gains)
    number = counted.sum(axis=0)
    squares = np.where(counted, np.square(gains - by_node), 0.0).sum(axis=0)
    error = np.sqrt(squares / np.maximum(number - 1, 1) / np.maximum(number, 1))
    return np.asarray((number > 1) & (np.nan_to_num(by_node) > CLEARLY * error))
