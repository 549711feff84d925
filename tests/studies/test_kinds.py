"""The study of kinds of change: how it judges, and what was stored."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    try:
        import kinds

        return kinds
    finally:
        sys.path.remove(str(STUDIES))


def test_names_are_matched_one_to_one(study):
    groups = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 2)
    changed = groups != "c"
    kinds = np.array(["kind 2"] * 3 + ["unchanged"] + ["kind 1"] * 4 + ["kind 1", "unchanged"])
    assert study.judged(kinds, groups, changed) == (7 / 8, 1.0)
    merged = np.where(changed, "kind 1", "unchanged")
    assert study.judged(merged, groups, changed) == (0.5, 0.0)
    assert study.judged(np.full(10, "changed"), groups, changed) == (0.0, 0.0)


@pytest.mark.slow
def test_a_quiet_network_and_a_scenario(study):
    assert study.quiet("ring, 20 nodes", 0) in (0.0, 1.0)
    called, named, found, false = study.scenario("IIa n=50", next(study.seeds("IIa", 1, 8001)))
    assert min(called, named, found) > 0.9
    assert false < 0.2


def test_stored_quiet_networks_keep_the_level(study):
    stored = json.loads(study.STORED.read_text())
    for cell in study.QUIET:
        sets = stored[cell]
        assert len(sets) == study.QUIET_SETS
        assert sum(sets.values()) <= binom.ppf(0.975, len(sets), study.LEVEL)


def test_the_page_shows_what_is_stored(study):
    assert study.tables(json.loads(study.STORED.read_text())) in study.PAGE.read_text()
