"""Small tables for notebooks: data, models and results; everything from the user is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

from graphratio._utils.errors import listing

# Rows of the list of most changed nodes, and of features.
_SHOWN = 5
_FEATURES = 8

# No colours, so that tables are readable in light and dark notebooks.
_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top"
_NUMBER = "padding:2px 12px 2px 0;text-align:right;font-variant-numeric:tabular-nums"
_RULE = "border-top:1px solid rgba(128,128,128,.4)"


def model_html(model: Any, call: str) -> str:
    """Summary of a fitted estimator under its `call`; everything from the user is escaped."""
    rows = [
        ("compared", _compared(model)),
        ("selected" if model.cv_results_ is not None else "given", _hyperparameters(model)),
        *(("note", note) for note in model.notes_),
    ]
    return titled(call, facts_table(rows), _most_changed(model))


def samples_html(samples: Any) -> str:
    """Two samples at every node: sizes, and the means of features over all nodes."""
    sizes = [
        f"{part.sum():,} observations, {_between(part)} per node"
        for part in (samples.n_reference, samples.n_target)
    ]
    lacking = int((~samples.complete).sum())
    facts = [
        ("nodes", f"{samples.n_nodes:,}" + (f", {lacking:,} without a sample" if lacking else "")),
        ("reference", sizes[0]),
        ("target", sizes[1]),
        ("times", "known" if samples.time is not None else "not given"),
    ]
    if samples.scaling is not None:
        facts.append(("units", samples.scaling.words))
    sides = [samples.values[mask] for mask in (~samples.is_target, samples.is_target)]
    means = [part.mean(axis=0) if len(part) else np.full(samples.n_features, np.nan)
             for part in sides]  # fmt: skip
    names = samples.feature_names[:_FEATURES]
    body = [(str(name), *(f"{mean[j]:.4g}" for mean in means)) for j, name in enumerate(names)]
    more = samples.n_features - len(names)
    body += [(f"and {more:,} more", "", "")] if more > 0 else []
    head = ("mean over all observations of", "reference", "target")
    return titled(f"samples at {_count(samples.n_nodes, 'node')}", facts_table(facts),
                  rows_table(head, body))  # fmt: skip


def graph_html(graph: Any) -> str:
    """A graph: edges, neighbours, components, and whether nodes have coordinates."""
    counts, weights = graph.n_neighbors, graph.adjacency.data
    facts = [
        ("nodes", f"{graph.n_nodes:,}"),
        ("edges", f"{graph.n_edges:,}, weights {_between(weights)}" if len(weights) else "none"),
        ("neighbours", f"{counts.mean():.3g} on average, {_between(counts)}"),
        ("components", f"{graph.n_components:,}"),
    ]
    if graph.isolated:
        facts.append(("without edges", listing(graph.isolated)))
    if graph.coordinates is not None:
        facts.append(("coordinates", f"{graph.coordinates.shape[1]} per node, {graph.metric}"))
    title = f"graph of {_count(graph.n_nodes, 'node')} and {_count(graph.n_edges, 'edge')}"
    return titled(title, facts_table(facts))


def fields_html(result: Any, headline: str) -> str:
    """The short fields of a dataclass under a headline; of arrays only their shape."""
    facts = []
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            shown = f"array of shape {value.shape}"
        elif isinstance(value, float | np.floating):
            shown = f"{value:.4g}"
        elif isinstance(value, tuple | list):
            shown = listing(value)
        elif isinstance(value, str | int | np.integer):
            shown = str(value)
        else:
            continue
        facts.append((field.name.replace("_", " "), shown))
    return titled(headline, facts_table(facts))


def _between(values: Any) -> str:
    """Smallest and largest value."""
    ends = [f"{end:,.4g}" for end in (values.min(), values.max())] if len(values) else ["0"]
    return " to ".join(dict.fromkeys(ends))


def titled(title: str, *tables: str) -> str:
    """Tables under a title, which is escaped."""
    return f'<div style="max-width:60em"><code>{escape(title)}</code>{"".join(tables)}</div>'


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """A table of facts, each with a heading and an escaped text."""
    rows = "".join(
        f'<tr><th style="{_CELL}">{head}</th><td style="{_CELL}">{escape(text)}</td></tr>'
        for head, text in facts
    )
    return f'<table style="border-collapse:collapse;margin:.5em 0">{rows}</table>'


def rows_table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """A table with a head, text in the first column and numbers in the others, all escaped."""
    rows = "".join(_row("td", cells) for cells in body)
    return f'<table style="border-collapse:collapse">{_row("th", head)}{rows}</table>'


def _compared(model: Any) -> str:
    features = ", ".join(str(name) for name in model.feature_names_in_[:6])
    more = model.n_features_in_ - 6
    scaled = f", {model.scaling_.words}" if model.scaling_ is not None else ""
    return (
        f"target against reference at {_count(len(model.nodes_), 'node')} with "
        f"{_count(model.graph_.n_edges, 'edge')}; "
        f"{model.sizes_[:, 0].sum():,} reference and {model.sizes_[:, 1].sum():,} target "
        f"observations of {features}{f' and {more} more' if more > 0 else ''}{scaled}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _hyperparameters(model: Any) -> str:
    parts = []
    for name in ("bandwidth", "graph_penalty", "ridge"):
        values = np.unique(getattr(model, f"{name}_", ()))
        if values.size:
            span = f"{values[0]:.3g}" + (f" to {values[-1]:.3g}" if values.size > 1 else "")
            parts.append(f"{name} {span}")
    return ", ".join(parts)


def _most_changed(model: Any) -> str:
    head = ("most changed nodes", "reference", "target", f"{model.divergence_name_} divergence")
    top = model.ranking_[:_SHOWN]
    sizes = [[f"{size:,}" for size in both] for both in model.sizes_[top]]
    names, values = [str(model.nodes_[i]) for i in top], model.divergence_[top]
    rows = zip(names, sizes, values, strict=True)
    return rows_table(head, [(name, *both, f"{value:.3g}") for name, both, value in rows])


def _row(tag: str, cells: Iterable[str]) -> str:
    first, *rest = (escape(cell) for cell in cells)
    numbers = "".join(f'<{tag} style="{_NUMBER};{_RULE}">{cell}</{tag}>' for cell in rest)
    return f'<tr><{tag} style="{_CELL};{_RULE}">{first}</{tag}>{numbers}</tr>'
