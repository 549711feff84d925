"""The study of divergences: a small run, and what was stored."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    try:
        import divergences

        return divergences
    finally:
        sys.path.remove(str(STUDIES))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_small_draw(study, monkeypatch):
    for kind, estimator in study.KINDS.items():
        few = partial(estimator, bandwidth=[1.0, 2.0], cv=2)
        monkeypatch.setitem(study.KINDS, kind, few)
    found = study.judged("Ia", 1, n_nodes=8, n=30)
    assert {f"GRULSIF, {loss}" for loss in study.LOSSES} < set(found)
    for method, cell in found.items():
        assert 0 < cell["ratio"] < 3, method
        assert cell["seconds"] > 0
    assert set(found["KLIEP"]) == {"ratio", "seconds", "KL"}
    assert set(found["GRULSIF, pearson"]) == {"ratio", "seconds"}
    assert "Jensen-Shannon" in found["GraphRatio, jensen-shannon"]
    # Sharing strength over the graph pays even here.
    assert found["GRULSIF, kl"]["KL"] < found["KLIEP"]["KL"]
    assert "| GRULSIF, kl |" in study.tables({name: {"1": found} for name in study.SCENARIOS})


def test_logistic_regression_node_by_node_finds_the_ratio(study):
    import graphratio as gr

    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays([rng.normal(size=400)], [rng.normal(1, 1, size=200)])
    model = study.NodewiseLogistic().fit(samples)
    x = np.array([[-1.0], [0.5], [2.0]])
    np.testing.assert_allclose(model.log_ratio(x, 0), x[:, 0] - 0.5, atol=0.35)


def test_what_was_stored_keeps_the_promises(study):
    stored = json.loads(study.STORED.read_text())
    assert all(len(stored[name]) >= 3 for name in study.SCENARIOS)
    kl, ratio = study.means(stored, "KL"), study.means(stored, "ratio")
    assert (np.array(kl["GraphRatio, kl"]) <= 0.5 * np.array(kl["KLIEP"])).all()
    for kind in study.KINDS:
        js, pearson = (ratio[f"{kind}, {loss}"] for loss in ("jensen-shannon", "pearson"))
        if kind == "GRULSIF":
            assert (np.array(js) <= 1.2 * np.array(pearson)).all()
    # What the page says in words.
    ib, iia = (study.SCENARIOS.index(name) for name in ("Ib", "IIa"))
    for loss in ("kl", "jensen-shannon"):
        assert ratio["GraphRatio, pearson"][iia] < 0.5 * ratio[f"GraphRatio, {loss}"][iia]
    assert kl["GRULSIF, kl"][ib] > 0.5 * kl["KLIEP"][ib]


def test_no_draw_is_one_that_was_looked_at_before(study):
    stored = json.loads(study.STORED.read_text())
    assert study.FIRST_SEED == 40001
    assert "from seed 40,001 on" in study.PAGE.read_text()
    assert all(int(seed) >= study.FIRST_SEED for draws in stored.values() for seed in draws)


def test_the_page_shows_what_is_stored(study):
    assert study.tables(json.loads(study.STORED.read_text())) in study.PAGE.read_text()
