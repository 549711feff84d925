"""The transform of features before a fit, with the same transform for new points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from graphratio._utils.arrays import LAST_DIGITS, column_sums, from_means, read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data.validation import nearest_name


def logged_features(
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
    """Logarithm, shift and scale of the features, alike at all nodes or of every node by itself.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,), or (n_nodes, n_features)
    log : ndarray of bool of shape (n_features,), or None
        Features whose natural logarithm is taken first; None for no feature.
    nodes : tuple of labels, length n_nodes, or None
        Nodes of the rows of `mean` and `scale`; None if these serve all nodes alike.
    own : ndarray of bool of shape (n_features,), or None
        Features that these nodes have scales of their own in; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = Scaling(np.zeros(2), np.ones(2), np.array([True, False]))
    >>> scaling.apply(np.array([[1.0, 5.0]]))
    array([[0., 5.]])
    >>> own = Scaling(np.array([[0.0], [10.0]]), np.array([[1.0], [2.0]]), nodes=("a", "b"))
    >>> own.apply(np.array([[12.0], [12.0]]), node=np.array([0, 1])).ravel()
    array([12.,  1.])
    """

    mean: FloatArray
    scale: FloatArray
    log: BoolArray | None = None
    nodes: tuple[Label, ...] | None = None
    own: BoolArray | None = None

    @classmethod
    def of(cls, values: FloatArray, log: BoolArray, *, untouched: BoolArray | None = None) -> Self:
        """The transform of all values to mean 0 and spread 1."""
        kept = cls.neutral(log)
        logged = kept.apply(values)
        largest = np.abs(logged).max(axis=0)
        # In units of the largest value, because squares of very small numbers would vanish.
        unit = np.where(largest > 0, largest, 1.0)
        relative = logged / unit
        mean, spread = relative.mean(axis=0) * unit, relative.std(axis=0)
        # Rounding gives a constant column about this spread, not exactly zero.
        constant = spread <= LAST_DIGITS
        # Division by a subnormal spread would overflow.
        constant |= spread * unit < np.finfo(np.float64).tiny
        scale = np.where(constant, 1.0, spread * unit)
        if untouched is not None:
            mean, scale = np.where(untouched, 0.0, mean), np.where(untouched, 1.0, scale)
        return cls(read_only(mean), read_only(scale), kept.log)

    def by_node(
        self, values: FloatArray, node: IntArray, nodes: tuple[Label, ...], own: BoolArray
    ) -> Self:
        """The same transform, but the `own` features have a mean and a spread at every node.

        What does not vary at a node takes the typical scale of the other nodes. `node` is the
        position in `nodes` of every row.
        """
        shape = (len(nodes), own.size)
        mean, scale = (np.broadcast_to(part, shape).copy() for part in (self.mean, self.scale))
        logged = self.neutral(self.log_mask).apply(values)
        mean[:, own], scale[:, own] = _moments(logged[:, own], node, len(nodes))
        return type(self)(read_only(mean), read_only(scale), self.log, nodes, read_only(own.copy()))

    def __post_init__(self) -> None:
        if self.nodes is not None and self.mean.shape[:1] != (len(self.nodes),):
            raise InputError(
                f"mean has the shape {self.mean.shape}, which is not one row for each of "
                f"{listing(self.nodes)}",
                "Give one row per node",
            )

    @property
    def own_mask(self) -> BoolArray:
        """True for features that nodes have scales of their own in, shape (n_features,)."""
        shared = np.zeros(self.mean.shape[-1], dtype=bool)
        if self.nodes is None:
            return shared
        return ~shared if self.own is None else self.own

    @classmethod
    def neutral(cls, log: BoolArray) -> Self:
        """The transform that takes just the logarithm of some features."""
        kept = read_only(log.copy()) if log.any() else None
        return cls(read_only(np.zeros(log.size)), read_only(np.ones(log.size)), kept)

    def apply(self, x: FloatArray, node: IntArray | None = None) -> FloatArray:
        """Return (x - mean) / scale, after taking the logarithm of the features in `log`.

        `node` is the position in `nodes` of every row of `x`, if nodes differ.
        """
        if self.log is not None:
            x = self._logarithms(x, self.log)
        mean, scale = self._at(node)
        return np.asarray((x - mean) / scale)

    def undo(self, x: FloatArray, node: IntArray | None = None) -> FloatArray:
        """Return to the units before `apply`."""
        mean, scale = self._at(node)
        x = np.asarray(x * scale + mean)
        return x if self.log is None else np.where(self.log, np.exp(x), x)

    def for_nodes(self, labels: Sequence[Label]) -> Self:
        """The transform with its nodes in another order, or for some of them."""
        if self.nodes is None or self.nodes == tuple(labels):
            return self
        position = {label: place for place, label in enumerate(self.nodes)}
        missing = [label for label in labels if label not in position]
        if missing:
            raise InputError(
                f"every node has a scale of its own, and these have none: {listing(missing)}",
                "Pass samples of the nodes that were standardised",
            )
        rows = np.array([position[label] for label in labels], dtype=np.intp)
        mean, scale = read_only(self.mean[rows]), read_only(self.scale[rows])
        return replace(self, mean=mean, scale=scale, nodes=tuple(labels))

    def joins(self, other: Scaling) -> bool:
        """Tell whether two transforms of nodes differ only in what belongs to their nodes."""
        if self.nodes is None or other.nodes is None:
            return False
        shared = ~self.own_mask
        return (
            np.array_equal(self.log_mask, other.log_mask)
            and np.array_equal(self.own_mask, other.own_mask)
            and np.array_equal(self.mean[:1, shared], other.mean[:1, shared])
            and np.array_equal(self.scale[:1, shared], other.scale[:1, shared])
        )

    @classmethod
    def joined(cls, parts: Sequence[Scaling]) -> Self:
        """One transform for the nodes of several."""
        mean, scale = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "scale")
        )
        nodes = tuple(label for part in parts for label in part.nodes or ())
        return cls(read_only(mean), read_only(scale), parts[0].log, nodes, parts[0].own)

    def _at(self, node: IntArray | None) -> tuple[FloatArray, FloatArray]:
        if self.nodes is None:
            return self.mean, self.scale
        if node is None:
            raise InputError(
                "every node has a scale of its own, and it is not said which node is meant",
                "Pass node=, the position in `nodes` of every row",
            )
        return self.mean[node], self.scale[node]

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

    @property
    def words(self) -> str:
        """How the features were transformed, in a word or two."""
        return "standardised at every node" if self.own_mask.any() else "standardised"

    def standardizes(self, own: BoolArray) -> bool:
        """Tell whether features have mean 0 and spread 1, the `own` ones at every node."""
        neutral = not self.mean.any() and bool((self.scale == 1).all())
        return not neutral and np.array_equal(own, self.own_mask)

    def same_as(self, other: Scaling | None) -> bool:
        """Tell whether both are the same transform."""
        return (
            other is not None
            and self.nodes == other.nodes
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.log_mask, other.log_mask)
            and np.array_equal(self.own_mask, other.own_mask)
        )

    @property
    def log_mask(self) -> BoolArray:
        """True for features whose logarithm is taken, shape (n_features,)."""
        if self.log is not None:
            return self.log
        return np.zeros(self.mean.shape[-1], dtype=bool)


def in_common_units(scaling: Scaling | None, points: FloatArray) -> FloatArray:
    """Points in the scale of the fit, from units that all nodes have in common.

    These are the original ones, but the scale of the fit already in features that nodes have scales
    of their own in.
    """
    if scaling is None:
        return points
    own = scaling.own_mask
    # Any value that has a logarithm: these columns are not taken.
    scaled = scaling.apply(np.where(own, 1.0, points), np.zeros(len(points), dtype=np.intp))
    return np.asarray(np.where(own, points, scaled))


def _moments(values: FloatArray, node: IntArray, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Mean and scale of every feature at every node, shape (n_nodes, n_features)."""
    mean, away = from_means(node, values, n_nodes)
    # One unit per node, since values at one may be a trillion times larger than at another.
    largest = np.zeros_like(mean)
    np.maximum.at(largest, node, np.abs(away))
    unit = np.where(largest > 0, largest, 1.0)
    count = np.maximum(np.bincount(node, minlength=n_nodes), 1)[:, np.newaxis]
    spread = np.sqrt(column_sums(node, np.square(away / unit[node]), n_nodes) / count) * unit
    constant = spread <= np.maximum(LAST_DIGITS * np.abs(mean), np.finfo(np.float64).tiny)
    scale = np.where(constant, np.nan, spread)
    return mean, np.where(constant, _typical(scale), scale)


def _typical(scale: FloatArray) -> FloatArray:
    """Median scale of the nodes that have one, shape (n_features,); 1 where none has."""
    known = ~np.isnan(scale)
    filled = np.where(known, scale, np.inf)
    middle = np.sort(filled, axis=0)[
        (known.sum(axis=0) - 1).clip(0) // 2, np.arange(scale.shape[1])
    ]
    return np.where(known.any(axis=0), middle, 1.0)
