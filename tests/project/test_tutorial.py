"""The tutorial: its data, its notebook, and what its text says about the results."""

import contextlib
import importlib.util
import io
import json
import re
import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from graphratio.exceptions import DataWarning

# Left out by `make quick`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_data_package():
    tables = tool("tutorial_data").tables()
    stored = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "data").glob("*.csv")}
    assert stored == tables, "run: python tools/tutorial_data.py"


def test_the_notebook_is_the_page():
    made, stored = tool("notebook").notebook(), (DOCS / "tutorial.ipynb").read_text("utf-8")
    assert stored == made, "run: python tools/notebook.py"
    cells = json.loads(stored)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == [
        block.strip("\n") for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    ]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    # Markup of the site means nothing in a notebook.
    assert not re.findall(r"\{\w+\}`|:::|<!--|\]\([\w/-]+\.md", text)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """Run the notebook in a folder with the two tables; return its names and what it printed."""
    mpl.use("Agg")
    folder = tmp_path_factory.mktemp("tutorial")
    for path in (DOCS / "data").glob("*.csv"):
        shutil.copy(path, folder)
    cells = json.loads((DOCS / "tutorial.ipynb").read_text("utf-8"))["cells"]
    names, said = {"__name__": "notebook"}, io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said):
        for cell in (cell for cell in cells if cell["cell_type"] == "code"):
            source = "".join(cell["source"])
            # Days without a flight are missing, which the page explains.
            warns = "missing=" in source
            with pytest.warns(DataWarning) if warns else contextlib.nullcontext():
                exec(compile(source, "notebook", "exec"), names)
    plt.close("all")
    assert (folder / "flights-report.html").stat().st_size > 100_000
    return names, said.getvalue()


def test_the_text_says_what_the_results_are(followed):
    names, _ = followed
    assert names["samples"].sizes.min() == names["samples"].sizes.max() == 8
    assert "eight flights of each season" in PAGE
    # Most changed are airports of the south-west; Boston is not.
    assert list(names["table"].index[:3]) == ["AUS", "DFW", "IAH"]
    assert names["model"].divergence_ceiling_ == pytest.approx(4.5)
    model, grid = names["model"], np.linspace(345, 390, 20)
    assert model.predict(grid[:, None], node="AUS").max() < 0.05
    assert model.predict([[420.0]], node="AUS")[0] > 1
    seen = np.linspace(*np.percentile(names["samples"].target("BOS"), [0, 100]), 20)
    boston = model.predict(seen[:, None], node="BOS")
    assert boston.min() > 0.25
    assert boston.max() < 1.55
    # The graph finds more, and the quiet airports could have shown two standard deviations.
    assert names["test"].rejected.sum() > names["alone"].rejected.sum()
    assert "BOS" in names["quiet"]
    assert np.nanmedian(names["test"].detectable_shift) == pytest.approx(2, abs=0.25)
    # The worth that was estimated.
    worth = names["comparison"].worth["graph"]
    assert names["comparison"].effect == "helped"
    assert 2 < worth.low < worth.estimate < 5
    # Since when: late April and mid October.
    days = [f"{event.time:%m-%d}" for event in names["detector"].events_]
    assert "04-20" < days[0] < "04-31"
    assert "10-10" < days[1] < "10-20"
    assert len(days) == 2


def test_the_graph_wins_on_flights_that_were_hidden(followed):
    names, said = followed
    error = dict(re.findall(r"(own flights|with neighbours): typical error .* (\d+) mph", said))
    assert int(error["with neighbours"]) <= 0.6 * int(error["own flights"])
    pattern = r"(with the graph|without|RULSIF): divergence on all flights (\S+)"
    on_all = {what: float(value) for what, value in re.findall(pattern, said)}
    assert on_all["with the graph"] > on_all["without"] + 0.2
    assert on_all["without"] > on_all["RULSIF"] + 0.2
    assert names["everything"].samples.n_observations == 153_707
    assert "153,707" in PAGE
