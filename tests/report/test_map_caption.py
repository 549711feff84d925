"""The caption of the map explains what is on the map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.report.visits import Visit

import graphratio as gr
from graphratio.report import write_report, write_significance

from .conftest import walks

N_NODES = 8


def page(samples: gr.NodeSamples, folder: Path, write: str = "report") -> Path:
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(N_NODES - 1)])
    test = gr.two_sample_test(samples, graph, n_permutations=199, random_state=0)
    if write == "test":
        return write_significance(folder / "tests.html", test)
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1).fit(samples, graph)
    return write_report(folder / "report.html", model, samples, test=test)


def shifted(by: float) -> gr.NodeSamples:
    rng = np.random.default_rng(1)
    return gr.NodeSamples.from_arrays(
        list(rng.normal(size=(N_NODES, 40))), list(rng.normal(by, 1, size=(N_NODES, 40)))
    )


@pytest.mark.browser
@pytest.mark.parametrize(
    ("samples", "explained"),
    [
        (shifted(3.0), ["Colours:", "Rings:"]),
        (shifted(0.0), ["Colours:"]),
        (walks(N_NODES), ["Open circles:"]),
    ],
    ids=["changed", "unchanged", "cannot say"],
)
def test_the_caption_explains_only_what_is_drawn(
    visiting: Callable[..., Visit], samples: gr.NodeSamples, explained: list[str], tmp_path: Path
) -> None:
    visit = visiting(page(samples, tmp_path))
    caption = str(visit.page.text_content("#map-caption"))
    keys = ("Colours:", "Open circles:", "Rings:")
    assert [key for key in keys if key in caption] == explained
    assert visit.page.locator("#map .colorbar").count() == ("Colours:" in explained)
    assert visit.complaints == []


def test_the_page_of_a_test_mentions_circled_nodes_only_if_there_are_some(tmp_path: Path) -> None:
    said = "Circled nodes changed significantly."
    assert said in page(shifted(3.0), tmp_path, "test").read_text()
    assert said not in page(shifted(0.0), tmp_path, "test").read_text()
