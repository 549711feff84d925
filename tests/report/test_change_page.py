"""The page about changes over time, in Python and in a real browser."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.report.visits import ARTEFACTS, Visit

import graphratio as gr
from graphratio.report import write_changes

HOSTILE = "<img src=x onerror=alert(1)>"
BREAKOUT = "</script><!-- <script>alert(2)"


@pytest.fixture(scope="module")
def detector() -> gr.GraphChangePointDetector:
    rng = np.random.default_rng(0)
    labels = [f"s{i:02d}" for i in range(16)]
    labels[1], labels[12] = HOSTILE, BREAKOUT
    xy = rng.uniform(0, 10, (16, 2))
    values = rng.normal(size=(240, 16, 2))
    values[150:, 8:, 0] += 3.0
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=t) for t in range(240)]
    rows = [
        (days[t], labels[v], *values[t, v]) for t in range(len(days)) for v in range(len(labels))
    ]
    frame = pd.DataFrame(rows, columns=["day", "station", "pm25", "<b>no2</b>"])
    found = gr.GraphChangePointDetector(n_surrogates=39, random_state=0)
    graph = gr.Graph.from_coordinates(xy, nodes=labels, k=3)
    return found.fit(frame, graph, node="station", time="day")


@pytest.fixture(scope="module")
def changes_file(
    detector: gr.GraphChangePointDetector, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("changes") / "changes.html"
    return write_changes(path, detector, title=f"Air {HOSTILE}", notes=[BREAKOUT])


def test_page_says_what_was_found(
    detector: gr.GraphChangePointDetector, changes_file: Path
) -> None:
    page = changes_file.read_text(encoding="utf-8")
    event = detector.events_[0]
    assert "1 change found, at 8 nodes." in page
    assert str(event.time.date()) in page
    assert "On 30 May 2020 pm25 rose at 8 of 16 nodes, among them " in page
    assert "mean of pm25 " in page
    assert "at single nodes, in neighbourhoods of the graph and over all nodes." in page
    assert HOSTILE not in page
    assert BREAKOUT not in page


def test_quiet_panel_and_long_panel(tmp_path: Path) -> None:
    panel = np.random.default_rng(1).normal(size=(2000, 3))
    calm = gr.GraphChangePointDetector(n_surrogates=19, random_state=0).fit(panel)
    path = write_changes(tmp_path / "calm.html", calm)
    page = path.read_text(encoding="utf-8")
    assert "No change found" in page
    assert "No change was found at any node." in page
    # There are no edges, and so no neighbourhoods.
    assert "at every scale, at single nodes and over all nodes." in page
    assert "neighbourhoods" not in page


@pytest.fixture
def visit(visiting: Callable[..., Visit], changes_file: Path) -> Visit:
    return visiting(changes_file)


@pytest.mark.browser
def test_loads_quietly_and_alone(visit: Visit) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    visit.page.screenshot(path=ARTEFACTS / "changes.png", full_page=True)
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
    for chart in ("panel-chart", "scan", "map"):
        assert visit.page.locator(f"#{chart} .main-svg").count() >= 1


@pytest.mark.browser
def test_the_table_has_every_node_of_every_event(
    visit: Visit, detector: gr.GraphChangePointDetector
) -> None:
    shown = visit.page.locator("#events tbody tr td:nth-child(2)").all_text_contents()
    assert shown == [str(node) for node in detector.events_[0].onsets]


@pytest.mark.browser
def test_the_map_follows_the_slider(visit: Visit, detector: gr.GraphChangePointDetector) -> None:
    def changed() -> str:
        return str(visit.page.text_content("#map-caption")).rsplit("then: ", 1)[1]

    assert changed() == f"{len(detector.events_[0].nodes)} of 16."
    visit.page.locator("#when").evaluate(
        "slider => { slider.value = 0; slider.dispatchEvent(new Event('input')); }"
    )
    assert changed() == "0 of 16."
    assert visit.page.text_content("#now") == "2020-01-01"
    visit.page.locator(".findings button").click()
    assert visit.page.text_content("#now") == str(detector.events_[0].time.date())
    # Almost at the end, which is soon played.
    slider = visit.page.locator("#when")
    slider.evaluate(
        "slider => { slider.value = slider.max - 9; slider.dispatchEvent(new Event('input')); }"
    )
    visit.page.click("#play")
    assert visit.page.text_content("#play") == "Pause"
    visit.page.locator("#play", has_text="Play").wait_for()
    assert slider.evaluate("slider => slider.value === slider.max")
    assert visit.page.text_content("#now") == "2020-08-27"
    assert changed() == f"{len(detector.events_[0].nodes)} of 16."
    visit.page.select_option("#feature", "1")
    assert visit.complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens(visiting: Callable[..., Visit], changes_file: Path, scheme: str) -> None:
    visit = visiting(changes_file, 390, 800, scheme)
    visit.page.screenshot(path=ARTEFACTS / f"changes-narrow-{scheme}.png", full_page=True)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert visit.complaints == []
