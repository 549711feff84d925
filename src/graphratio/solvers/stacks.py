"""Stacks of coefficients, shape (n_nodes, n_candidates, m), and operators on them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from graphratio.typing import BoolArray, FloatArray, IntArray

Selection = IntArray | BoolArray


class Linear(Protocol):
    """A linear operator on stacks, candidate by candidate."""

    def apply(self, x: FloatArray) -> FloatArray:
        """Apply it, shape (n_nodes, n_candidates, m)."""

    def restrict(self, candidates: Selection) -> Linear:
        """The same for some of the candidates only."""


def pick(x: FloatArray, candidates: Selection) -> FloatArray:
    """Some of the candidates of a stack, in the usual memory order, which indexing alone loses."""
    return np.ascontiguousarray(x[:, candidates])


def times(matrix: Any, x: FloatArray) -> FloatArray:
    """Product of a dense or sparse matrix over the nodes with a stack."""
    width = int(np.prod(x.shape[1:]))
    return np.asarray(matrix @ x.reshape(len(x), width)).reshape(-1, *x.shape[1:])
