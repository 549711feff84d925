"""Print the files that a call visits, in the order in which it enters them.

    python tools/walk.py          # the fit of GRULSIF and the two-sample test
    python tools/walk.py --write  # and put both lists onto docs/architecture.md

A file is counted when one of its functions runs. Properties and functions count alike; importing
a module does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import graphratio as gr

ROOT = Path(gr.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def visited(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """File and first function of every file that a call enters, in order."""
    found: dict[str, str] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        inside = event == "call" and path.startswith(str(ROOT))
        if inside and frame.f_code.co_name != "<module>":
            found.setdefault(Path(path).relative_to(ROOT).as_posix(), frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found.items())


def walks() -> dict[str, list[tuple[str, str]]]:
    """The two walks that the page of the architecture shows."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 30, 20, 1))
    graph = gr.Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    samples = gr.NodeSamples.from_arrays(reference, target)
    test = gr.two_sample_test  # found before the walk begins
    return {
        "GRULSIF().fit": visited(lambda: gr.GRULSIF(random_state=0).fit(samples, graph)),
        "two_sample_test": visited(lambda: test(samples, graph, random_state=0)),
    }


def written(name: str, walk: list[tuple[str, str]]) -> str:
    """One walk as the page shows it."""
    width = max(len(path) for path, _ in walk)
    lines = [f"    {path:<{width}}  {function}" for path, function in walk]
    return "\n".join([f"`{name}` visits {len(walk)} files:", "", *lines])


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
