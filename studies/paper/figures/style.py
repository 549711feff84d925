"""How the figures look: colours, markers, axes, labels at the ends of lines, files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK = "#222222"
# The palette of Okabe and Ito, which readers with any kind of colour vision tell apart; markers
# and the labels at the lines say the same once more.
COLOURS: Mapping[str, str] = {
    "GRULSIF": "#0072b2",
    "POOL": "#d55e00",
    "RULSIF": "#009e73",
    "ULSIF": "#cc79a7",
    "KLIEP": "#e69f00",
    "RULSIF-cautious": "#56b4e9",
}
MARKERS: Mapping[str, str] = {
    "GRULSIF": "o",
    "POOL": "s",
    "RULSIF": "^",
    "ULSIF": "D",
    "KLIEP": "v",
    "RULSIF-cautious": "P",
}
FORMATS = ("svg", "png")

_SETTINGS = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "text.color": INK,
    "svg.fonttype": "none",
    # The same results give the same file.
    "svg.hashsalt": "graphratio",
}

# Least distance between labels, as a share of the height of the axes.
_LABEL_GAP = 0.065


def settings() -> AbstractContextManager[Any]:
    """Context in which figures of the study are drawn."""
    return plt.rc_context(_SETTINGS)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure in every format and let go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in FORMATS]
    for path in paths:
        # Without the date, which would make every file a new one.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=144, metadata=metadata, facecolor="white")
    plt.close(figure)
    return paths


def title(figure: Figure, text: str, size: float = 10.5) -> None:
    """Write a title at the left, above all panels."""
    figure.suptitle(text, fontsize=size, x=0.01, ha="left")


def sample_sizes(ax: Axes, values: Iterable[float], *, log: bool = True) -> None:
    """Put the values that were run, and only those, on the horizontal axis."""
    ticks = sorted(set(values))
    if log:
        ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{value:g}" for value in ticks])
    ax.minorticks_off()


def seeds(count: int) -> str:
    """How many seeds, in words.

    Examples
    --------
    >>> seeds(1), seeds(10)
    ('1 seed', '10 seeds')
    """
    return f"{count} seed" if count == 1 else f"{count} seeds"


def log_axis(ax: Axes) -> None:
    """Make the vertical axis logarithmic, with ticks that can be read; after drawing."""
    ax.set_yscale("log")
    low, high = np.log10(ax.get_ylim())
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=steps, numticks=12))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(_tick))
    ax.yaxis.set_minor_locator(ticker.NullLocator())


def _tick(value: float, position: int | None = None) -> str:
    r"""Write a number, with a power of ten where it is far from 1.

    Examples
    --------
    >>> _tick(0.02), _tick(2e11), _tick(0.0)
    ('0.02', '$2\\times10^{11}$', '0')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    leading = f"{value / 10**exponent:g}"
    factor = "" if leading == "1" else rf"{leading}\times"
    return f"${factor}10^{{{exponent}}}$"


def far_axis(ax: Axes, scale: float, top: float) -> None:
    """Linear up to about `scale` and logarithmic beyond, up to `top`."""
    first = math.ceil(math.log10(scale))
    last = math.ceil(math.log10(top))
    ax.set_yscale("symlog", linthresh=10.0**first, linscale=1.5)
    step = max(1, (last - first) // 3)
    ax.set_yticks([0.0, *(10.0**power for power in range(first, last + 1, step))])
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(_tick))
    ax.yaxis.set_minor_locator(ticker.NullLocator())


def label_ends(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write names at the right ends of lines, moved apart where they would overlap.

    `ends` gives x and y of the last point of every line, in the units of the data. The limits
    of the axes must be final.
    """
    to_axes = ax.transData + ax.transAxes.inverted()
    names = sorted(ends, key=lambda name: ends[name][1])
    heights = np.array([to_axes.transform(ends[name])[1] for name in names])
    for name, height in zip(names, spread(heights, _LABEL_GAP), strict=True):
        ax.annotate(
            name,
            xy=ends[name],
            xytext=(1.05, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            color=COLOURS[name],
            fontweight="bold",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": COLOURS[name], "lw": 0.6, "shrinkB": 3},
        )


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move ascending heights apart to at least `gap`, within [0, 1] and near where they were.

    Examples
    --------
    >>> spread(np.array([0.5, 0.5, 0.9]), 0.1).round(2)
    array([0.45, 0.55, 0.9 ])
    """
    # Groups that touch share one centre; a group that grows into the next swallows it.
    groups: list[list[float]] = []
    for height in heights:
        groups.append([float(height)])
        while len(groups) > 1 and _low(groups[-1], gap) < _low(groups[-2], gap) + gap * len(
            groups[-2]
        ):
            last = groups.pop()
            groups[-1] += last
    placed = [_low(group, gap) + gap * k for group in groups for k in range(len(group))]
    moved = np.array(placed)
    # Back inside, if the outermost group sticks out.
    for position in range(len(moved)):
        moved[position] = max(moved[position], gap * position)
    for position in range(len(moved)):
        moved[-1 - position] = min(moved[-1 - position], 1.0 - gap * position)
    return moved


def _low(group: list[float], gap: float) -> float:
    """Height of the lowest member of a group spread around its centre."""
    return sum(group) / len(group) - 0.5 * gap * (len(group) - 1)
