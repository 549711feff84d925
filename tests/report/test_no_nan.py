"""No page shows "nan" or "inf", also if the data cannot say anything."""

import re
from pathlib import Path

import numpy as np
import pytest

import graphratio as gr
from graphratio.report import write_graphs, write_report, write_significance
from graphratio.report.graph_section import compared_with_none

from .conftest import walks

N_NODES = 8


def with_small_samples() -> gr.NodeSamples:
    """One node without a target, one with a single observation, one with a constant."""
    rng = np.random.default_rng(0)
    before, after = (list(rng.normal(size=(N_NODES, 20))) for _ in range(2))
    after[0], after[1], before[2], after[2] = after[0][:0], after[1][:1], np.ones(20), np.ones(20)
    return gr.NodeSamples.from_arrays(before, after)


def shown(path: Path) -> str:
    """The text of a page, without its scripts and styles."""
    page = re.sub(r"<(script|style).*?</\1>", "", path.read_text(), flags=re.S)
    return re.sub(r"<[^>]*>", " ", page)


@pytest.mark.parametrize("samples", [walks(N_NODES), with_small_samples()], ids=["walks", "small"])
def test_no_page_shows_nan_or_infinity(samples: gr.NodeSamples, tmp_path: Path) -> None:
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(N_NODES - 1)])
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1).fit(samples, graph)
    test = gr.two_sample_test(samples, graph, n_permutations=199, random_state=0)
    found = compared_with_none(model, samples)
    pages = [
        write_report(tmp_path / "report.html", model, samples, test=test, comparison=found),
        write_graphs(tmp_path / "graphs.html", found, {"graph": graph}),
        write_significance(tmp_path / "tests.html", test),
    ]
    for page in pages:
        assert re.findall(r"[^\n]*\b(?:nan|inf)\b[^\n]*", shown(page), re.I) == []
    assert not re.search(r"\b(?:nan|inf)\b", found._repr_html_(), re.I)
