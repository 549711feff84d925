"""Settings as positions on axes that a search can walk along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphratio._utils.exceptions import InputError
from graphratio._utils.typing import FloatArray

# Penalties outside of these are no choice that anybody makes.
_SMALLEST, _LARGEST = 1e-12, 1e12

# Positions per factor of ten.
PER_DECADE = 2


@dataclass(frozen=True)
class Axis:
    """Candidates of one setting, by position.

    Attributes
    ----------
    values : ndarray
        In increasing order.
    start : int
        Where the search begins.
    stride : int
        How far the first, coarse pass steps.
    scanned : tuple of int
        Positions that the first pass looks at in any case, where losses may have several minima.
    reluctance : (float, float)
        By how many standard errors a smaller, or larger, candidate must be better to be moved to.
    held : bool
        Whether the search must stay where it starts.
    given : bool
        Whether there are no candidates but these.
    """

    values: FloatArray
    start: int
    stride: int = 1
    scanned: tuple[int, ...] = ()
    reluctance: tuple[float, float] = (0.0, 0.0)
    held: bool = False
    given: bool = False

    def __contains__(self, position: int) -> bool:
        return not self.held and 0 <= position < len(self.values)


def decades(
    low: int,
    high: int,
    start: float,
    *,
    zero: bool = False,
    scanned: Sequence[float] = (),
    reluctance: tuple[float, float] = (0.0, 0.0),
) -> Axis:
    """Powers of ten and what lies between; far wider than what a search visits.

    Examples
    --------
    >>> decades(-1, 1, start=1.0, zero=True).values.round(2)
    array([ 0.  ,  0.1 ,  0.32,  1.  ,  3.16, 10.  ])
    """
    powers = 10.0 ** (np.arange(low * PER_DECADE, high * PER_DECADE + 1) / PER_DECADE)
    values = np.concatenate([[0.0], powers]) if zero else powers
    begin, *looked_at = (int(np.argmin(np.abs(values - value))) for value in (start, *scanned))
    return Axis(values, begin, PER_DECADE, tuple(looked_at), reluctance)


def listed(
    values: FloatArray, start: float | None = None, reluctance: tuple[float, float] = (0.0, 0.0)
) -> Axis:
    """Candidates that were given; the search begins in the middle, or at the nearest to `start`.

    Examples
    --------
    >>> listed(np.array([1.0, 2.0, 4.0])).start
    1
    """
    begin = (len(values) - 1) // 2 if start is None else int(np.argmin(np.abs(values - start)))
    return Axis(values, begin, reluctance=reluctance, given=True)


def moderate(penalties: FloatArray, name: str) -> FloatArray:
    """Refuse penalties whose products with each other or with moments leave single precision.

    Examples
    --------
    >>> moderate(np.array([0.1, 1e-300]), "node_penalty")
    Traceback (most recent call last):
        ...
    graphratio.exceptions.InputError: node_penalty=[0.1, 1e-300] is not between 1e-12 and 1e+12...
    """
    if penalties.min() < _SMALLEST or penalties.max() > _LARGEST:
        raise InputError(
            f"{name}={penalties.tolist()} is not between {_SMALLEST:g} and {_LARGEST:g}",
            "Pass None to select it",
        )
    return penalties
