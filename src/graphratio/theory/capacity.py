"""The decay of the features' eigenvalues, an assumption of the convergence theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.html import fields_html
from graphratio._utils.parameters import check_real
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.validation import as_numeric
from graphratio.theory.spectra import checked_moments


@dataclass(frozen=True, eq=False)
class Capacity:
    """Decay of the eigenvalues of the features' covariance.

    Attributes
    ----------
    decay, capacity : float
        Exponent and factor with which mu_i <= capacity^2 i^(-decay) holds at all nodes: the
        smallest decay and the largest capacity of a node.
    node_decay, node_capacity : ndarray of shape (n_nodes,)
        The same for each node; NaN where fewer than two eigenvalues are significant.
    n_eigenvalues : ndarray of shape (n_nodes,)
        Number of significant eigenvalues of each node.

    Examples
    --------
    >>> import numpy as np
    >>> from graphratio.theory import estimate_capacity
    >>> found = estimate_capacity(np.diag(4.0 * np.arange(1.0, 20.0) ** -1.5))
    >>> found.n_eigenvalues, round(found.decay, 6)
    (array([19]), 1.5)
    """

    decay: float
    capacity: float
    node_decay: FloatArray
    node_capacity: FloatArray
    n_eigenvalues: IntArray

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return fields_html(self, self.advice)

    @property
    def advice(self) -> str:
        """A sentence on the gain of estimating the nodes together."""
        if self.decay <= 1.0:
            return (
                f"The eigenvalues fall only like i^-{max(self.decay, 0.0):.2g}: the convergence "
                "theorem needs a decay above 1. A larger bandwidth makes them fall faster."
            )
        nodes, own = 1.0 / (1.0 + self.decay), self.decay / (1.0 + self.decay)
        if self.decay < 2.0:
            verdict = "Slow decay: estimating the nodes together promises a gain"
        elif self.decay < 4.0:
            verdict = "Moderate decay: estimating the nodes together promises some gain"
        else:
            verdict = (
                "Fast decay: estimating the nodes together promises little, "
                "more observations per node promise more"
            )
        return f"{verdict} (error bound like n^-{own:.2f} n_nodes^-{nodes:.2f})."


def estimate_capacity(second: Any, floor: float = 1e-8) -> Capacity:
    """Estimate the decay of eigenvalues that the convergence theorem assumes.

    A line is fitted to log mu_i against log i over the significant eigenvalues of each node;
    then capacity is the smallest factor with which the condition mu_i <= capacity^2 i^(-decay)
    holds for them. For kernels whose eigenvalues fall faster than any power, such as the
    Gaussian one, the exponent describes the range above `floor` only.

    Parameters
    ----------
    second : array of shape (m, m) or (n_nodes, m, m)
        Second moments of features whose Gram matrix is the identity (the Nystrom form), so
        that their eigenvalues are those of the covariance operator.
    floor : float in (0, 1), default 1e-8
        Eigenvalues below this share of a node's largest are left out: they are sampling and
        rounding noise, which is flat and looks like slow decay.

    Returns
    -------
    Capacity

    Examples
    --------
    >>> import numpy as np
    >>> from graphratio.theory import estimate_capacity
    >>> found = estimate_capacity(np.diag(4.0 * np.arange(1.0, 20.0) ** -1.5))
    >>> round(found.decay, 6), round(found.capacity, 6)
    (1.5, 2.0)
    >>> print(found.advice)
    Slow decay: estimating the nodes together promises a gain
    (error bound like n^-0.60 n_nodes^-0.40).
    """
    floor = check_real(floor, "floor", low=0.0, high=1.0)
    values = as_numeric(second, "second")
    _, eigenvalues = checked_moments(values[np.newaxis] if values.ndim == 2 else values)
    descending = eigenvalues[:, ::-1]
    significant = (descending > floor * descending[:, :1]) & (descending > 0.0)
    counts = significant.sum(axis=1)
    decay, capacity = np.full((2, len(counts)), np.nan)
    log_index = np.log(np.arange(1, descending.shape[1] + 1))
    for node in np.flatnonzero(counts >= 2):
        x, y = log_index[: counts[node]], np.log(descending[node, : counts[node]])
        decay[node] = -np.polynomial.polynomial.polyfit(x, y, 1)[1]
        capacity[node] = math.exp(0.5 * np.max(y + decay[node] * x))
    if np.isnan(decay).all():
        raise InputError(
            "no node has two significant eigenvalues, so there is no decay to estimate",
            "Use more features, more observations or a smaller floor",
        )
    smallest, largest = float(np.nanmin(decay)), float(np.nanmax(capacity))
    return Capacity(smallest, largest, decay, capacity, counts)
