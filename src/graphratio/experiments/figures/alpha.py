"""How the choice of alpha matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio.experiments.figures import _style
from graphratio.experiments.figures.convergence import COLLABORATIVE, draw_lines
from graphratio.experiments.tables import error_table, main_part


def draw_alpha(results: Any, scenario: str) -> Any:
    """Error of GRULSIF and POOL against n, one column of panels per alpha.

    Above the errors as the paper shows them. They belong to different ratios: the smaller alpha,
    the larger the ratio and its variance. Below, therefore, the same as a share of the variance
    of the true ratio, in which the estimate "no change" has 1.

    Parameters
    ----------
    results : frame
    scenario : str

    Returns
    -------
    matplotlib Figure
    """
    table = error_table(main_part(results[results["scenario"] == scenario]))
    table = table[table["method"].isin(COLLABORATIVE)]
    alphas = np.unique(table["alpha"])
    figure, grid = _style.pyplot().subplots(
        2,
        len(alphas),
        figsize=(1.6 + 2.7 * len(alphas), 5.4),
        layout="constrained",
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for column, alpha in enumerate(alphas):
        part = table[table["alpha"] == alpha]
        for ax, value in zip(grid[:, column], ("error", "relative_error"), strict=True):
            draw_lines(ax, part, COLLABORATIVE, value)
            _style.sample_sizes(ax, table["n"])
            _style.log_axis(ax)
        grid[0, column].set_title(f"alpha = {alpha:g}")
        grid[1, column].axhline(1.0, color="#777777", lw=0.8, ls=":")
        grid[1, column].set_xlabel("n")
    grid[0, 0].set_ylabel("mean squared error")
    grid[1, 0].set_ylabel("error / variance of the ratio\n(dotted: estimate “no change”)")
    grid[0, -1].legend(frameon=False, loc="upper right")
    figure.suptitle(
        f"Scenario {scenario}: sensitivity to alpha. "
        f"Geometric mean and range of {_style.seeds(table['n_seeds'].max())}",
        fontsize=10.5,
        x=0.01,
        ha="left",
    )
    return figure
