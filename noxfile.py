"""What is checked before a release: `nox -s dist` and `nox -s matrix`.

dist    Build wheel and sdist; install the wheel in a fresh environment, without extras and with
        each extra alone, and the sdist in another; in each, run tests/installed.py.
matrix  Run all tests but those that need a browser, a cluster or the command line, with the
        oldest NumPy, SciPy and scikit-learn that pyproject.toml admits, and with the newest
        there are.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Without an extra; every extra that users install; from the sdist.
EXTRAS = ["", *sorted(set(PROJECT["optional-dependencies"]) - {"dev"}), "sdist"]
CORE = [requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]]
# The newest of these does not work with the oldest NumPy.
BESIDE_OLDEST = ["pyarrow==15.*"]
# geopandas needs NumPy 2, so these stay out of the oldest run.
SPATIAL = [
    "--ignore=tests/data/test_geography.py",
    "--deselect=tests/project/test_docs.py::test_code_on_the_page_runs[how-to/geopandas.md]",
    *(
        f"--deselect=src/graphratio/data/{module}::graphratio.data.{name}"
        for module, name in (
            ("graph_readers.py", "graph_readers.GraphReaders.from_geodataframe"),
            ("graph_readers.py", "graph_readers.GraphReaders.from_libpysal"),
            ("graph.py", "graph.Graph.to_libpysal"),
        )
    ),
]
# The rooms of tests that run the command line or a cluster.
LEFT_OUT = {"cli", "fuzz", "distributed"}
ROOMS = sorted({path.parent.name for path in ROOT.glob("tests/*/test_*.py")} - LEFT_OUT)
CORE_TESTS = [*(f"tests/{room}" for room in ROOMS), "src/graphratio"]

nox.options.sessions = ["dist", "matrix"]
nox.options.reuse_existing_virtualenvs = False


@nox.session
def build(session: nox.Session) -> None:
    """Wheel and sdist into dist/."""
    session.install("build")
    session.run("python", "-m", "build", "--outdir", "dist", str(ROOT), silent=True)


@nox.session(requires=["build"])
@nox.parametrize("extra", EXTRAS)
def dist(session: nox.Session, extra: str) -> None:
    """Install what was built, with one extra alone, and use it outside of the repository."""
    kind = "graphratio-*.tar.gz" if extra == "sdist" else "graphratio-*.whl"
    built = max((ROOT / "dist").glob(kind), key=lambda path: path.stat().st_mtime)
    wanted = f"[{extra}]" if extra not in ("", "sdist") else ""
    session.install(f"graphratio{wanted} @ {built.as_uri()}")
    session.chdir(session.create_tmp())
    session.run("python", "-I", str(ROOT / "tests" / "installed.py"), extra or "core")


@nox.session
@nox.parametrize("versions", ["oldest", "newest"])
def matrix(session: nox.Session, versions: str) -> None:
    """Run the core tests, or those named after `--`; `-- all` for every test."""
    core = CORE + BESIDE_OLDEST if versions == "oldest" else PROJECT["dependencies"]
    oldest = versions == "oldest"
    session.install(*core, "-e", ".[dev]" if oldest else ".[dev,geo]", *([] if oldest else ["-U"]))
    session.run("python", "-c", "import sklearn; sklearn.show_versions()")
    chosen = [] if session.posargs == ["all"] else session.posargs or CORE_TESTS
    chosen = [*chosen, *(SPATIAL if oldest else [])]
    session.run("python", "-m", "pytest", "-q", "-m", "not browser", *chosen)
