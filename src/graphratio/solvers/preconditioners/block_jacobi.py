"""Inverses at every node, alone or averaged with the mean field: for weak coupling.

The mean field is good under strong coupling, the inverses at the nodes under weak coupling. The
set-up of their average takes one eigenproblem per node. On small graphs and within partitions
this pays sooner than the levels of `block_multigrid`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.jobs import in_parallel
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import FactoredSecond
from graphratio.solvers.conjugate_gradients import Chosen, Linear, pick
from graphratio.solvers.positive_definite import inverses

# Smallest ridge as a share of the mean eigenvalue of a block, so that rounding in single
# precision cannot make the inverse indefinite.
SMALLEST_RIDGE = 1e-7

# Eigenvalues of rows below this share of the largest are rounding, and a ridge is at least this
# share of the largest eigenvalue where its inverse is a difference.
SMALLEST_EIGENVALUE = 1e-9
SMALLEST_SHARE = 1e-5

# Up to this many candidates an inverse for each costs less than the eigenvectors for all.
FEW_CANDIDATES = 3

# Number of blocks that are inverted at once.
INVERTED_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class NodeInverses:
    """Inverses of A_v + ridge_v I at every node.

    With few candidates `blocks` are the inverses, (n, n_candidates, m, m). With many they are the
    eigenvectors of the A_v, (n, m, m), and `scale`, (n, n_candidates, m), the inverse eigenvalues.
    """

    blocks: FloatArray
    scale: FloatArray | None

    @classmethod
    def of(
        cls, second: FloatArray, ridge: FloatArray, damping: float = 1.0, dtype: Any = np.float32
    ) -> NodeInverses:
        """Set up from blocks (n, m, m) and ridges (n, n_candidates)."""
        n, m, _ = second.shape
        single = dtype == np.float32
        if single:
            floor = SMALLEST_RIDGE * np.einsum("vii->v", second) / m
            ridge = np.maximum(ridge, floor[:, np.newaxis])
        ridge = ridge.astype(dtype)
        n_candidates = ridge.shape[1]
        # Eigenvectors keep the inverse definite for any ridge.
        few = single and n_candidates <= FEW_CANDIDATES
        blocks = np.empty((n, n_candidates, m, m) if few else (n, m, m), dtype=dtype)
        scale = None if few else np.empty((n, n_candidates, m), dtype=dtype)
        unit = np.eye(m, dtype=dtype)

        def work(i: int) -> None:
            nodes = slice(i * INVERTED_AT_ONCE, (i + 1) * INVERTED_AT_ONCE)
            part = second[nodes].astype(dtype, copy=False)
            if scale is None:
                shifted = part[:, np.newaxis] + ridge[nodes, :, np.newaxis, np.newaxis] * unit
                blocks[nodes] = damping * inverses(shifted)
            else:
                eigenvalues, blocks[nodes] = np.linalg.eigh(part)
                data = np.maximum(eigenvalues, 0.0)[:, np.newaxis]
                scale[nodes] = damping / (ridge[nodes, :, np.newaxis] + data)

        in_parallel(work, -(-n // INVERTED_AT_ONCE))
        return cls(blocks, scale)

    def apply(self, x: FloatArray) -> FloatArray:
        """Solve every node by itself, shape (n, n_candidates, m)."""
        if self.scale is None:
            return np.asarray((x[:, :, np.newaxis] @ self.blocks)[:, :, 0])
        rotated = x @ self.blocks
        rotated *= self.scale
        return np.asarray(rotated @ self.blocks.transpose(0, 2, 1))

    def restrict(self, candidates: Chosen) -> NodeInverses:
        """Keep some of the candidates."""
        if self.scale is None:
            return replace(self, blocks=self.blocks[:, candidates])
        return replace(self, scale=pick(self.scale, candidates))


@dataclass(frozen=True, eq=False)
class RowInverses:
    """Inverses of A_v + ridge_v I at nodes with few rows, from the eigenvectors of the A_v.

    With orthonormal rows U and eigenvalues w, A = U' diag(w) U, and Woodbury's identity is
    (A + c I)^{-1} = I / c - U' diag(w / (c (w + c))) U. Each of the `parts` has nodes (k,), U
    (k, rows, m) and w (k, 1, rows); `ridge`, (n, n_candidates, 1), holds c.
    """

    parts: Sequence[tuple[IntArray, FloatArray, FloatArray]]
    ridge: FloatArray

    @classmethod
    def of(cls, second: FactoredSecond, ridge: FloatArray) -> RowInverses:
        """Set up from rows and ridges (n, n_candidates)."""
        ridge = ridge.astype(np.float32)[:, :, np.newaxis]
        parts = []
        for nodes, psi, weights in second.parts:
            rows = psi * np.sqrt(weights)[:, :, np.newaxis]
            w, vectors = np.linalg.eigh((rows @ rows.transpose(0, 2, 1)).astype(np.float64))
            kept = w > SMALLEST_EIGENVALUE * w[:, -1:]
            scale = np.where(kept, 1 / np.sqrt(np.where(kept, w, 1.0)), 0.0)
            directions = (vectors * scale[:, np.newaxis]).astype(np.float32)
            own = np.where(kept, w, 0.0).astype(np.float32)[:, np.newaxis]
            # Rounding of the difference must not outweigh the inverse of the largest eigenvalue.
            ridge[nodes] = np.maximum(
                ridge[nodes], SMALLEST_SHARE * own.max(axis=2, initial=0.0, keepdims=True)
            )
            parts.append((nodes, directions.transpose(0, 2, 1) @ rows, own))
        return cls(parts, ridge)

    def apply(self, x: FloatArray) -> FloatArray:
        """Solve every node by itself, shape (n, n_candidates, m)."""
        result = x / self.ridge
        for nodes, directions, w in self.parts:
            ridge = self.ridge[nodes]
            seen = x[nodes] @ directions.transpose(0, 2, 1)
            seen *= w / (ridge * (w + ridge))
            result[nodes] -= seen @ directions
        return np.asarray(result)

    def restrict(self, candidates: Chosen) -> RowInverses:
        """Keep some of the candidates."""
        return replace(self, ridge=pick(self.ridge, candidates))


def node_inverses(objective: GraphObjective, dtype: Any = np.float32) -> NodeInverses | RowInverses:
    """The inverses of A_v + (lam d_v + rho) I, for an objective in Nystrom form."""
    degrees = objective.laplacian.diagonal()[:, np.newaxis]
    ridge = objective.lam * degrees + objective.rho
    second = objective.moments.second
    if isinstance(second, FactoredSecond) and second.few_rows and dtype == np.float32:
        return RowInverses.of(second, ridge)
    blocks = objective.moments.second.dense(compact=dtype == np.float32)
    return NodeInverses.of(blocks, ridge, dtype=dtype)


@dataclass(frozen=True, eq=False)
class HalfSum:
    """Half the sum of two preconditioners: one is good where the other is weak."""

    first: Linear
    second: Linear

    def apply(self, x: FloatArray) -> FloatArray:
        """Apply both and average."""
        return np.asarray(x.dtype.type(0.5) * (self.first.apply(x) + self.second.apply(x)))

    def restrict(self, candidates: Chosen) -> HalfSum:
        """Keep some of the candidates."""
        return HalfSum(self.first.restrict(candidates), self.second.restrict(candidates))
