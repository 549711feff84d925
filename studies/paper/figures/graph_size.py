"""Error against the number of nodes, beside Theorem 1."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.paper.cells import SCENARIOS
from studies.paper.figures import style
from studies.paper.figures.convergence import COLLABORATIVE, draw_lines
from studies.paper.tables import error_table
from studies.paper.theory_curve import graph_size_part, theory_curve


def draw_graph_size(results: pd.DataFrame) -> Figure:
    """Error of GRULSIF and POOL against N, above Theorem 1's right-hand side.

    The right-hand side is evaluated with Lambda and the graph factor of every graph. Its power
    of N by itself, through the first point, is dashed. Both rows span the same number of
    decades, so slopes can be compared.

    Parameters
    ----------
    results : frame
        Of a study with several graph sizes.
    """
    part = graph_size_part(results)
    table = error_table(part)
    curve = theory_curve(results)
    names = [name for name in SCENARIOS if name in set(part["scenario"])]
    figure, grid = plt.subplots(
        2,
        len(names),
        figsize=(1.0 + 2.6 * len(names), 5.6),
        layout="constrained",
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for column, name in enumerate(names):
        above, below = grid[:, column]
        draw_lines(above, table[table["scenario"] == name], COLLABORATIVE, x="n_nodes")
        _draw_bound(below, curve[curve["scenario"] == name])
        above.set_title(f"Scenario {name}")
        below.set_xlabel("number of nodes, N")
        style.log_axis(above)
        style.log_axis(below)
    logs = [np.log10(row[0].get_ylim()) for row in grid]
    decades = max(high - low for low, high in logs)
    for row, (low, high) in zip(grid, logs, strict=True):
        middle = 0.5 * (low + high)
        row[0].set_ylim(10 ** (middle - decades / 2), 10 ** (middle + decades / 2))
    grid[0, 0].set_ylabel("mean squared error")
    grid[1, 0].set_ylabel("Theorem 1, right-hand side")
    grid[0, -1].legend(frameon=False, loc="upper right")
    grid[1, -1].legend(frameon=False, loc="lower left", fontsize=8)
    n, alpha = int(part["n"].iloc[0]), float(part["alpha"].iloc[0])
    style.title(
        figure,
        f"Error against the number of nodes: n = {n}, alpha = {alpha:g}. "
        f"Geometric mean and range of {style.seeds(table['n_seeds'].max())}",
    )
    return figure


def _draw_bound(ax: Axes, curve: pd.DataFrame) -> None:
    grouped = curve.groupby("n_nodes")["bound"]
    sizes = np.array(sorted(curve["n_nodes"].unique()))
    bound = np.exp(np.log(curve["bound"]).groupby(curve["n_nodes"]).mean()).to_numpy()
    power = curve.groupby("n_nodes")["power"].first().to_numpy()
    ax.fill_between(sizes, grouped.min(), grouped.max(), color=style.INK, alpha=0.15, lw=0)
    ax.plot(
        sizes, bound, color=style.INK, marker="o", ms=4.5, lw=1.5, label="Λ, graph factor of each N"
    )
    ax.plot(sizes, bound[0] * power, color="#777777", lw=1.2, ls="--", label="power of N alone")
    style.sample_sizes(ax, sizes)
