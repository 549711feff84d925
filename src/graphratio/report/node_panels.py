"""Data of the panel of each node: histograms, ratios along each feature, and points."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.plotting.columns import (
    columns_of,
    in_columns,
    in_scale_of_fit,
    takes_logarithm,
    typical_values,
)
from graphratio.report.node_table import Subject
from graphratio.report.page_file import short

# Most numbers of each kind in a file, at about 2.7 bytes each.
CURVE_BUDGET = 500_000
POINT_BUDGET = 250_000
# Fewer points per sample are not worth drawing.
FEWEST_POINTS = 30
MOST_POINTS = 200
MOST_NEIGHBOURS = 12
MOST_FEATURES = 12
LARGE_GRAPH = 2_000

# Charts of features in a file: beyond that only the most changed nodes have panels with charts.
CHART_BUDGET = 6_000
FEWEST_PANELS = 1_000

# Observations further than this many interquartile ranges from the quartiles are not drawn.
DRAWN_REACH = 4.0


@dataclass(frozen=True)
class Detail:
    """How much of every node to keep, so that the file stays small.

    Points of a ratio curve, most bins of a histogram, most curves of neighbours, and observations
    per sample in the scatter plot (0 for none).
    """

    grid: int
    bins: int
    neighbours: int
    points: int

    @classmethod
    def for_size(cls, n_nodes: int, n_features: int) -> Detail:
        """Divide the budgets."""
        large = n_nodes > LARGE_GRAPH
        grid = 24 if large else 48
        curves = CURVE_BUDGET // (n_nodes * n_features * grid)
        points = POINT_BUDGET // (n_nodes * n_features * 2) if n_features > 1 else 0
        return cls(
            grid=grid,
            bins=12 if large else 24,
            neighbours=int(np.clip(curves - 1, 0, MOST_NEIGHBOURS)),
            points=min(points, MOST_POINTS) if points >= FEWEST_POINTS else 0,
        )


def shown_features(subject: Subject) -> IntArray:
    """Positions of the columns that panels show: all, or those whose means moved most."""
    samples = subject.samples
    starts: IntArray = np.arange(samples.n_features)
    if samples.encoding is not None:
        starts = samples.encoding.starts[:-1]
    if len(starts) <= MOST_FEATURES:
        return np.arange(len(starts))
    spread = np.where(subject.own_scales, 1.0, samples.values.std(axis=0))
    change = np.abs(subject.comparable(subject.own_change))[samples.complete].mean(axis=0)
    moved = np.maximum.reduceat(change / np.where(spread > 0, spread, 1.0), starts)
    return np.sort(np.argsort(-moved, kind="stable")[:MOST_FEATURES])


def with_charts(subject: Subject) -> IntArray:
    """Positions of the nodes whose panels have charts, increasing: all, or the most changed."""
    n_nodes = subject.samples.n_nodes
    most = max(CHART_BUDGET // len(shown_features(subject)), FEWEST_PANELS)
    if n_nodes <= most:
        return np.arange(n_nodes)
    ranked = np.asarray(subject.model.ranking_, dtype=np.intp)
    # Nodes without a divergence have no rank and come last.
    unranked = np.setdiff1d(np.arange(n_nodes), ranked)
    return np.sort(np.concatenate([ranked, unranked])[:most])


class NodePanels:
    """Charts of the panels of some nodes; a category is one column with the number of its level.

    `nodes` are their positions in the graph. All lists are in this order.
    """

    def __init__(self, subject: Subject, nodes: IntArray) -> None:
        model, samples = subject.model, subject.samples
        self.model, self.features, self.encoding = model, shown_features(subject), samples.encoding
        self.all_nodes, self.nodes = samples.n_nodes, nodes
        self.samples = in_columns(samples)
        names, self.levels = columns_of(model)
        self.detail = Detail.for_size(len(nodes), len(self.features))
        self.log = np.array([takes_logarithm(model, j) for j in range(len(names))])
        # Both samples of a node, or those of all nodes if it has none.
        ends, every = samples.offsets[::2], self.samples.values
        pooled = [every[ends[i] : ends[i + 1]] if ends[i + 1] > ends[i] else every for i in nodes]
        self.medians = np.array([typical_values(values, self.levels) for values in pooled])
        self.ranges = np.array([_range(self._axis(values)) for values in pooled])
        self.bins = np.tile([self._most_bins(int(node)) for node in nodes], (len(names), 1)).T
        for j, levels in enumerate(self.levels):
            if levels:
                self.ranges[:, :, j], self.bins[:, j] = (-0.5, len(levels) - 0.5), len(levels)
            elif not self.log[j] and (every[:, j] == np.round(every[:, j])).all():
                for place, (low, high) in enumerate(self.ranges[:, :, j]):
                    drawn, self.bins[place, j] = _whole_bins(low, high, self.detail.bins)
                    self.ranges[place, :, j] = drawn

    def _most_bins(self, node: int) -> int:
        """Bins of a histogram, more for larger samples."""
        largest = max(int(self.samples.n_reference[node]), int(self.samples.n_target[node]))
        return int(np.clip(np.ceil(1.5 * np.sqrt(largest)), 6, self.detail.bins))

    def _axis(self, values: FloatArray) -> FloatArray:
        """Values as they are spaced on the screen, with logarithms where the model takes them."""
        if not self.log.any():
            return values
        return np.where(self.log, np.log(np.where(self.log, values, 1.0)), values)

    def to_json(self) -> dict[str, Any]:
        """Everything the page needs, as plain lists and packed strings."""
        names = self.samples.feature_names
        return {
            "features": [
                {"name": str(names[j]), "log": bool(self.log[j]), "levels": list(self.levels[j])}
                for j in self.features.tolist()
            ],
            # None if all nodes have charts.
            "nodes": self.nodes.tolist() if len(self.nodes) < self.all_nodes else None,
            "grid": self.detail.grid,
            "max_neighbours": self.detail.neighbours,
            "low": short(self.ranges[:, 0][:, self.features], 8),
            "high": short(self.ranges[:, 1][:, self.features], 8),
            "median": short(self.medians[:, self.features], 8),
            "histograms": [self._histograms(place) for place in range(len(self.nodes))],
            **self._curves(),
            "points": self._points() if self.detail.points else None,
            "max_points": self.detail.points,
        }

    def _histograms(self, place: int) -> list[list[Any]]:
        """For each feature: counts of the reference, of the target, and how many are beyond."""
        node = int(self.nodes[place])
        ends = pairwise(self.samples.offsets[2 * node : 2 * node + 3])
        parts = [self._axis(self.samples.values[begin:end]) for begin, end in ends]
        result = []
        for j in self.features:
            low, high = self.ranges[place, :, j]
            bins = int(self.bins[place, j])
            counts = [np.histogram(part[:, j], bins, (low, high))[0] for part in parts]
            beyond = sum(len(part) for part in parts) - sum(int(count.sum()) for count in counts)
            result.append([*(count.tolist() for count in counts), beyond])
        return result

    def _grid_points(self, place: int) -> FloatArray:
        """Points along each column through the medians, (n_shown * grid, n_columns)."""
        grid = self.detail.grid
        points = np.tile(self.medians[place], (len(self.features) * grid, 1))
        for position, j in enumerate(self.features):
            values = np.linspace(self.ranges[place, 0, j], self.ranges[place, 1, j], grid)
            if self.levels[j]:
                values = np.clip(np.round(values), 0, len(self.levels[j]) - 1)
            points[position * grid : (position + 1) * grid, j] = (
                np.exp(values) if self.log[j] else values
            )
        return points

    def _curves(self) -> dict[str, Any]:
        """Ratios of every node and of its neighbours along the node's own grid."""
        points = [self._grid_points(place) for place in range(len(self.nodes))]
        if self.encoding is not None:
            points = [self.encoding.expand(grid) for grid in points]
        # Neighbours with scales of their own are drawn at what is as usual there.
        points = [
            in_scale_of_fit(self.model, grid, int(node))
            for grid, node in zip(points, self.nodes, strict=True)
        ]
        drawn = [self._strongest(node) for node in self.nodes]
        curves = [[np.empty(0)] * (1 + len(others)) for others in drawn]
        # For every node: the nodes at whose points its ratio is drawn, and the place of that curve.
        wanted: dict[int, list[tuple[int, int]]] = {}
        for owner, (node, others) in enumerate(zip(self.nodes.tolist(), drawn, strict=True)):
            for place, other in enumerate([node, *others]):
                wanted.setdefault(other, []).append((owner, place))
        # One call per node, at its own points and at those of the nodes that show its curve.
        for i, places in wanted.items():
            stacked = np.concatenate([points[owner] for owner, _ in places])
            ratios = self.model.predict(stacked, node=self.model.nodes_[i], standardized=True)
            for (owner, place), part in zip(places, np.split(ratios, len(places)), strict=True):
                curves[owner][place] = part
        tops = [max(float(part.max()) for part in node) or 1.0 for node in curves]
        packed = [pack(np.concatenate(node) / top) for node, top in zip(curves, tops, strict=True)]
        return {"curves": packed, "top": short(np.array(tops), 8), "drawn": drawn}

    def _strongest(self, node: int) -> list[int]:
        """Neighbours whose curves are drawn, those with the largest weights first."""
        adjacency = self.model.graph_.adjacency
        row = slice(adjacency.indptr[node], adjacency.indptr[node + 1])
        order = np.argsort(-adjacency.data[row], kind="stable")[: self.detail.neighbours]
        return [int(i) for i in adjacency.indices[row][order]]

    def _points(self) -> list[list[str]]:
        """Some observations of both samples of every node, packed relative to the ranges."""
        packed = []
        for place, i in enumerate(self.nodes):
            low, high = self.ranges[place][:, self.features]
            offsets = self.samples.offsets[2 * i : 2 * i + 3]
            both = []
            for begin, end in pairwise(offsets):
                # Spread evenly over the sample, so that every run draws the same ones.
                count = min(int(end - begin), self.detail.points)
                rows = begin + (np.arange(count) * (end - begin)) // max(count, 1)
                values = self._axis(self.samples.values[rows])[:, self.features]
                inside = values[((values >= low) & (values <= high)).all(axis=1)]
                both.append(pack((inside - low) / (high - low)))
            packed.append(both)
        return packed


def _range(values: FloatArray) -> FloatArray:
    """Range drawn of each feature, shape (2, n_features), not squeezed by far observations."""
    low, first, third, high = np.quantile(values, [0, 0.25, 0.75, 1], axis=0)
    reach = DRAWN_REACH * (third - first)
    low = np.where(reach > 0, np.maximum(low, first - reach), low)
    high = np.where(reach > 0, np.minimum(high, third + reach), high)
    # A constant feature gets a little room around it.
    room = np.where(high > low, 0.0, np.maximum(np.abs(low), 1.0) * 0.5)
    return np.array([low - room, high + room])


def _whole_bins(low: float, high: float, most: int) -> tuple[tuple[float, float], int]:
    """Range and number of bins of integers: bins a whole number wide, centred on integers."""
    low, high = np.ceil(low), np.floor(high)
    n_values = int(high - low) + 1
    width = -(-n_values // most)
    # A bin of an even number of integers has no integer at its centre.
    width += width % 2 == 0
    bins = -(-n_values // width)
    return (low - 0.5, low - 0.5 + bins * width), bins


def pack(shares: FloatArray) -> str:
    """Numbers between 0 and 1 as 16-bit integers in base64: small, and precise enough to draw."""
    codes = np.round(np.clip(shares, 0, 1) * 65535).astype("<u2")
    return base64.b64encode(codes.tobytes()).decode("ascii")
