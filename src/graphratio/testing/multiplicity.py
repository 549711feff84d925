"""Corrections for testing many nodes at once, and what they need: permutations and pieces.

A node with k reference and k' target pieces (blocks, or single observations) has C(k + k', k)
splits. Its p-value cannot be smaller than one over their number. With equally many pieces it is
twice that, since exchanging the two samples leaves symmetric statistics as they are. If even the
smallest p-value is above the threshold of the correction, the answer was fixed before the data
were seen: the data cannot say whether the node changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from graphratio._utils.errors import Argument, InputError
from graphratio._utils.parameters import check_choice, check_integer
from graphratio._utils.typing import BoolArray, FloatArray, IntArray

CORRECTIONS = ("fwer", "fdr", "fdr-by")

# Default number of permutations, unless the correction needs more.
_FEWEST_BY_DEFAULT = 999

# At most this many by default; if p-values must be smaller, they come from a fitted tail.
MOST_BY_DEFAULT = 199_999

# Times the permutations that nodes need if all that are extreme now remain so.
NEXT_LOOK = 1.25


def check_correction(correction: object) -> str | None:
    """Return a known correction, or None."""
    return None if correction is None else check_choice(correction, "correction", CORRECTIONS)


def adjust(p_values: FloatArray, correction: str | None) -> FloatArray:
    """Adjusted p-values, to be compared with the level, shape (n_nodes,).

    "fwer": Holm; the probability of any false rejection is at most the level, under any
    dependence. "fdr": Benjamini-Hochberg; the expected share of false rejections is at most the
    level. "fdr-by": Benjamini-Yekutieli; the same under any dependence.

    Examples
    --------
    >>> adjust(np.array([0.01, 0.04, 0.03]), "fwer")
    array([0.03, 0.06, 0.06])
    >>> adjust(np.array([0.01, 0.04, 0.03]), "fdr")
    array([0.03, 0.04, 0.04])
    """
    if correction is None:
        return p_values.copy()
    if correction == "fwer":
        return holm(p_values)
    # Imported here: scipy.stats would triple the time of importing this package.
    from scipy.stats import false_discovery_control

    method = "bh" if correction == "fdr" else "by"
    return np.asarray(false_discovery_control(p_values, method=method))


def holm(p_values: FloatArray) -> FloatArray:
    """Adjusted p-values of Holm's step-down procedure, shape (n_nodes,)."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(p_values.size, 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return adjusted


def strictest_threshold(n_tests: int, level: float, correction: str | None) -> float:
    """Largest p-value with which a single changed node among `n_tests` is rejected."""
    if correction is None:
        return level
    harmonic = float(np.sum(1 / np.arange(1, n_tests + 1))) if correction == "fdr-by" else 1.0
    return level / (n_tests * harmonic)


@dataclass(frozen=True)
class Resolution:
    """How many permutations a test needs, and when fewer are enough."""

    n_permutations: int
    n_tests: int
    level: float
    correction: str | None
    extrapolates: bool

    @property
    def strictest(self) -> float:
        """Largest p-value with which a single changed node is rejected."""
        return strictest_threshold(self.n_tests, self.level, self.correction)

    @property
    def clear(self) -> float:
        """P-value below which a fitted tail settles a node."""
        return self.strictest / 10

    def reached(self, look: int, n_active: int, enough: int) -> bool:
        """Whether the nodes that are still extreme need no further permutations.

        Under a false discovery rate they support each other: if k of them are changed, each is
        compared with k times the strictest threshold.
        """
        return look + 1 >= self._needed(n_active, enough)

    def next_look(self, planned: int, n_active: int, enough: int) -> int:
        """Permutations after which to look again: fewer than planned if they will probably do.

        Some of the active nodes will no longer be extreme then, hence the reserve.
        """
        needed = NEXT_LOOK * self._needed(n_active, enough)
        return planned if needed >= planned + 1 else math.ceil(needed) - 1

    def _needed(self, n_active: int, enough: int) -> float:
        """Permutations, plus one, that nodes need; infinite if they do not support each other."""
        if self.correction not in ("fdr", "fdr-by") or not n_active:
            return math.inf
        return enough / (self.strictest * n_active)


def fewest_permutations(n_tests: int, level: float, correction: str | None) -> int:
    """Permutations with which a single changed node can be rejected."""
    strictest = strictest_threshold(max(n_tests, 1), level, correction)
    return math.ceil(round(1 / strictest, 6)) - 1


def enough_permutations(
    asked: int | None, n_tests: int, level: float, correction: str | None
) -> Resolution:
    """Number of permutations, after checking that a rejection is possible.

    By default there are at most 199,999; smaller p-values then come from a fitted tail.
    """
    n_tests = max(n_tests, 1)
    needed = fewest_permutations(n_tests, level, correction)
    wanted = max(_FEWEST_BY_DEFAULT, 10 * (needed + 1) - 1)
    if asked is None:
        count = min(wanted, MOST_BY_DEFAULT)
        return Resolution(count, n_tests, level, correction, count < wanted)
    count = check_integer(asked, "n_permutations", low=1)
    if count < needed:
        where = f"{n_tests} nodes, " if correction is not None else ""
        raise InputError(
            f"with {count} permutations the smallest p-value is 1/{count + 1}, too large for any "
            f"node to be significant ({where}level {level:g}, correction {correction!r})",
            (
                f"Use at least {needed:,} permutations, better {wanted:,}, or leave",
                " out ",
                Argument("n_permutations"),
            ),
        )
    return Resolution(count, n_tests, level, correction, False)


@dataclass(frozen=True, eq=False)
class Answers:
    """Which nodes the data can judge, and what the others lack.

    Attributes
    ----------
    nodes : ndarray of bool, shape (n_nodes,)
        True where the test could have found a change.
    n_pieces : ndarray of shape (n_nodes, 2)
        Independent pieces of the reference and of the target of every node.
    needed : int
        Pieces of each sample that a node needs to be judged.
    long_memory : ndarray of bool, shape (n_nodes,)
        Nodes that depend on their past for longer than a block; they cannot be judged.
    together : int
        How many nodes must change for the changes to be found: 1, or more where a false
        discovery rate lets many small p-values support each other.
    """

    nodes: BoolArray
    n_pieces: IntArray
    needed: int
    long_memory: BoolArray
    together: int

    @property
    def any(self) -> bool:
        """Whether the test could have found any change."""
        return bool(self.nodes.any())

    @property
    def lacking(self) -> BoolArray:
        """Nodes that have too few pieces, shape (n_nodes,)."""
        return np.asarray(~self.nodes & ~self.long_memory)

    @property
    def available(self) -> int:
        """Pieces in the smaller sample of a typical node that has too few."""
        chosen = self.lacking if self.lacking.any() else np.ones_like(self.nodes)
        return int(np.median(self.n_pieces[chosen].min(axis=1)))

    @property
    def missing(self) -> int:
        """Further pieces of each sample that such a node needs."""
        return max(1, self.needed - self.available)


def smallest_p_values(n_pieces: IntArray) -> FloatArray:
    """Smallest possible p-value for numbers of pieces, shape (..., 2); 1 where one is zero.

    Examples
    --------
    >>> smallest_p_values(np.array([[3, 3], [2, 3], [0, 5]])).round(3)
    array([0.1, 0.1, 1. ])
    """
    first, second = n_pieces[..., 0], n_pieces[..., 1]
    log_splits = gammaln(first + second + 1) - gammaln(first + 1) - gammaln(second + 1)
    smallest = np.where(first == second, 2.0, 1.0) * np.exp(-log_splits)
    return np.asarray(np.minimum(smallest, 1.0))


def pieces_needed(threshold: float) -> int:
    """Smallest number of pieces of each sample whose p-value can reach the threshold.

    Examples
    --------
    >>> pieces_needed(0.05), pieces_needed(0.05 / 50), pieces_needed(0.05 / 207)
    (4, 7, 8)
    """
    counts = np.arange(1, 1100)
    possible = smallest_p_values(np.column_stack([counts, counts])) <= threshold
    return int(counts[np.argmax(possible)])


def answers(
    n_pieces: IntArray,
    tested: BoolArray,
    strictest: float,
    *,
    most: float,
    at_once: bool = False,
    long_memory: BoolArray | None = None,
) -> Answers:
    """Judge every node; `strictest` is the threshold for a single changed node.

    `most` is the threshold if all nodes changed: under a false discovery rate small p-values of
    many nodes support each other. With `at_once` all nodes are permuted independently in every
    data set, so that the number of splits is the product over nodes.
    """
    smallest = smallest_p_values(n_pieces)
    if at_once:
        smallest = np.full_like(smallest, np.prod(smallest[tested]))
    if long_memory is None:
        long_memory = np.zeros_like(tested)
    nodes = tested & (smallest <= most) & ~long_memory
    together = 1
    if most > strictest and nodes.any():
        # Neighbours may tell a split from the one with exchanged samples, so that no two tie.
        equal = n_pieces[nodes, 0] == n_pieces[nodes, 1]
        least = float(np.median(smallest[nodes] / np.where(equal, 2.0, 1.0)))
        together = max(1, int(np.ceil(round(least / strictest, 9))))
    return Answers(nodes, n_pieces, pieces_needed(strictest), tested & long_memory, together)


def changed_at_least(
    p_values: FloatArray, members: BoolArray, level: float, dependence: str
) -> int:
    """Lower bound on how many of the members truly changed, by closed testing.

    With probability at least 1 - level the bounds of all sets of nodes hold at once, so sets may
    be chosen after seeing the data. With dependence "any" the local tests are Bonferroni's, and
    the bound is the number of members that Holm rejects. With "positive" they are Simes': sharper
    if many p-values are moderately small, and valid if the p-values are independent or positively
    dependent.

    Examples
    --------
    >>> p = np.array([0.02, 0.02, 0.02, 0.9])
    >>> changed_at_least(p, p < 0.05, 0.05, "any")
    0
    >>> changed_at_least(p, p < 0.05, 0.05, "positive")
    3
    """
    if dependence == "any":
        return int(np.count_nonzero(holm(p_values)[members] <= level))
    ordered = np.sort(p_values)
    n = ordered.size
    # The largest set that Simes does not reject consists of the largest p-values.
    largest = 0
    for size in range(n, 0, -1):
        if np.all(ordered[n - size :] * size > level * np.arange(1, size + 1)):
            largest = size
            break
    if largest == 0:
        return int(members.sum())
    chosen = np.sort(p_values[members])
    needed = np.ceil(np.round(largest * chosen / level, 9)).astype(int)
    steps = np.arange(1, chosen.size + 1)
    found = np.searchsorted(np.sort(np.maximum(needed, 1)), steps, side="right")
    return int(max(0, (1 - steps + found).max()))
