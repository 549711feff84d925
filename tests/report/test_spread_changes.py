"""Changes of spread have a size and a unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.report.test_one_truth import shown
from tests.report.visits import Visit

import graphratio as gr
from graphratio.report import write_report
from graphratio.report.node_table import Subject
from graphratio.report.spread_changes import _growth, clear_spreads


def samples_with(spreads: list[float], n: int = 80) -> gr.NodeSamples:
    """Nodes with a spread of 5 before, and of these after."""
    rng = np.random.default_rng(0)
    return gr.NodeSamples.from_arrays(
        list(rng.normal(50, 5, (len(spreads), n))),
        [rng.normal(50, spread, n) for spread in spreads],
        feature_names=["ground_speed"],
    )


def fitted(samples: gr.NodeSamples) -> gr.Pool:
    return gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples.standardized())


def test_only_clear_changes_of_the_spread_count():
    samples = samples_with([12.0, 2.0, 5.0, 12.0])
    subject = Subject.of(fitted(samples), samples)
    changed = np.array([True, True, True, False])
    assert clear_spreads(subject, changed) == [[0], [0], [], []]


def test_few_observations_and_few_blocks_show_no_change_of_the_spread():
    few = samples_with([9.0, 9.0], n=5)
    assert clear_spreads(Subject.of(fitted(few), few), np.ones(2, dtype=bool)) == [[], []]
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(4, 80)) * [[1], [1], [3], [3]], axis=1)
    times = ([np.arange(80)] * 2, [np.arange(80, 160)] * 2)
    timed = gr.NodeSamples.from_arrays(list(walk[:2]), list(walk[2:]), time=times)
    assert clear_spreads(Subject.of(fitted(timed), timed), np.ones(2, dtype=bool)) == [[], []]


def clear_in(before: np.ndarray, after: np.ndarray) -> bool:
    samples = gr.NodeSamples.from_arrays([before], [after])
    subject = Subject.of(gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples), samples)
    return clear_spreads(subject, np.array([True])) == [[0]]


def test_a_sample_without_any_event_shows_no_change_of_the_spread():
    rare = np.zeros(30)
    rare[7] = 1.0
    assert not clear_in(np.zeros(30), rare)
    assert not clear_in(rare[5:15], np.zeros(10))
    # A sensor that is stuck is another matter.
    assert clear_in(np.random.default_rng(0).normal(size=30), np.zeros(30))
    assert clear_in(np.zeros(30), np.random.default_rng(0).normal(size=30))


@pytest.mark.parametrize("law", ["lognormal", "exponential", "standard_normal"])
@pytest.mark.parametrize("sizes", [(10, 10), (30, 30), (10, 300)])
def test_long_tails_and_unequal_samples_raise_few_false_alarms(law, sizes):
    rng = np.random.default_rng(1)
    draw = getattr(rng, law)
    alarms = [
        _growth(*(draw(size=(n, 1)) for n in sizes), np.array(sizes))[0] != 0 for _ in range(1000)
    ]
    assert np.mean(alarms) < 0.02


@pytest.mark.browser
def test_lists_and_panels_say_how_large_a_spread_was_and_is(
    visiting: Callable[..., Visit], tmp_path: Path
) -> None:
    samples = samples_with([12.0, 2.0, 5.0])
    test = gr.two_sample_test(samples, random_state=0)
    path = write_report(
        tmp_path / "r.html", fitted(samples), samples, test=test, units={"ground_speed": "mph"}
    )
    subject = Subject.of(fitted(samples), samples)
    sizes = [[f"{size:.3g}" for size in pair] for pair in subject.spread[:, :, 0]]
    assert f"spread of ground_speed from {sizes[0][0]} to {sizes[0][1]} mph" in shown(path)
    page = visiting(path).page
    for node, verb in ((0, "grew"), (1, "fell")):
        page.locator(f"#nodes tbody tr[data-node='{node}'] button").click()
        before, after = sizes[node]
        said = f"Its spread {verb} from {before} to {after} mph."
        assert page.locator(".spread-change").all_text_contents() == [said]
        assert "mph" in page.text_content("#mean-change")
    page.locator("#nodes tbody tr[data-node='2'] button").click()
    assert page.locator(".spread-change").count() == 0
