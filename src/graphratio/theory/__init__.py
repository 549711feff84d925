"""The paper's bounds with every constant computed: cycles of CBCGD, rates, capacity.

They explain how accuracy and cost depend on the data, the graph and the penalties. They are not
predictions: both bounds hold for the worst case and are loose by orders of magnitude.
"""

from graphratio.theory.capacity import Capacity, estimate_capacity
from graphratio.theory.connectivity import graph_factor
from graphratio.theory.convergence import ConvergenceBound, convergence_bound
from graphratio.theory.descent import CycleBound, cbcgd_cycle_bound
from graphratio.theory.spectra import COLUMN_BLOCK, LARGEST_DENSE

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
