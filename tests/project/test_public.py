"""What the package offers, and what importing it costs."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import graphratio as gr
from graphratio.cli.app import app


def test_public_names():
    assert sorted(gr.__all__) == [
        "DaskEngine",
        "GRULSIF",
        "Graph",
        "GraphChangePointDetector",
        "GraphRatio",
        "KLIEP",
        "NodeSamples",
        "NodewiseTransfer",
        "Pool",
        "RULSIF",
        "ULSIF",
        "__version__",
        "compare_graphs",
        "datasets",
        "divergence_bounds",
        "exceptions",
        "expected_ratio_interval",
        "kinds_of_change",
        "load",
        "mean_changes",
        "observations_needed",
        "plot_graph",
        "plot_learned_graph",
        "plot_node",
        "plot_profiles",
        "plot_selection",
        "theory",
        "two_sample_test",
    ]
    assert all(hasattr(gr, name) for name in gr.__all__)


# Modules that users import from, besides the package itself, with everything in them.
MODULES = {
    "datasets": "NetworkData Scenario load_flights load_sea_temperature make_scenario",
    "exceptions": "ConvergenceWarning DataWarning EngineError FileFormatError GraphRatioError "
    "GraphRatioWarning InputError MissingDependencyError OverlapWarning",
    "changepoints": "ChangeEvent CorrelationChange FeatureChange GraphChangePointDetector "
    "NodeChange",
    "evaluation": "Agreement DivergenceBounds ExpectedRatioInterval GraphComparison MeanChanges "
    "Worth compare_graphs divergence_bounds expected_ratio_interval mean_changes",
    "testing": "KindsOfChange Region TwoSampleResult kinds_of_change observations_needed "
    "two_sample_test",
    "transfer": "NodewiseTransfer TransferEvidence",
    "report": "PageSection node_summary time_text write_changes write_graphs write_report "
    "write_significance",
    "theory": "COLUMN_BLOCK Capacity ConvergenceBound CycleBound LARGEST_DENSE cbcgd_cycle_bound "
    "convergence_bound estimate_capacity graph_factor",
}


@pytest.mark.parametrize("name", MODULES)
def test_public_names_of_modules(name):
    module = importlib.import_module(f"graphratio.{name}")
    if hasattr(module, "__all__"):
        found = set(module.__all__)
    else:
        found = {key for key, value in vars(module).items() if _is_own_class(value, module)}
    assert sorted(found) == sorted(MODULES[name].split())
    assert all(hasattr(module, each) for each in found)


def _is_own_class(value, module):
    own = isinstance(value, type) and value.__module__ == module.__name__
    return own and not value.__name__.startswith("_")


def test_commands():
    program = typer.main.get_command(app)
    assert sorted(program.commands) == [
        "changes",
        "demo",
        "fit",
        "graphs",
        "info",
        "predict",
        "report",
        "test",
    ]


def test_versions_agree():
    root = Path(__file__).parents[2]
    citation = (root / "CITATION.cff").read_text()
    assert f"version: {gr.__version__}\n" in citation
    # Semantic versioning: three numbers, perhaps a mark for what is not released yet.
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", gr.__version__)
    changelog = (root / "CHANGELOG.md").read_text()
    heading = "Unreleased" if "dev" in gr.__version__ else gr.__version__
    assert f"## {heading}\n" in changelog
    assert f"version = {{{gr.__version__}}}," in (root / "docs" / "citing.md").read_text()
    versions = json.loads((root / "docs" / "versions.json").read_text())
    assert versions[0] == {"version": gr.__version__, "url": f"../{gr.__version__}/index.html"}


def test_the_paper_is_cited_alike_everywhere():
    root = Path(__file__).parents[2]
    pages = ("README.md", "docs/index.md", "docs/method.md", "docs/citing.md")
    for page in pages:
        text = " ".join((root / page).read_text(encoding="utf-8").split())
        for words in ("Collaborative likelihood-ratio estimation over graphs", "de la Concha",
                      "Nicolas Vayatis", "Argyris Kalogeratos", "2205.14461",
                      "papers/v26/24-0565.html"):  # fmt: skip
            assert words in text.replace("> ", ""), (page, words)
    citation = (root / "CITATION.cff").read_text()
    assert "24-0565" in citation
    assert "2205.14461" in citation
    assert (Path(gr.__file__).parent / "py.typed").exists()


FRESH = """
import sys, time
hidden = ["pandas", "polars", "networkx", "matplotlib", "typer", "rich", "plotly"]
before, began = set(sys.modules), time.process_time()
import numpy, scipy, sklearn.base
brought, between = set(sys.modules) - before, time.process_time()
import graphratio
print(between - began, time.process_time() - between)
print([name for name in hidden if name in sys.modules and name not in brought])
print("graphratio.plotting" in sys.modules, "plot_node" in dir(graphratio))
graphratio.plot_node
print("graphratio.plotting" in sys.modules, "matplotlib" in sys.modules, flush=True)
graphratio.Graph.empty(0)
"""


def fresh_import():
    """What a new process says that imports the library and then makes a mistake."""
    return subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True)


@pytest.fixture(scope="module")
def imported():
    return fresh_import()


def test_import_is_cheap(imported):
    """At most 0.3 s of processor time on top of NumPy, SciPy and scikit-learn's base.

    Or, on a machine that is slow at the moment, a third of what those take in the same process.
    """
    times = []
    for trial in range(8):
        run = fresh_import() if trial else imported
        others, own = map(float, run.stdout.splitlines()[0].split())
        times.append((others, own))
        if own <= max(0.3, others / 3):
            return
    pytest.fail(f"seconds of the others and of graphratio: {times}")


def test_import_needs_no_optional_package(imported):
    assert imported.stdout.splitlines()[1] == "[]"


def test_plotting_is_imported_on_use(imported):
    assert imported.stdout.splitlines()[2:] == ["False True", "True False"]


def test_errors_are_named_by_their_public_place(imported):
    """Also before anything has imported that place."""
    assert imported.returncode == 1
    assert "graphratio.exceptions.InputError: " in imported.stderr
    for name in gr.exceptions.__all__:
        assert getattr(gr.exceptions, name).__module__ == "graphratio.exceptions"
