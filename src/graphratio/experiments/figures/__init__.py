"""The figures of the paper from the results of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from graphratio.experiments.cells import SCENARIOS
from graphratio.experiments.figures import _style
from graphratio.experiments.figures.alpha import draw_alpha
from graphratio.experiments.figures.convergence import draw_convergence
from graphratio.experiments.figures.divergence import draw_divergences, draw_divergences_by_alpha
from graphratio.experiments.figures.graph_size import draw_graph_size
from graphratio.experiments.tables import load_results

__all__ = [
    "draw_alpha",
    "draw_convergence",
    "draw_divergences",
    "draw_divergences_by_alpha",
    "draw_figures",
    "draw_graph_size",
]


def draw_figures(folder: str | Path, output: str | Path) -> list[Path]:
    """Draw all figures that the results of a study allow, as SVG and PNG.

    Parameters
    ----------
    folder : path
        Where `run` wrote to.
    output : path
        Folder for the figures, created if need be.

    Returns
    -------
    list of path
        For every scenario `convergence-`, `divergences-`, and with several alphas `alpha-` and
        `divergences-alpha-`; with several graph sizes `graph-size`.

    Examples
    --------
    >>> import tempfile
    >>> from graphratio.experiments import Grid, draw_figures, run
    >>> grid = Grid(("Ia",), ("POOL", "RULSIF"), (20,), graph_sizes=(8,), seeds=2, n_points=50)
    >>> folder = tempfile.mkdtemp()
    >>> report = run(folder, grids=[grid], workers=1, table_format="csv")
    >>> sorted(path.name for path in draw_figures(folder, tempfile.mkdtemp()))
    ['convergence-Ia.png', 'convergence-Ia.svg', 'divergences-Ia.png', 'divergences-Ia.svg']
    """
    results = load_results(folder)
    written: list[Path] = []
    with _style.settings():
        for name, draw in _wanted(results):
            written += _style.save(draw(), Path(output), name)
    return written


def _wanted(results: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name of every figure and how to draw it."""
    for name in [name for name in SCENARIOS if name in set(results["scenario"])]:
        yield f"convergence-{name}", partial(draw_convergence, results, name)
        yield f"divergences-{name}", partial(draw_divergences, results, name)
        if results.loc[results["alpha"] > 0, "alpha"].nunique() > 1:
            yield f"alpha-{name}", partial(draw_alpha, results, name)
            yield f"divergences-alpha-{name}", partial(draw_divergences_by_alpha, results, name)
    if results["n_nodes"].nunique() > 1:
        yield "graph-size", partial(draw_graph_size, results)
