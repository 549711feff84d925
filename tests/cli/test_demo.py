"""The demo on real flights: what it finds, and that it writes everything."""

import json
from copy import copy

import pytest
from scipy import stats
from typer.testing import CliRunner

import graphratio as gr
from graphratio.cli import demo as program
from graphratio.cli.app import app

# Left out by `make quick`.
pytestmark = pytest.mark.slow


class Kept:
    """A function that computes once and then returns copies of what it found."""

    def __init__(self, function):
        self.function, self.found = function, None

    def __call__(self, *args):
        if self.found is None:
            self.found = self.function(*args)
        return tuple(map(copy, self.found))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run the demo once. Later runs of this module read and write, but fit nothing again."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fit_problem", "find_kinds"):
            patch.setattr(program, name, Kept(getattr(program, name)))
        result = CliRunner().invoke(app, ["demo", "--output", str(folder)])
        assert result.exit_code == 0, result.output
        yield result, folder


def test_demo_finds_what_winter_does(demo):
    _, folder = demo
    model = gr.load(folder / "model.graphratio")
    data = gr.datasets.load_flights()
    divergence = dict(zip(model.nodes_, model.divergence_, strict=True))
    ranked = sorted(divergence, key=divergence.get)
    assert {"BOS", "MHT", "PHL", "BTV", "PWM"} <= set(ranked[:10])
    assert {"AUS", "SAT", "DFW"} <= set(ranked[-10:])
    own = [
        stats.ks_2samp(
            data.samples.reference(node).ravel(), data.samples.target(node).ravel()
        ).statistic
        for node in model.nodes_
    ]
    assert stats.spearmanr(model.divergence_, own).statistic >= 0.9


def test_demo_says_where_and_what_to_look_at(demo):
    result, folder = demo
    assert {path.name for path in folder.iterdir()} == {
        "report.html", "nodes.csv", "model.graphratio",
    }  # fmt: skip
    text = result.stdout
    assert str(folder / "report.html") in text
    assert "AUS Austin" in text
    assert "BOS Boston" in text
    assert all(airport in text for airport in ("BQN", "SJU", "STT"))
    assert "With 8 random flights per airport and season: With the graph" in text
    assert "0 kinds of change at 67 nodes (changed: 66, unchanged: 1)" in text


def test_demo_replaces_its_own_output(demo, run, monkeypatch):
    _, folder = demo
    monkeypatch.setattr("graphratio.report.write_report", lambda path, *_, **__: path)
    result = run("demo", "--output", folder, "--json")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert content["n_nodes"] == 67
    assert content["estimator"] == "GraphRatio"
    assert content["kinds"] == {"changed": 66, "unchanged": 1}
    assert sum("there are no kinds" in note for note in content["notes"]) == 1
    assert content["files"]["report"] == str(folder / "report.html")


def test_demo_refuses_a_file(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--output", tmp_path / "file")
    assert result.exit_code == 1
    assert "is a file" in result.stderr
