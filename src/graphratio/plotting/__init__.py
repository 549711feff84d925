"""Pictures of fitted models for notebooks: matplotlib Axes in, matplotlib Axes out."""

from graphratio.plotting.gains import plot_gains
from graphratio.plotting.intervals import plot_band, plot_bounds
from graphratio.plotting.links import plot_learned_graph
from graphratio.plotting.map import plot_graph
from graphratio.plotting.node import plot_node
from graphratio.plotting.profiles import plot_profiles
from graphratio.plotting.selection import plot_selection

__all__ = [
    "plot_band",
    "plot_bounds",
    "plot_gains",
    "plot_graph",
    "plot_learned_graph",
    "plot_node",
    "plot_profiles",
    "plot_selection",
]
