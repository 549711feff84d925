"""The transform of features before a fit, with the same transform for new points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.parameters import check_flag
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data.validation import nearest_name


def log_mask(
    log: Sequence[str],
    names: Sequence[str],
    values: FloatArray,
    nodes: Callable[[IntArray], Iterable[Label]],
) -> BoolArray:
    """Mask of the features in `log` (n_features,), which must be positive; `nodes` labels rows."""
    for name in log:
        if name not in names:
            raise InputError(
                f"there is no feature {name!r} to take the logarithm of", nearest_name(name, names)
            )
    mask = np.array([name in log for name in names])
    for j in np.flatnonzero(mask).tolist():
        low = np.flatnonzero(values[:, j] <= 0)
        if low.size:
            raise InputError(
                f"the logarithm of {names[j]!r} needs positive values, but {low.size} are zero or "
                f"negative, at nodes {listing(dict.fromkeys(nodes(low)))}",
                "Leave this feature as it is, or add a constant to it first",
            )
    return mask


@dataclass(frozen=True, eq=False)
class Scaling:
    """Logarithm, shift and scale of the features.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
    log : ndarray of bool of shape (n_features,), or None
        Features whose natural logarithm is taken first; None for no feature.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = Scaling(np.zeros(2), np.ones(2), np.array([True, False]))
    >>> scaling.apply(np.array([[1.0, 5.0]]))
    array([[0., 5.]])
    """

    mean: FloatArray
    scale: FloatArray
    log: BoolArray | None = None

    @classmethod
    def of(
        cls,
        values: FloatArray,
        log: BoolArray,
        *,
        standardize: bool = True,
        untouched: BoolArray | None = None,
    ) -> Self:
        """The transform to mean 0 and spread 1; without `standardize` just the logarithm."""
        kept = read_only(log.copy()) if log.any() else None
        neutral = cls(read_only(np.zeros(log.size)), read_only(np.ones(log.size)), kept)
        if not check_flag(standardize, "standardize"):
            return neutral
        logged = neutral.apply(values)
        largest = np.abs(logged).max(axis=0)
        # In units of the largest value, because squares of very small numbers would vanish.
        unit = np.where(largest > 0, largest, 1.0)
        relative = logged / unit
        mean, spread = relative.mean(axis=0) * unit, relative.std(axis=0)
        # Rounding gives a constant column about this spread, not exactly zero.
        constant = spread <= 8 * np.finfo(np.float64).eps
        # Division by a subnormal spread would overflow.
        constant |= spread * unit < np.finfo(np.float64).tiny
        scale = np.where(constant, 1.0, spread * unit)
        if untouched is not None:
            mean, scale = np.where(untouched, 0.0, mean), np.where(untouched, 1.0, scale)
        return cls(read_only(mean), read_only(scale), kept)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return (x - mean) / scale, after taking the logarithm of the features in `log`."""
        if self.log is not None:
            x = self._logarithms(x, self.log)
        return np.asarray((x - self.mean) / self.scale)

    @staticmethod
    def _logarithms(x: FloatArray, log: BoolArray) -> FloatArray:
        low = (x[:, log] <= 0).sum(axis=0)
        if low.any():
            column = int(np.flatnonzero(log)[np.flatnonzero(low)[0]])
            count = int(low[low > 0][0])
            raise InputError(
                f"the logarithm of feature {column} (counted from 0) is taken, but {count} of "
                f"{len(x)} values are zero or negative",
                "Pass positive values, or do not take the logarithm of this feature",
            )
        result = x.copy()
        result[:, log] = np.log(x[:, log])
        return result

    def same_as(self, other: Scaling | None) -> bool:
        """Tell whether both are the same transform."""
        return (
            other is not None
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self._log_mask, other._log_mask)
        )

    @property
    def _log_mask(self) -> BoolArray:
        return self.log if self.log is not None else np.zeros(len(self.mean), dtype=bool)
