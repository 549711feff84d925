"""The documentation: nothing public left out, no page lost, all code on the pages runs."""

import ast
import importlib.util
import re
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import graphratio as gr

# Left out by `make quick`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
USED = (
    *("graphratio", "graphratio.datasets", "graphratio.estimators", "graphratio.changepoints"),
    *("graphratio.evaluation", "graphratio.testing", "graphratio.transfer"),
    *("graphratio.plotting", "graphratio.report", "graphratio.theory"),
)
MODULES = (*USED, "graphratio.distributed")


def run_by_the_site():
    """Names of the pages whose code the site runs, from its configuration."""
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    return next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "results_pages"
    )


PAGES = sorted(page for name in run_by_the_site() for page in DOCS.glob(f"{name}.md"))

# What needs a cluster is run, on one machine, by the tests of the engine.
NEEDS_A_CLUSTER = ("DaskEngine",)


def documented():
    """Names that the reference lists, by themselves, and constants that it explains."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.rst"))
    listed = re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)
    explained = re.findall(r"``(?:\w+\.)*(\w+)``", text)
    return {name.rsplit(".", 1)[-1] for name in listed} | set(explained)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    lacking = set(import_module(module).__all__) - documented()
    assert not lacking, f"add to docs/reference: {sorted(lacking)}"


def test_every_public_name_has_an_example():
    for module in USED:
        for name in import_module(module).__all__:
            found = getattr(import_module(module), name)
            if (isinstance(found, type) or callable(found)) and name not in NEEDS_A_CLUSTER:
                assert ">>>" in (found.__doc__ or ""), f"{module}.{name} has no example"
            elif name not in NEEDS_A_CLUSTER:
                assert isinstance(found, ModuleType | str | int | tuple | dict), name


def test_every_exception_is_in_the_reference():
    module = import_module("graphratio.exceptions")
    mine = {
        name
        for name, found in vars(module).items()
        if isinstance(found, type) and found.__module__ == module.__name__
    }
    assert mine <= documented()


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    pages = [path for kind in ("*.md", "*.rst") for path in DOCS.rglob(kind)]
    pages = [
        path
        for path in pages
        if not {"_build", "_templates", "_results", "generated", "gallery"} & {*path.parts}
    ]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(
            r"\{toctree\}\n(.*?)```|toctree::\n(.*?)(?=^\S|\Z)", text, re.S | re.M
        ):
            for line in "".join(block).splitlines():
                if line.strip() and not line.strip().startswith(":"):
                    named = re.sub(r".*<(.*)>", r"\1", line.strip())
                    found = (page.parent / named).resolve()
                    listed.add(found.relative_to(DOCS).as_posix())
    names = {path.relative_to(DOCS).with_suffix("").as_posix() for path in pages}
    assert names - listed == {"index"}
    assert listed - names == {"gallery/index"}


def test_examples_have_a_title_and_compile():
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert len(examples) >= 6
    for path in examples:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title, rule, blank = ast.get_docstring(tree, clean=True).splitlines()[:3]
        assert set(rule) == {"="}
        assert len(rule) == len(title)
        assert not blank


def blocks(page):
    """Source of each block of Python, at the line where it stands on the page."""
    text = page.read_text(encoding="utf-8")
    return [
        "\n" * text[: match.start(1)].count("\n") + match[1]
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def commands(page):
    """Blocks of commands that the site runs."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def runner():
    """What the site runs its pages with."""
    place = DOCS / "_ext" / "page_runner.py"
    spec = importlib.util.spec_from_file_location("page_runner", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(page, folder, given=None):
    """Run a page from top to bottom, with the names it takes for granted; return what it prints."""
    mpl.use("Agg")
    state = runner().Page(folder / "page", DOCS / "data")
    state.names |= given or {}
    said = "".join(state.run(source)[0] for source in blocks(page))
    plt.close("all")
    return said


@pytest.mark.parametrize(
    "page",
    # Two pages have tests of their own.
    [page for page in PAGES if blocks(page) and page.stem not in ("coming-from", "tutorial")],
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_code_on_the_page_runs(page, tmp_path):
    run(page, tmp_path)


def test_the_runner_of_pages_shows_what_a_notebook_would(tmp_path, monkeypatch):
    mpl.use("Agg")
    module = runner()
    page = module.Page(tmp_path / "page", DOCS / "data")
    assert page.run("import pandas as pd\nx = 2\nprint(x)\nx + 1") == ("2\n", 3)
    assert page.run("x + 1;") == ("", None)
    assert (
        page.run("pd.read_csv('flights.csv').shape")[1]
        == page.run("pd.read_csv('docs/data/flights.csv').shape")[1]
    )
    said, _ = page.run(
        "import warnings\nfrom graphratio.exceptions import DataWarning\n"
        "warnings.warn('2 rows are missing', DataWarning)"
    )
    assert said == "DataWarning: 2 rows are missing\n"
    with pytest.raises(module.BlockFailed, match="ZeroDivisionError") as failed:
        page.run("x = 1\n\nx / 0")
    assert failed.value.line == 3
    with pytest.raises(module.BlockFailed, match="UserWarning: odd"):
        page.run("warnings.warn('odd')")
    # Only commands of the library are run.
    assert page.command("$ rm -r docs\n$ graphratio \\\n    --version") == (
        f"graphratio {gr.__version__}\n"
    )
    assert (tmp_path / "page" / "docs").exists()
    ended = subprocess.CompletedProcess([], returncode=1, stderr="no such file")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: ended)
    with pytest.raises(module.BlockFailed, match="no such file"):
        page.command("$ graphratio info model")


def test_values_are_shown_as_tables_text_or_pictures(tmp_path):
    mpl.use("Agg")
    module = runner()
    assert "<td>0.123</td>" in module.shown(pd.DataFrame({"a": [0.12345]}))
    assert module.shown("<b>") == "<pre>&#x27;&lt;b&gt;&#x27;</pre>"
    plt.close("all")
    _, axes = plt.subplots(1, 2)
    assert module.shown(axes) is module.shown(axes[0]) is module.shown(None) is None
    assert [path.name for path in module.figures(tmp_path, "x")] == ["x-1.png"]
    assert plt.get_fignums() == []


def test_code_of_the_readme_runs(tmp_path):
    """It takes a table of two features and a list of edges for granted."""
    rng = np.random.default_rng(0)
    nodes = ["north", *"abcdefg"]
    period = np.tile(np.repeat(["before", "after"], 40), len(nodes))
    table = pd.DataFrame(
        {
            "station": np.repeat(nodes, 80),
            "period": period,
            "pm25": rng.normal(12, 3, len(period)) + 4 * (period == "after"),
            "no2": rng.normal(25, 6, len(period)),
        }
    )
    roads = [(nodes[i - 1], node) for i, node in enumerate(nodes)]
    run(ROOT / "README.md", tmp_path, {"table": table, "roads": roads})


def test_every_page_with_code_is_run():
    sources = [page for page in DOCS.rglob("*.md") if not {"_build", "_results"} & {*page.parts}]
    with_code = {page for page in sources if blocks(page) or commands(page)}
    assert len(with_code) > 30
    assert not with_code - set(PAGES), "add to results_pages of docs/conf.py"


def test_the_places_that_the_method_page_names_exist():
    page = (DOCS / "method.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", page))
    assert len(named) > 20
    for name in named:
        found, parts = gr, name.split(".")
        for place, part in enumerate(parts):
            if not hasattr(found, part):
                import_module(".".join(["graphratio", *parts[: place + 1]]))
            found = getattr(found, part)


def test_differences_to_other_packages_are_as_stated(tmp_path):
    lines = run(DOCS / "coming-from.md", tmp_path).splitlines()
    assert lines[:2] == ["True", "True"]
    rows = [[float(part) for part in line.split()] for line in lines[2:5]]
    # The truth is 0.36; the other package is off when sizes differ.
    assert [row[:2] for row in rows] == [[200, 200], [1000, 100], [100, 1000]]
    assert rows[1][2] < -3
    assert rows[2][2] > 0.8
    assert all(0.25 < row[3] < 0.5 for row in rows)
    assert lines[5] == "[200, 300] [200, 300]"
    assert lines[6] == "(3, 4, 5)"
    assert len(ast.literal_eval(lines[7])) == 2
    assert lines[8] == "[300]"
    assert lines[9].startswith("[ True]")
