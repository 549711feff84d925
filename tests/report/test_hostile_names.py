"""Every label of the fuzzer as a node, a column, a sample and a note, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.tables import LABELS
from tests.report.visits import Visit

import graphratio as gr
from graphratio.report import write_report

# Half of a surrogate pair is no text: pages show a question mark in its place.
NAMES = [label for label in dict.fromkeys(LABELS) if label.strip() and label != "\ud800"]
SCRIPTS = [label for label in NAMES if "document.title" in label]


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    features = [*SCRIPTS, "__proto__", "{{ 7*7 }}"]
    size = (12, len(features))
    samples = gr.NodeSamples.from_arrays(
        {name: rng.normal(size=size) for name in NAMES},
        {name: rng.normal(0.5, 1, size=size) for name in NAMES},
        feature_names=features,
    )
    ring = zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)
    graph = gr.Graph.from_edges(list(ring), nodes=NAMES)
    model = gr.Pool(bandwidth=2.0, ridge=0.1).fit(samples, graph)
    test = gr.two_sample_test(
        samples, graph, n_permutations=19, correction=None, level=0.2, random_state=0
    )
    return write_report(
        tmp_path_factory.mktemp("hostile") / "report.html",
        model,
        samples,
        title=SCRIPTS[0],
        reference_name=SCRIPTS[1],
        target_name=SCRIPTS[2],
        names={NAMES[0]: SCRIPTS[1]},
        notes=SCRIPTS,
        test=test,
    )


@pytest.mark.browser
def test_every_name_is_text_and_nothing_runs(
    visiting: Callable[..., Visit], hostile_report: Path
) -> None:
    visit = visiting(hostile_report)
    shown = visit.names()
    assert sorted(shown) == sorted([SCRIPTS[1], *NAMES[1:]])
    for place in [shown.index(name) for name in (*SCRIPTS, "__proto__", "\u200b")]:
        # Some names have no width to click on with a mouse.
        visit.page.locator("#nodes tbody tr button").nth(place).dispatch_event("click")
        assert visit.heading().startswith(shown[place])
    # A script that ran would have changed the title to "!".
    assert visit.page.title() == SCRIPTS[0]
    assert visit.page.locator("img[src=x]").count() == 0
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
