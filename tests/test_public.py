"""What the package offers, and what importing it costs."""

import subprocess
import sys

import graphratio as gr


def test_public_names():
    assert sorted(gr.__all__) == [
        "DaskEngine",
        "GRULSIF",
        "Graph",
        "GraphChangePointDetector",
        "KLIEP",
        "NodeSamples",
        "NodewiseTransfer",
        "Pool",
        "ProfileGRULSIF",
        "RULSIF",
        "ULSIF",
        "__version__",
        "compare_graphs",
        "datasets",
        "divergence_bounds",
        "exceptions",
        "expected_ratio_interval",
        "experiments",
        "load",
        "plot_graph",
        "plot_learned_graph",
        "plot_node",
        "plot_profiles",
        "plot_selection",
        "recommended",
        "theory",
        "two_sample_test",
    ]
    assert all(hasattr(gr, name) for name in gr.__all__)


def test_import_is_cheap():
    """At most 0.3 s of processor time on top of NumPy, SciPy and scikit-learn's base."""
    code = (
        "import time, numpy, scipy, sklearn.base\n"
        "began = time.process_time()\n"
        "import graphratio\n"
        "print(time.process_time() - began)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(times) <= 0.3


def test_import_needs_no_optional_package():
    code = (
        "import sys\n"
        "hidden = ['pandas', 'polars', 'networkx', 'matplotlib', 'typer', 'rich', 'plotly']\n"
        "before = set(sys.modules)\n"
        "import numpy, scipy, sklearn.base\n"
        "brought = set(sys.modules) - before\n"
        "import graphratio\n"
        "print([name for name in hidden if name in sys.modules and name not in brought])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
