"""The report on two samples: its sections, and the data behind its charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import InputError, Spelling
from graphratio._utils.typing import Label
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.plotting.columns import in_columns
from graphratio.report.divergence_scale import DivergenceScale
from graphratio.report.fit_section import describe_fit
from graphratio.report.graph_section import check_comparison, contributions, graph_help, worth_tile
from graphratio.report.headline import direction_of, page_words
from graphratio.report.kinds_section import describe_kinds
from graphratio.report.node_panels import NodePanels, with_charts
from graphratio.report.node_table import Subject
from graphratio.report.page_file import (
    PageSection,
    check_page_size,
    map_data,
    page_packages,
    short,
    write_page,
)
from graphratio.report.significance_section import describe_test
from graphratio.report.spread_changes import clear_spreads
from graphratio.report.summary import summarise
from graphratio.report.verdicts import NodeVerdicts

if TYPE_CHECKING:
    from graphratio.evaluation import GraphComparison
    from graphratio.testing import KindsOfChange, TwoSampleResult

_SCRIPTS = ("theme.js", "charts.js", "table.js", "panel.js", "kinds.js", "main.js")
# The table has room for the changes of this many features.
_TABLE_FEATURES = 3


def write_report(
    path: str | Path,
    model: NodeRatioEstimator,
    samples: NodeSamples,
    *,
    title: str = "graphratio report",
    reference_name: str = "reference",
    target_name: str = "target",
    names: Mapping[Label, str] | None = None,
    notes: Iterable[str] = (),
    test: TwoSampleResult | None = None,
    kinds: KindsOfChange | None = None,
    comparison: GraphComparison | Callable[[], GraphComparison] | None = None,
    section: PageSection | None = None,
    noun: tuple[str, str] = ("node", "nodes"),
    units: Mapping[str, str] | None = None,
    spelling: Spelling = str,
) -> Path:
    """Write the results of a model as one self-contained HTML file.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing one is replaced.
    model : fitted estimator
    samples : NodeSamples
        The samples that the model was fitted on, in original units, with nodes in any order.
    title, reference_name, target_name : str
        Title of the page, and names of the two samples.
    names : mapping of label to str, optional
        Readable names of nodes; nodes without one keep their label.
    notes : iterable of str
        Sentences about the preparation of the data, for the section on the fit.
    test : TwoSampleResult, optional
        A test of the same nodes. The report then says which of them changed significantly, in
        which regions, and what the p-values assume. Default: the test of `kinds`.
    kinds : KindsOfChange, optional
        Kinds of change of this model. The report then shows which nodes changed alike. If `test`
        is given too, both must find the same changed nodes.
    comparison : GraphComparison or function that returns one, optional
        Result of `compare_graphs(samples, model.graph_, model)`, with the nodes in the order of
        the model. The report then says whether the
        graph helped, where, and what it is worth. The report itself fits nothing. A function is
        called when all else on the page is ready, so the comparison may still run until then.
    section : PageSection, optional
        Your own section, placed after the map.
    noun : pair of str
        Words for one node and for several, for instance ("airport", "airports").
    units : mapping of feature to str, optional
        Units of features, for instance {"speed": "mph"}.
    spelling : function of an argument, optional
        Spells an argument in notes; by default as in Python.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> samples = gr.NodeSamples.from_arrays(
    ...     {"a": rng.normal(0, 1, 50), "b": rng.normal(0, 1, 50)},
    ...     {"a": rng.normal(0, 1, 40), "b": rng.normal(2, 1, 40)},
    ... )
    >>> model = gr.Pool(random_state=0).fit(samples)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/report.html", model, samples)
    ...     path.name
    'report.html'
    """
    page_packages("the report")
    check_page_size(
        samples.n_nodes,
        "Use node_summary(model, samples) or model.to_frame(), or report on a part of the nodes",
    )
    subject = Subject.of(model, samples, names)
    aligned = subject.samples
    sides = (str(reference_name), str(target_name))
    words = page_words(sides, noun, units, aligned)
    test = _one_test(test, kinds)
    if comparison is not None and not callable(comparison):
        check_comparison(comparison, model.nodes_)
    scale = DivergenceScale.of(
        model.divergence_, float(getattr(model, "alpha", 0.0)), model.divergence_name_
    )
    if test is None:
        verdicts, chance = NodeVerdicts.of_size(model.divergence_, scale), None
    else:
        verdicts = NodeVerdicts.of_test(test, model.nodes_)
        chance = describe_test(test, model.nodes_, subject.names, spelling, words.noun)
    fitting = describe_fit(subject, notes, spelling, words.noun)
    alike = describe_kinds(subject, words, kinds)
    summary = summarise(subject, scale, words, verdicts, test, spelling)
    charted = with_charts(subject)
    data = {
        "sides": sides,
        "divergence_name": model.divergence_name_,
        "nodes": _nodes(subject, scale, verdicts),
        "scale": {"clear": scale.clear, "top": scale.top, "capped": scale.capped},
        "map": map_data(model.graph_),
        "panels": NodePanels(subject, charted).to_json(),
        "n_columns": in_columns(aligned).n_features,
        "borrowed": contributions(model, charted),
        "selection": fitting["selection"],
        "verdicts": verdicts.to_json(),
        "direction": direction_of(subject, verdicts, words),
        "noun": words.noun,
        "units": [words.units.get(name, "") for name in aligned.feature_names],
        "kinds": None if alike is None else alike["data"],
    }
    if callable(comparison):
        comparison = check_comparison(comparison(), model.nodes_)
    graph = graph_help(model, subject.names, comparison, spelling, words.noun)
    data["held_out"] = None if graph is None else graph["nodes"]
    summary["tiles"] += worth_tile(graph) if summary["tiles"] else []
    # Do not repeat a note of the test.
    said = set() if chance is None else set(chance["notes"])
    return write_page(
        path,
        "report.html.j2",
        _SCRIPTS,
        data,
        title=title,
        sides=sides,
        noun=words.noun,
        verdict_by=verdicts.by,
        summary=summary,
        section=section,
        fitting=fitting | {"checks": [text for text in fitting["checks"] if text not in said]},
        chance=chance,
        graph_help=graph,
        kinds=alike,
        left_out=_left_out(len(charted), len(model.nodes_), words.noun[1]),
    )


def _left_out(n_charted: int, n_nodes: int, noun: str) -> str:
    """A sentence about nodes without charts; empty if all nodes have them."""
    if n_charted == n_nodes:
        return ""
    return (
        f"To keep the file small, this page has charts of the {n_charted:,} most changed of "
        f"{n_nodes:,} {noun}, and only numbers of the other {n_nodes - n_charted:,}."
    )


def _one_test(test: TwoSampleResult | None, kinds: KindsOfChange | None) -> TwoSampleResult | None:
    """The test that decides on this page which nodes changed."""
    if kinds is None:
        return test
    changed = set(kinds.test.nodes[v] for v in np.flatnonzero(kinds.test.rejected))
    if test is not None and {test.nodes[v] for v in np.flatnonzero(test.rejected)} != changed:
        raise InputError(
            "the kinds of change rest on another test than the one given, and they disagree on "
            "which nodes changed",
            "Leave out test, and the page shows the test of the kinds",
        )
    return kinds.test if test is None else test


def _nodes(subject: Subject, scale: DivergenceScale, verdicts: NodeVerdicts) -> dict[str, Any]:
    model, samples = subject.model, subject.samples
    labels = [str(node) for node in model.nodes_]
    adjacency = model.graph_.adjacency
    places = {int(i): place for place, i in enumerate(model.ranking_)}
    return {
        "label": labels,
        "name": subject.names if subject.names != labels else None,
        "n_reference": samples.n_reference.tolist(),
        "n_target": samples.n_target.tolist(),
        "divergence": short(model.divergence_),
        "near_ceiling": np.flatnonzero(model._near_ceiling).tolist(),
        "rank": [places.get(i) for i in range(len(labels))],
        "shift": short(scale.shift, 2),
        "effective": short(model._weights(samples).effective_sample_size),
        "component": model.graph_.components.tolist(),
        "neighbours": [
            adjacency.indices[adjacency.indptr[i] : adjacency.indptr[i + 1]].tolist()
            for i in range(len(labels))
        ],
        "effect": short(model.effect_size_, 3),
        "mean": short(subject.mean, 5),
        "change": short(subject.change),
        "smoothed": subject.smoothed,
        "spread": short(subject.spread, 4),
        "spread_changed": clear_spreads(subject, verdicts.changed),
        "feature_names": list(samples.feature_names),
        "table_features": list(range(min(samples.n_features, _TABLE_FEATURES))),
    }
