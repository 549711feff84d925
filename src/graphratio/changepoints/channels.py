"""Where to look for a change: at single nodes, in neighbourhoods, over the whole graph.

Symbols
-------
x           features of a stretch of time, shape (n_times, n_features, n_nodes)

Each channel is a linear map of the features at one time:

- "node": every node by itself;
- "all": the mean over nodes;
- "rest": every node without the part that follows the mean over nodes, so that what all share, such
  as weather, does not hide a change of a few;
- "near", several: neighbourhoods of the graph, averages of "rest".

Every column has mean zero and variance one over the stretch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.changepoints.smoother import GraphSmoother

# The common part is removed from this many nodes on.
FEWEST_FOR_COMMON = 4


@dataclass(frozen=True, eq=False)
class Channel:
    """One channel: its name, its number of columns per feature, and its standardisation."""

    name: str
    centre: FloatArray
    scale: FloatArray

    @property
    def size(self) -> int:
        """Number of places: nodes, neighbourhoods, or one."""
        return int(self.scale.shape[1])

    def standard(self, x: FloatArray) -> FloatArray:
        """Columns of mean zero and variance one, in single precision."""
        return np.asarray((x - self.centre) * self.scale, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Channels:
    """All channels of a stretch of time; `slope` is the share of the mean over nodes in a node."""

    channels: tuple[Channel, ...]
    smoothers: tuple[GraphSmoother, ...]
    slope: FloatArray | None

    @classmethod
    def of(
        cls, x: FloatArray, smoothers: tuple[GraphSmoother, ...]
    ) -> tuple[Channels, list[FloatArray]]:
        """Fix the channels on a stretch; also its columns, one array per channel."""
        filled = filled_in(x)
        node = _channel("node", filled)
        channels, columns = [node], [node.standard(filled)]
        slope = None

        def add(name: str, part: FloatArray) -> None:
            channels.append(_channel(name, part))
            columns.append(channels[-1].standard(part))

        if x.shape[2] > 1:
            common = columns[0].mean(axis=2, keepdims=True)
            add("all", common)
        if x.shape[2] >= FEWEST_FOR_COMMON:
            slope = _slopes(columns[0], common)
            add("rest", columns[0] - slope * common)
            for one in smoothers:
                add("near", one.apply(columns[2]))
        return cls(tuple(channels), smoothers if slope is not None else (), slope), columns

    def __call__(self, x: FloatArray) -> list[FloatArray]:
        """Columns of other times, one array (n_times, n_features, size) per channel."""
        columns = [self.channels[0].standard(filled_in(x, self.channels[0].centre))]
        if len(self.channels) > 1:
            common = columns[0].mean(axis=2, keepdims=True)
            columns.append(self.channels[1].standard(common))
        if self.slope is not None:
            columns.append(self.channels[2].standard(columns[0] - self.slope * common))
            for channel, smoother in zip(self.channels[3:], self.smoothers, strict=True):
                columns.append(channel.standard(smoother.apply(columns[2])))
        return columns


def filled_in(x: FloatArray, centre: FloatArray | None = None) -> FloatArray:
    """Missing features replaced by `centre`, or by others of their node, in the order of time.

    Others vary as much as what is missing. Means would not: where a node is observed without gaps
    it would vary more than in surrogates, whose gaps are scattered, and raise false alarms.
    """
    lacking = np.isnan(x)
    if not lacking.any():
        return x
    if centre is not None:
        return np.where(lacking, centre, x).astype(x.dtype)
    result, rng = x.copy(), np.random.default_rng(0)
    for node in np.flatnonzero(lacking.any(axis=(0, 1))):
        gone = lacking[:, 0, node]
        there = np.flatnonzero(~gone)
        if there.size:
            order = (rng.integers(there.size) + np.arange(gone.sum())) % there.size
            result[gone, :, node] = x[there[order], :, node]
        else:
            result[:, :, node] = 0.0
    return result


def _slopes(x: FloatArray, common: FloatArray) -> FloatArray:
    """Regression of every feature of every node on the mean over nodes."""
    centred = common - common.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    return np.asarray(
        (x * centred).mean(axis=0) / np.where(variance > 0, variance, np.inf), dtype=x.dtype
    )


def _channel(name: str, x: FloatArray) -> Channel:
    centre = x.mean(axis=0, dtype=np.float64)
    # In two passes, since constant features must have no spread.
    variance = np.zeros_like(centre)
    for row in np.array_split(x, max(1, len(x) // 256)):
        variance += ((row - centre) ** 2).sum(axis=0)
    spread = np.sqrt(variance / len(x))
    usual = spread > 1e-5 * (np.abs(centre) + 1)
    return Channel(name, centre, np.where(usual, 1 / np.where(usual, spread, 1.0), 0.0))
