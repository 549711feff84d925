"""A small table of stations that the tests of the command line share."""

import numpy as np
import pandas as pd
import pytest
import typer.main
from typer.testing import CliRunner

from graphratio.cli.app import app
from graphratio.cli.console import Screen

COLUMNS = ["--node", "station", "--sample", "period", "--reference", "before", "--target", "after"]


@pytest.fixture(scope="session")
def table():
    """Eight stations on a line, thirty observations each; the last three change."""
    rng = np.random.default_rng(0)
    rows = []
    for v in range(8):
        for period, day in (("before", "2020-02-10"), ("after", "2020-03-10")):
            moved = 2.0 * (v >= 5 and period == "after")
            rows += [
                (f"s{v}", period, day, np.exp(pm25), rng.normal(), 50.0 + v, 4.0)
                for pm25 in rng.normal(moved, 1.0, 15)
            ]
    return pd.DataFrame(
        rows, columns=["station", "period", "date", "pm25", "no2", "lat", "lon"]
    ).round(4)


@pytest.fixture
def write(tmp_path):
    """Write a frame or text to a file and return its path as text."""

    def writer(content, name="data.csv"):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            content.to_csv(path, index=False)
        return str(path)

    return writer


@pytest.fixture
def data(table, write):
    return write(table)


@pytest.fixture
def edges(write):
    text = "a,b,weight\n" + "".join(f"s{v},s{v + 1},1.5\n" for v in range(7))
    return write(text, "edges.csv")


@pytest.fixture(scope="session")
def program():
    """The command line, built once."""
    return typer.main.get_command(app)


@pytest.fixture
def run(program, monkeypatch):
    """Run the program in this process."""
    # Otherwise it would be built again for every run.
    monkeypatch.setattr("typer.testing._get_command", lambda _: program)

    def runner(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return runner


@pytest.fixture
def fit(run, tmp_path):
    """Run `fit` with the usual columns and a quick estimator; return result and folder."""

    def fitter(data, *arguments, columns=COLUMNS):
        folder = tmp_path / "out"
        options = ["--estimator", "rulsif", "--overwrite", "--output", folder]
        return run("fit", data, *columns, *options, *arguments), folder

    return fitter


@pytest.fixture
def shown(monkeypatch):
    """What the screen says that the program does, in order."""
    texts = []
    working = Screen.working

    def noted(self, what):
        texts.append(what)
        return working(self, what)

    monkeypatch.setattr(Screen, "working", noted)
    return texts
