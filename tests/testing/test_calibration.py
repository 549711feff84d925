"""A small version of the calibration study."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

# Left out by `make quick`.
pytestmark = pytest.mark.slow

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(STUDIES)
        import calibration

        yield calibration
    for name in ("calibration", "calibration_page", "per_node_tests"):
        sys.modules.pop(name, None)


def rejections(study, name, null, n_sets, level, n_permutations):
    """Rejections and trials: the unchanged nodes of each data set, or the whole graph."""
    (cell,) = (c for c in study.CELLS if (c.name, c.null) == (name, null))
    small = replace(cell, n_permutations=n_permutations)
    p_values = np.concatenate([study.one_set(small, i) for i in range(n_sets)])
    return (p_values <= level).sum(), len(p_values)


@pytest.mark.parametrize(
    ("name", "null", "n_sets", "n_permutations"),
    [
        ("four nodes among changed ones", "node", 20, 199),
        ("three nodes only", "node", 30, 199),
        ("nothing changed", "global", 80, 39),
        ("correlation 0.6, with times", "global", 80, 39),
    ],
)
def test_false_alarms_stay_below_the_level(study, name, null, n_sets, n_permutations):
    found, n_trials = rejections(study, name, null, n_sets, 0.1, n_permutations)
    assert n_trials >= 80
    # The chance that a valid test fails here is 0.1 %, with nodes whose p-values are independent.
    assert found <= binom.isf(0.001, n_trials, 0.1)


def test_correlated_nodes_without_times_are_a_false_alarm(study):
    """The counterpart: the check above is able to fail."""
    found, _ = rejections(study, "correlation 0.6, without times", "global", 40, 0.1, 39)
    assert found > binom.isf(0.001, 40, 0.1)


def test_summary_and_page(study, tmp_path):
    cell = next(c for c in study.CELLS if c.family)
    p_values = np.random.default_rng(0).uniform(size=(500, 16))
    rows = study.summarise(cell, p_values)
    # A node and Holm, five dimensions, five graphs, three levels each.
    assert len(rows) == 3 * (2 + 5 + 5)
    assert abs(rows[1]["rate"] - 0.05) < 0.01
    study.write(tmp_path / "calibration.csv", rows)
    dependent = [
        {"cell": cell, "seed": seed, "answerable": 1, "rejected": seed % 2, "block": 15}
        for cell in ("AR(1) 0.5, n = 150", "AR(1) 0.5, n = 150, shift 1.5")
        for seed in range(4)
    ]
    study.write(tmp_path / "dependent.csv", dependent)
    power = [
        {
            "scenario": "Ia",
            "seed": seed,
            "test": test,
            "correction": correction,
            "power": 0.5,
            "any_false": False,
            "false_share": 0.0,
        }
        for seed in (1, 2)
        for test in ("graphratio", "MMD")
        for correction in ("fwer", "fdr")
    ]
    study.write(tmp_path / "calibration_power.csv", power)
    lone = [
        {"case": "one node, shift 0.9", "seed": seed, "test": test, "found": float(seed == 1)}
        for seed in range(4)
        for test in ("graphratio", "energy")
    ]
    study.write(tmp_path / "calibration_lone.csv", lone)
    text = study.page(tmp_path)
    assert "| one node, shift 0.9 | 0.25 | 0.25 |" in text
    assert "| nothing changed | node | a node | 500 |" in text
    assert "| Ia | Holm | 0.500 ± 0.000 | 0.500 ± 0.000 | 0.000 |" in text


def test_per_node_tests_find_a_strong_change(study):
    import graphratio as gr

    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        list(rng.normal(size=(2, 20))), list(rng.normal(size=(2, 20)) + np.array([[0.0], [3.0]]))
    )
    found = study.per_node_p_values(samples, 199, rng)
    assert set(found) == {"RULSIF 0.1", "RULSIF 0.01", "RULSIF 0.001", "MMD", "energy", "KS"}
    for p_values in found.values():
        assert p_values[1] == 1 / 200
        assert p_values[0] > 0.05
