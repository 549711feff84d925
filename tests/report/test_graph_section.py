"""The section on the graph, and the sentence on borrowed data."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import graphratio as gr
from graphratio.cli.console import as_option
from graphratio.datasets import make_scenario
from graphratio.evaluation.verdict import ALONE
from graphratio.exceptions import InputError
from graphratio.report import graphs_page, write_report
from graphratio.report.graph_section import (
    can_compare,
    compared_with_none,
    contributions,
    graph_help,
)


@pytest.fixture(scope="module")
def scenario():
    return make_scenario("Ia", n_nodes=40, n=60, random_state=1)


@pytest.fixture(scope="module")
def model(scenario):
    fitted = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=0.04, ridge=4e-4)
    return fitted.fit(scenario.samples, scenario.graph)


@pytest.fixture(scope="module")
def comparison(scenario, model):
    return compared_with_none(model, scenario.samples)


def test_section_and_panel_data(tmp_path, scenario, model, comparison):
    page = write_report(
        tmp_path / "report.html", model, scenario.samples, comparison=comparison
    ).read_text()
    assert "Was the graph worth it?" in page
    assert "with the graph" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    own = np.array(data["borrowed"]["own"])
    np.testing.assert_allclose(own, 1 - model.to_frame()["borrowed_share"], atol=1e-3)
    held_out = data["held_out"]
    assert held_out["fits"] == ["without the graph", "one ratio for all nodes", "with the graph"]
    assert np.array(held_out["loss"]).shape == np.array(held_out["half"]).shape == (3, 40)
    assert set(held_out["neighbours"]) <= {"helped", "hurt", "unclear"}
    first = data["borrowed"]["largest"][0]
    assert first == sorted(first, key=lambda item: -item[1])
    assert {u for u, _ in first} <= set(scenario.graph.adjacency[[0]].indices.tolist())


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda nodes: nodes[::-1], "in another order than the model, for instance 39 in place"),
        (lambda nodes: (*nodes[:-1], "x"), "different nodes, for instance 39, 'x'"),
        (lambda nodes: nodes[:-2], "different nodes, for instance 38, 39"),
    ],
)
def test_a_comparison_of_other_nodes_is_refused(
    tmp_path, scenario, model, comparison, change, problem, late
):
    other = replace(comparison, nodes=change(comparison.nodes))
    with pytest.raises(InputError, match=problem) as error:
        write_report(
            tmp_path / "report.html",
            model,
            scenario.samples,
            comparison=(lambda: other) if late else other,
        )
    assert "compare_graphs(samples, model.graph_, model)" in str(error.value)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("wrong", [{"worth": 2.0}, lambda: None])
def test_what_is_no_comparison_is_refused(tmp_path, scenario, model, wrong):
    with pytest.raises(InputError, match=r"of type (dict|NoneType), not a GraphComparison"):
        write_report(tmp_path / "report.html", model, scenario.samples, comparison=wrong)


def test_a_comparison_of_named_graphs_is_refused(tmp_path, scenario, model, comparison):
    other = replace(comparison, losses={**comparison.losses, "roads": comparison.losses[ALONE]})
    with pytest.raises(InputError, match="of graphs with names: 'roads'"):
        write_report(tmp_path / "report.html", model, scenario.samples, comparison=other)


def test_offer_without_edges(scenario):
    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, ridge=0.4).fit(scenario.samples)
    found = compared_with_none(model, scenario.samples)
    section = graph_help(model, [str(v) for v in model.nodes_], found)
    assert section["heading"] == "Would a graph help?"
    assert "Neighbours clearly" not in section["verdict"]
    assert [name for name, _, _ in section["rows"] if "learned" in name]
    assert contributions(model) is None


def test_where_the_comparison_is_made(scenario):
    """The command line names its command, Python its function."""
    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=1.0, ridge=0.4)
    model.fit(scenario.samples, scenario.graph)
    said = graph_help(model, [], None, noun=("airport", "airports"))["verdict"]
    assert "At half of the airports" in said
    assert said.endswith("whether that helped; compare_graphs does.")
    typed = graph_help(model, [], None, as_option)["verdict"]
    assert typed.endswith("whether that helped; the command graphratio graphs does.")


def test_nothing_to_compare(scenario):
    model = gr.RULSIF(bandwidth=1.0, ridge=0.1).fit(scenario.samples)
    assert graph_help(model, [], None) is None
    assert not can_compare(model, scenario.samples)
    assert contributions(model) is None


def test_contributors_need_not_be_neighbours():
    """A node of many observations two steps away is what the estimate rests on."""
    rng = np.random.default_rng(0)
    data = tuple([rng.normal(size=n) for n in (5, 5, 500)] for _ in range(2))
    model = gr.GRULSIF(prior_ratio=1.0, bandwidth=1.0, graph_penalty=3.0, ridge=0.3)
    model.fit(data, gr.Graph.from_edges([(0, 1), (1, 2)]))
    first = contributions(model)["largest"][0]
    table = model.borrowed(0).set_index("node")
    assert first[0][0] == 2
    assert [node for node, _ in first] == [v for v in table.index if v != 0]
    for node, share in first:
        assert share == pytest.approx(table.loc[node, "share"], abs=2e-3)


def test_the_heading_names_only_the_graphs_that_are_tied():
    found = SimpleNamespace(
        ranking=["roads", "near", "pipes"], tied=["near"], best=None, answerable=True
    )
    assert graphs_page._heading(found) == "No clear difference between “roads” and “near”"
