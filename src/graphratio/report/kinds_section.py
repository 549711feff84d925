"""The report's section on kinds of change and on links that were cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.typing import IntArray
from graphratio.data.links import Links
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.plotting.columns import (
    axis_of,
    columns_of,
    in_columns,
    points_along,
    typical_values,
)
from graphratio.report.node_panels import shown_features
from graphratio.report.node_table import FeatureMoments, kinds_of_nodes
from graphratio.report.page_file import short
from graphratio.report.summary import what_changed
from graphratio.report.words import count, enumeration, number, sentence
from graphratio.testing.grouping import NOT_TESTED, UNCHANGED

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange

# Most charts of ratios, points of a curve, and names of nodes and links.
_CHARTS = 3
_POINTS = 60
_NAMED = 8
_NAMED_LINKS = 12

# The curves leave out this share of the data at either end.
_OUTER = 0.005

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


@dataclass(frozen=True)
class KindLine:
    """A kind of change in words, and the node to open for it."""

    name: str
    position: int
    node: str
    text: str


@dataclass(frozen=True)
class LinkLine:
    """A link that was cut: its two ends and its remaining weight."""

    ends: tuple[int, int]
    names: tuple[str, str]
    kept: str


@dataclass(frozen=True)
class Kinds:
    """What the page says about kinds of change and cut links.

    - `found`: the headline; empty if no kinds were looked for.
    - `meaning`: what it means that a node changed.
    - `unchanged`: how many nodes did not change.
    - `cut`: how many links were cut; empty if the model did not learn any weights.
    - `links`: the weakest of them; `more_links` counts the others.
    - `data`: for the scripts, kind of every node, curves, ends of the cut links.
    """

    found: str
    meaning: str
    kinds: list[KindLine]
    unchanged: str
    cut: str
    links: list[LinkLine]
    more_links: int
    data: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: NodeRatioEstimator,
        samples: NodeSamples,
        moments: FeatureMoments,
        names: list[str],
        found: KindsOfChange | None = None,
    ) -> Kinds | None:
        """Describe kinds of change and the learned graph of a model; None without both.

        The samples are in the model's order and in original units.
        """
        links = Links.compare(model.graph_, getattr(model, "graph_learned_", model.graph_))
        if found is None and links.as_given:
            return None
        labels, kind = _kinds(model, found)
        cut = links.cut()
        lines = [
            _kind_line(label, np.flatnonzero(kind == k), model, samples, moments, names)
            for k, label in enumerate(labels, start=1)
            if label != NOT_TESTED
        ]
        return cls(
            found="" if found is None else _found(found),
            meaning="" if found is None else _meaning(found),
            kinds=lines,
            unchanged=_unchanged(int((kind == 0).sum()), len(kind)),
            cut=_cut(len(cut), len(links.kept)) if not links.as_given else "",
            links=[_link_line(links, int(e), names) for e in cut[:_NAMED_LINKS]],
            more_links=max(0, len(cut) - _NAMED_LINKS),
            data={
                "labels": labels,
                "several": samples.n_features > 1,
                "kind": kind.tolist(),
                "cut": np.column_stack([links.rows[cut], links.columns[cut]]).ravel().tolist(),
                "curves": _curves(model, samples, moments, kind, found.n_kinds if found else 0),
            },
        )


def _kinds(model: NodeRatioEstimator, found: KindsOfChange | None) -> tuple[list[str], IntArray]:
    """Labels but "unchanged", and the number of every node's, 0 for unchanged."""
    if found is None:
        return [], np.zeros(len(model.nodes_), dtype=np.intp)
    # Nodes that were not tested come last, since no line describes them.
    labels = sorted(set(found.counts) - {UNCHANGED}, key=lambda label: (label == NOT_TESTED, label))
    place = {label: k for k, label in enumerate(labels, start=1)}
    kinds = kinds_of_nodes(found, model)
    return labels, np.array([place.get(str(kind), 0) for kind in kinds], dtype=np.intp)


def _found(found: KindsOfChange) -> str:
    if found.n_kinds:
        noun = "kind" if found.n_kinds == 1 else "kinds"
        return (
            f"The network shows {_NUMBERS[found.n_kinds]} {noun} of change. Nodes of one kind "
            "changed in the same way, wherever they are."
        )
    if not found.answerable:
        return sentence(found.test.summary)
    if not found.test.n_rejected:
        return "No node changed by more than chance."
    return sentence(" ".join(found.own_notes))


def _meaning(found: KindsOfChange) -> str:
    return (
        f"A node counts as changed if its own observations show it: {found.test.summary}. The "
        "level does not cover the names of the kinds, which are estimates."
    )


def _kind_line(
    label: str,
    members: IntArray,
    model: NodeRatioEstimator,
    samples: NodeSamples,
    moments: FeatureMoments,
    names: list[str],
) -> KindLine:
    divergence = model.divergence_
    # The most changed first; those without an estimate of their own last.
    order = members[np.argsort(-np.nan_to_num(divergence[members], nan=-np.inf), kind="stable")]
    known = divergence[members][~np.isnan(divergence[members])]
    size = f"divergence {number(float(known.mean()), 2)} on average; " if known.size else ""
    text = (
        f"{count(len(members), 'node')}: {enumeration([names[i] for i in order], limit=_NAMED)}; "
        f"{size}{what_changed(samples, moments, members)}"
    )
    return KindLine(label, int(order[0]), names[order[0]], text)


def _unchanged(n_unchanged: int, n_nodes: int) -> str:
    if n_unchanged == 0:
        return "Every tested node changed."
    return f"{count(n_unchanged, 'node')} of {n_nodes:,} show no change beyond chance."


def _cut(n_cut: int, n_links: int) -> str:
    if n_cut == 0:
        return f"None of {count(n_links, 'link')} was cut: neighbours change alike."
    were = "was" if n_cut == 1 else "were"
    return f"{n_cut:,} of {count(n_links, 'link')} {were} cut."


def _link_line(links: Links, edge: int, names: list[str]) -> LinkLine:
    ends = int(links.rows[edge]), int(links.columns[edge])
    return LinkLine(ends, (names[ends[0]], names[ends[1]]), f"{100 * links.kept[edge]:.2g} %")


def _curves(
    model: NodeRatioEstimator,
    samples: NodeSamples,
    moments: FeatureMoments,
    kind: IntArray,
    n_kinds: int,
) -> list[dict[str, Any]]:
    """Mean ratio of the nodes of each kind along features, the others at the kind's medians."""
    if not n_kinds:
        return []
    curves = []
    at_node = kind[samples.node_index]
    names, levels = columns_of(model)
    values = in_columns(samples).values
    for j in shown_features(samples, moments)[:_CHARTS].tolist():
        usual = np.quantile(values[:, j], (_OUTER, 1 - _OUTER))
        grid, along = axis_of(usual, levels[j], _POINTS, logarithmic=False)
        ratios = []
        for k in range(1, n_kinds + 1):
            centre = typical_values(values[at_node == k], levels)
            points = points_along(model.encoding_, centre, j, along)
            ratios.append(model.predict(points)[:, kind == k].mean(axis=1))
        curves.append(
            {
                "feature": names[j],
                "levels": list(levels[j]),
                "x": short(grid, 5),
                "y": short(np.array(ratios)),
            }
        )
    return curves
