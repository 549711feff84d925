"""What a test adds to the report."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.visits import Visit

import graphratio as gr
from graphratio.report import write_report, write_significance
from graphratio.report.significance_section import describe_test

from .conftest import network


@pytest.fixture(scope="module")
def tested() -> tuple[gr.NodeSamples, gr.Graph, Any, Any]:
    samples, graph, _ = network()
    model = gr.GRULSIF(bandwidth=1.5, graph_penalty=0.03, ridge=3e-3, prior_ratio=1)
    scaled = samples.standardized()
    test = gr.two_sample_test(scaled, graph, correction="fdr", random_state=0)
    return samples, graph, model.fit(scaled, graph), test


@pytest.fixture(scope="module")
def page_file(tested: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples, _, model, test = tested
    path = tmp_path_factory.mktemp("tested") / "report.html"
    return write_report(path, model, samples, test=test)


def data_of(path: Path) -> dict[str, Any]:
    page = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found.group(1)))


def test_the_page_says_what_the_test_found(tested: Any, page_file: Path) -> None:
    _, _, _, test = tested
    page = page_file.read_text(encoding="utf-8")
    assert 0 < test.n_rejected < 30
    count = f'<span class="value">{test.n_rejected}</span> <span class="label">changed</span>'
    assert count in page
    assert "at most 5% are expected to be false alarms" in page
    assert "Nodes are independent of each other, changed or not." in page
    largest = test.regions()[0]
    assert f"{largest.size} nodes: " in page
    assert "truly changed, with 95% confidence" in page
    assert "It is an estimate and not a test" not in page


@pytest.mark.parametrize("correction", ["fdr", "fdr-by", "fwer"])
def test_at_most_is_said_of_p_values_that_permutations_bound(tested: Any, correction: str) -> None:
    _, _, model, test = tested
    for least, bounded in ((1.0, True), (2.0, False)):
        p_value = np.where(test.tested, least / (test.n_permutations + 1), 1.0)
        own = replace(test, p_value=p_value, correction=correction)
        said = describe_test(own, model.nodes_, [str(v) for v in model.nodes_])["meaning"]
        assert ("at most" in said.split("anywhere")[1]) is bounded
        assert ("permutations allow" in said) is (bounded and correction == "fwer")


def test_nodes_without_a_finding_say_what_would_have_been_found(
    tested: Any, tmp_path: Path
) -> None:
    _, _, _, test = tested
    page = write_significance(tmp_path / "tests.html", test).read_text(encoding="utf-8")
    shift = r"a shift by [\d.]+ standard deviations"
    told = f">no change found; {shift} would have been found with a chance of 80%</td>"
    assert len(re.findall(told, page)) == len(test.nodes) - test.n_rejected


def test_nodes_carry_their_p_values(tested: Any, page_file: Path) -> None:
    _, _, _, test = tested
    verdicts = data_of(page_file)["verdicts"]
    np.testing.assert_allclose(verdicts["adjusted"], test.adjusted_p_value, rtol=6e-3)
    assert [state == 2 for state in verdicts["state"]] == test.rejected.tolist()


def test_no_test_no_section(tested: Any, tmp_path: Path) -> None:
    samples, _, model, _ = tested
    path = write_report(tmp_path / "plain.html", model, samples)
    assert data_of(path)["verdicts"]["by"] == "size"
    page = path.read_text(encoding="utf-8")
    assert "These p-values assume" not in page
    assert "This is an estimate, not a test" in page


def test_another_network_is_refused(tested: Any, tmp_path: Path) -> None:
    samples, _, model, _ = tested
    other = gr.two_sample_test(([np.zeros(9)], [np.ones(9)]), random_state=0)
    with pytest.raises(gr.exceptions.InputError, match="different nodes"):
        write_report(tmp_path / "other.html", model, samples, test=other)


def test_global_null_is_called_exploratory(tested: Any, tmp_path: Path) -> None:
    samples, graph, model, _ = tested
    test = gr.two_sample_test(
        samples.standardized(), graph, null="global", n_permutations=99, random_state=0
    )
    path = write_report(tmp_path / "global.html", model, samples, test=test)
    page = path.read_text(encoding="utf-8")
    assert "Something in this network changed significantly." in page
    # Nodes have no verdict of their own, and so no shift that would have been found.
    assert "would have been found" not in page
    assert "for exploration only" in page
    assert data_of(path)["verdicts"]["by"] == "exploration"


@pytest.mark.browser
def test_in_the_browser(visiting: Callable[..., Visit], tested: Any, page_file: Path) -> None:
    _, _, _, test = tested
    visit = visiting(page_file)
    page = visit.page
    page.get_by_role("button", name="adjusted p-value").click()
    first = page.locator("#nodes tbody tr").first
    node = int(first.get_attribute("data-node"))
    assert test.adjusted_p_value[node] == test.adjusted_p_value.min()
    assert first.locator("td").nth(1).text_content() == "changed"
    first.click()
    assert "Changed significantly: about the effect of" in page.text_content("#panel-body")
    assert "Rings: changed significantly." in page.text_content("#map-caption")
    assert visit.complaints == []


def test_a_p_value_that_permutations_cannot_undercut_is_called_an_upper_limit() -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(size=(12, 40)) + 3.0
    test = gr.two_sample_test(
        (list(rng.normal(size=(12, 40))), list(target)), n_permutations=399, random_state=0
    )
    meaning = describe_test(test, test.nodes, [str(node) for node in test.nodes])["meaning"]
    assert test.global_p_value == pytest.approx(12 / 400)
    smallest = "is at most 0.03, the smallest that this many permutations allow for 12 nodes."
    assert smallest in meaning
    quiet = gr.two_sample_test(
        (list(rng.normal(size=(12, 40))), list(target - 3.0)), n_permutations=399, random_state=0
    )
    assert "permutations allow" not in describe_test(quiet, quiet.nodes, ["v"] * 12)["meaning"]


def test_sentences_call_nodes_what_the_page_calls_them(tested: Any) -> None:
    _, _, model, test = tested
    names = [str(node) for node in model.nodes_]
    said = describe_test(test, model.nodes_, names, noun=("well", "wells"))
    assert f"{test.n_rejected} of 30 wells changed" in said["found"]
    assert "node" not in said["found"] + said["meaning"]


@pytest.mark.browser
def test_a_change_that_the_divergence_does_not_show_is_not_denied(
    visiting: Callable[..., Visit], tested: Any, tmp_path: Path
) -> None:
    samples, _, fitted, test = tested
    model = copy.copy(fitted)
    node = int(np.flatnonzero(test.rejected)[0])
    model.divergence_ = np.where(np.arange(len(test.nodes)) == node, -0.01, fitted.divergence_)
    page = visiting(write_report(tmp_path / "r.html", model, samples, test=test)).page
    assert "At 1 node the test found a change that it does not show." in page.inner_text("main")
    page.locator(f"#nodes tbody tr[data-node='{node}'] button").click()
    verdict = page.text_content("#panel .verdict")
    assert verdict.startswith("Changed significantly. The divergence is not above 0")
    assert "the test found it in its own observations" in verdict
