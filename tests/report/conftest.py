"""Networks and a browser for the tests of the report."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.visits import Visit

import graphratio as gr
from graphratio.report import write_report

HOSTILE = "<img src=x onerror=alert(1)>"
BREAKOUT = "</script><!-- <script>alert(2)"
ARTEFACTS = Path(__file__).parent / "artefacts"
# What Chromium needs to run as root and without talking to anybody.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_browser() -> str | None:
    if find_spec("playwright") is None:
        return None
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the browser tests out where there is no browser, except in continuous integration."""
    chosen = [item for item in items if item.get_closest_marker("browser")]
    if not chosen or find_browser() or os.environ.get("CI") == "true":
        return
    config.hook.pytest_deselected(items=chosen)
    items[:] = [item for item in items if item not in chosen]
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(
            f"\n{len(chosen)} browser tests left out: they need Chromium and playwright"
        )


def walks(n_nodes: int = 8, n_times: int = 60) -> gr.NodeSamples:
    """Random walks over the same times: each sample is a single independent piece."""
    steps = np.random.default_rng(0).normal(size=(n_nodes, 2 * n_times))
    values = list(np.cumsum(steps, axis=1))
    times = [np.arange(2.0 * n_times)] * n_nodes
    return gr.NodeSamples.from_arrays(
        [value[:n_times] for value in values],
        [value[n_times:] for value in values],
        time=([time[:n_times] for time in times], [time[n_times:] for time in times]),
    )


def network(
    n_nodes: int = 30, n_features: int = 2, n: int = 40, coordinates: bool = True
) -> tuple[gr.NodeSamples, gr.Graph, dict[str, str]]:
    """Nodes in a square; the further right, the more the first feature moves."""
    rng = np.random.default_rng(0)
    xy = rng.uniform(0, 10, (n_nodes, 2))
    labels = [f"s{i:02d}" for i in range(n_nodes)]
    if n_nodes > 3:
        labels[1], labels[2] = HOSTILE, BREAKOUT
    names = [f"f{j}" for j in range(n_features)]
    if n_features > 1:
        names[1] = "<b>no2</b> & co"
    reference = rng.normal(size=(n_nodes, n, n_features)) * 2 + 20
    target = rng.normal(size=(n_nodes, n, n_features)) * 2 + 20
    target[:, :, 0] += 4 * np.clip(xy[:, :1] - 5, 0, None) / 5
    graph = gr.Graph.from_coordinates(xy, nodes=labels, k=3)
    if not coordinates:
        graph = gr.Graph.from_adjacency(graph.adjacency, nodes=labels)
    samples = gr.NodeSamples.from_arrays(
        dict(zip(labels, reference, strict=True)),
        dict(zip(labels, target, strict=True)),
        feature_names=names,
    )
    return samples, graph, {labels[0]: "Zero & Co", labels[1]: f"Evil {HOSTILE}"}


def fitted(samples: gr.NodeSamples, graph: gr.Graph) -> gr.GRULSIF:
    model = gr.GRULSIF(bandwidth=[1.0, 1.5], graph_penalty=[3e-3, 0.3], ridge=[3e-3, 0.03], cv=2)
    return model.set_params(random_state=0).fit(samples.standardized(), graph)


@pytest.fixture(scope="session")
def square() -> tuple[gr.GRULSIF, gr.NodeSamples, dict[str, str]]:
    samples, graph, names = network()
    return fitted(samples, graph), samples, names


@pytest.fixture(scope="session")
def report_file(
    square: tuple[gr.GRULSIF, gr.NodeSamples, dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    model, samples, names = square
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html",
        model,
        samples,
        title=f"Air {HOSTILE}",
        reference_name="before <i>",
        target_name="after",
        names=names,
        notes=["features were standardised", BREAKOUT],
    )


@pytest.fixture(scope="session")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 nodes with three features and 100 observations per sample."""
    rng = np.random.default_rng(0)
    graph = gr.Graph.from_coordinates(rng.uniform(size=(500, 2)), k=5)
    reference, target = rng.normal(size=(2, 500, 100, 3))
    target += np.arange(500)[:, None, None] / 150
    samples = gr.NodeSamples.from_arrays(list(reference), list(target))
    model = gr.GRULSIF(
        bandwidth=2.0, graph_penalty=0.05, ridge=5e-3, max_atoms=30, dictionary="uniform"
    )
    model.set_params(random_state=0).fit(samples, graph)
    return write_report(tmp_path_factory.mktemp("large") / "report.html", model, samples)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    path = find_browser()
    if path is None:
        pytest.fail("CI=true, but there is no Chromium, or the package playwright is missing")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def window(browser: Any) -> Iterator[Any]:
    """One window for all tests: it compiles the scripts of a file once, however often it loads."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def visiting(window: Any) -> Iterator[Callable[..., Visit]]:
    """Load a file afresh, in a window of this size and colour scheme."""
    visits: list[Visit] = []

    def visit(file: Path, width: int = 1400, height: int = 900, scheme: str = "light") -> Visit:
        window.set_viewport_size({"width": width, "height": height})
        window.emulate_media(media="screen", color_scheme=scheme)
        visits.append(Visit(window, file))
        return visits[-1]

    yield visit
    for left in visits:
        left.leave()
