"""From ratios to importance weights."""

from __future__ import annotations

import warnings

import numpy as np

from graphratio.exceptions import DataWarning, listing
from graphratio.typing import FloatArray, IntArray, Label


def unit_mean_weights(
    ratios: FloatArray,
    sizes: IntArray,
    nodes: tuple[Label, ...],
    alpha: float,
    relative: bool,
) -> dict[Label, FloatArray]:
    """Normalise the ratios at reference observations to mean one at every node.

    Parameters
    ----------
    ratios : ndarray of shape (n_rows,)
        Clipped relative ratios r, by node.
    sizes : ndarray of shape (n_nodes,)
    nodes : tuple of labels
    alpha : float
    relative : bool
        False for the plain ratio (1 - alpha) r / (1 - alpha r), at most the size of the sample:
        its mean is one, so a larger weight would be more than all of it.

    Examples
    --------
    >>> unit_mean_weights(np.array([1.0, 3.0]), np.array([2]), ("a",), 0.1, True)
    {'a': array([0.5, 1.5])}
    """
    if not relative and alpha > 0:
        limit = np.repeat(sizes, sizes).astype(np.float64)
        # r at which the plain ratio reaches the limit; below 1 / alpha, so no division by zero.
        largest = limit / (1 - alpha + alpha * limit)
        capped = np.minimum(ratios, largest)
        ratios = (1 - alpha) * capped / (1 - alpha * capped)
    groups = np.split(ratios, np.cumsum(sizes)[:-1])
    means = [group.mean() if group.size else 1.0 for group in groups]
    empty = [node for node, mean in zip(nodes, means, strict=True) if mean == 0]
    if empty:
        warnings.warn(
            "all weights are zero, the estimated target gives no mass to any reference "
            f"observation, at nodes {listing(empty)}",
            DataWarning,
            stacklevel=3,
        )
    return {
        node: group / mean if mean > 0 else group
        for node, group, mean in zip(nodes, groups, means, strict=True)
    }
