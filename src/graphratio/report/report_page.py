"""Assembly of the page: data, template, style, scripts and the chart library in one file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.exceptions import InputError
from graphratio._utils.files import appearing
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray, Label
from graphratio._version import __version__
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.plotting.columns import in_columns
from graphratio.plotting.layout import node_layout
from graphratio.report.divergence_scale import DivergenceScale
from graphratio.report.fit_section import describe_fit
from graphratio.report.graph_section import contributions, graph_help
from graphratio.report.kinds_section import Kinds
from graphratio.report.node_panels import NodePanels, shown_features
from graphratio.report.node_table import FeatureMoments, effective_sizes, in_original_units
from graphratio.report.significance_section import Significance
from graphratio.report.summary import summarise

if TYPE_CHECKING:
    from graphratio.testing import TwoSampleResult

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
) -> Path:
    """Write what a model found as one HTML file that needs nothing else.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing one is replaced.
    model : fitted estimator
    samples : NodeSamples
        What the model was fitted on, in original units, in any order of the nodes.
    title : str
    reference_name, target_name : str
        What the two samples are called in the report.
    names : mapping of label to str, optional
        Readable names of nodes; nodes that are not in it go by their label.
    notes : iterable of str
        Sentences about what was done to the data, for the section on the fit.
    test : TwoSampleResult, optional
        Result of `two_sample_test` on the same nodes: the report then says which of them
        changed by more than chance, in which regions, and what this assumes.

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
    jinja2 = import_optional("jinja2", "report", "the report")
    plotly = import_optional("plotly.offline", "report", "the report")
    aligned = in_original_units(model, samples)
    labels = [str(node) for node in model.nodes_]
    readable = [str((names or {}).get(node, label)) for node, label in _pairs(model, labels)]
    sides = (str(reference_name), str(target_name))
    moments = FeatureMoments.of(aligned)
    scale = DivergenceScale.of(
        model.divergence_, float(getattr(model, "alpha", 0.0)), model.divergence_name_
    )
    fitting = describe_fit(model, aligned, readable, notes)
    chance = None if test is None else Significance.of(test, model.nodes_, readable)
    section = graph_help(model, aligned, readable)
    kinds = Kinds.of(model, aligned, moments, readable)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(asset("report.html.j2")).render(
        title=title,
        version=__version__,
        sides=sides,
        summary=summarise(model, aligned, moments, scale, readable, sides),
        fitting=fitting,
        chance=chance,
        graph_help=section,
        kinds=kinds,
        style=asset("report.css"),
        scripts=[asset(name) for name in _SCRIPTS],
        plotly=compiled_once(plotly.get_plotlyjs()),
        data=script_json(
            {
                "sides": sides,
                "divergence_name": model.divergence_name_,
                "nodes": _nodes(model, aligned, moments, scale, labels, readable),
                "scale": {"clear": scale.clear, "top": scale.top, "capped": scale.capped},
                "map": map_data(model.graph_),
                "panels": NodePanels(model, aligned, shown_features(aligned, moments)).to_json(),
                "n_columns": in_columns(aligned).n_features,
                "borrowed": contributions(model),
                "held_out": None if section is None else section.nodes,
                "selection": fitting.selection,
                "chance": None if chance is None else chance.nodes,
                "kinds": None if kinds is None else kinds.data,
            }
        ),
    )
    return write_page(Path(path), page)


def script_json(data: Any) -> str:
    r"""JSON that is safe inside a script element, whatever the strings contain.

    Examples
    --------
    >>> script_json({"label": "</script>"})
    '{"label":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028"}
    for character, escape in {**escapes, "\u2029": "\\u2029"}.items():
        text = text.replace(character, escape)
    return text


def compiled_once(library: str) -> str:
    """Put the function around the chart library in parentheses, without changing its meaning.

    Browsers skim over a bare function first and read it again when it is called; one in
    parentheses is read once. For several megabytes this is a sixth of the time to load them.
    A library that is wrapped in another way comes back as it is.

    Examples
    --------
    >>> compiled_once("(function(root, factory) {} (this, () => { return 1; }));")
    '(function(root, factory) {} (this, (() => { return 1; })));'
    """
    begin, end = "this, () => {", "}));"
    start, text = library.find(begin, 0, 1000), library.rstrip()
    if start < 0 or not text.endswith(end):
        return library
    return f"{text[:start]}this, (() => {{{text[start + len(begin) : -len(end)]}}})));"


def _pairs(model: NodeRatioEstimator, labels: list[str]) -> Iterable[tuple[Label, str]]:
    return zip(model.nodes_, labels, strict=True)


def _nodes(
    model: NodeRatioEstimator,
    samples: NodeSamples,
    moments: FeatureMoments,
    scale: DivergenceScale,
    labels: list[str],
    readable: list[str],
) -> dict[str, Any]:
    adjacency = model.graph_.adjacency
    return {
        "label": labels,
        "name": readable if readable != labels else None,
        "n_reference": samples.n_reference.tolist(),
        "n_target": samples.n_target.tolist(),
        "divergence": short(model.divergence_),
        "shift": short(scale.shift, 2),
        "effective": short(effective_sizes(model, samples), 4),
        "component": model.graph_.components.tolist(),
        "neighbours": [
            adjacency.indices[adjacency.indptr[i] : adjacency.indptr[i + 1]].tolist()
            for i in range(len(labels))
        ],
        "mean": short(moments.mean, 5),
        "spread": short(moments.spread, 4),
        "feature_names": list(samples.feature_names),
        "table_features": list(range(min(samples.n_features, _TABLE_FEATURES))),
    }


def map_data(graph: Graph) -> dict[str, Any]:
    """Where the nodes are drawn, and the edges between them."""
    layout = node_layout(graph)
    return {
        "x": short(layout.x, 6),
        "y": short(layout.y, 6),
        "kind": layout.kind,
        "aspect": layout.aspect,
        "edges": layout.edges.ravel().tolist(),
        "caption": layout.caption,
    }


def short(values: FloatArray, digits: int = 4) -> Any:
    """Few significant digits, None for NaN, as nested lists."""
    if np.ndim(values):
        return [short(part, digits) for part in values]
    return None if np.isnan(values) else float(f"{values:.{digits}g}")


def asset(name: str) -> str:
    """Text of a template, style sheet or script of the pages."""
    return files("graphratio.report").joinpath("assets", name).read_text(encoding="utf-8")


def write_page(path: Path, page: str) -> Path:
    """Write the text of a page to a file, whose folder must exist."""
    if not path.parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} does not exist", "Create it first")
    with appearing(path) as rough:
        rough.write_text(page, encoding="utf-8", errors="replace")
    return path
