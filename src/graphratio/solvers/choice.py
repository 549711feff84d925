"""Which solver to use."""

from __future__ import annotations

from dataclasses import replace

from graphratio.data.graph import Graph
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import basis_of
from graphratio.solvers.cbcgd import solve_cbcgd
from graphratio.solvers.direct import solve_direct, solve_per_node
from graphratio.solvers.path import solve_pcg
from graphratio.solvers.solution import Solution

SOLVERS = ("auto", "direct", "pcg", "cbcgd")

# Up to this many unknowns a dense factorisation takes a few milliseconds.
SMALL_SYSTEM = 600


def solve(
    objective: GraphObjective, graph: Graph, method: str, tol: float, max_iter: int
) -> Solution:
    """Solve with the given method; "auto" chooses and says why in `Solution.reason`.

    Without edges every node has its closed form; small systems are solved densely; everything
    else by conjugate gradients.
    """
    n_nodes, _, m = objective.shape
    if method == "direct":
        return solve_direct(objective, tol)
    if method == "cbcgd":
        return solve_cbcgd(objective, tol, max_iter)
    if method == "pcg":
        return solve_pcg(objective, basis_of(graph), tol, max_iter)
    if graph.n_edges == 0:
        chosen, reason = solve_per_node(objective, tol), "the graph has no edges"
    elif n_nodes * m <= SMALL_SYSTEM:
        chosen, reason = solve_direct(objective, tol), f"only {n_nodes * m} unknowns"
    else:
        chosen = solve_pcg(objective, basis_of(graph), tol, max_iter)
        reason = f"{n_nodes * m} unknowns"
    return replace(chosen, reason=reason)
