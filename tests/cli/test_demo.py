"""The demo on real flights: what it finds, and that it writes everything."""

import json
import re
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import graphratio as gr
from graphratio.cli import demo as program
from graphratio.cli.app import app
from graphratio.cli.inputs import at_random
from graphratio.report import graph_section

# Left out by `make quick`.
pytestmark = pytest.mark.slow


class Kept:
    """A function that computes once and then returns copies of what it found, if it is a tuple."""

    def __init__(self, function):
        self.function, self.found = function, None

    def __call__(self, *args):
        if self.found is None:
            self.found = self.function(*args)
        return tuple(map(copy, self.found)) if isinstance(self.found, tuple) else self.found


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run the demo once. Later runs of this module read and write, but fit nothing again."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (program, "fit_problem"),
            (program, "find_kinds"),
            (graph_section, "compared_with_none"),
        ):
            patch.setattr(module, name, Kept(getattr(module, name)))
        patch.setattr(program.Curtain, "open", Kept(program.Curtain.open))
        result = CliRunner().invoke(app, ["demo", "--output", str(folder)])
        assert result.exit_code == 0, result.output
        yield result, folder


def test_the_page_names_no_option_that_the_demo_lacks(demo):
    page = (demo[1] / "report.html").read_text(encoding="utf-8")
    assert "Features were standardised" in page
    assert "--standardize" not in page


def test_notes_name_no_option_that_the_demo_lacks(tmp_path):
    """Ten flights of this draw look as if they depended on each other."""
    result = CliRunner().invoke(app, ["demo", "--seed", "1", "--json", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    notes = json.loads(result.stdout)["notes"]
    assert any("pass time in Python" in note for note in notes)
    assert not any("--" in text for text in (*notes, result.stderr))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "pass time in Python" in page
    assert "pass --" not in page


def test_a_fit_without_the_graph_shows_only_own_changes():
    own, joined = {"v_mean_change": [1.0]}, {"v_mean_change_with_neighbors": [2.0]}
    assert program._changes_of_speed(own, "v") == {"change of mean speed": [1.0]}
    both = {"change of mean speed, with neighbours": [2.0], "own flights": [1.0]}
    assert program._changes_of_speed(own | joined, "v") == both


def test_demo_finds_what_winter_does(demo):
    _, folder = demo
    model = gr.load(folder / "model.graphratio")
    data = gr.datasets.load_flights()
    assert (model.sizes_ == program.FEW_FLIGHTS).all()
    chosen = at_random(data.samples, program.FEW_FLIGHTS, 0)
    few = data.samples.subset(observations=chosen)
    truth = gr.mean_changes(data.samples).own[:, 0]
    found = gr.mean_changes(few, data.graph)
    joined, own = (
        stats.spearmanr(change[:, 0], truth).statistic for change in (found.estimate, found.own)
    )
    assert joined >= 0.86
    assert joined > own
    # On hidden flights the graph helps.
    hidden = data.samples.subset(observations=~chosen)
    alone = gr.GraphRatio(random_state=0).fit(few.standardized())
    assert model.divergence(hidden).mean() > alone.divergence(hidden).mean()


def test_signed_changes_follow_those_of_all_flights():
    """Seeds that nothing was chosen on; docs/report.md states the means."""
    data = gr.datasets.load_flights()
    truth = gr.mean_changes(data.samples).own[:, 0]
    ranks = []
    for seed in range(7700, 7720):
        chosen = at_random(data.samples, program.FEW_FLIGHTS, seed)
        found = gr.mean_changes(data.samples.subset(observations=chosen), data.graph)
        changes = (found.estimate[:, 0], found.own[:, 0])
        ranks.append([stats.spearmanr(change, truth).statistic for change in changes])
    joined, alone = np.array(ranks).T
    assert joined.mean() >= 0.86
    assert (joined > alone).sum() >= 18
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    words = " ".join(page.split())
    assert f"was {joined.mean():.2f} with the graph and {alone.mean():.2f} alone" in words
    assert f"in all {int((joined > alone).sum())}." in words


def test_demo_says_where_and_what_to_look_at(demo):
    result, folder = demo
    assert {path.name for path in folder.iterdir()} == {
        "report.html", "nodes.csv", "model.graphratio",
    }  # fmt: skip
    text = result.stdout
    assert "Selected by cross-validation: bandwidth " in text
    assert str(folder / "report.html") in text
    assert "AUS Austin" in text
    assert all(airport in text for airport in ("BQN", "SJU", "STT"))
    assert "10 flights per airport and season were drawn at random" in text
    assert "observations per node say as much as 10 of each node alone" in text
    assert "Now the curtain opens" in text
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Ground speed rose at" in page
    assert "worth of the graph" in page
    # The curtain has its own section, right behind the first screen.
    found = re.findall(r'<section id="([a-z]+)-section"', page)
    assert found == ["what", "where", "own", "how", "sure", "table", "graph", "fit"]
    curtain = page.split('id="own-section"')[1].split("</section>")[0]
    said = re.search(r"themselves give (.*?), that is, .*The\s+hidden flights give ([\d.]+), (\w+)",
                     curtain, re.S)  # fmt: skip
    low = float(re.search(r"(?:at least |\()([\d.]+)", said[1])[1])
    assert said[3] == "inside"
    assert float(said[2]) >= low - 0.05
    assert "Far off alone, and at least twice as close with the graph: " in curtain


def test_demo_replaces_its_own_output(demo, run, monkeypatch):
    _, folder = demo
    monkeypatch.setattr("graphratio.report.write_report", lambda path, *_, **__: path)
    result = run("demo", "--output", folder, "--json")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert content["n_nodes"] == 67
    assert content["estimator"] == "GraphRatio"
    assert content["files"]["report"] == str(folder / "report.html")
    hidden = content["hidden"]
    for measure in ("held_out_divergence", "rank_correlation"):
        assert hidden[measure]["with_graph"] > hidden[measure]["alone"]
    error = hidden["mean_absolute_error"]
    assert error["with_graph"] < error["alone"]
    assert hidden["worth"] > 1.3


def test_the_comparison_is_there_when_the_results_are_written(demo, run, shown):
    result = run("demo", "--output", demo[1])
    assert result.exit_code == 0, result.stderr
    assert shown.count("Measuring what the graph is worth") == 1
    assert shown[-1] == "Writing the results"


def test_demo_refuses_a_file(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--output", tmp_path / "file")
    assert result.exit_code == 1
    assert "is a file" in result.stderr
