"""The report's section on kinds of change and on links that were cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import enumeration
from graphratio._utils.typing import IntArray
from graphratio.data.links import Links
from graphratio.data.scaling import in_common_units
from graphratio.plotting.columns import (
    SHOWN_QUANTILES,
    axis_of,
    columns_of,
    common_samples,
    in_columns,
    own_units,
    points_along,
    typical_values,
)
from graphratio.report.headline import PageWords
from graphratio.report.node_panels import shown_features
from graphratio.report.node_table import Subject, kinds_of_nodes
from graphratio.report.page_file import short
from graphratio.report.summary import what_changed
from graphratio.report.words import count, number, sentence
from graphratio.testing.grouping import CANNOT_SAY, NOT_TESTED, UNCHANGED

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange

# Limits: charts of ratios, points of a curve, named nodes, and named links.
_CHARTS = 3
_POINTS = 60
_NAMED = 8
_NAMED_LINKS = 12

# Labels of nodes about which the data say nothing.
_SILENT = (NOT_TESTED, CANNOT_SAY)

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def describe_kinds(
    subject: Subject, words: PageWords, found: KindsOfChange | None = None
) -> dict[str, Any] | None:
    """Describe kinds of change and the learned graph of a model; None if there is neither.

    `found` is empty if no node changed, `cut` if no link was cut. `links` are the weakest of the
    cut ones. `data` is for the scripts: kinds, curves, ends of the cut links.
    """
    model, names = subject.model, subject.names
    links = Links.compare(model.graph_, getattr(model, "graph_learned_", model.graph_))
    if found is None and links.as_given:
        return None
    labels: list[str] = []
    kind = np.zeros(len(model.nodes_), dtype=np.intp)
    headline = meaning = ""
    if found is not None:
        headline = _found(found, words)
        if found.n_kinds:
            meaning = (
                f"Own observations decide which {words.noun[1]} changed: {found.test.summary}. "
                "This error rate does not cover the kinds, which are estimates."
            )
        # Nodes that could not be judged come last, since no line describes them.
        labels = sorted(set(found.counts) - {UNCHANGED}, key=lambda k: (k in _SILENT, k))
        numbers = {label: k for k, label in enumerate(labels, start=1)}
        kinds = kinds_of_nodes(found, model)
        kind = np.array([numbers.get(str(name), 0) for name in kinds], dtype=np.intp)
    ends = np.column_stack([links.rows, links.columns])[links.cut()].tolist()
    were = "was" if len(ends) == 1 else "were"
    cut = f"{len(ends):,} of {count(len(links.kept), 'link')} {were} cut."
    n_silent = int((kind == 0).sum())
    return {
        "found": headline,
        "meaning": meaning,
        "kinds": [
            _kind_line(label, np.flatnonzero(kind == k), subject, words)
            for k, label in enumerate(labels, start=1)
            if label not in _SILENT
        ],
        "not_found": f"No change was found at {n_silent:,} of {words.nodes(len(kind))}."
        if n_silent
        else f"Every tested {words.noun[0]} changed.",
        "cut": cut if ends else "",
        "links": [
            {"ends": (u, v), "names": (names[u], names[v]), "kept": f"{100 * kept:.2g} %"}
            for (u, v), kept in zip(ends, links.kept[links.cut()], strict=True)
        ][:_NAMED_LINKS],
        "more_links": max(0, len(ends) - _NAMED_LINKS),
        "data": {
            "labels": labels,
            "several": subject.samples.n_features > 1,
            "kind": kind.tolist(),
            "cut": [end for pair in ends for end in pair],
            "curves": _curves(subject, kind, found.n_kinds if found else 0),
        },
    }


def _found(found: KindsOfChange, words: PageWords) -> str:
    if found.n_kinds:
        noun = "kind" if found.n_kinds == 1 else "kinds"
        many = words.noun[1][:1].upper() + words.noun[1][1:]
        return (
            f"The network shows {_NUMBERS[found.n_kinds]} {noun} of change. {many} of one kind "
            "changed in the same way, wherever they are."
        )
    # Without a changed node the page says so elsewhere.
    return sentence(" ".join(found.own_notes)) if found.test.n_rejected else ""


def _kind_line(label: str, members: IntArray, subject: Subject, words: PageWords) -> dict[str, Any]:
    """A kind of change in words, and the node to open for it."""
    divergence, names = subject.model.divergence_, subject.names
    # The most changed first; those without an estimate of their own last.
    order = members[np.argsort(-np.nan_to_num(divergence[members], nan=-np.inf), kind="stable")]
    known = divergence[members][~np.isnan(divergence[members])]
    average = " on average" if len(known) > 1 else ""
    size = f"divergence {number(float(known.mean()), 2)}{average}; " if known.size else ""
    text = (
        f"{words.nodes(len(members))}: {enumeration([names[i] for i in order], limit=_NAMED)}; "
        f"{size}{what_changed(subject, members, words)}"
    )
    first = int(order[0])
    return {"name": label, "position": first, "node": names[first], "text": text}


def _curves(subject: Subject, kind: IntArray, n_kinds: int) -> list[dict[str, Any]]:
    """Mean ratio of the nodes of each kind along features, the others at the kind's medians."""
    if not n_kinds:
        return []
    curves = []
    model, samples = subject.model, subject.samples
    at_node = kind[samples.node_index]
    names, levels = columns_of(model)
    values = in_columns(common_samples(samples, model)).values
    for j in shown_features(subject)[:_CHARTS].tolist():
        usual = np.quantile(values[:, j], SHOWN_QUANTILES)
        grid, along = axis_of(usual, levels[j], _POINTS, logarithmic=False)
        ratios = []
        for k in range(1, n_kinds + 1):
            centre = typical_values(values[at_node == k], levels)
            points = points_along(model.encoding_, centre, j, along)
            points = in_common_units(model.scaling_, points)
            ratio = model.predict(points, standardized=True)[:, kind == k].mean(axis=1)
            if not levels[j]:
                # Outside the data of these nodes there is no ratio to show.
                low, high = np.quantile(values[at_node == k, j], SHOWN_QUANTILES)
                ratio[(grid < low) | (grid > high)] = np.nan
            ratios.append(ratio)
        chart = {"feature": names[j], "units": own_units(model, j), "levels": list(levels[j])}
        curves.append({**chart, "x": short(grid, 5), "y": short(np.array(ratios))})
    return curves
