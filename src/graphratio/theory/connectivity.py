"""How the graph enters the convergence theorem."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from graphratio import theory
from graphratio._utils.parameters import check_real
from graphratio.data.graph import Graph


def graph_factor(graph: Graph, node_penalty: float) -> float:
    """Largest diagonal entry of (Laplacian + node_penalty I)^-1.

    This is how the graph enters the convergence theorem: 1 / node_penalty at a node without
    edges, and towards 1 / (node_penalty times the nodes of its component) at a well connected
    one.

    Parameters
    ----------
    graph : Graph
    node_penalty : float
        Positive.

    Returns
    -------
    float

    Notes
    -----
    Beyond a thousand nodes the diagonal comes from one sparse factorisation and n_nodes
    triangular solves, a few columns at a time: memory stays that of the factors, which is
    little for sparse graphs, but the time grows at least with the square of n_nodes.

    Examples
    --------
    >>> import graphratio as gr
    >>> from graphratio.theory import graph_factor
    >>> graph_factor(gr.Graph.empty(3), node_penalty=0.5)
    2.0
    >>> round(graph_factor(gr.Graph.from_adjacency([[0, 1], [1, 0]]), node_penalty=0.5), 6)
    1.2
    """
    gam = check_real(node_penalty, "node_penalty", low=0.0)
    n_nodes = graph.n_nodes
    if n_nodes <= theory.LARGEST_DENSE:
        eigenvalues, vectors = np.linalg.eigh(graph.laplacian.toarray())
        # Rounding leaves the zero eigenvalues slightly negative, which a tiny penalty would feel.
        return float((vectors**2 @ (1.0 / (np.maximum(eigenvalues, 0.0) + gam))).max())
    shifted = sparse.csc_array(graph.laplacian + gam * sparse.eye_array(n_nodes))
    factors = splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    largest = 0.0
    for start in range(0, n_nodes, theory.COLUMN_BLOCK):
        columns = np.arange(start, min(start + theory.COLUMN_BLOCK, n_nodes))
        units = np.zeros((n_nodes, len(columns)))
        units[columns, np.arange(len(columns))] = 1.0
        inverse = factors.solve(units)
        largest = max(largest, float(inverse[columns, np.arange(len(columns))].max()))
    return largest
