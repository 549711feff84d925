"""The section on kinds of change and on links that were cut."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import graphratio as gr
from graphratio.report import node_summary, write_report
from graphratio.report.kinds_section import Kinds
from graphratio.report.node_table import FeatureMoments


@pytest.fixture(scope="module")
def fitted() -> Any:
    scenario = gr.datasets.make_scenario("Ia", n_nodes=60, n=50, random_state=1)
    return scenario, gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)


def section(scenario: Any, model: Any) -> Kinds | None:
    names = [f"station {node}" for node in model.nodes_]
    return Kinds.of(model, scenario.samples, FeatureMoments.of(scenario.samples), names)


def test_cut_links_are_those_of_the_model(fitted: Any) -> None:
    scenario, model = fitted
    kinds = section(scenario, model)
    assert kinds is not None
    cut = model.cut_links()
    assert kinds.cut == f"{len(cut)} of {scenario.graph.n_edges} links were cut."
    assert [tuple(model.nodes_[i] for i in line.ends) for line in kinds.links] == cut
    assert kinds.data["cut"] == [model.nodes_.index(node) for pair in cut for node in pair]


def test_models_without_kinds_have_no_section(tmp_path: Path, fitted: Any) -> None:
    scenario, _ = fitted
    plain = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.6, ridge=0.06)
    plain.fit(scenario.samples, scenario.graph)
    assert section(scenario, plain) is None
    page = write_report(tmp_path / "report.html", plain, scenario.samples).read_text()
    assert "kinds-heading" not in page
    assert "kind" not in node_summary(plain, scenario.samples)


def test_adaptive_grulsif_has_links_but_no_kinds(fitted: Any) -> None:
    scenario, _ = fitted
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.6, ridge=0.06, adaptive=True)
    kinds = section(scenario, model.fit(scenario.samples, scenario.graph))
    assert kinds is not None
    assert (kinds.found, kinds.kinds) == ("", [])
    assert "links" in kinds.cut


def test_page_holds_the_section(tmp_path: Path, fitted: Any) -> None:
    scenario, model = fitted
    page = write_report(tmp_path / "report.html", model, scenario.samples).read_text()
    assert ">Kinds of change</h2>" in page
    assert "These links were cut" in page
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    data = json.loads(found[1])
    captions = " ".join(chart["caption"] for chart in data["selection"])
    assert "number of profiles" in captions
