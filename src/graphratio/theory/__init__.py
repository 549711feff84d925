"""The paper's bounds with every constant computed: cycles of CBCGD, rates, capacity.

The bounds explain how accuracy and cost depend on the data, the graph and the penalties. They
are not predictions: they hold for the worst case and are loose by orders of magnitude.
"""

from graphratio.theory.capacity import Capacity, estimate_capacity
from graphratio.theory.convergence import ConvergenceBound, convergence_bound, graph_factor
from graphratio.theory.cycles import CycleBound, cbcgd_cycle_bound

__all__ = [
    "COLUMN_BLOCK",
    "LARGEST_DENSE",
    "Capacity",
    "ConvergenceBound",
    "CycleBound",
    "cbcgd_cycle_bound",
    "convergence_bound",
    "estimate_capacity",
    "graph_factor",
]

# Up to this size dense eigenvalues take about a second and need no iteration.
LARGEST_DENSE = 1000

# Columns of an inverse computed at a time, to keep memory linear in the number of nodes.
COLUMN_BLOCK = 256
