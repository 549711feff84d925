"""How many kinds of change there are, and which changed node belongs to which.

Changed nodes are grouped by their ratios. Held-out data decide everything else: how many groups
there are, which nodes no group describes, and whether groups describe the changes at all.

The gain of a ratio at a node is the held-out loss of the ratio 1 minus that of the ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.selection.search import advantage

UNCHANGED = "no change found"
CHANGED = "changed"
OTHER = "other"
NOT_TESTED = "not tested"
CANNOT_SAY = "cannot say"

# One or two more kinds must add this share of what the kinds gain.
WORTH_A_KIND = 0.05

# Kinds must describe this share of the changed nodes, or all but one, and there reach this share
# of what the nodes' own ratios gain.
DESCRIBED_NODES = 0.8
DESCRIBED = 0.9

# A kind does not describe a node if it reaches less than this share of what the node's own ratio
# gains, and differs from it by this many standard errors.
DESCRIBED_AT_NODE = 0.85
CLEARLY = 3.0

# Starts of the grouping; the best one counts.
_STARTS = 10
# Directions in which ratios differ by less than this share of the widest are rounding.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains at the changed nodes, shape (n_changed,) each; NaN where they cannot be measured.

    `kind` is that of the mean ratio of the node's group, `own` that of the node's own ratio.
    `kind_error` is the standard error of `kind`, `own_error` that of own - kind.
    """

    kind: FloatArray
    own: FloatArray
    kind_error: FloatArray
    own_error: FloatArray

    @property
    def describes(self) -> BoolArray:
        """False at nodes where the own ratio, or no change, is clearly better than the kind's."""
        by_own = self.own - self.kind > CLEARLY * self.own_error
        by_none = self.kind < -CLEARLY * self.kind_error
        return np.asarray(~(by_own & (self.kind < DESCRIBED_AT_NODE * self.own)) & ~by_none)


def grouped(ratios: FloatArray, numbers: Sequence[int], seed: int) -> list[IntArray]:
    """Group nodes by their ratios at common points, shape (n_nodes, n_points), with k-means.

    Returns the groups for each number of groups. There are fewer groups if fewer nodes differ.

    Examples
    --------
    >>> one, two = grouped(np.array([[0.1, 0.1], [2.0, 1.0], [0.1, 0.2]]), [1, 2], seed=0)
    >>> one, bool(two[0] == two[2] != two[1])
    (array([0, 0, 0]), True)
    """
    # Imported here, since it would slow down the import of this package.
    from sklearn.cluster import KMeans

    # The grouping cannot tell nodes apart that differ by rounding only.
    rows = ratios.round(9) + 0.0  # no negative zeros, which have other bytes
    most = len({row.tobytes() for row in rows})
    # The same distances in as few coordinates as the ratios span.
    left, size, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    places = (left * size)[:, size > _NEGLIGIBLE * size[0]]
    groups: list[IntArray] = []
    with threadpool_limits(1):  # threads cost more than this little work
        for number in numbers:
            if min(number, most) == 1:
                groups.append(np.zeros(len(rows), dtype=np.intp))
                continue
            found = KMeans(min(number, most), n_init=_STARTS, random_state=seed).fit(places)
            groups.append(np.asarray(found.labels_, dtype=np.intp))
    return groups


def number_of_kinds(gains: FloatArray) -> int:
    """Number of kinds from the gains with 1, 2, ... groups, shape (n_numbers, n_changed).

    It grows as long as one or two more kinds gain more by a standard error, and by
    `WORTH_A_KIND` of the whole gain.

    Examples
    --------
    >>> number_of_kinds(np.array([[1.0, 1.1, 0.9], [1.9, 2.1, 2.0], [1.9, 2.1, 2.1]]))
    2
    """
    chosen = 0
    for k in range(1, len(gains)):
        more, error = _mean(gains[k] - gains[chosen])
        if more > max(error, WORTH_A_KIND * _mean(gains[k])[0]):
            chosen = k
        elif k > chosen + 1:
            break
    return chosen + 1


def named(groups: IntArray, gains: Gains) -> np.ndarray:
    """Names of the kinds of the changed nodes: "kind 1", ... by size, and "other".

    A kind has at least two nodes, and its gain exceeds its standard error. All nodes are
    "changed" if kinds do not describe most nodes, or gain less than the nodes' own ratios.
    """
    # Nodes of no kind are in the group -1.
    kinds = np.where(gains.describes, groups, -1)
    for group in range(groups.max() + 1):
        members = kinds == group
        if not _credible(gains.kind[members], gains.kind_error[members]):
            kinds[members] = -1
    inside = kinds >= 0
    names = np.full(groups.size, CHANGED, dtype=f"U{len(NOT_TESTED)}")
    share = _mean(gains.kind[inside])[0] - DESCRIBED * _mean(gains.own[inside])[0]
    if not inside.any() or inside.sum() < DESCRIBED_NODES * inside.size - 1 or share < 0:
        return names
    names[~inside] = OTHER
    found, sizes = np.unique(kinds[inside], return_counts=True)
    for number, place in enumerate(np.argsort(-sizes, kind="stable"), start=1):
        names[kinds == found[place]] = f"kind {number}"
    return names


def _credible(gains: FloatArray, errors: FloatArray) -> bool:
    """Whether several nodes gain more than a standard error, over nodes and over observations."""
    if len(gains) < 2:
        return False
    gain, error = _mean(gains)
    return gain > max(error, float(np.sqrt(np.nansum(errors**2))) / len(gains))


def _mean(values: FloatArray) -> tuple[float, float]:
    """Mean of the known values, and its standard error."""
    return advantage(np.zeros_like(values), values)
