"""The study of dictionaries without observations: how it judges, and what was stored."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    try:
        import restricted

        return restricted
    finally:
        sys.path.remove(str(STUDIES))


@pytest.mark.slow
@pytest.mark.parametrize("data", ["Ia", "IIb"])
def test_a_small_draw(study, monkeypatch, data):
    monkeypatch.setattr(study, "ESTIMATORS", {"GRULSIF": study.ESTIMATORS["GRULSIF"]})
    rows = list(study.judged(data, 9001, n=15, fresh=200))
    assert [row[1] for row in rows] == list(study.dictionaries(data))
    values = np.array([row[2] for row in rows])
    # No dictionary is far from the one of observations.
    assert np.isfinite(values).all()
    assert np.abs(values - values[0]).max() < 0.25 * abs(values[0])
    assert rows[-1][3] == 100


def test_every_draw_is_stored(study):
    with study.TABLE.open() as file:
        rows = list(csv.DictReader(file))
    pairs = len(study.ESTIMATORS) * len(study.dictionaries("Ia"))
    assert len(rows) == len(study.BOUNDS) * study.DRAWS * pairs


def test_the_page_has_the_stored_numbers(study):
    assert study.tables(study.TABLE) in study.PAGE.read_text(encoding="utf-8")


def test_centres_cost_what_the_page_says(study):
    """No difference of more than 0.003; quasi-random points lose 0.021 on IIa with GRULSIF."""
    with study.TABLE.open() as file:
        rows = list(csv.DictReader(file))
    mean = {}
    for row in rows:
        key = row["estimator"], row["dictionary"], row["data"]
        mean.setdefault(key, []).append(float(row["value"]))
    mean = {key: float(np.mean(values)) for key, values in mean.items()}
    worst = max(
        abs(value - mean[name, "observations", data])
        for (name, label, data), value in mean.items()
        if label.startswith("centres")
    )
    assert round(worst, 3) == 0.003
    lost = mean["GRULSIF", "quasi-random", "IIa"] - mean["GRULSIF", "observations", "IIa"]
    assert round(lost, 3) == 0.021
