"""The page of evidence holds what the stored studies hold, and loses where it says so."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import graphratio as gr

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page():
    sys.path.insert(0, str(ROOT / "studies"))
    try:
        import evidence_page

        return evidence_page
    finally:
        sys.path.remove(str(ROOT / "studies"))


def test_every_table_is_that_of_the_studies(page):
    assert page.filled(PAGE) == PAGE, "run: python studies/evidence_page.py"


def test_a_number_that_was_changed_is_put_right(page):
    changed = PAGE.replace("| Ia | 50 | 0.035", "| Ia | 50 | 0.001")
    assert changed != PAGE
    assert page.filled(changed) == PAGE


def cells(lines, first):
    """Numbers of the row of a table that begins with a text."""
    row = next(line for line in lines if line.startswith(f"| {first} |"))
    return [float(cell.split()[0]) for cell in row.removeprefix(f"| {first} |").split("|")[:-1]]


def test_it_loses_where_the_page_says_so(page):
    for scenario in ("Ib", "IIa"):
        own, grulsif, pool, rulsif = cells(page.accuracy(), f"{scenario} | 250")
        assert own < rulsif < grulsif
        assert pool < grulsif
    _, grulsif, pool, _ = cells(page.real_data(), "sea, 421 blocks | 30")
    assert grulsif < pool
    for case in ("one node, shift 0.9", "one node of a 10 x 10 grid, shift 1, n = 50"):
        ours, energy = cells(page.lone(), case)[:2]
        assert energy - 0.1 < ours < energy
    faster = {line.split("|")[1].strip(): line.split("|")[3] for line in page.speed()[2:]}
    known = "change of the mean, somebody else has chosen the penalty of ruptures"
    assert float(faster[known]) < 0.1
    units = [float(value) for work, value in faster.items() if work.startswith("ventilation")]
    assert len(units) == 2
    assert max(units) < 1
    pieces = json.loads((ROOT / "benchmarks" / "results.json").read_text())["pieces"]
    right = [
        each["our_accuracy"] > each["their_accuracy"]
        for each in pieces["skchange"]["comparisons"]
        if each["work"].startswith("ventilation")
    ]
    assert right == [False, False]
    share = [float(line.split("|")[5].strip(" %")) for line in page.coverage() if "| IIa" in line]
    assert 87 < np.max(share) < 90


def test_one_pair_of_samples_is_better_off_with_rulsif():
    """One of two features moves by one standard deviation; errors on fresh points."""
    assert "**One pair of samples.**" in PAGE
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        reference, target = rng.normal(size=(2, 100, 2))
        target[:, 0] += 1
        points = rng.normal(size=(2000, 2)) + [1, 0] * (rng.random((2000, 1)) < 0.1)
        # The ratio of two normal densities with means 1 and 0, and unit spread.
        plain = np.exp(points[:, 0] - 0.5)
        truth = plain / (0.9 + 0.1 * plain)
        fitted = [
            estimator(random_state=0).fit((reference, target)).predict(points, node=0)
            for estimator in (gr.RULSIF, gr.GraphRatio)
        ]
        errors.append([np.mean((ratio - truth) ** 2) for ratio in fitted])
    rulsif, graphratio = np.mean(errors, axis=0)
    assert rulsif < graphratio
