"""The result of every solver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from graphratio._utils.errors import ConvergenceWarning, warn_caller
from graphratio._utils.html import fields_html
from graphratio._utils.typing import FloatArray

# Whether solutions do not warn about their residuals; a context variable, so one per thread.
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def without_judgement() -> Iterator[None]:
    """Do not warn about residuals inside; the caller judges the solution by other means."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients, and how the solver found them.

    Attributes
    ----------
    theta : ndarray of shape (n_nodes, m)
    converged : bool
        Whether the residual is at most the tolerance, and the stopping rule of "cbcgd" holds.
    n_iter : int
        Iterations of conjugate gradients, or cycles of block descent; 0 for closed forms.
    residual : float
        Relative residual of the linear system at `theta`, computed from scratch.
    history : list of float
        Relative residual after every iteration; for "cbcgd" the relative change of theta.
    method, reason, preconditioner : str
        The solver, why "auto" chose it, and the last preconditioner of conjugate gradients.
    partitions, cut_edges, boundary_rows, recoveries : int
        Partitions of the graph (1 in one process), edges between them, rows that travel in an
        exchange, and how often lost partitions were rebuilt.

    Examples
    --------
    >>> import graphratio as gr
    >>> model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]))
    >>> model.solution_.converged, model.solution_.n_iter
    (True, 0)
    """

    theta: FloatArray = field(repr=False)
    converged: bool
    n_iter: int
    residual: float
    history: list[float] = field(repr=False)
    method: str
    reason: str | None = None
    preconditioner: str | None = None
    partitions: int = 1
    cut_edges: int = 0
    boundary_rows: int = 0
    recoveries: int = 0

    def describe(self) -> str:
        """Describe the solver in words."""
        words = self.method
        if self.preconditioner is not None:
            words += f" ({self.preconditioner} preconditioner)"
        if self.partitions > 1 or self.recoveries:
            words += (
                f", partitions: {self.partitions}, cut edges: {self.cut_edges}, "
                f"boundary rows: {self.boundary_rows}, recoveries: {self.recoveries}"
            )
        return words if self.reason is None else f"{words}, chosen automatically: {self.reason}"

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        outcome = "converged" if self.converged else "did not converge"
        return fields_html(self, f"{outcome}: {self.method}")

    def warn_unless_converged(self, tol: float, remedy: str) -> Solution:
        """Warn with the residual and a remedy if the solver missed the tolerance."""
        if not self.converged and not _SILENT.get():
            end = f"stopped after {self.n_iter} iterations at" if self.n_iter else "has"
            warn_caller(
                f"{self.describe()} {end} a relative residual of {self.residual:.2g}, above the "
                f"tolerance {tol:.2g}. {remedy}.",
                ConvergenceWarning,
            )
        return self
