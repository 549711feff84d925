"""What a permutation test can answer: how many independent pieces it has, and how many it needs.

A node with k reference and k' target pieces (blocks, or single observations) has C(k + k', k)
splits. Its p-value cannot be smaller than one over their number. With equally many pieces it is
twice that, since exchanging the two samples leaves symmetric statistics as they are. If even the
smallest p-value is above the threshold of the correction, the answer was fixed before the data
were seen: the data cannot say whether the node changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

from graphratio._utils.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Answers:
    """Which questions about nodes the data can answer.

    Attributes
    ----------
    nodes : ndarray of bool, shape (n_nodes,)
        True where the test could have found a change.
    n_pieces : ndarray of shape (n_nodes, 2)
        Independent pieces of the reference and of the target of every node.
    needed : int
        Pieces of each sample with which a node can be answered.
    long_memory : ndarray of bool, shape (n_nodes,)
        Nodes that depend on their past for longer than a block; they cannot be answered.
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


def smallest_p_values(n_pieces: IntArray, lost: FloatArray | float = 0.0) -> FloatArray:
    """Smallest possible p-value for numbers of pieces, shape (..., 2); 1 where one is zero.

    Pieces that lose a share of the variance make the observed difference smaller, and so the
    smallest p-value larger: by as much as that of a normal score.

    Examples
    --------
    >>> smallest_p_values(np.array([[3, 3], [2, 3], [0, 5]])).round(3)
    array([0.1, 0.1, 1. ])
    """
    first, second = n_pieces[..., 0], n_pieces[..., 1]
    log_splits = gammaln(first + second + 1) - gammaln(first + 1) - gammaln(second + 1)
    smallest = np.where(first == second, 2.0, 1.0) * np.exp(-log_splits)
    smallest = np.minimum(smallest, 1.0)
    shrunk = 2 * ndtr(np.sqrt(1 - np.asarray(lost)) * ndtri(smallest / 2))
    return np.asarray(np.where(np.asarray(lost) > 0, shrunk, smallest))


def pieces_needed(threshold: float, lost: float = 0.0) -> int:
    """Smallest number of pieces of each sample whose p-value can reach the threshold.

    Examples
    --------
    >>> pieces_needed(0.05), pieces_needed(0.05 / 50), pieces_needed(0.05 / 207)
    (4, 7, 8)
    """
    counts = np.arange(1, 1100)
    possible = smallest_p_values(np.column_stack([counts, counts]), lost) <= threshold
    return int(counts[np.argmax(possible)])


def answers(
    n_pieces: IntArray,
    tested: BoolArray,
    strictest: float,
    *,
    most: float,
    at_once: bool = False,
    long_memory: BoolArray | None = None,
    lost: FloatArray | None = None,
) -> Answers:
    """Judge every node; `strictest` is the threshold for a single changed node.

    `most` is the threshold if all nodes changed: under a false discovery rate small p-values of
    many nodes support each other. With `at_once` all nodes are permuted independently in every
    data set, so that the number of splits is the product over nodes. `lost`, shape (n_nodes,), is
    the share of the variance that the pieces do not show.
    """
    shares = np.zeros(len(n_pieces)) if lost is None else lost
    smallest = smallest_p_values(n_pieces, shares)
    if at_once:
        smallest = np.full_like(smallest, np.prod(smallest[tested]))
    if long_memory is None:
        long_memory = np.zeros_like(tested)
    nodes = tested & (smallest <= most) & ~long_memory
    together = 1
    if most > strictest and nodes.any():
        together = max(1, int(np.ceil(round(float(np.median(smallest[nodes])) / strictest, 9))))
    needed = pieces_needed(strictest, float(np.median(shares)))
    return Answers(nodes, n_pieces, needed, tested & long_memory, together)
