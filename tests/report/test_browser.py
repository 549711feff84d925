"""The report in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report.visits import ARTEFACTS, Visit

from graphratio.report import write_report
from graphratio.report.words import fixed

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def visit(visiting: Callable[..., Visit], report_file: Path) -> Visit:
    return visiting(report_file)


def test_loads_quietly_and_alone(visit: Visit) -> None:
    visit.page.wait_for_selector("#selection-0 .main-svg")
    ARTEFACTS.mkdir(exist_ok=True)
    visit.page.screenshot(path=ARTEFACTS / "report.png", full_page=True)
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in visit.requests if url.startswith("file:")]) == 1


def test_a_row_opens_its_panel(visit: Visit, square: Any) -> None:
    model, samples, names = square
    row = visit.page.locator("#nodes tbody tr").nth(3)
    node = model.nodes_[int(row.get_attribute("data-node"))]
    row.locator("td").nth(2).click()
    assert visit.heading().startswith(names.get(node, node))
    facts = visit.page.locator("#panel dd").all_text_contents()
    assert facts[0] == fixed(model.divergence_[model.graph_.position(node)], 3)
    assert facts[1] == str(len(samples.reference(node)))
    assert visit.page.locator("#panel .main-svg").count() >= 3
    assert row.get_attribute("aria-selected") == "true"
    visit.page.screenshot(path=ARTEFACTS / "panel.png")
    assert visit.complaints == []


def test_a_node_without_charts_has_its_numbers(
    visiting: Callable[..., Visit], square: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a page of many nodes only the most changed have charts."""
    monkeypatch.setattr("graphratio.report.node_panels.CHART_BUDGET", 8)
    monkeypatch.setattr("graphratio.report.node_panels.FEWEST_PANELS", 4)
    model, samples, names = square
    path = write_report(tmp_path / "r.html", model, samples, names=names)
    visit = visiting(path)
    most, least = int(model.ranking_[0]), int(model.ranking_[-1])
    for node, charted in ((least, False), (most, True), (least, False)):
        visit.page.locator(f"#nodes tbody tr[data-node='{node}'] td").nth(2).click()
        assert (visit.page.locator("#panel .main-svg").count() >= 3) == charted
        assert (visit.page.locator("#no-charts").count() == 1) != charted
        facts = visit.page.locator("#panel dd").all_text_contents()
        assert facts[0] == fixed(model.divergence_[node], 3)
    text = "No charts: this page has charts of the 4 most changed nodes only."
    assert visit.page.text_content("#no-charts") == text
    visit.page.screenshot(path=ARTEFACTS / "no-charts.png")
    assert visit.complaints == []


def test_a_point_on_the_map_opens_its_panel(visit: Visit, square: Any) -> None:
    model = square[0]
    points = visit.page.locator("#map .scatterlayer .trace .points path")
    # The most changed node is drawn last, on top.
    points.last.click(force=True)
    most = int(model.divergence_.argmax())
    assert visit.heading().startswith(str(model.nodes_[most]))
    assert visit.complaints == []


def test_one_minus_sign(visit: Visit, square: Any) -> None:
    """Numbers of the page have the sign that the charts have."""
    negative = int(square[0].divergence_.argmin())
    visit.page.locator(f"#nodes tbody tr[data-node='{negative}'] button").click()
    text = str(visit.page.inner_text("body"))
    assert "\N{MINUS SIGN}" in text
    assert re.findall(r"(?<![\w-])-\d.*", text) == []


def test_neighbours_and_escape(visit: Visit, square: Any) -> None:
    button = visit.page.locator("#nodes tbody tr button").first
    button.focus()
    visit.page.keyboard.press("Enter")
    before = visit.heading()
    chip = visit.page.locator(".chips button").first
    position = int(chip.get_attribute("data-node"))
    chip.click()
    assert visit.heading() != before
    assert str(square[0].nodes_[position]) in visit.heading()
    visit.page.keyboard.press("Escape")
    assert visit.page.locator("#panel").is_hidden()
    assert button.evaluate("node => node === document.activeElement")
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("Enter")
    assert visit.page.locator("#panel").is_visible()


def test_sorting(visit: Visit, square: Any) -> None:
    model, _, names = square
    shown = [names.get(node, node) for node in model.nodes_]
    by_divergence = [shown[i] for i in (-model.divergence_).argsort(kind="stable")]
    assert visit.names() == by_divergence
    head = visit.page.locator("#nodes thead th")
    assert head.nth(2).get_attribute("aria-sort") == "descending"
    head.nth(2).locator("button").click()
    assert head.nth(2).get_attribute("aria-sort") == "ascending"
    assert visit.names() == by_divergence[::-1]
    head.nth(0).locator("button").click()
    assert head.nth(0).get_attribute("aria-sort") == "ascending"
    assert visit.names()[-1] == "Zero & Co"


def test_search(visit: Visit) -> None:
    visit.page.fill("#search", "s1")
    assert visit.names()
    assert all(name.startswith("s1") for name in visit.names())
    assert visit.page.text_content("#count") == "10 of 30 nodes"
    visit.page.fill("#search", "zero & CO")
    assert visit.names() == ["Zero & Co"]
    visit.page.fill("#search", "nowhere")
    assert visit.names() == []


def test_hostile_names_stay_text(visit: Visit) -> None:
    visit.page.fill("#search", "onerror")
    assert visit.names() == [f"Evil {HOSTILE}"]
    visit.page.locator("#nodes tbody tr button").click()
    assert visit.heading() == f"Evil {HOSTILE} ({HOSTILE})"
    visit.page.wait_for_timeout(200)
    assert visit.page.locator("main img, aside img").count() == 0
    assert HOSTILE in visit.page.text_content("h1")
    titles = visit.page.locator("#panel .xtitle").all_text_contents()
    assert "<b>no2</b> & co" in titles
    assert visit.complaints == []


def test_edges_can_be_hidden(visit: Visit) -> None:
    lines = "#map .shapelayer path"
    assert visit.page.locator(lines).count() == 1
    visit.page.uncheck("#edges")
    assert visit.page.locator(lines).count() == 0


def test_prints_within_the_paper(visit: Visit) -> None:
    visit.page.locator("#nodes tbody tr button").first.click()
    # The map becomes narrower beside the panel a moment later.
    visit.page.wait_for_timeout(500)
    visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    visit.page.emulate_media(media="print")
    # A4 without margins of 14 mm, at 96 pixels per inch.
    visit.page.set_viewport_size({"width": 687, "height": 900})
    edges = visit.page.evaluate(
        "[...document.querySelectorAll('.main-svg')].map(e => e.getBoundingClientRect().right)"
    )
    assert len(edges) > 3
    assert max(edges) <= 687
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 687
    assert visit.page.locator("#search").is_hidden()
    visit.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    visit.page.emulate_media(media="screen")
    visit.page.set_viewport_size({"width": 1400, "height": 900})
    # The map takes the width of the screen again a moment later.
    widths = []
    for _ in range(50):
        widths.append(visit.page.evaluate("document.querySelector('#map .main-svg').clientWidth"))
        if widths[-1] > 700:
            break
        visit.page.wait_for_timeout(100)
    assert widths[-1] > 700
    assert visit.complaints == []


def test_the_policy_of_the_page_forbids_other_scripts(visit: Visit) -> None:
    outcome = visit.page.evaluate(
        """async () => {
          const script = document.createElement("script");
          script.textContent = "window.intruder = true";
          document.body.append(script);
          const image = await new Promise((resolve) => {
            const image = new Image();
            image.onload = () => resolve("loaded");
            image.onerror = () => resolve("refused");
            image.src = "http://127.0.0.1:9/pixel.png";
          });
          return [window.intruder ?? null, image];
        }"""
    )
    assert outcome == [None, "refused"]
    assert len(visit.complaints) == 2
    assert all("Content Security Policy" in text for text in visit.complaints)


def test_no_button_sends_the_chart_away(visit: Visit) -> None:
    titles = visit.page.eval_on_selector_all(
        ".modebar-btn", "buttons => buttons.map((b) => b.dataset.title || b.ariaLabel || '')"
    )
    assert titles
    assert not [title for title in titles if re.search(r"share|cloud|edit|upload", title, re.I)]
