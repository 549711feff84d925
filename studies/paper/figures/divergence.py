"""Estimated divergences of the groups of nodes, beside the true ones."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.paper.figures import style
from studies.paper.figures.convergence import COLLABORATIVE
from studies.paper.tables import in_order, main_part

# Shares of the estimates between which boxes and whiskers reach.
_WHISKERS = (5, 95)
_NAMES = {"complement": "complement of C(u)"}


def draw_divergences(results: pd.DataFrame, scenario: str, alpha: float = 0.1) -> Figure:
    """Box plots of the estimates, one row of panels per method and one column per group.

    Parameters
    ----------
    results : frame
    scenario : str
    alpha : float
        The one of the relative methods.
    """
    part = main_part(results[results["scenario"] == scenario])
    part = part[part["alpha"].isin([alpha, 0.0])]
    rows = [(name, None) for name in in_order(part["method"]) if name != "RULSIF-cautious"]
    return _panels(part, rows, f"Scenario {scenario}, alpha = {alpha:g} where relative")


def draw_divergences_by_alpha(results: pd.DataFrame, scenario: str) -> Figure:
    """The same for GRULSIF and POOL, one row per method and alpha."""
    part = main_part(results[results["scenario"] == scenario])
    part = part[part["method"].isin(COLLABORATIVE)]
    rows = [
        (name, float(alpha))
        for alpha in np.unique(part["alpha"])
        for name in in_order(part["method"])
    ]
    return _panels(part, rows, f"Scenario {scenario}, sensitivity to alpha")


def _panels(part: pd.DataFrame, rows: Sequence[tuple[str, float | None]], title: str) -> Figure:
    groups = list(np.unique(part["group"]))
    sizes = np.unique(part["n"])
    figure, grid = plt.subplots(
        len(rows),
        len(groups),
        figsize=(1.2 + (2.1 if len(groups) > 2 else 3.4) * len(groups), 0.9 + 1.45 * len(rows)),
        layout="constrained",
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for axes, (method, alpha) in zip(grid, rows, strict=True):
        chosen = part[part["method"] == method]
        if alpha is not None:
            chosen = chosen[chosen["alpha"] == alpha]
        for ax, group in zip(axes, groups, strict=True):
            _boxes(ax, chosen[chosen["group"] == group], sizes, style.COLOURS[method])
        _limit(axes[0], chosen)
        kind = {"Pearson": "PE", "KL": "KL"}[chosen["divergence"].iloc[0]]
        used = chosen["alpha"].iloc[0]
        shown = f"{kind}, alpha {used:g}" if used > 0 else kind
        axes[0].set_ylabel(f"{method}\n{shown}", color=style.COLOURS[method], fontweight="bold")
    for ax, group in zip(grid[0], groups, strict=True):
        ax.set_title(_NAMES.get(group, group))
    for ax in grid[-1]:
        ax.set_xticks(range(len(sizes)), [str(size) for size in sizes])
        ax.set_xlabel("n")
    figure.align_ylabels(grid[:, 0])
    style.title(
        figure,
        f"{title}: estimated divergence at all nodes, {style.seeds(part['seed'].nunique())}\n"
        "Box: quartiles and median; whiskers: 5 to 95 %; black line: true divergence",
        size=10,
    )
    return figure


def _boxes(ax: Axes, part: pd.DataFrame, sizes: np.ndarray, colour: str) -> None:
    values = [part.loc[part["n"] == size, "divergence_estimated"].to_numpy() for size in sizes]
    ax.boxplot(
        values,
        positions=range(len(sizes)),
        widths=0.55,
        whis=_WHISKERS,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.45, "edgecolor": colour},
        medianprops={"color": style.INK, "lw": 1.1},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        manage_ticks=False,
    )
    true = float(part["divergence_true"].iloc[0])
    if np.isfinite(true):
        ax.axhline(true, color=style.INK, lw=1.0, ls=(0, (4, 2)))
    else:
        # At the left, where n is small and so are the estimates.
        ax.text(
            0.03,
            0.95,
            "true: infinite",
            va="top",
            fontsize=8,
            transform=ax.transAxes,
            bbox={"facecolor": "white", "alpha": 0.85, "lw": 0, "pad": 1.5},
        )
    ax.grid(axis="x", visible=False)


def _limit(ax: Axes, part: pd.DataFrame) -> None:
    """Axis that holds whiskers and truths; logarithmic away from 0 if a few are far off."""
    grouped = part.groupby(["group", "n"])["divergence_estimated"]
    low, high = (grouped.quantile(share / 100) for share in _WHISKERS)
    true = part["divergence_true"][np.isfinite(part["divergence_true"])]
    scale = max(float(true.max()) if len(true) else 0.0, float(high.median()), 1e-3)
    top = max(float(high.max()), float(true.max()) if len(true) else 0.0)
    bottom = min(float(low.min()), 0.0)
    if top > 10 * scale:
        style.far_axis(ax, scale, top)
        ax.set_ylim(bottom - 0.3 * scale, 1.6 * top)
        return
    margin = 0.06 * (top - bottom)
    ax.set_ylim(bottom - margin, top + margin)
