"""Inverses at every node, alone or averaged with the mean field: for weak coupling.

The mean field is good under strong coupling, the inverses at the nodes under weak coupling. The
set-up of their average takes one eigenproblem per node. On small graphs and within partitions
this pays sooner than the levels of `block_multigrid`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.jobs import in_parallel
from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.conjugate_gradients import Chosen, Linear, pick
from graphratio.solvers.positive_definite import inverses

# Smallest ridge as a share of the mean eigenvalue of a block, so that rounding in single
# precision cannot make the inverse indefinite.
SMALLEST_RIDGE = 1e-7

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


def node_inverses(objective: GraphObjective, dtype: Any = np.float32) -> NodeInverses:
    """The inverses of A_v + (lam d_v + rho) I, for an objective in Nystrom form."""
    degrees = objective.laplacian.diagonal()[:, np.newaxis]
    ridge = objective.lam * degrees + objective.rho
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
