"""Saved models on the command line: predict and info."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import graphratio as gr


@pytest.fixture
def model(fit, data):
    _, folder = fit(data, "--features", "pm25,no2", "--no-graph", "--log", "pm25")
    return folder / "model.graphratio"


@pytest.fixture
def points():
    return pd.DataFrame({"no2": [0.0, 0.5], "pm25": [1.0, 9.0], "where": ["s7", "s0"]})


def test_at_every_node(run, model, points, write):
    result = run("predict", model, write(points, "points.csv"))
    table = pd.read_csv(io.StringIO(result.stdout))
    assert table.columns.tolist() == ["pm25", "no2", "node", "ratio"]
    fitted = gr.load(model)
    expected = fitted.predict(points[["pm25", "no2"]])
    np.testing.assert_allclose(table["ratio"].to_numpy().reshape(2, 8), expected)
    assert table["node"].tolist() == list(fitted.nodes_) * 2


def test_at_one_node_and_at_each_points_own(run, model, points, write, tmp_path):
    file = write(points, "points.csv")
    fitted = gr.load(model)
    one = pd.read_csv(io.StringIO(run("predict", model, file, "--at", "s7").stdout))
    np.testing.assert_allclose(one["ratio"], fitted.predict(points[["pm25", "no2"]], node="s7"))
    own = tmp_path / "ratios.csv"
    result = run("predict", model, file, "--node", "where", "--output", own)
    assert result.stdout == f"2 ratios: {own}\n"
    ratios = pd.read_csv(own)["ratio"]
    assert ratios[0] == pytest.approx(one["ratio"][0])
    assert ratios[1] == pytest.approx(fitted.predict([[9.0, 0.5]], node="s0")[0])
    assert run("predict", model, file, "--at", "s7", "--node", "where").exit_code == 2


def test_json(run, model, points, write, tmp_path):
    file = write(points, "points.csv")
    content = json.loads(run("predict", model, file, "--at", "s7", "--json").stdout)
    assert content["ratios"]["node"] == ["s7", "s7"]
    out = tmp_path / "ratios.csv"
    content = json.loads(run("predict", model, file, "--json", "--output", out).stdout)
    assert content == {"command": "predict", "n_ratios": 16, "file": str(out)}


def test_labels_that_were_numbers(run, write, tmp_path):
    rng = np.random.default_rng(0)
    gr.RULSIF(bandwidth=1.0, ridge=0.1).fit(
        (list(rng.normal(size=(2, 9))), list(rng.normal(size=(2, 9))))
    ).save(tmp_path / "model")
    result = run("predict", tmp_path / "model", write("x0\n1\n", "points.csv"), "--at", "1")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].startswith("1.0,1,")


def test_info(run, model):
    text = run("info", model).stdout
    for words in ("estimator: RULSIF", "nodes: 8", "features: pm25, no2", "logarithms: pm25"):
        assert words in text
    first = next(line.split()[1] for line in text.splitlines() if "│ s" in line)
    assert first in ("s5", "s6", "s7")
    content = json.loads(run("info", model, "--json").stdout)
    assert content["standardised"] is True
    assert content["settings"]["alpha"] == 0.1
    assert content["n_reference"] == 120
    assert len(content["most_changed"]) == 8
