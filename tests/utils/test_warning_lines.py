"""Warnings point at the line that called the library, in every public function that warns."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.exceptions import ConvergenceWarning, DataWarning

SIDES = np.random.default_rng(0).normal(size=(2, 4, 30, 2)) * [1.0, 1000.0]
UNEVEN = gr.NodeSamples.from_arrays(*SIDES)
EVEN = gr.NodeSamples.from_arrays(*SIDES / [1.0, 1000.0])
GRAPH = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
FIXED = {"bandwidth": 1.0, "graph_penalty": 0.1, "ridge": 0.1}

CALLS = {
    "GraphRatio": lambda: gr.GraphRatio(random_state=0).fit(UNEVEN, GRAPH),
    "RULSIF": lambda: gr.RULSIF(random_state=0).fit(UNEVEN),
    "test": lambda: gr.two_sample_test(UNEVEN, GRAPH, random_state=0),
    "bounds": lambda: gr.divergence_bounds(UNEVEN, GRAPH, gr.RULSIF(), random_state=0),
    "bounds of a fit": lambda: gr.divergence_bounds(UNEVEN, GRAPH, gr.GRULSIF(), random_state=0),
    "graphs": lambda: gr.compare_graphs(UNEVEN, GRAPH, random_state=0),
    "kinds": lambda: gr.kinds_of_change(UNEVEN, GRAPH, random_state=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_uneven_scales(name):
    with pytest.warns(DataWarning, match="varies more than") as caught:
        CALLS[name]()
    assert {one.filename for one in caught} == {__file__}


def test_a_solver_that_stops_early():
    model = gr.GRULSIF(**FIXED, solver="cbcgd", max_iter=1, tol=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(EVEN, GRAPH)
    assert caught[0].filename == __file__


def test_a_gap_in_a_panel():
    panel = np.random.default_rng(0).normal(size=(60, 2))
    panel[5, 0] = np.nan
    detector = gr.GraphChangePointDetector(n_surrogates=19, random_state=0)
    with pytest.warns(DataWarning, match="missing") as caught:
        detector.fit(panel, missing="drop")
    assert caught[0].filename == __file__
