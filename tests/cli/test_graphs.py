"""`graphratio graphs`: several graphs compared from files."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import COLUMNS

from graphratio.cli import graphs

N_NODES = 60


@pytest.fixture(autouse=True)
def _one_split(monkeypatch):
    """Observations are divided into folds once, which takes half the time of the usual twice."""
    once = partial(graphs.compare_graphs, n_repeats=1)
    monkeypatch.setattr(graphs, "compare_graphs", once)


@pytest.fixture
def network(write):
    """Stations on a line that change in two halves; roads follow the line, pipes do not."""
    rng = np.random.default_rng(4)
    rows = []
    for v in range(N_NODES):
        for period in ("before", "after"):
            moved = (2.0 if v < N_NODES / 2 else -2.0) * (period == "after")
            rows += [(f"s{v}", period, x, 50.0 + v / 10, 4.0) for x in rng.normal(moved, 1, 12)]
    data = write(pd.DataFrame(rows, columns=["station", "period", "pm25", "lat", "lon"]))
    order = rng.permutation(N_NODES)
    line = [(v, w) for v in range(N_NODES) for w in (v + 1, v + 2) if w < N_NODES]

    def text(pairs):
        return "a,b\n" + "".join(f"s{a},s{b}\n" for a, b in pairs)

    roads = write(text(line), "roads.csv")
    pipes = write(text([(order[a], order[b]) for a, b in line]), "pipes.csv")
    return [data, *COLUMNS, "--features", "pm25"], roads, pipes


def test_text_page_and_tables(network, run, tmp_path):
    data, roads, pipes = network
    folder = tmp_path / "out"
    result = run("graphs", *data, "--edges", roads, "--edges", pipes, "--output", folder)
    assert result.exit_code == 0, result.output
    assert "'roads' fits the data best, clearly better than 'pipes'" in " ".join(
        result.output.split()
    )
    fits = pd.read_csv(folder / "fits.csv").set_index("fit")
    assert set(fits.index) == {"roads", "pipes", "without a graph", "all nodes as one"}
    assert fits.loc["roads", "worth"] > 1.3
    # Nothing is claimed of a graph that is not better than none.
    assert np.isnan(fits.loc["pipes", "worth"])
    nodes = pd.read_csv(folder / "nodes.csv")
    assert len(nodes) == N_NODES
    assert {"gain", "agreement", "neighbors_in_region"} <= set(nodes)
    assert (nodes["worth"].dropna() >= nodes["worth_low"].dropna()).all()
    assert nodes["worth"].notna().mean() > 0.5
    page = (folder / "graphs.html").read_text()
    assert "“roads” is the best graph" in page
    # One pair of curves.
    assert page.count("<polyline") == 2
    assert "No worth is stated for “pipes”, which is not clearly better" in " ".join(page.split())
    again = run("graphs", *data, "--edges", roads, "--output", folder)
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_json_and_coordinates(network, run, tmp_path):
    data, roads, _ = network
    asked = ["--edges", roads, "--coordinates", "lat,lon", "--neighbors", "3", "--json"]
    result = run("graphs", *data, *asked, "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {fit["fit"] for fit in found["fits"]} >= {"roads", "nearest"}
    # Both join neighbours along the line.
    assert found["best"] is None
    assert set(found["worth"]) == {"roads", "nearest"}
    for own in found["worth"].values():
        assert own["low"] >= 1
        assert own["high"] is None or own["high"] >= own["low"]
    assert found["files"]["page"].endswith("graphs.html")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([], "name a graph to compare"),
        (["--edges", "{roads}", "--level", "2"], "--level must be between 0 and 1"),
        (["--edges", "{roads}", "--edges", "{roads}"], "two edges files are called 'roads'"),
    ],
)
def test_what_is_refused(network, run, tmp_path, asked, message):
    data, roads, _ = network
    given = [part.format(roads=roads) for part in asked]
    result = run("graphs", *data, *given, "--output", tmp_path / "out")
    assert result.exit_code != 0
    assert message in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_too_few_observations_for_the_folds(network, run, tmp_path):
    data, roads, _ = network
    few = ["--max-observations", 4, "--output", tmp_path / "out"]
    result = run("graphs", *data, "--edges", roads, *few)
    assert result.exit_code == 1
    hint = "hint: Collect more observations per node, or pass n_folds=4 in Python"
    assert hint in result.stderr
