"""Seconds and memory of one fit against the number of nodes, from benchmarks/scale.json."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

# Pictures are drawn somewhere below the root of the repository.
above = (folder / "benchmarks" / "scale.json" for folder in (Path.cwd(), *Path.cwd().parents))
runs = json.loads(next(path for path in above if path.exists()).read_text())

# Graph, whether all nodes share one law, graph penalty and ridge: an easy and a hard system each.
SHOWN = {
    ("grid", "alike", 10.0, 1.0): ("grid, nodes alike", "#0072b2", "-"),
    ("plane", "alike", 10.0, 1e-5): ("plane, nodes alike, weak ridge", "#d55e00", "-"),
    ("plane", "own", 0.01, 1.0): ("plane, every node its own law", "#009e73", "--"),
    ("plane", "own", 0.01, 1e-5): ("the same, weak ridge", "#777777", "--"),
}

fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for key, (name, colour, style) in SHOWN.items():
    some = [
        run
        for run in runs
        if (run["graph"], run.get("law"), run.get("coupling"), run.get("gamma")) == key
        and not run.get("again")
    ]
    nodes = [run["n_nodes"] for run in some]
    for ax, value in zip(axes, ("seconds", "gibibytes"), strict=True):
        ax.plot(nodes, [run[value] for run in some], style, marker="o", color=colour, label=name)
for ax, title in zip(axes, ("seconds of one fit, two cores", "peak memory, GiB"), strict=True):
    ax.set(xscale="log", yscale="log", xlabel="nodes", title=title)
    ax.set_xticks([12_500, 25_000, 50_000, 100_000], ["12,500", "25,000", "50,000", "100,000"])
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks([3, 10, 30, 100], ["3", "10", "30", "100"])
axes[1].set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
axes[0].legend(frameon=False, fontsize=9)
