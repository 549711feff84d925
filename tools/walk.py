"""Print the files that a call visits, in the order in which it enters them.

    python tools/walk.py          # the fit of GRULSIF and the two-sample test
    python tools/walk.py --write  # and put both lists onto docs/architecture.md

A file is counted when one of its functions runs. Properties and functions count alike; importing
a module does not. A call from a file to one of a higher layer is listed as a way back up.

A return: while the walk stays in a file, that file calls B, then C, and then B again from another
line that no loop repeats. Properties and `_utils/`, which every layer
reaches for, do not count.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from inspect import getattr_static
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import graphratio as gr

ROOT = Path(gr.__file__).parent
TOP = Path(__file__).parents[1]
PAGE = TOP / "docs" / "architecture.md"


@dataclass
class Walk:
    """What a call visited.

    `first` has the files with their first function, `calls` the calls from one file to another,
    and `returns` triples of a file, the function by which it was entered, and the file to which
    it returned.
    """

    first: dict[str, str] = field(default_factory=dict)
    calls: set[tuple[str, str]] = field(default_factory=set)
    returns: set[tuple[str, str, str]] = field(default_factory=set)

    def upwards(self) -> list[tuple[str, str]]:
        """Calls from a file to one of a higher layer."""
        # `jobs` runs the tasks that a higher layer gave it.
        calls = (pair for pair in self.calls if pair[0] != "_utils/jobs.py")
        return sorted(pair for pair in calls if layer(pair[1]) < layer(pair[0]))

    def leave(self, stay: Stay) -> None:
        """Look for returns among the calls of a finished stay."""
        seen: list[str] = []
        for lines, file in stay.calls.items():
            left = file in seen and file != seen[-1]
            if left and not repeated(stay.file).intersection(lines):
                self.returns.add((stay.file, stay.function, file))
            seen.append(file)


@dataclass
class Stay:
    """A file that the walk has entered, and the lines from which it called others, in order.

    A line is known by the lines of the functions of the same file that led to it.
    """

    file: str
    function: str
    calls: dict[tuple[int, ...], str] = field(default_factory=dict)


@cache
def repeated(path: str) -> set[int]:
    """Lines of a file that a loop repeats."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    loops = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            # A function inside a function is a task, which `_utils/jobs.py` repeats.
            inner = [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef)]
            found.update(*(range(part.lineno, (part.end_lineno or 0) + 1) for part in inner[1:]))
        if isinstance(node, loops):
            # The line of a statement itself runs once.
            first = node.lineno + isinstance(node, ast.For | ast.While)
            found.update(range(first, (node.end_lineno or first) + 1))
    return found


@cache
def layer(path: str) -> int:
    """Layer of a file in the contract, 0 for the highest."""
    settings = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    places = {room.strip(): i for i, rooms in enumerate(contract) for room in rooms.split("|")}
    return places[path.split("/")[0].removesuffix(".py")]


def is_property(frame: FrameType) -> bool:
    """Whether a function runs because an attribute is read."""
    owner = type(frame.f_locals.get("self"))
    found = getattr_static(owner, frame.f_code.co_name, None)
    return isinstance(found, property | cached_property)


def visited(call: Callable[[], Any]) -> Walk:
    """Trace a call."""
    walk = Walk()
    # The functions of the package that are running: frame, stay, lines that led there.
    running: list[tuple[FrameType, Stay, tuple[int, ...]]] = []

    def enter(frame: FrameType) -> None:
        here = Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()
        walk.first.setdefault(here, frame.f_code.co_name)
        stay, lines = Stay(here, frame.f_code.co_name), ()
        if running:
            caller, last, before = running[-1]
            at = (*before, caller.f_lineno)
            if last.file == here:
                stay, lines = last, at
            else:
                walk.calls.add((last.file, here))
                if not here.startswith("_utils/") and not is_property(frame):
                    last.calls.setdefault(at, here)
        running.append((frame, stay, lines))

    def profile(frame: FrameType, event: str, _: Any) -> None:
        named = frame.f_code.co_name not in ("<module>", "__get__")
        if not named or not frame.f_code.co_filename.startswith(str(ROOT)):
            return
        if event == "call":
            enter(frame)
        elif event == "return" and running:
            _, stay, lines = running.pop()
            if not lines:
                walk.leave(stay)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walk


def walks() -> dict[str, Walk]:
    """The two walks that the page of the architecture shows."""
    rng = np.random.default_rng(0)
    # Far from the sizes at which solvers change.
    reference, target = rng.normal(size=(2, 100, 20, 2))
    graph = gr.Graph.from_edges([(i, (i + 1) % 100) for i in range(100)])
    samples = gr.NodeSamples.from_arrays(reference, target)
    test, model = gr.two_sample_test, gr.GRULSIF  # found before the walk begins
    return {
        "GRULSIF().fit": visited(lambda: model(n_jobs=1, random_state=0).fit(samples, graph)),
        "two_sample_test": visited(
            lambda: test(samples, graph, n_permutations=2000, n_jobs=1, random_state=0)
        ),
    }


def written(name: str, walk: Walk) -> str:
    """One walk as the page shows it."""
    width = max(len(path) for path in walk.first)
    lines = [f"    {path:<{width}}  {function}" for path, function in walk.first.items()]
    heading = f"`{name}` visits {len(walk.first)} files. Calls back up: {pairs(walk.upwards())}."
    again = sorted((file, callee) for file, _, callee in walk.returns)
    return "\n".join([heading, f"Returns: {pairs(again)}.", "", *lines])


def pairs(calls: list[tuple[str, str]]) -> str:
    """Calls from one file to another in words."""
    return ", ".join(f"{caller} to {callee}" for caller, callee in calls) or "none"


def main() -> None:
    """Print the walks, and write them onto the page if asked to."""
    text = "\n\n".join(written(name, walk) for name, walk in walks().items())
    print(text)
    if "--write" in sys.argv[1:]:
        page = PAGE.read_text(encoding="utf-8")
        begin, end = "<!-- walks -->\n", "<!-- end of walks -->"
        head, rest = page.split(begin)
        PAGE.write_text(f"{head}{begin}\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
