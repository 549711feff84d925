"""The page about a comparison of graphs: verdict, fits, worth, map and a line for every node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphratio._utils.errors import enumeration, first_few
from graphratio.data.graph import Graph
from graphratio.evaluation import GraphComparison
from graphratio.evaluation.verdict import ALONE, SHARED, in_words
from graphratio.report.learning_curve import learning_curve
from graphratio.report.page_file import map_data, short, write_page
from graphratio.report.words import count, difference, fixed, number, sentence

_NONE = "\N{EN DASH}"


def write_graphs(
    path: str | Path,
    found: GraphComparison,
    graphs: Mapping[str, Graph],
    *,
    title: str = "graphratio graphs",
    reference_name: str = "reference",
    target_name: str = "target",
    notes: Iterable[str] = (),
) -> Path:
    """Write a comparison of graphs as one self-contained HTML file.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing one is replaced.
    found : GraphComparison
    graphs : mapping of name to Graph
        The compared graphs, with the nodes of the comparison in its order.
    title, reference_name, target_name : str
        Title of the page, and names of the two samples.
    notes : iterable of str
        Sentences about the preparation of the data.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> import graphratio as gr
    >>> from graphratio.report import write_graphs
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=20, n=30, random_state=0)
    >>> graphs = {"clusters": scenario.graph}
    >>> found = gr.compare_graphs(scenario.samples, graphs, worth=False, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graphs(f"{folder}/graphs.html", found, graphs).name
    'graphs.html'
    """
    labels = [str(node) for node in found.nodes]
    first = found.ranking[0] if found.ranking else None
    agreement = found.agreement.get(first) if first is not None else None
    values = np.full(len(labels), np.nan) if agreement is None else agreement.at_nodes
    words = ["not assessed"] * len(labels) if agreement is None else agreement.effect_at_nodes()
    gain, half = found.gains if first is not None else (values, values)
    stated = found.stated_worth.get(first or "")
    spans = [""] * len(labels) if stated is None else stated.span_at_nodes
    shown = graphs.get(first or "", Graph.empty(found.nodes))
    return write_page(
        path,
        "graphs.html.j2",
        ("theme.js", "node_map.js", "graphs.js"),
        {
            "nodes": labels,
            "map": map_data(shown),
            "agreement": short(values, 3),
            "words": words,
        },
        title=title,
        lead=f"{count(len(labels), 'node')}, “{target_name}” compared with “{reference_name}”; "
        f"{count(len(found.graphs), 'graph')} compared.",
        heading=_heading(found),
        verdict=in_words(found, offer="compare_graphs in Python gives it."),
        fits=[_fit(found, name) for name in found.fits] if found.answerable else [],
        curves=[
            {"name": name, "words": own.in_words, "curve": learning_curve(own)}
            for name, own in found.stated_worth.items()
        ],
        without_worth=enumeration(
            [f"“{name}”" for name in found.worth if name not in found.stated_worth]
        ),
        first=first,
        confidence=f"{1 - found.level:.0%}",
        rows=[
            {
                "node": labels[v],
                "gain": number(float(gain[v]), 2) if np.isfinite(gain[v]) else _NONE,
                "span": f"{number(float(gain[v] - half[v]), 2)} to "
                f"{number(float(gain[v] + half[v]), 2)}"
                if np.isfinite(gain[v]) and np.isfinite(half[v])
                else _NONE,
                "neighbours": found.neighbors[v],
                "agreement": number(float(values[v]), 2) if np.isfinite(values[v]) else _NONE,
                "region": words[v],
                "worth": spans[v] or _NONE,
            }
            for v in np.argsort(-np.nan_to_num(gain, nan=-np.inf), kind="stable").tolist()
        ],
        notes=[sentence(note) for note in notes],
    )


def _heading(found: GraphComparison) -> str:
    if not found.ranking:
        return "There is no graph to compare"
    if not found.answerable:
        return "These data cannot say whether a graph helps"
    if found.best is None:
        if found.tied:
            tied = first_few([f"“{name}”" for name in found.tied])
            return f"No clear difference between “{found.ranking[0]}” and {tied}"
        return "No graph is clearly better than none"
    if len(found.graphs) == 1:
        return f"“{found.best}” is better than no graph"
    return f"“{found.best}” is the best graph"


def _fit(found: GraphComparison, name: str) -> dict[str, Any]:
    unseen, worth = found.unseen.get(name), found.stated_worth.get(name)
    return {
        "name": {ALONE: "without a graph", SHARED: "one ratio for all nodes"}.get(name, name),
        "loss": fixed(found.losses[name].mean, 4),
        "gap": _NONE if name == ALONE else difference(*found.against_alone(name), 4),
        "unseen": _NONE if unseen is None else fixed(unseen.mean, 4),
        "worth": _NONE if worth is None else worth.span,
    }
