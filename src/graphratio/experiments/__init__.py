"""The evaluation of the paper: five methods, four scenarios, tables and figures.

`run` computes and keeps results, `load_results` reads them, `write_tables` and `draw_figures`
show them. `graphratio experiment` is the same on the command line.
"""

from graphratio.experiments.cells import PROFILES, Cell, Grid
from graphratio.experiments.methods import METHODS, PAPER_METHODS
from graphratio.experiments.run_cell import run_cell
from graphratio.experiments.runner import RunReport, run

__all__ = [
    "METHODS",
    "PAPER_METHODS",
    "PROFILES",
    "Cell",
    "Grid",
    "RunReport",
    "run",
    "run_cell",
]
