"""The outcome of a test in sentences, and as a small table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import Argument, Spelling, listing, spelled
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.typing import BoolArray
from graphratio.data.node_correlation import CORRELATION_BOUND, FEWEST_SHARED, Correlation

if TYPE_CHECKING:
    from graphratio.testing.result import TwoSampleResult

# Rows of the table for notebooks.
_SHOWN = 8


def headline(result: TwoSampleResult) -> str:
    """The outcome in a sentence."""
    tested = int(result.tested.sum())
    nodes = f"{tested:,} node{'' if tested == 1 else 's'}"
    control = {
        "fwer": f"at a family-wise error rate of {result.level:.0%}",
        "fdr": f"at a false discovery rate of {result.level:.0%}",
        "fdr-by": f"at a false discovery rate of {result.level:.0%} (Benjamini-Yekutieli)",
        None: f"at a level of {result.level:.0%} each, without correction",
    }[result.correction]
    if not result.answerable:
        why = _shortage(result)
        if result.answers.long_memory.any() and not (result.tested & result.answers.lacking).any():
            why = "observations depend on their past for longer than a block lasts"
        return f"These data cannot say whether {_subject(result)} changed: {why}"
    overall = f"p-value of no change anywhere: {result.global_p_value:.3g}"
    if result.null == "node":
        silent = int((~result.answerable_nodes).sum())
        unknown = f", {silent:,} cannot be judged" if silent else ""
        return f"{result.n_rejected:,} of {nodes} changed {control}{unknown}; {overall}"
    return f"{overall}; {result.n_rejected:,} of {nodes} stand out (exploratory)"


def _subject(result: TwoSampleResult) -> str:
    if result.null == "global":
        return "anything"
    return "the node" if len(result.nodes) == 1 else "any node"


def _shortage(result: TwoSampleResult) -> str:
    """What the data have, what they need, and how much more that is."""
    found, blocks = result.answers, result.blocks
    return (
        f"each sample of a node has {blocks.about(found.available)}, and this level and correction "
        f"need {found.needed}. You need about {blocks.amount(found.missing)} more in each sample"
    )


def assumptions(result: TwoSampleResult) -> tuple[str, ...]:
    """The assumptions of the p-values."""
    if result.joint:
        what = result.blocks.words("times" if result.timed else "positions in the samples")
        return (f"{what} are independent of each other; nodes may depend on each other",)
    what = result.blocks.words() if result.blocks.exist else "the observations"
    nodes = "nodes are independent of each other"
    if result.cross_fitted:
        nodes = "nodes may depend on each other"
    return (
        f"within a node {what} are independent of each other",
        f"{nodes}, changed or not" if result.null == "node" and not result.cross_fitted else nodes,
    )


def notes(result: TwoSampleResult, spelling: Spelling = str) -> tuple[str, ...]:
    """Remarks on the data and the test; `spelling` writes arguments as an interface does."""

    def named(mask: BoolArray) -> str:
        return listing(result.nodes[v] for v in np.flatnonzero(mask))

    several = len(result.nodes) > 1
    found = []
    if not result.tested.all():
        found.append(
            "nodes without observations, or without a complete block, in one of the samples "
            f"cannot be tested; their p-value is 1: {named(~result.tested)}"
        )
    if result.halves:
        found.append(
            "the estimator was fitted on one half of the observations and tested on the other"
        )
    if several and not result.graph.n_edges:
        found.append("the graph has no edges: every node is tested by itself")
    lacking = result.tested & result.answers.lacking
    if result.answerable and lacking.any():
        found.append(
            f"the data cannot say whether these nodes changed: {named(lacking)}; "
            f"{_shortage(result)}"
        )
    if result.answers.long_memory.any():
        found.append(
            "the data cannot say whether these nodes changed, since they depend on their past for "
            f"longer than a block lasts: {named(result.answers.long_memory)}; longer blocks need "
            "longer samples"
        )
    found += [
        f"{spelled(remark.sentence, spelling)}. {spelled(remark.help, spelling)}"
        for remark in result.remarks
    ]
    if result.answers.together > 1:
        found.append(
            "with so few independent pieces the test finds changes only if at least "
            f"{result.answers.together} nodes changed; with {result.answers.needed} pieces in each "
            "sample one changed node is enough"
        )
    if result.blocks.measured is not None:
        pieces = result.answers.n_pieces[result.tested].min(axis=1)
        if pieces.size and result.blocks.exist:
            span = " to ".join(str(number) for number in sorted({pieces.min(), pieces.max()}))
            noun = "piece" if pieces.max() == 1 else "pieces"
            found.append(
                f"{result.blocks.describe()}; the answer rests on {span} independent {noun} of "
                "each sample"
            )
    if result.cross_fitted and result.correlation is not None:
        how = "times" if result.correlation.by_stamp else "positions in the samples"
        found.append(
            f"nodes are correlated ({result.correlation.value:.2f} at the same {how}), and a "
            "fluctuation that they share would look like a change that neighbours confirm. So "
            + (
                f"the neighbours' prediction was learned and tested at different {how}"
                if "predicted" in result.p_values
                else "neighbours were not used"
            )
            + ", and the nodes' own evidence was permuted "
            + ("for all nodes together" if result.joint else "node by node")
        )
        if not result.correlation.by_stamp:
            words = (
                "positions were used as times. If rows have times, pass ",
                Argument("time"),
                "; if their order has no meaning, shuffle the rows of each sample",
            )
            found.append(spelled(words, spelling))
    if result.extrapolated.any():
        count = int(result.extrapolated.sum())
        found.append(
            f"{result.n_permutations:,} permutations are too few for the p-values of {count:,} "
            f"node{'s' if count > 1 else ''}; these come from a fitted tail and tend to be too "
            "large"
        )
    if result.null == "node" and several and not result.cross_fitted:
        if result.samples is None:
            found.append(_checked_within_partitions(result.correlation))
        if result.samples is not None or result.correlation is not None:
            matched = _matched(result) if result.timed else ""
            found += correlation_note(result.correlation, spelling, matched=matched)
    return tuple(found)


def _checked_within_partitions(correlation: Correlation | None) -> str:
    """A note for samples that only the partitions of an engine have."""
    if correlation is None:
        return (
            "the correlation between nodes could not be checked, since no partition has two nodes "
            "whose observations can be matched; the test assumes that nodes are independent"
        )
    return (
        "the correlation between nodes was checked within partitions only; the test assumes that "
        "nodes of different partitions are independent"
    )


def _matched(result: TwoSampleResult) -> str:
    """What the observations of two nodes at the same times are matched by."""
    blocks = result.blocks
    return f"independent blocks ({blocks.words()})" if blocks.exist and blocks.shared else "times"


def correlation_note(
    correlation: Correlation | None, spelling: Spelling = str, *, matched: str = ""
) -> list[str]:
    """A note if nodes are correlated, or if this could not be checked; otherwise empty.

    `matched` says what nodes must share to be compared, if observations have times.
    """
    time = Argument("time")
    if correlation is None and matched:
        return [
            f"the correlation between nodes could not be checked: two nodes need {FEWEST_SHARED} "
            f"{matched} in common, and hardly any two have so many; the test assumes that nodes "
            "are independent"
        ]
    if correlation is None:
        words = (
            "the correlation between nodes could not be checked, since their observations cannot "
            "be matched; the test assumes that nodes are independent. To check it, pass ",
            time,
        )
        return [spelled(words, spelling)]
    if not correlation.is_high:
        return []
    how = "time" if correlation.by_stamp else "position, if the order has a meaning"
    return [
        spelled(
            (
                "neighbouring nodes move together: their correlation is about "
                f"{correlation.value:.2f} (observations matched by {how}), above "
                f"{CORRELATION_BOUND}. This test assumes that nodes are independent. It rejects "
                "unchanged nodes more often than the level allows, since a fluctuation shared "
                "with the neighbours looks like a change that they confirm. Remedies: leave out ",
                Argument("estimator"),
                ", or choose GRULSIF or Pool, and the test allows for the correlation; for a valid "
                "test of the whole graph use ",
                Argument("null", "global"),
                " with ",
                time,
                "; for nodes by themselves use a graph without edges",
            ),
            spelling,
        )
    ]


def result_html(result: TwoSampleResult) -> str:
    """Outcome, assumptions, notes, and the nodes with the smallest p-values."""
    facts = [
        ("outcome", result.summary),
        ("permutations", f"{result.n_permutations:,}"),
        *(("assumes", text) for text in result.assumptions),
        *(("note", note) for note in result.notes),
    ]
    adjusted = "p-value" if result.correction is None else "adjusted p-value"
    head = ("smallest p-values", "effect size", "p-value (not adjusted)", adjusted, "changed")
    body = [
        (
            str(result.nodes[v]),
            f"{result.effect_size[v]:.2f}",
            f"{result.p_value[v]:.3g}",
            f"{result.adjusted_p_value[v]:.3g}",
            "yes" if result.rejected[v] else "no",
        )
        for v in result.order[:_SHOWN]
    ]
    title = f"two-sample test, null={result.null!r}, correction={result.correction!r}"
    return titled(title, facts_table(facts), rows_table(head, body))
