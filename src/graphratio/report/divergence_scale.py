"""The scale of divergences: as shifts of a normal distribution, and as colours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from graphratio._utils.typing import FloatArray
from graphratio.moments.losses import JENSEN_SHANNON, KL, PEARSON

# A shift of the mean by this many standard deviations is a clear change.
CLEAR_SHIFT = 0.5
CLEAR_IN_WORDS = "half a standard deviation"
# Divergences above this quantile share the darkest colour, if they would dominate the scale.
COLOUR_QUANTILE = 0.98
# The largest divergence dominates if it exceeds that quantile by this factor.
OUTLIER_RATIO = 1.5

_SHIFTS = np.concatenate([np.linspace(0, 4, 81), np.linspace(4.25, 8, 16)])


@dataclass(frozen=True, eq=False)
class DivergenceScale:
    """How to read the divergences of a model: a change is clear from `clear` on.

    `top` has the last colour, and `capped` nodes are above it. `shift`, shape (n_nodes,), is the
    shift of a normal distribution in standard deviations with this divergence, 0 if it is negative
    and NaN if missing. `shrunk` says that most estimates are far below 0.
    """

    clear: float
    top: float
    capped: int
    shift: FloatArray
    shrunk: bool

    @classmethod
    def of(cls, divergence: FloatArray, alpha: float, name: str) -> DivergenceScale:
        """Scale of divergences of this name; alpha is 0 for the plain ratio."""
        curve = _of_shifts(alpha, name)
        clear = float(np.interp(CLEAR_SHIFT, _SHIFTS, curve))
        known = divergence[~np.isnan(divergence)]
        largest = float(known.max()) if known.size else 0.0
        high = float(np.quantile(known, COLOUR_QUANTILE)) if known.size else 0.0
        # Not below a clear change, or noise would get strong colours if nothing changed.
        top = max(clear, high if largest > OUTLIER_RATIO * max(high, clear) else largest)
        shift = np.interp(np.maximum(divergence, 0.0), curve, _SHIFTS)
        return cls(
            clear=clear,
            top=top,
            capped=int((known > top).sum()),
            shift=np.where(np.isnan(divergence), np.nan, shift),
            shrunk=bool(known.size and np.median(known) < -clear / 2),
        )


def _of_shifts(alpha: float, name: str) -> FloatArray:
    """Divergence between normal distributions whose means are `_SHIFTS` apart."""
    if alpha == 0 and name == KL.divergence_name:
        return np.asarray(_SHIFTS**2 / 2)
    if alpha == 0 and name == PEARSON.divergence_name:
        return np.asarray(np.expm1(_SHIFTS**2) / 2)
    x = np.linspace(-8, 16, 2401)[:, None]
    p, q = np.exp(-(x**2) / 2), np.exp(-((x - _SHIFTS) ** 2) / 2)
    # The Jensen-Shannon divergence mixes half of both, the others mix by alpha.
    share = 0.5 if name == JENSEN_SHANNON.divergence_name else alpha
    mixture = (1 - share) * p + share * q
    step = (x[1, 0] - x[0, 0]) / np.sqrt(2 * np.pi)
    if name == PEARSON.divergence_name:
        curve = 0.5 * (q**2 / mixture).sum(axis=0) * step - 0.5
    else:
        curve = special.rel_entr(q, mixture).sum(axis=0) * step
    # The reverse divergence is the mirror image, so the mean of both equals one of them.
    return np.asarray(np.maximum.accumulate(curve))
