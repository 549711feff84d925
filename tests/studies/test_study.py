"""The quick profile as a program: results, tables, figures and the page."""

import fcntl
import os
import time
import xml.etree.ElementTree as ElementTree
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from studies.paper import methods, runner
from studies.paper.__main__ import main
from studies.paper.cells import cells_of
from studies.paper.figures import draw_figures, style
from studies.paper.methods import METHODS, PAPER_METHODS
from studies.paper.page import PAGE, filled
from studies.paper.store import load_results
from studies.paper.tables import error_table
from studies.paper.theory_curve import theory_curve

# Left out by `make quick`.
pytestmark = pytest.mark.slow


def quick(*steps, folder):
    main([*steps, "--profile", "quick", "--folder", str(folder), "--workers", "1"])


@contextmanager
def alone(folder):
    """Wait until no other process that runs tests writes to the folder."""
    with open(folder.parent / "study.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The quick profile, once for all processes that run tests."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "study"
    # Two folds of five: what is checked is not how well penalties are chosen.
    two_folds = {name: partial(METHODS[name], cv=2) for name in ("GRULSIF", "POOL")}
    with alone(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "METHODS", {**METHODS, **two_folds})
        began = time.process_time()
        quick("run", folder=folder)
        assert time.process_time() - began < 25
    return folder


@pytest.fixture(scope="module")
def results(study):
    return load_results(study, cells_of("quick"))


@pytest.fixture(scope="module")
def one_scenario(results):
    return results[results["scenario"] == "Ib"]


def test_quick_study_has_every_method_on_every_scenario(results):
    runs = results.groupby(["scenario", "method"]).size().unstack()
    assert set(runs.columns) == set(PAPER_METHODS)
    assert runs.notna().all().all()
    assert list(runs.index) == ["IIa", "IIb", "Ia", "Ib"]
    assert np.isfinite(results["squared_error"]).all()
    plain = results["method"].isin(["ULSIF", "KLIEP"])
    assert ((results["alpha"] == 0) == plain).all()
    assert results["converged"].all()


def test_running_again_computes_nothing(study, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run_cell", lambda cell: 1 / 0)
    with alone(study):
        quick("run", folder=study)
    assert "0 cells computed, 144 kept" in capsys.readouterr().out


def test_failures_stop_the_steps_that_follow(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run_cell", lambda cell: 1 / 0)
    with pytest.raises(SystemExit, match="144 cells failed"):
        quick(folder=tmp_path)
    told = capsys.readouterr()
    assert "ZeroDivisionError" in told.err
    assert "tables" not in told.out


def test_stopping_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stopped(cell):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_cell", stopped)
    with pytest.raises(SystemExit) as ended:
        quick("run", folder=tmp_path)
    assert ended.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_without_results_it_says_how_to_get_them(tmp_path):
    with pytest.raises(SystemExit, match=r"holds no results.*studies\.paper run"):
        quick("figures", folder=tmp_path)


def test_tables_and_page_of_a_trial_stay_in_its_folder(study, results):
    before = PAGE.read_bytes()
    quick("tables", "page", folder=study)
    names = {path.name for path in (study / "quick").iterdir()}
    assert names == {"errors.csv", "order.csv", "divergences.csv", PAGE.name}
    assert PAGE.read_bytes() == before
    page = (study / "quick" / PAGE.name).read_text(encoding="utf-8")
    assert "144 of the 144 fits of the quick profile, 2 seeds per setting" in page
    table = error_table(results).set_index(["scenario", "method", "n_nodes", "n", "alpha"])
    assert f"{table.loc[('IIb', 'POOL', 12, 20, 0.1), 'error']:.3g} (" in page
    assert filled(page, results, "quick") == page


def test_a_page_without_places_is_refused(results):
    with pytest.raises(ValueError, match="no place for the table 'study'"):
        filled("# Another page", results, "quick")


def test_figures_of_one_scenario(one_scenario, tmp_path):
    files = [path.name for path in draw_figures(one_scenario, tmp_path)]
    names = ("convergence-Ib", "divergences-Ib", "alpha-Ib", "divergences-alpha-Ib", "graph-size")
    assert files == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    for name in names:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        text = " ".join(ElementTree.parse(tmp_path / f"{name}.svg").getroot().itertext())
        assert "GRULSIF" in text
        assert "Ib" in text
    everything = (tmp_path / "convergence-Ib.svg").read_text()
    assert all(method in everything for method in PAPER_METHODS)
    assert all(style.COLOURS[method] in everything for method in PAPER_METHODS)
    # In scenario Ib the plain ratio of C3 is not square integrable.
    assert "true: infinite" in (tmp_path / "divergences-Ib.svg").read_text()


def test_theory_curve_has_its_own_graph_for_every_row(one_scenario):
    curve = theory_curve(one_scenario)
    assert sorted(curve["n_nodes"]) == [12, 12, 24, 24]
    assert curve["graph_factor"].nunique() == 4
    assert curve["smoothness"].nunique() == 4
    # Only the power by itself is sure to fall with the number of nodes.
    assert set(curve.loc[curve["n_nodes"] == 12, "power"]) == {1.0}
    assert (curve.loc[curve["n_nodes"] == 24, "power"] < 1).all()


def test_labels_keep_apart_and_inside():
    rng = np.random.default_rng(0)
    for _ in range(50):
        heights = np.sort(rng.uniform(0, 1, rng.integers(1, 7)))
        placed = style.spread(heights, 0.1)
        assert (np.diff(placed) >= 0.1 - 1e-9).all()
        assert (placed >= -1e-9).all()
        assert (placed <= 1 + 1e-9).all()
