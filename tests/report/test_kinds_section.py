"""The section on kinds of change and on links that were cut."""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphratio as gr
from graphratio.report import node_summary, write_report
from graphratio.report.headline import PageWords
from graphratio.report.kinds_section import describe_kinds
from graphratio.report.node_panels import NodePanels
from graphratio.report.node_table import Subject

WORDS = PageWords(("before", "after"))


@pytest.fixture(scope="module")
def fitted() -> Any:
    scenario = gr.datasets.make_scenario("Ib", n_nodes=60, n=50, random_state=1)
    given = {"bandwidth": 1.7, "graph_penalty": 15.0, "ridge": 3e-4, "n_rounds": 6}
    model = gr.GraphRatio(n_profiles=[2, 3], **given, random_state=0)
    model.fit(scenario.samples, scenario.graph)
    found = gr.kinds_of_change(scenario.samples, None, model, random_state=0)
    return scenario, model, found


def section(scenario: Any, model: Any, found: Any = None) -> dict[str, Any] | None:
    names = {node: f"station {node}" for node in model.nodes_}
    return describe_kinds(Subject.of(model, scenario.samples, names), WORDS, found)


def test_kinds_in_words_and_numbers(fitted: Any) -> None:
    _, _, found = fitted
    kinds = section(*fitted)
    assert kinds is not None
    assert kinds["found"].startswith("The network shows two kinds of change.")
    assert "at a false discovery rate of 5%" in kinds["meaning"]
    assert [line["name"] for line in kinds["kinds"]] == ["kind 1", "kind 2"]
    assert "15 nodes: station" in kinds["kinds"][0]["text"]
    assert kinds["not_found"] == "No change was found at 30 of 60 nodes."
    shown = np.array(kinds["data"]["kind"])
    assert ((shown > 0) == found.test.rejected).all()
    for line, k in zip(kinds["kinds"], (1, 2), strict=True):
        assert shown[line["position"]] == k


def test_curves_are_mean_ratios_of_the_kind(fitted: Any) -> None:
    _, model, found = fitted
    kinds = section(*fitted)
    assert kinds is not None
    curve = kinds["data"]["curves"][0]
    members = found.kinds == "kind 2"
    rows = members[found.samples.node_index]
    centre = np.median(found.samples.values[rows], axis=0)
    points = np.tile(centre, (len(curve["x"]), 1))
    points[:, 0] = curve["x"]
    expected = model.predict(points)[:, members].mean(axis=1)
    drawn = np.array([np.nan if value is None else value for value in curve["y"][1]])
    low, high = np.quantile(found.samples.values[rows, 0], [0.005, 0.995])
    outside = (np.array(curve["x"]) < low) | (np.array(curve["x"]) > high)
    assert outside.any()
    np.testing.assert_array_equal(np.isnan(drawn), outside)
    np.testing.assert_allclose(drawn[~outside], expected[~outside], rtol=1e-2, atol=1e-2)


def test_cut_links_are_those_of_the_model(fitted: Any) -> None:
    scenario, model, _ = fitted
    kinds = section(scenario, model)
    assert kinds is not None
    assert (kinds["found"], kinds["kinds"]) == ("", [])
    cut = model.cut_links()
    assert kinds["cut"] == f"{len(cut)} of {scenario.graph.n_edges} links were cut."
    assert [tuple(model.nodes_[i] for i in line["ends"]) for line in kinds["links"]] == cut
    assert kinds["data"]["cut"] == [model.nodes_.index(node) for pair in cut for node in pair]


def test_models_without_kinds_have_no_section(tmp_path: Path, fitted: Any) -> None:
    scenario, _, _ = fitted
    plain = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.6, ridge=0.06)
    plain.fit(scenario.samples, scenario.graph)
    assert section(scenario, plain) is None
    page = write_report(tmp_path / "report.html", plain, scenario.samples).read_text()
    assert "kinds-heading" not in page
    assert "kind" not in node_summary(plain, scenario.samples)


def test_adaptive_grulsif_has_links_but_no_kinds(fitted: Any) -> None:
    scenario, _, _ = fitted
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.6, ridge=0.06, adaptive=True)
    kinds = section(scenario, model.fit(scenario.samples, scenario.graph))
    assert kinds is not None
    assert (kinds["found"], kinds["kinds"]) == ("", [])
    assert "links" in kinds["cut"]


def test_page_holds_the_section(tmp_path: Path, fitted: Any) -> None:
    scenario, model, found = fitted
    page = write_report(tmp_path / "report.html", model, scenario.samples, kinds=found).read_text()
    assert ">Kinds of change</h3>" in page
    assert "These links were cut" in page
    script = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert script
    data = json.loads(script[1])
    assert data["kinds"]["labels"] == ["kind 1", "kind 2"]
    captions = " ".join(chart["caption"] for chart in data["selection"])
    assert "number of profiles" in captions
    table = node_summary(model, scenario.samples, kinds=found)
    assert table["kind"] == found.kinds.tolist()


def network(*, changed: bool, n: int = 40) -> tuple[gr.NodeSamples, gr.Graph]:
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 9, n))
    if changed:
        target[3] += 3.0
    sides = [list(reference), list(target)]
    sides[1][8] = np.empty(0)
    nodes = [f"v{i}" for i in range(9)]
    graph = gr.Graph.from_edges(list(pairwise(nodes)))
    return gr.NodeSamples.from_arrays(*sides, nodes=nodes), graph


@pytest.mark.parametrize("changed", [False, True])
def test_no_kinds_and_nodes_without_a_sample(tmp_path: Path, changed: bool) -> None:
    samples, graph = network(changed=changed)
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.01, ridge=0.01).fit(samples, graph)
    found = gr.kinds_of_change(samples, None, model, random_state=0)
    assert found.n_kinds == 0
    kinds = describe_kinds(Subject.of(model, samples), WORDS, found)
    assert kinds is not None
    assert [line["name"] for line in kinds["kinds"]] == ["changed"] * changed
    assert kinds["data"]["labels"] == ["changed"] * changed + ["not tested"]
    assert kinds["data"]["curves"] == []
    assert kinds["found"].startswith("Only one node changed, so there are" if changed else "")
    assert bool(kinds["found"]) == changed
    page = write_report(tmp_path / "report.html", model, samples, kinds=found).read_text()
    assert ("Kinds of change</h3>" in page) == ('id="how-section"' in page) == changed
    assert "This error rate does not cover the kinds" not in page


def test_kinds_of_other_nodes_are_refused(fitted: Any) -> None:
    samples, graph = network(changed=False)
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.01, ridge=0.01).fit(samples, graph)
    with pytest.raises(gr.exceptions.InputError, match="different nodes"):
        node_summary(model, samples, kinds=fitted[2])


def test_nodes_with_scales_of_their_own_share_a_chart_in_spreads() -> None:
    """A kind's curve is a mean over nodes, which has no meaning at levels that differ."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 12, 50, 1))
    values[1, :5] += 2.0
    level = 100 * rng.normal(size=(12, 1, 1))
    samples = gr.NodeSamples.from_arrays(*(list(level + 3 * side) for side in values))
    graph = gr.Graph.from_edges([(v, (v + 1) % 12) for v in range(12)])
    scaled = samples.standardized(by_node=True)
    model = gr.GraphRatio(random_state=0).fit(scaled, graph)
    found = gr.kinds_of_change(samples, graph, model, random_state=0)
    subject = Subject.of(model, samples)
    kinds = describe_kinds(subject, WORDS, found)
    assert kinds is not None
    chart = kinds["data"]["curves"][0]
    assert (chart["feature"], chart["units"]) == ("x0", ", SDs from the node's mean")
    assert min(chart["x"]) > -4
    assert max(chart["x"]) < 4
    np.testing.assert_allclose(
        np.array(chart["y"][0], dtype=float)[20:40],
        found.ratio(np.array(chart["x"]), standardized=True)[20:40, 0],
        rtol=1e-3,
    )
    # The panel of a node stays in its own units, with neighbours at what is as usual for them.
    panels = NodePanels(subject, np.arange(12))
    drawn = panels.to_json()
    low, high = drawn["low"][7][0], drawn["high"][7][0]
    assert low < samples.reference(7).mean() < high
    grid = np.linspace(panels.ranges[7, 0, 0], panels.ranges[7, 1, 0], drawn["grid"])
    shares = np.frombuffer(base64.b64decode(drawn["curves"][7]), dtype="<u2") / 65535
    own, first = shares.reshape(-1, drawn["grid"])[:2] * drawn["top"][7]
    np.testing.assert_allclose(own, model.predict(grid, node=7), atol=1e-3)
    scaling = scaled.scaling
    there = scaling.undo(
        scaling.apply(grid[:, None], np.full(len(grid), 7)),
        np.full(len(grid), drawn["drawn"][7][0]),
    )
    np.testing.assert_allclose(first, model.predict(there, node=drawn["drawn"][7][0]), atol=1e-3)
