"""The share of its given weight that each edge keeps in a learned graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph

# An edge is cut if it keeps less than this share of what a typical edge keeps.
CUT = 0.1


@dataclass(frozen=True, eq=False)
class Links:
    """Edges, each once: their ends, and learned / given weight relative to the median edge."""

    rows: IntArray
    columns: IntArray
    kept: FloatArray

    @classmethod
    def compare(cls, given: Graph, learned: Graph) -> Links:
        """Compare a graph with one of the same nodes and other weights."""
        upper = sparse.triu(given.adjacency, k=1).tocoo()
        rows, columns = upper.row.astype(np.intp), upper.col.astype(np.intp)
        if not rows.size:
            return cls(rows, columns, np.zeros(0))
        found = learned.adjacency[rows, columns]
        kept = np.asarray(found.todense() if sparse.issparse(found) else found).ravel() / upper.data
        return cls(rows, columns, kept / (np.median(kept) or 1.0))

    @property
    def as_given(self) -> bool:
        """Whether all edges kept the same share of their weight."""
        return bool(np.allclose(self.kept, 1.0))

    def cut(self, below: float = CUT) -> IntArray:
        """Positions of the edges that kept less than a share, the weakest first."""
        order = np.argsort(self.kept, kind="stable")
        return np.asarray(order[self.kept[order] < below])
