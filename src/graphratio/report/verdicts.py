"""One verdict for every node, which all parts of a page repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.report.divergence_scale import CLEAR_IN_WORDS, DivergenceScale
from graphratio.report.page_file import short
from graphratio.testing.sensitivity import POWER

if TYPE_CHECKING:
    from graphratio.testing import TwoSampleResult

# States of a node, from no answer to a change.
CANNOT_SAY, NOT_FOUND, CHANGED = 0, 1, 2

# Names of the states, by what decides.
_BRIEF = {
    "test": ("cannot say", "no change found", "changed"),
    "exploration": ("cannot say", "does not stand out", "stands out"),
    "size": ("cannot say", "no clear change", "clear change"),
}
_TILES = {
    "test": ("cannot say", "no change found", "changed"),
    "exploration": ("cannot say", "do not stand out", "stand out"),
    "size": ("cannot say", "no clear change", "clearly changed"),
}


@dataclass(frozen=True, eq=False)
class NodeVerdicts:
    """What a page says about its nodes.

    `state`, shape (n_nodes,), is `CHANGED`, `NOT_FOUND` or `CANNOT_SAY`. `by` says what decides:
    "test" of each node, "exploration" after a test of all nodes together, or "size" of the estimate
    if there is no test. `words` are the verdicts in full, `adjusted` the p-values, NaN without.
    """

    state: IntArray
    by: str
    words: list[str]
    adjusted: FloatArray

    @classmethod
    def of_size(cls, divergence: FloatArray, scale: DivergenceScale) -> NodeVerdicts:
        """A change is clear from a size of the divergence on."""
        known = np.isfinite(divergence)
        state = np.where(known, NOT_FOUND, CANNOT_SAY)
        state[known & (divergence >= scale.clear)] = CHANGED
        words = [_BRIEF["size"][s] if s else "a sample is missing" for s in state.tolist()]
        return cls(state, "size", words, np.full(len(state), np.nan))

    @classmethod
    def of_test(cls, test: TwoSampleResult, nodes: tuple[Label, ...]) -> NodeVerdicts:
        """Verdicts of a test in the order of some nodes, which must be its own."""
        order = positions_in(test, nodes)
        exploratory = test.null == "global"
        # Without a change anywhere no node can stand out.
        something = not exploratory or test.global_p_value <= test.level
        found = test.rejected & something
        judged = (test.tested & test.answerable_nodes) | found
        state = np.where(found, CHANGED, np.where(judged, NOT_FOUND, CANNOT_SAY))
        words = [_in_full(test, v, int(state[v])) for v in order.tolist()]
        adjusted = np.where(test.tested, test.adjusted_p_value, np.nan)
        by = "exploration" if exploratory else "test"
        return cls(state[order], by, words, adjusted[order])

    @property
    def changed(self) -> BoolArray:
        """Nodes that changed, shape (n_nodes,)."""
        return np.asarray(self.state == CHANGED)

    @property
    def judged(self) -> BoolArray:
        """Nodes of which the data can say something, shape (n_nodes,)."""
        return np.asarray(self.state != CANNOT_SAY)

    def count(self, state: int) -> int:
        """Number of nodes in a state."""
        return int((self.state == state).sum())

    def to_json(self) -> dict[str, Any]:
        """For the scripts of a page."""
        return {
            "by": self.by,
            "state": self.state.tolist(),
            "brief": _BRIEF[self.by],
            "words": None if self.by == "size" else self.words,
            "adjusted": None if self.by == "size" else short(self.adjusted, 3),
        }

    def tiles(self, test: TwoSampleResult | None) -> list[dict[str, str]]:
        """Counts beside the headline: value, label and what the count means."""
        sure, missed = self.meaning(test)
        why = "a sample is missing, or too few independent observations"
        notes = {CHANGED: sure, NOT_FOUND: missed, CANNOT_SAY: why}
        # That nothing changed is an answer; other counts of 0 are left out.
        none_changed = {CHANGED} if self.judged.any() else set()
        return [
            {"value": f"{n:,}", "label": _TILES[self.by][state], "note": note if n else ""}
            for state, note in notes.items()
            if (n := self.count(state)) or state in none_changed
        ]

    def meaning(self, test: TwoSampleResult | None) -> tuple[str, str]:
        """What it means to be among the changed nodes, and not to be."""
        if test is None or self.by == "size":
            sure = f"the effect of a shift by {CLEAR_IN_WORDS} or more; an estimate, not a test"
            return sure, "smaller than that"
        if self.by == "exploration":
            sure = "exploratory: unchanged nodes next to changed ones can stand out too"
            return sure, "they may have changed too"
        sure = {
            "fwer": f"at most {test.level:.0%} chance that any of them is a false alarm",
            None: f"each unchanged node had a {test.level:.0%} chance to be among them",
        }.get(test.correction, f"at most {test.level:.0%} of them are expected to be false alarms")
        unseen = test.tested & test.answerable_nodes & ~test.rejected
        shifts = test.detectable_shift[unseen & ~np.isnan(test.detectable_shift)]
        shift = float(np.median(shifts)) if shifts.size else np.inf
        if np.isinf(shift):
            return sure, "they may have changed too"
        where = " at half of them" if self.count(NOT_FOUND) > 1 else ""
        return sure, (
            f"a shift by about {shift:#.2g} standard deviations would have been found{where} with "
            f"a chance of {POWER:.0%}"
        )


def positions_in(test: TwoSampleResult, nodes: tuple[Label, ...]) -> IntArray:
    """Where a test has these nodes, which must be all of its own."""
    place = {node: position for position, node in enumerate(test.nodes)}
    unknown = [node for node in nodes if node not in place]
    if unknown or len(test.nodes) != len(nodes):
        raise InputError(
            f"the test and the model have different nodes, for instance "
            f"{listing(unknown or set(test.nodes) - set(nodes))}",
            "Test the samples and the graph that the model was fitted on",
        )
    return np.array([place[node] for node in nodes])


def _in_full(test: TwoSampleResult, v: int, state: int) -> str:
    """Verdict on the node at position v, with the shift that the test would have found there."""
    if test.null == "global" and state:
        return "stands out (exploratory)" if state == CHANGED else "does not stand out"
    if state == CHANGED:
        return "changed"
    if not test.tested[v]:
        return "not tested: a sample is missing"
    if state == CANNOT_SAY:
        return "these data cannot say"
    shift = float(test.detectable_shift[v])
    if np.isnan(shift):
        return "no change found"
    if np.isinf(shift):
        return "no change found; only an extreme change would have been found"
    return (
        f"no change found; a shift by {shift:#.2g} standard deviations would have been found with "
        f"a chance of {POWER:.0%}"
    )
