"""Observations in units of their own node, and whether nodes differ enough for it to matter.

A change that is alike at two nodes may be hidden by their units: a shift by one standard deviation
is a shift by 2 at one station and by 20 at another. A monotone change of units per node leaves the
ratio of every node as it is, so that held-out losses in both units can be compared directly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.typing import FloatArray
from graphratio.data.samples import NodeSamples

# Nodes differ much if their means spread by more than this, relative to the spread inside a node.
FAR_APART = 3.0
# The same for the standard deviation of the logarithm of their spreads, without sampling error.
UNEVEN = 0.35


def in_own_units(samples: NodeSamples) -> NodeSamples:
    """Shift and scale every feature of every node to mean 0 and spread 1 over both its samples.

    Both samples together give mean and spread, so that they do not see which observation is
    reference and which target. A feature that is constant at a node is shifted only, and indicators
    of categories are left alone.

    Examples
    --------
    >>> samples = NodeSamples.from_arrays([[0.0, 2.0], [10.0, 50.0]], [[4.0], [90.0]])
    >>> in_own_units(samples).values.ravel().round(2)
    array([-1.22,  0.  ,  1.22, -1.22,  0.  ,  1.22])
    """
    mean, spread = _moments(samples)
    if samples.encoding is not None:
        kept = samples.encoding.is_indicator
        mean, spread = np.where(kept, 0.0, mean), np.where(kept, 1.0, spread)
    node = samples.node_index
    values = (samples.values - mean[node]) / np.where(spread > 0, spread, 1.0)[node]
    return replace(samples, values=read_only(values), scaling=None)


def nodes_differ(samples: NodeSamples) -> bool:
    """Whether location or spread of some feature varies much between nodes."""
    mean, spread = _moments(samples)
    typical = np.median(spread, axis=0)
    apart = mean.std(axis=0) > FAR_APART * typical
    logs = np.log(np.maximum(spread, 1e-6 * np.maximum(typical, np.finfo(float).tiny)))
    # Half of 1 / n is about the variance of the logarithm of a spread.
    chance = float(np.mean(0.5 / np.maximum(samples.sizes.sum(axis=1), 1)))
    scales = logs.var(axis=0) > UNEVEN**2 + chance
    known = typical > 0
    if samples.encoding is not None:
        known &= ~samples.encoding.is_indicator
    return bool((known & (apart | scales)).any())


def _moments(samples: NodeSamples) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of every feature at every node, over both samples, (n_nodes, n_features)."""
    node, counts = samples.node_index, np.maximum(samples.sizes.sum(axis=1), 1)[:, np.newaxis]
    mean = np.zeros((samples.n_nodes, samples.n_features))
    np.add.at(mean, node, samples.values)
    mean /= counts
    square = np.zeros_like(mean)
    np.add.at(square, node, np.square(samples.values - mean[node]))
    spread = np.sqrt(square / counts)
    # Rounding gives a constant feature about this spread, not exactly zero.
    constant = spread <= 8 * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(constant, 0.0, spread)
