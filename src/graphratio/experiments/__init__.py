"""The evaluation of the paper: five methods, four scenarios, tables and figures.

`run` computes and keeps results, `load_results` reads them, `write_tables` and `draw_figures`
show them. `graphratio experiment` is the same on the command line.
"""

from graphratio.experiments.cells import PROFILES, Cell, Grid
from graphratio.experiments.figures import draw_figures
from graphratio.experiments.methods import METHODS, PAPER_METHODS
from graphratio.experiments.run_cell import run_cell
from graphratio.experiments.runner import RunReport, run
from graphratio.experiments.tables import (
    divergence_table,
    error_table,
    factor_table,
    load_results,
    order_table,
    write_tables,
)
from graphratio.experiments.theory_curve import theory_curve

__all__ = [
    "METHODS",
    "PAPER_METHODS",
    "PROFILES",
    "Cell",
    "Grid",
    "RunReport",
    "divergence_table",
    "draw_figures",
    "error_table",
    "factor_table",
    "load_results",
    "order_table",
    "run",
    "run_cell",
    "theory_curve",
    "write_tables",
]
