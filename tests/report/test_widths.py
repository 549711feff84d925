"""All pages at the widths of a desk, a tablet and a phone, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.visits import ARTEFACTS, Visit

import graphratio as gr
from graphratio.report import write_graphs, write_report, write_significance
from graphratio.report.graph_section import compared_with_none

pytestmark = pytest.mark.browser

SCREENS = [(1400, 900, "light"), (1100, 800, "dark"), (390, 844, "light"), (390, 844, "dark")]

# Readable text has this contrast to what is behind it (WCAG AA).
CONTRAST = 4.5


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Twelve places in Europe and one far away; half of them change."""
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(42, 52, 12), rng.uniform(-2, 14, 12)])
    places[0] = (21.3, -157.9)
    names = [f"place {i}" for i in range(12)]
    graph = gr.Graph.from_coordinates(places, nodes=names, k=3, metric="haversine")
    reference, target = rng.normal(size=(2, 12, 20))
    target[:6] += 2.5
    samples = gr.NodeSamples.from_arrays(list(reference), list(target), nodes=names)
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1, prior_ratio=1)
    model.fit(samples, graph)
    kinds = gr.kinds_of_change(samples, None, model, random_state=0)
    found = compared_with_none(model, samples)
    folder = tmp_path_factory.mktemp("widths")
    return {
        "model": model,
        "report": write_report(
            folder / "report.html", model, samples, kinds=kinds, comparison=found,
            units={"x0": "mm"},
        ),
        "test": write_significance(folder / "tests.html", kinds.test),
        "graphs": write_graphs(folder / "graphs.html", found, {"graph": graph}),
    }  # fmt: skip


@pytest.mark.parametrize("screen", SCREENS)
def test_the_report_works_at_every_width(
    pages: dict[str, Any], visiting: Callable[..., Visit], screen: Any
) -> None:
    visit, model = visiting(pages["report"], *screen), pages["model"]
    page = visit.page
    page.wait_for_selector("#kinds-map .main-svg")
    _is_whole(visit)
    # Land and borders of the map and of its box, the box itself twice, and the edges.
    shapes = page.locator("#map .shapelayer path")
    assert shapes.count() >= 6
    assert len(shapes.first.get_attribute("d")) > 1000
    _map_parts_are_apart(page)
    # A point of the map opens the panel of its node, which stays in view beside it.
    page.evaluate(
        "document.querySelector('#map').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    node = int(np.argmax(model.divergence_))
    _click_on_the_map(page, node)
    assert visit.heading() == model.nodes_[node]
    _soon(page, lambda: _is_beside_the_panel(page, *_place_of(page, node)))
    _is_readable(page, "#panel p, #panel dt, #panel dd, #panel td, #panel button, #panel summary")
    page.screenshot(path=ARTEFACTS / f"panel-{screen[0]}-{screen[2]}.png")
    # So does a line of the table.
    page.keyboard.press("Escape")
    page.wait_for_timeout(300)
    assert page.locator("#map .colorbar").count() == 1
    _soon(page, lambda: _map_parts_are_apart(page))
    row = page.locator("#nodes tbody tr").nth(4)
    row.locator("button").click()
    assert visit.heading() == model.nodes_[int(row.get_attribute("data-node"))]

    def beside() -> None:
        box = row.locator("button").bounding_box()
        _is_beside_the_panel(page, box["x"] + 2, box["y"] + box["height"] / 2)

    _soon(page, beside)
    assert visit.complaints == []


def _soon(page: Any, check: Callable[[], None]) -> None:
    """The page moves for a moment, on a busy machine for a longer one: check until it holds."""
    page.wait_for_timeout(300)
    for _ in range(20):
        try:
            return check()
        except AssertionError:
            page.wait_for_timeout(250)
    return check()


@pytest.fixture(scope="module")
def plane_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 12, 30))
    target[:6] += 2.5
    # On a plane the map has axes, which leave less room for the legend than a globe does.
    graph = gr.Graph.from_coordinates(rng.uniform(0, 1000, (12, 2)), k=3)
    samples = gr.NodeSamples.from_arrays(list(reference), list(target))
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1, prior_ratio=1)
    model.fit(samples, graph)
    kinds = gr.kinds_of_change(samples, None, model, random_state=0)
    path = tmp_path_factory.mktemp("plane") / "report.html"
    return write_report(path, model, samples, kinds=kinds)


@pytest.mark.parametrize("width", [320, 390, 600, 1100])
def test_the_legend_of_kinds_is_inside_the_map(
    visiting: Callable[..., Visit], plane_report: Path, width: int
) -> None:
    page = visiting(plane_report, width, 900, "light").page
    page.wait_for_selector("#kinds-map .legendtext")
    drawn = page.locator("#kinds-map .main-svg").first.bounding_box()
    entries = page.locator("#kinds-map .legendtext")
    texts = entries.all_text_contents()
    assert "no change found (6)" in texts
    for entry in entries.all():
        box = entry.bounding_box()
        assert drawn["x"] <= box["x"]
        assert box["x"] + box["width"] <= drawn["x"] + drawn["width"]
        assert drawn["y"] <= box["y"]


@pytest.fixture(scope="module")
def report_of_two_features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 12, 30, 2))
    target[:6] += 2.5
    graph = gr.Graph.from_coordinates(rng.uniform(0, 1000, (12, 2)), k=3)
    samples = gr.NodeSamples.from_arrays(
        list(reference), list(target), feature_names=["ground_speed", "distance"]
    )
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1, prior_ratio=1)
    model.fit(samples, graph)
    test = gr.two_sample_test(samples, graph, random_state=0)
    return write_report(
        tmp_path_factory.mktemp("features") / "report.html", model, samples, test=test,
        units={"ground_speed": "mph"}, reference_name="winter", target_name="summer",
    )  # fmt: skip


@pytest.mark.parametrize(("width", "fits"), [(1100, True), (390, False)])
def test_the_table_of_two_features_fits_or_scrolls_in_its_box(
    visiting: Callable[..., Visit], report_of_two_features: Path, width: int, fits: bool
) -> None:
    page = visiting(report_of_two_features, width, 800, "light").page
    beyond = "document.querySelector('{0}').scrollWidth - document.querySelector('{0}').clientWidth"
    assert (page.evaluate(beyond.format("#table-scroll")) == 0) is fits
    assert page.evaluate(beyond.format("html")) == 0


@pytest.mark.parametrize("name", ["test", "graphs"])
@pytest.mark.parametrize("screen", [SCREENS[1], SCREENS[2]])
def test_other_pages_work_at_every_width(
    pages: dict[str, Any], visiting: Callable[..., Visit], name: str, screen: Any
) -> None:
    visit = visiting(pages[name], *screen)
    _is_whole(visit)
    visit.page.fill("#search", "place 1")
    shown = visit.page.locator("#nodes tbody tr:visible td:first-child").all_text_contents()
    assert sorted(shown) == ["place 1", "place 10", "place 11"]
    assert visit.complaints == []


# Fixed work that takes so many seconds where a page may take two. A machine that is busy
# with other things takes longer for both.
FIXED_WORK = """() => {
  const seen = new Map();
  let text = "";
  for (let i = 0; i < 400000; i++) {
    const key = "k" + (i * 7919) % 50021;
    seen.set(key, (seen.get(key) ?? 0) + Math.sqrt(i));
    if (i % 40 === 0) text += key;
  }
  return JSON.parse(JSON.stringify([...seen])).length + text.length;
}"""
USUAL_SECONDS = 0.14


def test_a_large_report_is_soon_ready(browser: Any, large_report: Path) -> None:
    """Two seconds of work for the browser, however slow the machine is at the moment."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    meter = context.new_cdp_session(page)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        metrics = meter.send("Performance.getMetrics")["metrics"]
        return float(next(item["value"] for item in metrics if item["name"] == "TaskDuration"))

    page.goto(large_report.as_uri())
    page.wait_for_selector("html[data-ready]")
    ready = used()
    page.evaluate(FIXED_WORK)
    slower = max((used() - ready) / USUAL_SECONDS, 1.0)
    context.close()
    assert 0.1 < ready < 2.0 * slower


def _is_whole(visit: Visit) -> None:
    """No complaints, no requests, nothing beyond the right edge, a policy, readable text."""
    page = visit.page
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) == 0
    policy = page.get_attribute('meta[http-equiv="Content-Security-Policy"]', "content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    _is_readable(page, "h1, h2, h3, p, li, th, td, span, button, summary, a, label")


def _is_readable(page: Any, selector: str) -> None:
    """Every text in the selection has contrast to the nearest background behind it."""
    poor = page.evaluate(
        """([selector, least]) => {
          const parse = (text) => text.match(/[\\d.]+/g).map(Number);
          const light = ([r, g, b]) => {
            const [x, y, z] = [r, g, b].map((v) => v / 255)
              .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * x + 0.7152 * y + 0.0722 * z;
          };
          const behind = (node) => {
            for (let at = node; at; at = at.parentElement) {
              const colour = parse(getComputedStyle(at).backgroundColor);
              if (colour.length < 4 || colour[3] > 0.5) return colour;
            }
            return [255, 255, 255];
          };
          return [...document.querySelectorAll(selector)]
            .filter((node) => node.offsetParent && !node.closest(".chart, .skip, .hidden")
              && [...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim()))
            .map((node) => {
              const [a, b] = [parse(getComputedStyle(node).color), behind(node)].map(light);
              return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.textContent.trim()];
            })
            .filter(([ratio]) => ratio < least);
        }""",
        [selector, CONTRAST],
    )
    assert poor == []


def _map_parts_are_apart(page: Any) -> None:
    """Buttons, colour bar and map do not cover each other, and all of them are inside."""
    page.hover("#map")
    frame, bar, buttons, plot = (
        page.locator(f"#map {part}").first.bounding_box()
        for part in (".main-svg", ".colorbar", ".modebar", ".plotbg, .bglayer, .cartesianlayer")
    )
    for part in (bar, buttons):
        assert part["x"] >= frame["x"] - 1
        assert part["y"] >= frame["y"] - 1
        assert part["x"] + part["width"] <= frame["x"] + frame["width"] + 1
        assert part["y"] + part["height"] <= frame["y"] + frame["height"] + 1
    assert not _overlap(bar, buttons)
    points = page.locator("#map .scatterlayer .point").evaluate_all(
        "points => points.map((point) => point.getBoundingClientRect().toJSON())"
    )
    for point in points:
        assert not _overlap(point, bar)
        assert not _overlap(point, buttons)
    assert plot is not None


def _overlap(one: Any, other: Any) -> bool:
    return bool(
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


def _click_on_the_map(page: Any, node: int) -> None:
    """As a hand does: the chart notes the point below the pointer before it is clicked."""
    page.mouse.move(*_place_of(page, node))
    page.wait_for_selector("#map .hoverlayer .hovertext")
    page.mouse.click(*_place_of(page, node))


def _place_of(page: Any, node: int) -> tuple[float, float]:
    """Where the map draws a node, in pixels of the window."""
    x, y = page.evaluate(
        """(i) => {
          const { map } = JSON.parse(document.getElementById("data").textContent);
          const chart = document.getElementById("map"), box = chart.getBoundingClientRect();
          const { xaxis, yaxis } = chart._fullLayout;
          return [box.left + xaxis._offset + xaxis.d2p(map.x[i]),
            box.top + yaxis._offset + yaxis.d2p(map.y[i])];
        }""",
        node,
    )
    return x, y


def _is_beside_the_panel(page: Any, x: float, y: float) -> None:
    window, panel = page.viewport_size, page.locator("#panel").bounding_box()
    assert 0 <= x <= window["width"]
    assert 0 <= y <= window["height"]
    assert x < panel["x"] or y < panel["y"]
