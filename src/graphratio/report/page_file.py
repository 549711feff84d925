"""Pages as files: template, style, scripts, data and the chart library in one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, Words
from graphratio._utils.files import appearing
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray
from graphratio._version import __version__
from graphratio.data.graph import Graph
from graphratio.plotting.insets import Box
from graphratio.plotting.layout import Layout, node_layout
from graphratio.plotting.outlines import Outlines, outlines_around, outlines_in

# The data of this many nodes take about 8 MB of a page.
NODES_ON_A_PAGE = 25_000


@dataclass(frozen=True)
class PageSection:
    """A section of a page: a heading, sentences, and a table with a head, all of them text.

    Examples
    --------
    >>> from graphratio.report import PageSection
    >>> checked = PageSection("Checked by hand", ["Both sensors were replaced in March."])
    >>> checked.table
    ()
    """

    heading: str
    sentences: Sequence[str] = ()
    table: Sequence[Sequence[str]] = ()
    after: Sequence[str] = ()


def page_packages(purpose: str) -> tuple[Any, Any]:
    """Import plotly and jinja2; called early, so that a missing one does not waste a long fit."""
    plotly = import_optional("plotly.offline", "report", purpose)
    return plotly, import_optional("jinja2", "report", purpose)


def check_page_size(n_nodes: int, instead: Words) -> None:
    """Refuse to put more nodes on a page than browsers show; `instead` says what to do."""
    if n_nodes > NODES_ON_A_PAGE:
        raise InputError(
            f"a report holds at most {NODES_ON_A_PAGE:,} nodes, and there are {n_nodes:,}", instead
        )


def write_page(
    path: str | Path, template: str, scripts: Iterable[str], data: Any, **content: Any
) -> Path:
    """Write a page to a file; the template shows `content`, and the scripts read `data`."""
    plotly, jinja2 = page_packages("the page")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template(template).render(
        version=__version__,
        style=_asset("report.css"),
        scripts=[_asset(name) for name in scripts],
        plotly=compiled_once(plotly.get_plotlyjs()),
        data=script_json(data),
        **content,
    )
    page = guarded(page)
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} does not exist", "Create it first")
    with appearing(path) as rough:
        rough.write_text(page, encoding="utf-8", errors="replace")
    return path


def guarded(page: str) -> str:
    """Add a policy that lets a browser run the scripts of this page and nothing else.

    Scripts are named by their hashes, and nothing may be loaded from anywhere. The chart library
    needs styles of its own, and pictures that it makes.
    """
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    mark = '<meta charset="utf-8">'
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace(mark, f"{mark}\n{meta}", 1)


def _asset(name: str) -> str:
    return files("graphratio.report").joinpath("assets", name).read_text(encoding="utf-8")


def script_json(data: Any) -> str:
    """JSON that is safe inside a script element, whatever the strings contain."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"})


def compiled_once(library: str) -> str:
    """Put the function around the chart library in parentheses, so that browsers parse it once.

    They parse a bare function twice: quickly at first, and again when it is called. This takes a
    sixth of the time to load several megabytes. A library wrapped in another way is returned
    unchanged.
    """
    begin, end = "this, () => {", "}));"
    start, text = library.find(begin, 0, 1000), library.rstrip()
    if start < 0 or not text.endswith(end):
        return library
    return f"{text[:start]}this, (() => {{{text[start + len(begin) : -len(end)]}}})));"


def map_data(graph: Graph) -> dict[str, Any]:
    """Where the nodes are drawn, and the edges between them."""
    layout = node_layout(graph)
    return {
        "x": short(layout.positions[:, 0], 6),
        "y": short(layout.positions[:, 1], 6),
        "kind": layout.kind,
        "aspect": layout.aspect,
        "edges": layout.edges.ravel().tolist(),
        "caption": layout.caption,
        "frame": _corners(layout.frame),
        "insets": [_corners(inset.at) for inset in layout.insets],
        "outlines": _backdrops(layout) if layout.kind == "globe" else [],
    }


def _corners(box: Box) -> list[float]:
    return [float(f"{value:.6g}") for value in (box.left, box.right, box.bottom, box.top)]


def _backdrops(layout: Layout) -> list[dict[str, Any]]:
    """Outlines of the map and of its insets, as paths."""
    shown = [outlines_around(layout.frame)]
    shown += [outlines_in(inset.of).moved(inset) for inset in layout.insets]
    return [_paths(part) for part in shown]


def _paths(outlines: Outlines) -> dict[str, str]:
    def path(lines: list[FloatArray], end: str) -> str:
        return "".join("M" + "L".join(f"{x:.2f},{y:.2f}" for x, y in line) + end for line in lines)

    return {"land": path(outlines.land, "Z"), "borders": path(outlines.borders, "")}


def short(values: FloatArray, digits: int = 4) -> Any:
    """Few significant digits, None for NaN, as nested lists."""
    if np.ndim(values):
        return [short(part, digits) for part in values]
    return None if np.isnan(values) else float(f"{values:.{digits}g}")
