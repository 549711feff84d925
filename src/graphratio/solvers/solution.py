"""What every solver returns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from graphratio._utils.exceptions import ConvergenceWarning
from graphratio._utils.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients, and how they were reached.

    Attributes
    ----------
    theta : ndarray of shape (n_nodes, m)
    converged : bool
        Whether the residual is at most the tolerance that was asked for; for "cbcgd" whether
        its stopping rule was met and the residual is small too.
    n_iter : int
        Iterations of conjugate gradients, or cycles of block descent; 0 for closed forms.
    residual : float
        Relative residual of the linear system at `theta`, computed from scratch.
    history : list of float
        Relative residual after every iteration; for "cbcgd" the relative change of theta,
        which is what its stopping rule looks at.
    method : str
        The solver that was used, and why, if it was chosen automatically.

    Examples
    --------
    >>> import graphratio as gr
    >>> model = gr.Pool(bandwidth=1.0, node_penalty=0.1).fit(([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]))
    >>> model.solution_.converged, model.solution_.n_iter
    (True, 0)
    """

    theta: FloatArray = field(repr=False)
    converged: bool
    n_iter: int
    residual: float
    history: list[float] = field(repr=False)
    method: str

    def warn_unless_converged(self, tol: float, remedy: str) -> Solution:
        """Warn with the residual reached and what to do, if it missed the tolerance."""
        if not self.converged:
            warnings.warn(
                f"{self.method} stopped after {self.n_iter} iterations at a relative residual of "
                f"{self.residual:.2g}, above the tolerance {tol:.2g}. {remedy}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self
