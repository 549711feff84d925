"""One truth per page: every part of it repeats the same verdicts, in the same order of sections."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.test_report_page import embedded

import graphratio as gr
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.exceptions import InputError
from graphratio.report import PageSection, node_summary, write_report
from graphratio.report.graph_section import compared_with_none
from graphratio.report.node_panels import NodePanels

ORDER = ["what", "where", "own", "how", "sure", "table", "graph", "fit"]


def network(shift: float = 2.0, n: int = 40) -> tuple[gr.NodeSamples, gr.Graph]:
    """Two clusters of ten nodes, of which one changes; the last node has no target."""
    rng = np.random.default_rng(3)
    reference, target = (list(part) for part in rng.normal(size=(2, 20, n)))
    for node in range(10):
        target[node] = target[node] + shift
    target[19] = np.empty(0)
    edges = [(i, j) for block in (0, 10) for i in range(block, block + 10)
             for j in range(i + 1, block + 10)]  # fmt: skip
    names = [f"n{i:02d}" for i in range(20)]
    graph = gr.Graph.from_edges([(names[i], names[j]) for i, j in edges], nodes=names)
    return gr.NodeSamples.from_arrays(reference, target, nodes=names), graph


def fit(samples: gr.NodeSamples, graph: gr.Graph, alpha: float = 0.1) -> gr.GRULSIF:
    fixed = {"bandwidth": 1.0, "graph_penalty": 0.05, "ridge": 0.005, "prior_ratio": 1}
    return gr.GRULSIF(alpha=alpha, **fixed).fit(samples, graph)


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    samples, graph = network()
    model = fit(samples, graph)
    kinds = gr.kinds_of_change(samples, None, model, random_state=0)
    found = compared_with_none(model, samples)
    return {"samples": samples, "model": model, "kinds": kinds, "comparison": found}


@pytest.fixture(scope="module")
def page(parts: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("truth") / "report.html"
    section = PageSection("Checked <by hand>", ["One & all."], [("", "a"), ("row", "1")])
    return write_report(path, section=section, noun=("well", "wells"), **parts)


def shown(path: Path) -> str:
    """The page without its scripts and marks."""
    text = re.sub(
        r"<(script|style)[^>]*>.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.S
    )
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def tiles(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8")
    found = re.findall(
        r'<span class="value">([^<]*)</span> <span class="label">([^<]*)</span>', text
    )
    return {label: value for value, label in found}


def test_all_parts_repeat_one_verdict(parts: dict[str, Any], page: Path) -> None:
    data, text, test = embedded(page), shown(page), parts["kinds"].test
    state = np.array(data["verdicts"]["state"])
    assert (state == 2).tolist() == test.rejected.tolist()
    counts = Counter(state.tolist())
    assert 5 <= counts[2] <= 12
    said = tiles(page)
    assert said["changed"] == str(counts[2])
    assert said["no change found"] == str(counts[1])
    assert said["cannot say"] == str(counts[0]) == "1"
    # The headline counts the same nodes, and those judged at all.
    assert f"rose at {counts[2]} of {counts[2] + counts[1]} judged wells" in text
    # Kinds: exactly the changed nodes have one; the table and the page use the same words.
    labels = ["no change found", *data["kinds"]["labels"]]
    kind = np.array([labels[k] for k in data["kinds"]["kind"]])
    assert (np.isin(kind, ["no change found", "not tested", "cannot say"]) == (state != 2)).all()
    assert ((kind == "no change found") == (state == 1)).all()
    assert f"No change was found at {counts[1]} of 20 wells." in text
    # p-values agree with the verdicts.
    adjusted = np.array(data["verdicts"]["adjusted"], dtype=float)
    assert ((adjusted <= test.level) == (state == 2)).all()
    # The nodes that are named as most changed are changed ones, in the order of the table.
    named = re.findall(r'<ol class="findings">(.*?)</ol>', page.read_text(), re.S)[0]
    places = [int(i) for i in re.findall(r'data-node="(\d+)"', named)]
    assert places
    assert (state[places] == 2).all()
    ranks = [data["nodes"]["rank"][i] for i in places]
    assert ranks == sorted(ranks)


def test_regions_and_bounds_come_from_the_same_test(parts: dict[str, Any], page: Path) -> None:
    test, text = parts["kinds"].test, shown(page)
    for region in test.regions():
        assert 0 <= region.changed_at_least <= region.size
        assert f"{region.size} wells: " in text
    assert sum(region.size for region in test.regions()) == test.n_rejected


def test_the_worth_of_the_graph_is_said_once_in_the_same_words(
    parts: dict[str, Any], page: Path
) -> None:
    found, data = parts["comparison"], embedded(page)
    worth = found.worth["graph"]
    assert ("worth of the graph" in tiles(page)) == bool(found.stated_worth)
    if found.stated_worth:
        assert worth.span.split(" (")[0] == tiles(page)["worth of the graph"]
    assert data["held_out"]["neighbours"] == found.neighbors


def test_sections_come_in_one_order_and_empty_ones_are_absent(
    parts: dict[str, Any], page: Path, tmp_path: Path
) -> None:
    assert sections(page) == ORDER
    samples, graph = network(shift=0.0)
    quiet = write_report(tmp_path / "quiet.html", fit(samples, graph), samples)
    assert sections(quiet) == ["what", "where", "sure", "table", "graph", "fit"]
    alone = gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples.subset(nodes=samples.nodes[:19]))
    bare = write_report(tmp_path / "bare.html", alone, samples.subset(nodes=samples.nodes[:19]))
    assert "graph" not in sections(bare)


def sections(path: Path) -> list[str]:
    return re.findall(r'<section id="([a-z]+)-section"', path.read_text(encoding="utf-8"))


def test_two_changes_of_the_mean_are_told_apart(parts: dict[str, Any], page: Path) -> None:
    nodes, samples = embedded(page)["nodes"], parts["samples"]
    found = gr.mean_changes(samples, parts["model"].graph_)
    change = np.array(nodes["change"], dtype=float)
    np.testing.assert_allclose(change, found.estimate, rtol=1e-2, atol=1e-3)
    assert nodes["smoothed"] is True
    assert np.abs(found.estimate - found.own)[:19].max() > 0.02
    assert "in its own observations, +" in shown(page)
    assert "with the help of neighbours" in shown(page)
    complete = samples.subset(nodes=samples.nodes[:19])
    lone = gr.Pool(bandwidth=1.0, ridge=0.1).fit(complete)
    text = shown(write_report(page.parent / "lone.html", lone, complete))
    assert "help of neighbours" not in text


def test_neighbours_are_not_thanked_where_the_graph_was_left_out(tmp_path: Path) -> None:
    samples, graph = network()
    samples, graph = (part.subset(nodes=graph.nodes[:19]) for part in (samples, graph))
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.0, ridge=0.1).fit(samples, graph)
    path = write_report(tmp_path / "r.html", model, samples)
    nodes = embedded(path)["nodes"]
    assert nodes["smoothed"] is False
    own = np.diff(np.array(nodes["mean"], dtype=float), axis=1)[:, 0]
    np.testing.assert_allclose(np.array(nodes["change"], dtype=float), own, atol=1e-3)
    assert "help of neighbours" not in shown(path)
    assert "x0_mean_change_with_neighbors" not in node_summary(model, samples)


def test_two_tests_that_disagree_are_refused(parts: dict[str, Any], tmp_path: Path) -> None:
    samples, model = parts["samples"], parts["model"]
    other = gr.two_sample_test(samples, model.graph_, correction=None, level=0.6, random_state=0)
    with pytest.raises(InputError, match="rest on another test"):
        write_report(tmp_path / "r.html", model, samples, kinds=parts["kinds"], test=other)


def test_nothing_is_fitted_for_a_report(
    parts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a report must not fit")

    for name in ("graphratio.solvers.solve", "graphratio.evaluation.graph_comparison.Recipe.of"):
        monkeypatch.setattr(name, refuse, raising=False)
    for kind in NodeRatioEstimator.__subclasses__():
        monkeypatch.setattr(kind, "fit", refuse, raising=False)
    for kind in (gr.GRULSIF, gr.GraphRatio, gr.Pool):
        monkeypatch.setattr(kind, "fit", refuse)
    assert write_report(tmp_path / "all.html", **parts).exists()
    assert write_report(tmp_path / "model.html", parts["model"], parts["samples"]).exists()


def test_a_comparison_that_still_runs_is_asked_for_last(
    parts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    panels = NodePanels.to_json

    def noted(self: NodePanels) -> Any:
        order.append("panels")
        return panels(self)

    def compared() -> Any:
        order.append("comparison")
        return parts["comparison"]

    monkeypatch.setattr(NodePanels, "to_json", noted)
    known = write_report(tmp_path / "known.html", **parts)
    late = write_report(tmp_path / "late.html", **{**parts, "comparison": compared})
    assert order == ["panels", "panels", "comparison"]
    assert known.read_bytes() == late.read_bytes()


def test_near_the_ceiling_the_table_says_so_and_orders_by_effect(tmp_path: Path) -> None:
    samples, graph = network(shift=9.0)
    model = fit(samples, graph, alpha=0.5)
    near = np.flatnonzero(model._near_ceiling)
    assert near.size > 2
    path = write_report(tmp_path / "r.html", model, samples)
    nodes = embedded(path)["nodes"]
    assert nodes["near_ceiling"] == near.tolist()
    by_rank = sorted(near.tolist(), key=lambda i: nodes["rank"][i])
    effects = [model.effect_size_[i] for i in by_rank]
    assert effects == sorted(effects, reverse=True)
    table = path.read_text().split('id="table-section"')[1].split("</section>")[0]
    assert "these nodes are ordered by effect size" in table
    assert shown(path).count("cannot exceed") == 1


def test_notes_stand_beside_what_they_limit_and_in_the_words_of_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(2, 8, 60)), axis=2)
    samples = gr.NodeSamples.from_arrays(list(walk[0]), list(walk[1]))
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(6)], nodes=range(8))
    test = gr.two_sample_test(samples, graph, n_permutations=99, random_state=0)
    path = write_report(tmp_path / "r.html", fit(samples, graph), samples, test=test)
    parts = {
        name: body
        for name, body in re.findall(
            r'<section id="([a-z]+)-section"(.*?)</section>', path.read_text(), re.S
        )
    }
    note = "successive rows are alike"
    assert [name for name, body in parts.items() if note in body.lower()] == ["sure"]
    assert parts["sure"].lower().count(note) == 1
    assert "Say when they were made: pass time" in parts["sure"]
    assert "how sure this is</a>" in parts["what"]
    lone = "nodes without edges"
    assert [name for name, body in parts.items() if lone in body.lower()] == ["graph"]
