"""What a divergence means: against a shift of a bell curve, and as a colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphratio._utils.typing import BoolArray, FloatArray

# A change of the mean by this many standard deviations is called clear.
CLEAR_SHIFT = 0.5
# Divergences above this quantile share the darkest colour, if they would dominate the scale.
COLOUR_QUANTILE = 0.98
# How far above that quantile the largest divergence must be to count as dominating.
OUTLIER_RATIO = 1.5

_SHIFTS = np.concatenate([np.linspace(0, 4, 81), np.linspace(4.25, 8, 16)])


@dataclass(frozen=True, eq=False)
class DivergenceScale:
    """How the divergences of a model are read.

    Attributes
    ----------
    clear : float
        From this divergence on a node counts as clearly changed.
    top : float
        The divergence with the last colour.
    capped : int
        How many nodes lie above `top`.
    shift : ndarray of shape (n_nodes,)
        By how many standard deviations the mean of a normal distribution would have to move to
        give this divergence; 0 below 0, NaN where not estimated.
    shrunk : bool
        Most estimates are far below 0, where no true divergence lies.
    """

    clear: float
    top: float
    capped: int
    shift: FloatArray
    shrunk: bool

    @classmethod
    def of(cls, divergence: FloatArray, alpha: float, name: str) -> DivergenceScale:
        """Build the scale of some divergences.

        Parameters
        ----------
        divergence : ndarray of shape (n_nodes,)
        alpha : float
            Of the relative ratio; 0 for the plain one.
        name : {"Pearson", "Kullback-Leibler"}

        Examples
        --------
        >>> scale = DivergenceScale.of(np.array([-0.01, 0.02, 0.4]), 0.1, "Pearson")
        >>> round(scale.clear, 3), scale.top, scale.shift.round(1)
        (0.107, 0.4, array([0. , 0.2, 0.9]))
        """
        curve = _of_shifts(alpha, name)
        clear = float(np.interp(CLEAR_SHIFT, _SHIFTS, curve))
        known = divergence[~np.isnan(divergence)]
        largest = float(known.max()) if known.size else 0.0
        high = float(np.quantile(known, COLOUR_QUANTILE)) if known.size else 0.0
        # Not below a clear change, or else the noise of an unchanged network would look vivid.
        top = max(clear, high if largest > OUTLIER_RATIO * max(high, clear) else largest)
        shift = np.interp(np.maximum(divergence, 0.0), curve, _SHIFTS)
        return cls(
            clear=clear,
            top=top,
            capped=int((known > top).sum()),
            shift=np.where(np.isnan(divergence), np.nan, shift),
            shrunk=bool(known.size and np.median(known) < -clear / 2),
        )

    def is_clear(self, divergence: FloatArray) -> BoolArray:
        """Which nodes changed clearly, shape (n_nodes,)."""
        return np.asarray(divergence >= self.clear)


def _of_shifts(alpha: float, name: str) -> FloatArray:
    """Divergence between normal distributions whose means are `_SHIFTS` apart."""
    if name != "Pearson":
        return np.asarray(_SHIFTS**2 / 2)
    if alpha == 0:
        return np.asarray(np.expm1(_SHIFTS**2) / 2)
    x = np.linspace(-8, 16, 2401)[:, None]
    p, q = np.exp(-(x**2) / 2), np.exp(-((x - _SHIFTS) ** 2) / 2)
    mixture = (1 - alpha) * p + alpha * q
    squares = (q**2 / mixture).sum(axis=0) * (x[1, 0] - x[0, 0]) / np.sqrt(2 * np.pi)
    return np.asarray(np.maximum.accumulate(squares / 2 - 0.5))
