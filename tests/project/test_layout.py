"""The layout of the package: rooms, sizes, names, and the walk that the page shows."""

import ast
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


def test_no_name_of_a_module_or_class_stands_twice():
    places = defaultdict(list)
    for path in MODULES:
        places[path.stem].append(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


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
    headings = re.findall(r"visits (\d+) files\. Calls back up: (.*)\.$", run.stdout, re.M)
    assert len(headings) == 2
    assert all(int(count) <= most for (count, _), most in zip(headings, (30, 35), strict=True))
    for _, back in headings:
        # Work that is handed to threads, and nothing else.
        assert {call.split(" to ")[0] for call in back.split(", ")} == {"_utils/threads.py"}
