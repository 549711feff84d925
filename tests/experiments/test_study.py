"""The quick profile from the command line: results, tables and figures."""

import importlib.util
import json
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from graphratio.cli.app import app
from graphratio.experiments import PAPER_METHODS, error_table, load_results, theory_curve
from graphratio.experiments import runner as runner_module
from graphratio.experiments.figures import _style


def invoke(*arguments):
    return CliRunner().invoke(app, ["experiment", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The quick profile, once."""
    folder = tmp_path_factory.mktemp("study")
    began = time.process_time()
    result = invoke("run", "--quick", "--output", folder, "--workers", 1, "--json")
    assert result.exit_code == 0, result.output
    assert time.process_time() - began < 60
    content = json.loads(result.stdout)
    assert content["failures"] == []
    assert content["table"] == str(folder / "results.parquet")
    return folder


@pytest.fixture(scope="module")
def one_scenario(study, tmp_path_factory):
    """A folder with nothing but the table of one scenario."""
    folder = tmp_path_factory.mktemp("one")
    results = load_results(study)
    results[results["scenario"] == "Ib"].to_csv(folder / "results.csv", index=False)
    return folder


def test_quick_study_has_every_method_on_every_scenario(study):
    results = load_results(study)
    runs = results.groupby(["scenario", "method"]).size().unstack()
    assert set(runs.columns) == set(PAPER_METHODS)
    assert runs.notna().all().all()
    assert list(runs.index) == ["IIa", "IIb", "Ia", "Ib"]
    assert np.isfinite(results["squared_error"]).all()
    plain = results["method"].isin(["ULSIF", "KLIEP"])
    assert ((results["alpha"] == 0) == plain).all()
    assert results["converged"].all()


def test_running_again_computes_nothing(study, monkeypatch):
    monkeypatch.setattr(runner_module, "run_cell", lambda cell: 1 / 0)
    result = invoke("run", "--quick", "--output", study, "--workers", 1)
    assert result.exit_code == 0
    assert " 0 computed now" in result.stdout


def test_failures_are_told_with_exit_code_1(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_module, "run_cell", lambda cell: 1 / 0)
    options = ["--scenarios", "Ia", "--methods", "POOL", "--n", 20, "--alpha", 0.1, "--seeds", 2]
    result = invoke("run", "--quick", "--output", tmp_path, "--workers", 1, *options)
    assert result.exit_code == 1
    assert "failed: Ia POOL n=20 N=16 alpha=0.1 seed=0: ZeroDivisionError" in result.stderr
    assert "4 of 4 cells failed" in result.stderr


def test_stopping_says_how_to_go_on(tmp_path, monkeypatch):
    def stopped(cell):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner_module, "run_cell", stopped)
    result = invoke("run", "--quick", "--output", tmp_path, "--workers", 1)
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--methods", "MAGIC"], 1, "'MAGIC'"),
        (["--n", "ten"], 2, "not a list of numbers"),
        (["--nodes", "50"], 1, "multiples of 4"),
    ],
)
def test_bad_options_are_refused_before_work(tmp_path, options, code, message):
    result = invoke("run", "--quick", "--output", tmp_path / "new", *options)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "new").exists()


def test_tables_are_printed_and_written(study, tmp_path):
    result = invoke("table", study, "--output", tmp_path)
    assert result.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "errors.csv", "order.csv", "divergences.csv",
    }  # fmt: skip
    table = error_table(load_results(study))
    assert f"{table['error'].iloc[0]:.3g}" in result.stdout


def test_figures_of_one_scenario(one_scenario, tmp_path):
    result = invoke("figures", one_scenario, "--output", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    files = [path.rsplit("/", 1)[1] for path in json.loads(result.stdout)["files"]]
    names = ("convergence-Ib", "divergences-Ib", "alpha-Ib", "divergences-alpha-Ib", "graph-size")
    assert files == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    for name in names:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        text = " ".join(ElementTree.parse(tmp_path / f"{name}.svg").getroot().itertext())
        assert "GRULSIF" in text
        assert "Ib" in text
    everything = (tmp_path / "convergence-Ib.svg").read_text()
    assert all(method in everything for method in PAPER_METHODS)
    assert all(_style.COLOURS[method] in everything for method in PAPER_METHODS)
    # In scenario Ib the plain ratio of C3 is not square integrable.
    assert "true: infinite" in (tmp_path / "divergences-Ib.svg").read_text()


def test_theory_curve_has_its_own_graph_for_every_row(one_scenario):
    curve = theory_curve(load_results(one_scenario))
    assert sorted(curve["n_nodes"]) == [16, 16, 32, 32]
    assert curve["graph_factor"].nunique() == 4
    assert curve["smoothness"].nunique() == 4
    # Only the power by itself is sure to fall with the number of nodes.
    assert set(curve.loc[curve["n_nodes"] == 16, "power"]) == {1.0}
    assert (curve.loc[curve["n_nodes"] == 32, "power"] < 1).all()


def test_labels_keep_apart_and_inside():
    rng = np.random.default_rng(0)
    for _ in range(50):
        heights = np.sort(rng.uniform(0, 1, rng.integers(1, 7)))
        placed = _style.spread(heights, 0.1)
        assert (np.diff(placed) >= 0.1 - 1e-9).all()
        assert (placed >= -1e-9).all()
        assert (placed <= 1 + 1e-9).all()


def test_without_results_it_says_how_to_get_them(tmp_path):
    result = invoke("figures", tmp_path)
    assert result.exit_code == 1
    assert "holds no results" in result.stderr
    assert "experiment run" in result.stderr


def test_page_gets_its_tables_from_the_results(study):
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("paper", root / "studies" / "paper.py")
    paper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(paper)
    page = (root / "docs" / "reproducing-the-paper.md").read_text(encoding="utf-8")
    results = load_results(study)
    filled = paper.filled(page, results)
    table = error_table(results).set_index(["scenario", "method", "n_nodes", "n", "alpha"])
    shown = table.loc[("IIb", "POOL", 16, 40, 0.1), "error"]
    assert f"{shown:.3g} (" in filled
    assert paper.filled(filled, results) == filled
    with pytest.raises(ValueError, match="no place for the table 'study'"):
        paper.filled("# Another page", results)
