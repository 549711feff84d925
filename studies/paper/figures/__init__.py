"""The figures of the paper from the results of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from studies.paper.cells import SCENARIOS
from studies.paper.figures import style
from studies.paper.figures.alpha import draw_alpha
from studies.paper.figures.convergence import draw_convergence
from studies.paper.figures.divergence import draw_divergences, draw_divergences_by_alpha
from studies.paper.figures.graph_size import draw_graph_size


def draw_figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw all figures that the results allow into a folder, as SVG and PNG.

    Returns
    -------
    list of path
        For every scenario `convergence-`, `divergences-`, and with several alphas `alpha-` and
        `divergences-alpha-`; with several graph sizes `graph-size`.
    """
    written: list[Path] = []
    with style.settings():
        for name, draw in _wanted(results):
            written += style.save(draw(), folder, name)
    return written


def _wanted(results: pd.DataFrame) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """Name of every figure and how to draw it."""
    for name in [name for name in SCENARIOS if name in set(results["scenario"])]:
        yield f"convergence-{name}", partial(draw_convergence, results, name)
        yield f"divergences-{name}", partial(draw_divergences, results, name)
        if results.loc[results["alpha"] > 0, "alpha"].nunique() > 1:
            yield f"alpha-{name}", partial(draw_alpha, results, name)
            yield f"divergences-alpha-{name}", partial(draw_divergences_by_alpha, results, name)
    if results["n_nodes"].nunique() > 1:
        yield "graph-size", partial(draw_graph_size, results)
