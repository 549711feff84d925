"""Print the files that a call visits, in the order in which it enters them.

    python tools/walk.py          # the fit of GRULSIF and the two-sample test
    python tools/walk.py --write  # and put both lists onto docs/architecture.md

A file is counted when one of its functions runs. Properties and functions count alike; importing
a module does not. A call from a file to one of a higher layer is listed as a way back up.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
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
    """Files of a call with their first function, and the calls from one file to another."""

    first: dict[str, str] = field(default_factory=dict)
    calls: set[tuple[str, str]] = field(default_factory=set)

    def upwards(self) -> list[tuple[str, str]]:
        """Calls from a file to one of a higher layer."""
        return sorted(pair for pair in self.calls if layer(pair[1]) < layer(pair[0]))


@cache
def layer(path: str) -> int:
    """Layer of a file in the contract, 0 for the highest."""
    settings = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    places = {room.strip(): i for i, rooms in enumerate(contract) for room in rooms.split("|")}
    return places[path.split("/")[0].removesuffix(".py")]


def visited(call: Callable[[], Any]) -> Walk:
    """Trace a call."""
    walk = Walk()

    def inside(frame: FrameType | None) -> str | None:
        """The nearest file of the package on the stack."""
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(str(ROOT)):
                return Path(path).relative_to(ROOT).as_posix()
            frame = frame.f_back
        return None

    def profile(frame: FrameType, event: str, _: Any) -> None:
        named = frame.f_code.co_name != "<module>"
        if event == "call" and named and frame.f_code.co_filename.startswith(str(ROOT)):
            here, caller = inside(frame), inside(frame.f_back)
            if here is not None:
                walk.first.setdefault(here, frame.f_code.co_name)
                if caller is not None and caller != here:
                    walk.calls.add((caller, here))

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
    test = gr.two_sample_test  # found before the walk begins
    return {
        "GRULSIF().fit": visited(lambda: gr.GRULSIF(random_state=0).fit(samples, graph)),
        "two_sample_test": visited(
            lambda: test(samples, graph, n_permutations=2000, random_state=0)
        ),
    }


def written(name: str, walk: Walk) -> str:
    """One walk as the page shows it."""
    width = max(len(path) for path in walk.first)
    lines = [f"    {path:<{width}}  {function}" for path, function in walk.first.items()]
    back = ", ".join(f"{caller} to {callee}" for caller, callee in walk.upwards()) or "none"
    heading = f"`{name}` visits {len(walk.first)} files. Calls back up: {back}."
    return "\n".join([heading, "", *lines])


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
