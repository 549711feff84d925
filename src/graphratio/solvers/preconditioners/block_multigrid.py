"""A multigrid cycle on the whole system, with the second moments of all nodes.

Where the graph couples nodes weakly, or nodes are of very different kinds, the mean of the A_v
is no guide to any of them. Here every level has blocks of its own: those of a group are the sum
of its members'. A direction that no member of a group has data in has none at the group either,
and that is what the coarse levels are for; everything else is settled node by node. On the
finest level the node-by-node inverse and the correction from below are added, which takes a
single pass over the blocks; below, one is applied before and after the other. The last level,
a handful of nodes, is solved exactly.

All in single precision: as a preconditioner it only has to be close.

Symbols
-------
A, lam, gam     as in `objectives`, with N lam for lam
L, M, P, D      as in `aggregation`; A of a level is the sum of P_vg A_v over v
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.threads import in_parallel
from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import Basis
from graphratio.solvers.preconditioners.aggregation import Hierarchy, Level
from graphratio.solvers.stacks import Selection, pick, times

# Unknowns of the last level up to which it is solved exactly: a moment's work.
LARGEST_LAST = 3000

# Damping of the node-by-node inverse, divided by the bound on the eigenvalues it leaves.
DAMPING = 4 / 3

# Share of the mean eigenvalue of a block that its ridge has at least, so that rounding in
# single precision cannot make the inverse indefinite.
SMALLEST_RIDGE = 1e-7

# Up to this many candidates an inverse for each costs less than the eigenvectors for all.
FEW_CANDIDATES = 3

# Nodes whose blocks are inverted at once.
CHUNK = 1024


@dataclass(frozen=True, eq=False)
class NodeInverses:
    """Inverses of A_v + ridge_v I at every node.

    For a few candidates the inverses themselves; for many, whose ridges differ, the eigenvectors
    of the A_v, which they share.

    Attributes
    ----------
    blocks : ndarray of shape (n, n_candidates, m, m) or (n, m, m)
        Inverses or eigenvectors.
    scale : ndarray of shape (n, n_candidates, m), or None with inverses
        Reciprocals of the eigenvalues.
    """

    blocks: FloatArray
    scale: FloatArray | None

    @classmethod
    def of(cls, second: FloatArray, ridge: FloatArray, damping: float) -> NodeInverses:
        """Set up from blocks of shape (n, m, m) and ridges of shape (n, n_candidates)."""
        n, m, _ = second.shape
        floor = SMALLEST_RIDGE * np.einsum("vii->v", second) / m
        ridge = np.maximum(ridge, floor[:, np.newaxis]).astype(np.float32)
        n_candidates = ridge.shape[1]
        few = n_candidates <= FEW_CANDIDATES
        blocks = np.empty((n, n_candidates, m, m) if few else (n, m, m), dtype=np.float32)
        scale = None if few else np.empty((n, n_candidates, m), dtype=np.float32)
        unit = np.eye(m, dtype=np.float32)

        def work(i: int) -> None:
            nodes = slice(i * CHUNK, (i + 1) * CHUNK)
            part = second[nodes].astype(np.float32, copy=False)
            if scale is None:
                shifted = part[:, np.newaxis] + ridge[nodes, :, np.newaxis, np.newaxis] * unit
                inverse = np.linalg.inv(shifted)
                blocks[nodes] = (0.5 * damping) * (inverse + inverse.transpose(0, 1, 3, 2))
            else:
                eigenvalues, blocks[nodes] = np.linalg.eigh(part)
                data = np.maximum(eigenvalues, 0.0)[:, np.newaxis]
                scale[nodes] = damping / (ridge[nodes, :, np.newaxis] + data)

        in_parallel(work, -(-n // CHUNK))
        return cls(blocks, scale)

    def apply(self, x: FloatArray) -> FloatArray:
        """Solve every node by itself, shape (n, n_candidates, m)."""
        if self.scale is None:
            return np.asarray((x[:, :, np.newaxis] @ self.blocks)[:, :, 0])
        rotated = x @ self.blocks
        rotated *= self.scale
        return np.asarray(rotated @ self.blocks.transpose(0, 2, 1))

    def restrict(self, candidates: Selection) -> NodeInverses:
        """Keep some of the candidates."""
        if self.scale is None:
            # Large, so not copied without need.
            whole = candidates.dtype == bool and bool(candidates.all())
            return self if whole else replace(self, blocks=self.blocks[:, candidates])
        return replace(self, scale=pick(self.scale, candidates))


@dataclass(frozen=True, eq=False)
class BlockMultigrid:
    """Approximate inverse of blockdiag(A) + N lam (lap + gam I) (x) I.

    Attributes
    ----------
    basis : Basis
        Coordinates of what it is applied to.
    levels : list of Level
    second : list of ndarray of shape (n, m, m)
        A of every level below the finest.
    inverses : list of NodeInverses
        One for every level, and one for the last where that is too large to be solved exactly.
    lam, gam : ndarray of shape (n_candidates,)
    last : ndarray of shape (n_candidates, n_last m, n_last m), or None
        Inverse on the last level.
    """

    basis: Basis
    levels: list[Level]
    second: list[FloatArray]
    inverses: list[NodeInverses]
    lam: FloatArray
    gam: FloatArray
    last: FloatArray | None

    @classmethod
    def of(cls, objective: GraphObjective, basis: Basis, hierarchy: Hierarchy) -> BlockMultigrid:
        """Set up for an objective in Nystrom form."""
        lam, gam = objective.shape[0] * objective.lam, objective.gam
        blocks = objective.moments.second.dense(compact=True)
        second, inverses = [], []
        for level in hierarchy.levels:
            diagonal = level.laplacian.diagonal()[:, np.newaxis]
            ridge = lam * (diagonal + gam * level.mass_diagonal[:, np.newaxis])
            inverses.append(NodeInverses.of(blocks, ridge, DAMPING / level.radius))
            blocks = times(level.restriction, blocks).astype(np.float32, copy=False)
            second.append(blocks)
        n, m, _ = blocks.shape
        last = None
        if n * m <= LARGEST_LAST:
            last = _dense_inverse(hierarchy, blocks, lam, gam)
        else:
            ridge = lam * (np.diagonal(hierarchy.laplacian)[:, np.newaxis])
            ridge = ridge + lam * gam * np.diagonal(hierarchy.mass)[:, np.newaxis]
            inverses.append(NodeInverses.of(blocks, ridge, 1.0))
        single = np.float32
        return cls(
            basis, hierarchy.levels, second, inverses, lam.astype(single), gam.astype(single), last
        )

    def apply(self, x: FloatArray) -> FloatArray:
        """One cycle from zero, shape (n_nodes, n_candidates, m)."""
        right = self.basis.to_nodes(x).astype(np.float32, copy=False)
        return self.basis.from_nodes(self._cycle(0, right).astype(x.dtype, copy=False))

    def restrict(self, candidates: Selection) -> BlockMultigrid:
        """Keep some of the candidates."""
        return replace(
            self,
            inverses=[inverse.restrict(candidates) for inverse in self.inverses],
            lam=self.lam[candidates],
            gam=self.gam[candidates],
            last=None if self.last is None else self.last[candidates],
        )

    def _below(self, depth: int, right: FloatArray) -> FloatArray:
        """Two cycles, as in `multigrid`."""
        x = self._cycle(depth, right)
        if depth < len(self.levels):
            x += self._cycle(depth, right - self._operator(depth, x))
        return x

    def _cycle(self, depth: int, right: FloatArray) -> FloatArray:
        if depth == len(self.levels):
            if self.last is None:
                return self.inverses[depth].apply(right)
            flat = right.transpose(1, 0, 2).reshape(right.shape[1], -1, 1)
            solved = (self.last @ flat).reshape(right.shape[1], right.shape[0], right.shape[2])
            return np.ascontiguousarray(solved.transpose(1, 0, 2))
        level, inverse = self.levels[depth], self.inverses[depth]
        x = inverse.apply(right)
        left = right - self._operator(depth, x) if depth else right
        x += times(level.interpolation, self._below(depth + 1, times(level.restriction, left)))
        if depth:
            x += inverse.apply(right - self._operator(depth, x))
        return x

    def _operator(self, depth: int, x: FloatArray) -> FloatArray:
        """The system of a level below the finest."""
        level = self.levels[depth]
        product = times(level.mass, x)
        product *= self.gam[:, np.newaxis]
        product += times(level.laplacian, x)
        product *= self.lam[:, np.newaxis]
        product += x @ self.second[depth - 1]
        return product


def _dense_inverse(
    hierarchy: Hierarchy, blocks: FloatArray, lam: FloatArray, gam: FloatArray
) -> FloatArray:
    """Inverse of the last level for every candidate, shape (n_candidates, n m, n m)."""
    n, m, _ = blocks.shape
    unit, each = np.eye(m), np.arange(n)
    inverse = np.empty((len(lam), n * m, n * m), dtype=np.float32)
    for candidate, (strength, ridge) in enumerate(zip(lam, gam, strict=True)):
        coupling: Any = strength * (hierarchy.laplacian + ridge * hierarchy.mass)
        matrix = np.kron(coupling, unit).reshape(n, m, n, m)
        matrix[each, :, each, :] += blocks
        inverse[candidate] = np.linalg.inv(matrix.reshape(n * m, n * m))
    return inverse
