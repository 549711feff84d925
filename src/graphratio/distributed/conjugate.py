"""Conjugate gradients on partitions, for many pairs of penalties in lockstep.

The loop is that of `solvers.conjugate_gradients`; here the iterates are rows on the partitions
of an engine. An iteration takes two steps: `direction`, before which the neighbours' rows of the
preconditioned residual arrive, and `advance`. The preconditioner is the sum of an approximate
inverse within every partition (`chebyshev`) and of the coarse space: low modes of the graph,
which exchanges between neighbours smooth too slowly. Coupling between modes is left out, so the
coarse problem is B_k + lam mu_k + rho per mode, and one eigendecomposition serves all candidates.

Symbols
-------
mu, V       lowest eigenvalues and eigenvectors of the Laplacian, (k,) and (n_nodes, k)
B_k         V_k' A V_k, the second moment averaged with the squares of mode k, (m, m)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.data.graph import Graph
from graphratio.distributed.protocol import ordered_sum
from graphratio.distributed.recovery import Fleet
from graphratio.solvers.conjugate_gradients import Linear, Progress, iterate, stages
from graphratio.solvers.node_basis import component_indicators, interpolated_modes, low_modes
from graphratio.solvers.preconditioners.block_jacobi import NodeInverses

# Dropping candidates saves more than in one process, since their rows no longer travel.
PARTITION_KEEP_SHARE = 0.95

# Iterations before the blocks of the nodes enter: more than in one process, since preconditioners
# within partitions need more.
PARTITION_PATIENCE = 40

# Number of modes: larger on larger graphs, between these bounds.
FEWEST_MODES = 8
MOST_MODES = 48
NODES_PER_MODE = 40

# Up to this many nodes all modes are computed and the lowest taken; up to the second number Lanczos
# finds them, and beyond they are interpolated from a smaller graph.
SMALL_GRAPH = 300
LANCZOS_NODES = 5_000


@dataclass(frozen=True, eq=False)
class PartitionedSystem:
    """The linear system: penalties of all candidates, lowest eigenvalues of the Laplacian."""

    lam: FloatArray
    rho: FloatArray
    modes: FloatArray
    mean_degree: float


def coarse_modes(graph: Graph) -> tuple[FloatArray, FloatArray]:
    """Lowest modes of a graph, shapes (k,) and (n_nodes, k); none without edges."""
    if graph.n_edges == 0:
        return np.empty(0), np.empty((graph.n_nodes, 0))
    count = min(max(FEWEST_MODES, graph.n_nodes // NODES_PER_MODE), MOST_MODES)
    if graph.n_nodes <= SMALL_GRAPH:
        modes, vectors = graph.spectrum
    else:
        find = low_modes if graph.n_nodes <= LANCZOS_NODES else interpolated_modes
        modes, vectors = find(graph, count, component_indicators(graph, count))
    return modes[:count], vectors[:, :count]


def solve_conjugate(
    fleet: Fleet,
    system: PartitionedSystem,
    tol: float,
    max_iter: int,
    *,
    every: int | None,
    start: list[FloatArray] | None = None,
) -> Progress:
    """Solve for all candidates; the partitions have their moments and then hold the coefficients.

    - `tol`: bound on the relative residuals.
    - `every`: iterations between copies of the coefficients. None for no copies: a loss then
      repeats the whole solve, and the final residuals are not computed from scratch.
    - `start`: by partition, shape (n_own, n_candidates, m); default zero.
    """
    progress = Progress.start(len(system.lam))
    fleet.begin(start)
    coupling = float(system.lam.min() * system.mean_degree)
    # Without edges the nodes' own blocks are the whole system.
    blocks = "mixed" if system.mean_degree else "blocks"
    iterates, used = None, ""
    for name, limit in stages(
        progress,
        tol,
        max_iter,
        blocks,
        first="mean field",
        coupling=coupling,
        patience=PARTITION_PATIENCE,
    ):
        if iterates is None or name != used:
            iterates, used = _set_up(fleet, system, name, progress, every), name
        _stage(iterates, tol, limit)
    return progress


def _set_up(
    fleet: Fleet, system: PartitionedSystem, name: str, progress: Progress, every: int | None
) -> PartitionIterates:
    """Let the partitions set up their rows of the system."""
    parts = fleet.setup("set_problem", lam=system.lam, rho=system.rho, preconditioner=name)
    square, blocks = ordered_sum(parts)
    penalty = system.lam * system.modes[:, np.newaxis] + system.rho
    coarse = NodeInverses.of(blocks, penalty, dtype=np.float64)
    return PartitionIterates(fleet, coarse, float(np.sqrt(square)) or 1.0, progress, every)


class PartitionIterates:
    """The iterates on the partitions of a fleet; symbols as in `solvers.conjugate_gradients`.

    A restart begins at the fleet's last copy of the coefficients, renewed every `every` iterations.
    `coarse` is the inverse on the coarse space. All candidates share the right-hand side.
    """

    keep_share = PARTITION_KEEP_SHARE

    def __init__(
        self, fleet: Fleet, coarse: Linear, norm: float, progress: Progress, every: int | None
    ) -> None:
        self.fleet, self.engine = fleet, fleet.engine
        self.coarse_of_all, self.progress, self.every = coarse, progress, every
        self.norms = np.full(len(progress.n_iter), norm)
        self.dots = self.low = np.empty(0)
        self.kept: BoolArray | None = None

    def restart(self) -> FloatArray:
        """Begin from the last copy of the coefficients; returns R'R."""
        saved: list[Any] = self.fleet.saved or [None] * self.engine.n_partitions
        self.engine.step("conjugate.place", [{"theta": theta} for theta in saved])
        self.coarse, self.kept, self.since_copy = self.coarse_of_all, None, 0
        return self._residual("conjugate.restart")

    def keep(self, going: BoolArray) -> None:
        """Drop all other candidates, on the partitions when the next direction is sent."""
        self.kept = going
        self.coarse = self.coarse.restrict(going)
        self.dots, self.low = self.dots[going], self.low[:, going]

    def slope(self) -> FloatArray:
        """R'Z."""
        self.addition = self.coarse.apply(self.low)
        return np.asarray(self.dots + np.einsum("kcm,kcm->c", self.low, self.addition))

    def turn(self, share: FloatArray) -> FloatArray:
        """Set P to Z plus a share of the last P; returns P'Q."""
        kept, self.kept = self.kept, None
        curvature: FloatArray = self.engine.step(
            "conjugate.direction", coarse=self.addition, ratio=share, keep=kept
        )
        return curvature

    def advance(self, length: FloatArray) -> FloatArray:
        """Go along P; returns R'R."""
        squares = self._residual("conjugate.advance", length=length)
        self.since_copy += 1
        if self.since_copy == self.every:
            self.copy()
        return squares

    def copy(self) -> None:
        """Copy the coefficients to the driver."""
        parts = self.engine.gather("conjugate.coefficients")
        self.fleet.save(parts, int(self.progress.n_iter.max()))
        self.since_copy = 0

    def check(self) -> None:
        """Copy the coefficients and compute their residuals from scratch."""
        self.copy()
        self.engine.step("conjugate.refresh")
        self.progress.residual[:] = np.sqrt(self._residual("conjugate.restart")) / self.norms

    def _residual(self, method: str, **arguments: Any) -> FloatArray:
        """R'R; the same message brings R'Z and V'R, which saves a step."""
        squares: FloatArray
        squares, self.dots, self.low = self.engine.step(method, **arguments)
        return squares


def _stage(iterates: PartitionIterates, tol: float, limit: int) -> None:
    """Iterate up to `limit` times; after a loss, from the last copy of the coefficients."""
    fleet, progress = iterates.fleet, iterates.progress
    first, n_steps = progress.n_iter.copy(), len(progress.history)

    def work() -> None:
        if fleet.saved is None:
            # A loss without a copy loses all iterations, so they do not count.
            progress.n_iter[:] = first
            del progress.history[n_steps:]
        iterate(iterates, progress, tol, limit + int(first.max() - progress.n_iter.max()))
        if iterates.every is not None:
            iterates.check()

    fleet.attempt(work)
