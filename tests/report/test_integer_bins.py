"""Histograms of integers have bins around integers."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.report.node_panels import NodePanels, _whole_bins
from graphratio.report.node_table import Subject


def panels(values, **options):
    half = values.shape[1] // 2
    samples = gr.NodeSamples.from_arrays(list(values[:, :half]), list(values[:, half:]))
    model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples.standardized(**options))
    return NodePanels(Subject.of(model, samples), np.arange(len(values))).to_json()


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 6, 9, ((-0.5, 6.5), 7)),
        (0, 15, 9, ((-0.5, 17.5), 6)),
        (-2.3, 1.7, 9, ((-2.5, 1.5), 4)),
    ],
)
def test_bins_are_whole_numbers_wide_and_centred_on_integers(low, high, most, expected):
    assert _whole_bins(low, high, most) == expected


def test_a_histogram_of_counts_has_no_gaps():
    values = np.random.default_rng(0).poisson(2.0, (3, 60)).astype(float)
    found = panels(values)
    for node, own in enumerate(values):
        before, after, beyond = found["histograms"][node][0]
        low, high = found["low"][node][0], found["high"][node][0]
        assert (low, high) == (own.min() - 0.5, own.max() + 0.5)
        expected = [int((own == value).sum()) for value in range(int(own.min()), int(high) + 1)]
        assert [x + y for x, y in zip(before, after, strict=True)] == expected
        assert beyond == 0


def test_other_features_keep_their_range():
    values = np.random.default_rng(0).poisson(2.0, (3, 60)) + 1.5
    found = panels(values)
    assert found["low"][0][0] == values[0].min()
    whole = np.random.default_rng(0).poisson(2.0, (3, 60)) + 1.0
    assert panels(whole, log="x0")["low"][0][0] == pytest.approx(np.log(whole[0].min()))
