"""How the choice of alpha matters."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from studies.paper.figures import style
from studies.paper.figures.convergence import draw_lines
from studies.paper.methods import PAPER_METHODS
from studies.paper.tables import error_table, in_order, main_part


def draw_alpha(results: pd.DataFrame, scenario: str) -> Figure:
    """Error of the relative methods against alpha, one column of panels per sample size.

    Above the errors as the paper compares them. They belong to different ratios: the smaller
    alpha, the larger the ratio and its variance. Below, therefore, the same as a share of the
    variance of the true ratio, in which the estimate "no change" has 1.

    Parameters
    ----------
    results : frame
        The sample sizes with more than one alpha are drawn.
    scenario : str
    """
    table = error_table(main_part(results[results["scenario"] == scenario]))
    table = table[table["alpha"] > 0]
    several = table.groupby("n")["alpha"].nunique() > 1
    sizes = list(several.index[several]) or [table["n"].min()]
    methods = [name for name in in_order(table["method"]) if name in PAPER_METHODS]
    figure, grid = plt.subplots(
        2,
        len(sizes),
        figsize=(3.4 + 2.7 * len(sizes), 5.6),
        layout="constrained",
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for column, n in enumerate(sizes):
        part = table[table["n"] == n]
        for ax, value in zip(grid[:, column], ("error", "relative_error"), strict=True):
            ends = draw_lines(ax, part, methods, value, x="alpha")
            style.log_axis(ax)
            if n == sizes[-1]:
                style.label_ends(ax, ends)
        grid[0, column].set_title(f"n = {n}")
        grid[1, column].axhline(1.0, color="#777777", lw=0.8, ls=":")
        grid[1, column].set_xlabel("alpha")
    grid[0, 0].set_ylabel("mean squared error")
    grid[1, 0].set_ylabel("error / variance of the ratio\n(dotted: estimate “no change”)")
    style.title(
        figure,
        f"Scenario {scenario}: sensitivity to alpha. "
        f"Geometric mean and range of {style.seeds(table['n_seeds'].max())}",
    )
    return figure
