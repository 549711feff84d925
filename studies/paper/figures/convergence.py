"""Error against the number of observations, for all methods and for the paper's two."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.paper.figures import style
from studies.paper.tables import error_table, in_order, main_part

COLLABORATIVE = ("GRULSIF", "POOL")


def draw_convergence(results: pd.DataFrame, scenario: str, alpha: float = 0.1) -> Figure:
    """Error of every method against n on one scenario, and the same for GRULSIF and POOL.

    Parameters
    ----------
    results : frame
    scenario : str
    alpha : float
        The one of the relative methods.
    """
    table = error_table(main_part(results[results["scenario"] == scenario]))
    table = table[table["alpha"].isin([alpha, 0.0])]
    n_nodes = int(table["n_nodes"].iloc[0])
    figure, (all_axes, zoom) = plt.subplots(
        1, 2, figsize=(9.6, 3.9), layout="constrained", width_ratios=(1.15, 1)
    )
    ends = draw_lines(all_axes, table, in_order(table["method"]))
    style.log_axis(all_axes)
    all_axes.set_title("All methods (logarithmic)")
    style.label_ends(all_axes, ends)
    pair = [name for name in COLLABORATIVE if name in set(table["method"])]
    ends = draw_lines(zoom, table, pair)
    zoom.set_ylim(0, None)
    zoom.set_title("GRULSIF and POOL (linear, from 0)")
    style.label_ends(zoom, ends)
    for ax in (all_axes, zoom):
        ax.set_xlabel("observations per sample and node, n")
    all_axes.set_ylabel("mean squared error of the ratio")
    style.title(
        figure,
        f"Scenario {scenario}: {n_nodes} nodes, alpha = {alpha:g} (ULSIF, KLIEP: plain ratio). "
        f"Geometric mean and range of {style.seeds(table['n_seeds'].max())}",
    )
    return figure


def draw_lines(
    ax: Axes, table: pd.DataFrame, methods: Sequence[str], value: str = "error", x: str = "n"
) -> dict[str, tuple[float, float]]:
    """One line per method, with the range over seeds.

    Returns the last point of every line.
    """
    ends = {}
    for method in methods:
        part = table[table["method"] == method].sort_values(x)
        if not len(part):
            continue
        across, height = part[x].to_numpy(), part[value].to_numpy()
        colour = style.COLOURS[method]
        low, high = part[f"{value}_smallest"], part[f"{value}_largest"]
        ax.fill_between(across, low, high, color=colour, alpha=0.18, lw=0)
        dashed = method == "RULSIF-cautious"
        ax.plot(
            across,
            height,
            color=colour,
            marker=style.MARKERS[method],
            ms=4.5,
            lw=1.5,
            ls="--" if dashed else "-",
            label=method,
        )
        ends[method] = (float(across[-1]), float(height[-1]))
    style.sample_sizes(ax, np.unique(table[x]))
    return ends
