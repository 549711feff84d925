"""The layout of the package: rooms, sizes, names, and the walk that the page shows."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "graphratio"
MODULES = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]


def test_the_root_holds_folders_and_little_else():
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "_version.py", "py.typed"}


def test_no_module_is_long():
    assert {path.name for path in MODULES if len(path.read_text().splitlines()) > 400} == set()


def test_no_name_stands_for_two_things():
    """Modules, classes, and public functions and constants; _ marks what belongs to a module."""
    places, functions = defaultdict(set), defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        if path in MODULES:
            places[path.stem].add(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(path)
            if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
                functions[node.name].add(path)
            assigned = node.targets if isinstance(node, ast.Assign) else []
            assigned = [node.target] if isinstance(node, ast.AnnAssign) else assigned
            for name in (target.id for target in assigned if isinstance(target, ast.Name)):
                if name[0] != "_" and name.isupper():
                    places[name].add(path)
    # A function may have the name of a module: the code says which is meant.
    for found in (places, functions):
        assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_every_room_has_tests_and_a_line_on_the_page():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert {room for room in rooms if f"| `{room}/` |" not in page} == set()
    tested = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert {room.lstrip("_") for room in rooms} - {"exceptions"} <= tested


def test_files_that_the_page_names_exist():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+\.\w+)`", page))
    assert len(named) > 20
    missing = [name for name in named if not any((at / name).exists() for at in (ROOT, PACKAGE))]
    assert missing == []


def test_the_page_shows_the_walk_of_today():
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "walk.py"], capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert run.stdout.strip() in page, "run: python tools/walk.py --write"
    headings = re.findall(
        r"visits (\d+) files\. Calls back up: (.*)\.\nReturns: (.*)\.$", run.stdout, re.M
    )
    assert len(headings) == 2
    for (count, back, again), most, returns in zip(headings, (27, 30), (5, 4), strict=True):
        assert int(count) <= most
        assert back == "none"
        assert len(again.split(", ")) <= returns


def test_the_walk_finds_returns_but_not_those_of_loops(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("walk", ROOT / "tools" / "walk.py")
    walk = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "walk", walk)
    spec.loader.exec_module(walk)
    monkeypatch.setattr(walk, "ROOT", tmp_path)
    (tmp_path / "above.py").write_text(
        "def straight(x, y):\n    x()\n    y()\n    helper(x)\n\n"
        "def helper(x):\n    x()\n\n"
        "def loop(x, y):\n    for _ in range(2):\n        x()\n        y()\n        x()\n\n"
        "def twice(x, y):\n    x()\n    x()\n    y()\n"
    )
    (tmp_path / "x.py").write_text("def run():\n    pass\n")
    (tmp_path / "y.py").write_text("def run():\n    pass\n")
    found = {}
    for name in ("above", "x", "y"):
        path = tmp_path / f"{name}.py"
        found[name] = {}
        exec(compile(path.read_text(), str(path), "exec"), found[name])
    x, y = found["x"]["run"], found["y"]["run"]
    trace = {
        name: walk.visited(lambda name=name: found["above"][name](x, y)).returns
        for name in ("straight", "loop", "twice")
    }
    assert trace == {"straight": {("above.py", "straight", "x.py")}, "loop": set(), "twice": set()}
