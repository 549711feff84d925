"""Figures of fitted models for notebooks: matplotlib Axes in, matplotlib Axes out."""

from graphratio.plotting.graph_map import plot_graph
from graphratio.plotting.interval_figure import plot_band, plot_bounds, plot_gains
from graphratio.plotting.kind_figure import plot_learned_graph
from graphratio.plotting.node_figure import plot_node
from graphratio.plotting.profile_figure import plot_profiles
from graphratio.plotting.selection_figure import plot_selection

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
