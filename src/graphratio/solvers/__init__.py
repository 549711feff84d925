"""Solvers: from an objective to a `Solution`."""

from graphratio.solvers.bases import basis_of
from graphratio.solvers.cbcgd import solve_cbcgd
from graphratio.solvers.direct import solve_direct, solve_nodes, solve_per_node
from graphratio.solvers.path import (
    SOLVERS,
    PathSolution,
    solve,
    solve_many,
    solve_path,
    solve_pcg,
    solve_streamed,
)
from graphratio.solvers.solution import Solution

__all__ = [
    "SOLVERS",
    "PathSolution",
    "Solution",
    "basis_of",
    "solve",
    "solve_cbcgd",
    "solve_direct",
    "solve_many",
    "solve_nodes",
    "solve_path",
    "solve_pcg",
    "solve_per_node",
    "solve_streamed",
]
