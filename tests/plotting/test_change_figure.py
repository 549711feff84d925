"""The figure of the change-point detector."""

import datetime as dt

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import graphratio as gr

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(11)])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def panel(n_nodes=12, n_features=1):
    values = np.random.default_rng(0).normal(size=(240, n_nodes, n_features))
    values[150:, n_nodes // 2 :, -1] += 1.5
    return values


def fitted(values, graph=None, **settings):
    detector = gr.GraphChangePointDetector(n_surrogates=19, random_state=0)
    return detector.fit(values, graph, **settings)


def test_changed_nodes_are_on_top_and_their_change_stands_out():
    detector = fitted(panel(n_features=2), PATH)
    top, scan, onsets = detector.plot()
    changed = len(detector.events_[0].nodes)
    assert top.get_title(loc="left") == f"x1: {changed} changed nodes above {12 - changed} others"
    drawn = np.asarray(top.images[0].get_array())
    moved = drawn[:, drawn.shape[1] * 2 // 3 :].mean(axis=1) - drawn[:, :50].mean(axis=1)
    assert (moved[:changed] > 0.8).all()
    assert np.abs(moved[changed:]).max() < 0.8
    labels = [label.get_text() for label in top.get_yticklabels()]
    assert labels[:changed] == [str(node) for node in detector.events_[0].nodes]
    assert scan.lines[0].get_ydata().max() > 1
    assert onsets.get_title(loc="left") == "First onset"


def test_the_curve_does_not_fall_between_splits_of_long_intervals():
    detector = fitted(panel(), PATH)
    near = np.abs(detector.scan_times_ - 150) <= 15
    assert detector.scan_times_[near].tolist() == list(range(135, 166))
    assert detector.statistic_[near].min() > 0.3 * detector.statistic_.max()


def test_a_single_series_is_a_line_and_two_histograms():
    series = panel(2)[:, 1:]
    top, _, sides = fitted(series).plot()
    assert not top.images
    np.testing.assert_array_equal(top.lines[-1].get_ydata(), series[:, 0, 0])
    assert [text.get_text() for text in sides.get_legend().get_texts()] == ["before", "after"]


def test_dates_have_room():
    begin = dt.datetime(2024, 5, 1, 6)
    rows = [
        (begin + dt.timedelta(hours=t), node, value)
        for t, row in enumerate(panel()[:, :, 0])
        for node, value in enumerate(row)
    ]
    frame = pd.DataFrame(rows, columns=["time", "node", "flow"])
    _, scan, _ = fitted(frame, PATH).plot()
    labels = [label.get_text() for label in scan.get_xticklabels()]
    assert len(labels) <= 5
    assert labels[0] == "2024-05-01\n06:00"


def test_nothing_found():
    calm = fitted(np.random.default_rng(1).normal(size=(120, 3)))
    assert calm.plot()[2].get_title(loc="left") == "No change found"
