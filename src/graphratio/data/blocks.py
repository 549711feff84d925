"""Blocks: observations that belong together because they depend on each other.

One object serves folds, permutations and intervals alike. A block belongs to one of the two
samples. Where the nodes are observed at the same times, a stretch of time has the same number at
all nodes, so that it can be held out or exchanged everywhere at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.dependence import Dependence
from graphratio.data.durations import duration_words

# A block is too short for a node if four times the node's memory exceeds it by this factor.
TOO_SHORT = 2.0

# The variance is corrected for at most this lost share: blocks that lose more are too short.
_MOST_LOST = 0.25


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which observations belong together.

    Attributes
    ----------
    number : ndarray of int, shape (n_observations,)
        Block of every row of `samples.values`. Blocks of the reference and of the target have
        different numbers.
    whole : ndarray of bool, shape (n_observations,)
        False for the last rows of a sample if they are too few for a block. In folds they belong
        to the block before them.
    counts : ndarray of shape (n_nodes, 2)
        Complete blocks of the reference and of the target of every node.
    kind : {"none", "count", "calendar"}
        "none": every observation by itself. "count": `length` consecutive observations.
        "calendar": stretches of the calendar of one `duration`, or whole time stamps.
    length : int
        Observations in a block; the median for "calendar".
    duration : numpy.timedelta64 or None
        Length of a block in time, where times are dates.
    shared : bool
        Whether the same number means the same stretch of time at all nodes.
    asked : "auto", None, int or str
        The specification.
    measured : Dependence or None
        The measured dependence, with "auto".
    n_units : int
        Days, or times, of a block where observations of one day or time belong together.
    """

    number: IntArray
    whole: BoolArray
    counts: IntArray
    kind: str
    length: int
    duration: np.timedelta64 | None
    shared: bool
    asked: Any
    measured: Dependence | None = None
    n_units: int = 1

    @classmethod
    def elsewhere(cls, sizes: IntArray) -> Blocks:
        """Single observations that are not here, `sizes` (n_nodes, 2) of each sample."""
        nothing = np.empty(0, dtype=np.intp)
        return cls(nothing, nothing.astype(bool), sizes, "none", 1, None, False, None)

    @property
    def exist(self) -> bool:
        """Whether observations are kept together at all."""
        return self.kind != "none"

    def of_rows(self, rows: IntArray, segment: IntArray, nodes: IntArray) -> Blocks:
        """The blocks of some rows of the nodes at some positions; `segment` gives the samples."""
        number, whole = self.number[rows], self.whole[rows]
        counts = count_blocks(number, whole, segment, len(nodes))
        measured = self.measured
        if measured is not None:
            measured = replace(measured, node_tau=measured.node_tau[nodes])
        return replace(
            self,
            number=read_only(number),
            whole=read_only(whole),
            counts=counts,
            measured=measured,
        )

    @property
    def exchange(self) -> int:
        """How many successive blocks a permutation must exchange together.

        Folds hold out single days, the best that few days allow. A test exchanges days, which
        must then not depend on each other.
        """
        found = self.measured
        if found is None or not found.by_day or found.day_tau <= 1:
            return 1
        return int(np.ceil(4 * found.day_tau))

    @property
    def too_short(self) -> BoolArray | None:
        """True at nodes whose dependence on their past outlasts the blocks, shape (n_nodes,).

        None if nothing was measured.
        """
        found = self.measured
        if found is None or not found.found or found.by_day:
            return None
        return np.asarray(4 * found.node_tau > TOO_SHORT * self.length)

    @property
    def lost(self) -> FloatArray:
        """Share of the long-run variance that block means lose, shape (n_nodes,).

        Successive blocks are still correlated where they meet. A mean over a block of length L
        loses the share 2 s / L, where s is (sum of lag times autocorrelation) / tau. For an
        autoregressive series s = (tau - 1 / tau) / 4.
        """
        found = self.measured
        if found is None or not found.found:
            return np.zeros(len(self.counts))
        tau, slow, length = found.node_tau, found.slowness, float(self.length)
        if found.by_day:
            tau, slow = np.full(len(self.counts), found.day_tau), 0.0
            length = float(self.n_units)
        return np.clip(2 * np.maximum((tau - 1 / tau) / 4, slow) / length, 0.0, _MOST_LOST)

    def merged(self, count: int, segment: IntArray, n_nodes: int) -> Blocks:
        """Merge every `count` successive blocks of a sample; `segment` numbers the samples."""
        if count == 1:
            return self
        side = segment % 2
        number, whole = successive(self.number, side, count)
        whole &= self.whole
        return replace(
            self,
            number=read_only(number),
            whole=read_only(whole),
            counts=count_blocks(number, whole, segment, n_nodes),
            length=count * self.length,
            n_units=count * self.n_units,
            duration=None if self.duration is None else count * self.duration,
        )

    def words(self, unit: str = "observations") -> str:
        """The blocks in a few words; `unit` names single observations."""
        if self.kind == "none" or (self.kind == "count" and self.length == 1):
            return unit
        if self.kind == "count":
            return f"blocks of {self.length} {unit}"
        if self.duration is None:
            return "all observations of one time"
        words = duration_words(self.duration)
        return "whole days" if words == "1 day" else f"blocks of {words}"

    def about(self, count: int) -> str:
        """Say that a sample has about `count` independent blocks, or observations if none exist."""
        if not count:
            return "fewer than one independent block" if self.exist else "no observations"
        what = "independent block" if self.exist else "observation"
        return f"about {count} {what}{'' if count == 1 else 's'}"

    def amount(self, count: int) -> str:
        """Write `count` blocks in words: "4 days", "3 blocks of 12 observations (3 hours)"."""
        if self.kind == "none":
            return f"{count} observation{'s' if count > 1 else ''}"
        if self.kind == "calendar" and self.duration is not None:
            return duration_words(count * self.duration)
        text = f"{count} block{'s' if count > 1 else ''} of {self.length} observations"
        if self.duration is not None:
            text += f" ({duration_words(count * self.duration)})"
        return text

    def describe(self) -> str:
        """What was found and done, in a sentence or two; empty without times and blocks."""
        found = self.measured
        if found is None:
            return "" if self.kind == "none" else f"{_capital(self.words())} are kept together"
        if not found.found:
            text = "No dependence between successive observations was found"
            if self.exist:
                text += "; nodes are correlated at the same time, so folds keep each time together"
            return text
        what = [f"{found.correlation:.2f} at lag 1"]
        if found.squared_tau > found.tau:
            what.append(f"{found.squared_correlation:.2f} of their squares")
        if found.by_day:
            what.append(f"{found.day_correlation:.2f} between observations of one day")
        long = max(found.tau, found.squared_tau)
        text = (
            f"Observations are autocorrelated: {', '.join(what)}, typically over "
            f"{max(2, round(long))} observations; {self.words()}"
        )
        if self.kind == "count" and self.duration is not None:
            text += f" ({duration_words(self.duration)})"
        text += " are kept together"
        if found.by_day and found.day_tau > 1:
            text += f". Daily means are correlated over about {found.day_tau:.0f} days"
        return text


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def count_blocks(number: IntArray, whole: BoolArray, segment: IntArray, n_nodes: int) -> IntArray:
    """Complete blocks of every sample, shape (n_nodes, 2)."""
    width = int(number.max(initial=0)) + 1
    own = np.unique(segment[whole] * width + number[whole]) // width
    return read_only(np.bincount(own, minlength=2 * n_nodes).reshape(-1, 2))


def successive(code: IntArray, side: IntArray, length: int) -> tuple[IntArray, BoolArray]:
    """Blocks of `length` successive codes of each side, and whether a block has them all."""
    used, place = np.unique(2 * code + side, return_inverse=True)
    of = used % 2
    # Codes of a side are increasing; the rest joins the block before it.
    total = np.bincount(of, minlength=2)
    order = np.argsort(of, kind="stable")
    rank = np.empty(len(used), dtype=np.intp)
    rank[order] = np.arange(len(used)) - np.where(of[order] == 1, total[0], 0)
    blocks = np.maximum(total // length, 1)
    number = np.minimum(rank // length, blocks[of] - 1) + np.where(of == 1, blocks[0], 0)
    return number[place], (rank < (total // length * length)[of])[place]
