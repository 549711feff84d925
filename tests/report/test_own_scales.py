"""Reports of nodes that have scales of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphratio as gr
from graphratio.report.headline import PageWords, direction_of, page_headline
from graphratio.report.node_panels import shown_features
from graphratio.report.node_table import Subject
from graphratio.report.summary import what_changed
from graphratio.report.verdicts import NodeVerdicts

WORDS = PageWords(("before", "after"))
# Spreads of the nodes; the first six move by the given number of them.
SPREADS = np.array([0.1, 1.0, 20.0, 0.5, 5.0, 2.0, 0.2, 3.0, 30.0, 1.0, 0.7, 9.0])
MOVES = np.array([2.5, 2.0, 1.2, 1.5, 1.5, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def fitted(factor: float = 1.0, moves: Any = MOVES, n_features: int = 1) -> tuple[Any, Any, Any]:
    """Changed nodes of a ring, each with its own level and spread, and their verdicts."""
    rng = np.random.default_rng(0)
    # Centred, so that changes are exactly those asked for.
    reference, target = rng.normal(size=(2, 12, 60, n_features))
    reference, target = (part - part.mean(axis=1, keepdims=True) for part in (reference, target))
    target[:6] *= factor
    target[:, :, 0] += moves[:, None]
    level = 100 * rng.normal(size=(12, 1, n_features))
    sides = [list(level + SPREADS[:, None, None] * side) for side in (reference, target)]
    samples = gr.NodeSamples.from_arrays(*sides)
    graph = gr.Graph.empty(12)
    model = gr.RULSIF(random_state=0).fit(samples.standardized(by_node=True), graph)
    test = gr.two_sample_test(samples.standardized(by_node=True), graph, random_state=0)
    verdicts = NodeVerdicts.of_test(test, model.nodes_)
    assert verdicts.changed.tolist() == [True] * 6 + [False] * 6
    return Subject.of(model, samples), verdicts, model


def test_the_headline_names_nodes_by_what_is_usual_there() -> None:
    """Node 2 moved by 24 and node 0 by 0.25, but by fewer of its own spreads."""
    subject, verdicts, _ = fitted()
    text = page_headline(subject, verdicts, WORDS)
    assert "rose at 6 of" in text
    assert "most, for what is usual there, at 0, 1" in text
    assert "+0.25" in text


def test_colours_are_comparable_over_nodes() -> None:
    subject, verdicts, _ = fitted()
    found = direction_of(subject, verdicts, WORDS)
    assert found is not None
    assert found["unit"] == "SDs"
    assert found["unit_in_words"] == "standard deviations (SDs) of the node"
    np.testing.assert_allclose(found["change"][:6], MOVES[:6], rtol=0.25)
    np.testing.assert_allclose(found["change"][6:], 0.0, atol=0.01)


def test_a_kind_is_described_in_spreads() -> None:
    subject, *_ = fitted()
    text = what_changed(subject, np.arange(3, 6), WORDS)
    assert text == "mean of x0 up by 1.5 standard deviations of the node on average"
    # One node stays in its own units.
    assert "mean of x0 from" in what_changed(subject, np.array([2]), WORDS)


def test_a_change_of_spread_is_a_factor() -> None:
    subject, verdicts, _ = fitted(factor=3.0, moves=np.zeros(12))
    grown = np.median(subject.spread[:6, 1, 0] / subject.spread[:6, 0, 0])
    assert 2 < grown < 4
    told = page_headline(subject, verdicts, WORDS)
    assert f"typically by a factor of {grown:.2g}" in told
    text = what_changed(subject, np.arange(6), WORDS)
    before, after = np.median(subject.spread[:6, :, 0] / subject.within[:6], axis=0)
    assert text == f"spread of x0 up by a factor of {after / before:.2g}"


def test_the_feature_that_changed_is_shown_whatever_the_levels() -> None:
    subject, *_ = fitted(moves=2 * MOVES, n_features=14)
    assert 0 in shown_features(subject)


@pytest.mark.parametrize("own", [True, ["x0"]])
def test_features_keep_their_units_unless_nodes_have_scales_of_their_own(own: Any) -> None:
    subject, _, model = fitted(n_features=2)
    model.fit(subject.samples.standardized(by_node=own), gr.Graph.empty(12))
    changes = Subject.of(model, subject.samples)
    told = changes.comparable(changes.own_change)
    np.testing.assert_allclose(told[:, 0], changes.own_change[:, 0] / changes.within[:, 0])
    if own is not True:
        np.testing.assert_array_equal(told[:, 1], changes.own_change[:, 1])


def test_constants_that_moved_are_not_unchanged() -> None:
    """Their spread within the samples is zero, so the scale of both together is the unit."""
    subject, verdicts, model = fitted()
    values = subject.samples.values.copy()
    at_0 = subject.samples.node_index == 0
    values[at_0, 0] = np.where(subject.samples.is_target[at_0], 103.0, 100.0)
    samples = replace(subject.samples, values=values)
    model.fit(samples.standardized(by_node=True), gr.Graph.empty(12))
    changes = Subject.of(model, samples)
    assert changes.comparable(changes.own_change)[0, 0] == pytest.approx(2.0)
    found = direction_of(changes, verdicts, WORDS)
    assert found is not None
    assert found["change"][0] == pytest.approx(2.0)


def test_a_sensor_that_was_stuck_has_no_factor() -> None:
    subject, verdicts, model = fitted(factor=3.0, moves=np.zeros(12))
    values = subject.samples.values.copy()
    stuck = (subject.samples.node_index < 4) & ~subject.samples.is_target
    values[stuck, 0] = subject.mean[subject.samples.node_index[stuck], 1, 0]
    samples = replace(subject.samples, values=values)
    model.fit(samples.standardized(by_node=True), gr.Graph.empty(12))
    changes = Subject.of(model, samples)
    told = what_changed(changes, np.arange(4), WORDS)
    assert told == "spread of x0 up by a factor of 20 or more"
    assert "by a factor of 20 or more" in page_headline(changes, verdicts, WORDS)


def test_features_without_own_scales_keep_their_words() -> None:
    subject, _, model = fitted(n_features=2)
    samples = replace(subject.samples, feature_names=("temp", "press"))
    model.fit(samples.standardized(by_node="press"), gr.Graph.empty(12))
    words = PageWords(("before", "after"), units={"temp": "°C"})
    told = what_changed(Subject.of(model, samples), np.arange(6), words)
    assert told.startswith("mean of temp from")
    assert "°C" in told
