"""Divergence on hidden observations against observations per sample, for two real networks."""

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

COLOURS = {"GraphRatio": "#d55e00", "GRULSIF": "#0072b2", "Pool": "#777777", "RULSIF": "#009e73"}
TITLES = {"flights": "Flights, 67 airports", "sea": "Sea temperatures, 421 blocks"}

values = defaultdict(list)
# Pictures are drawn somewhere below the root of the repository.
above = (folder / "studies" / "real-data.csv" for folder in (Path.cwd(), *Path.cwd().parents))
with next(path for path in above if path.exists()).open() as file:
    for row in csv.DictReader(file):
        values[row["data"], row["method"], int(row["n"])].append(float(row["divergence"]))

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, (data, title) in zip(axes, TITLES.items(), strict=True):
    sizes = sorted({n for name, _, n in values if name == data})
    for method, colour in COLOURS.items():
        drawn = [np.array(values[data, method, n]) for n in sizes]
        mean = np.array([each.mean() for each in drawn])
        error = np.array([each.std(ddof=1) / np.sqrt(len(each)) for each in drawn])
        style = "--" if method == "GRULSIF" else "-"
        ax.plot(sizes, mean, style, marker="o", color=colour, label=method, markersize=4)
        ax.fill_between(sizes, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.15)
    ax.set(xscale="log", xticks=sizes, xticklabels=sizes, xlabel="observations per sample")
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    ax.set_title(title, loc="left", fontsize=11)
axes[0].set_ylabel("divergence on hidden observations")
axes[0].legend(frameon=False, fontsize=9)
