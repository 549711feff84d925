"""Categorical columns on the command line, from the table to the report and to new points."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import COLUMNS


@pytest.fixture
def skies(table, write):
    """Stations of the usual table with a sky that clears up at the last three."""
    rng = np.random.default_rng(1)
    changed = table["station"].isin(["s5", "s6", "s7"]) & (table["period"] == "after")
    mixed = table.assign(sky=rng.choice(["rain", "sun", "001"], len(table)))
    mixed.loc[changed, "sky"] = "sun"
    return write(mixed, "skies.csv")


def test_report_predict_and_info(run, skies, write, tmp_path):
    out = tmp_path / "out"
    command = ["report", skies, *COLUMNS, "--features", "pm25", "--categorical", "sky"]
    said = json.loads(run(*command, "--no-graph", "--json", "--output", str(out)).stdout)
    assert said["features"] == ["pm25", "sky=001", "sky=rain", "sky=sun"]
    nodes = pd.read_csv(out / "nodes.csv")
    assert nodes.set_index("node").loc["s6", "sky=sun_mean_change"] > 0.3
    page = (out / "report.html").read_text(encoding="utf-8")
    assert '"levels":["001","rain","sun"]' in page
    assert "2 features: pm25 and sky." in page
    model = str(out / "model.graphratio")
    told = json.loads(run("info", model, "--json").stdout)
    assert told["features"] == ["pm25", "sky"]
    assert told["categorical"] == ["sky (001, rain, sun)"]
    points = write("sky,pm25,where\nsun,7.0,s6\nrain,7.0,s6\n001,1.0,s1\n", "points.csv")
    ratios = pd.read_csv(StringIO(run("predict", model, points, "--node", "where").stdout))
    assert ratios["sky"].tolist() == ["sun", "rain", "001"]
    assert ratios["ratio"][0] > 1.2 * ratios["ratio"][1]
    fog = write("sky,pm25\nfog,1.0\n", "fog.csv")
    assert "unknown levels: 'fog'" in run("predict", model, fog).output


def test_categories_alone_and_capped(run, skies, tmp_path):
    only = pd.read_csv(skies, dtype=str)[["station", "period", "sky"]]
    only.to_csv(tmp_path / "only.csv", index=False)
    said = run(
        *("fit", str(tmp_path / "only.csv"), *COLUMNS, "--categorical", "sky", "--no-graph"),
        *("--max-observations", "10", "--json", "--output", str(tmp_path / "only")),
    )
    assert json.loads(said.stdout)["features"] == ["sky=001", "sky=rain", "sky=sun"]
    model = str(tmp_path / "only" / "model.graphratio")
    assert json.loads(run("info", model, "--json").stdout)["features"] == ["sky"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "sky"], "--categorical"),
        (["--categorical", "ski"], "no column 'ski' (given as --categorical)"),
        (["--categorical", "period"], "named both as a feature and as --sample"),
    ],
)
def test_bad_columns(run, skies, options, message):
    assert message in run("fit", skies, *COLUMNS, "--no-graph", *options).output
