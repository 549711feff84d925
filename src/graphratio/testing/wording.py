"""The outcome of a test in sentences, and as a small table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import Argument, Spelling, listing, spelled
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.typing import BoolArray
from graphratio.testing.node_correlation import CORRELATION_BOUND, Correlation

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
    overall = f"p-value of no change anywhere: {result.global_p_value:.3g}"
    if result.null == "node":
        return f"{result.n_rejected:,} of {nodes} changed {control}; {overall}"
    return f"{overall}; {result.n_rejected:,} of {nodes} stand out (exploratory)"


def assumptions(result: TwoSampleResult) -> tuple[str, ...]:
    """The assumptions of the p-values."""
    if result.joint:
        what = result.blocks.words("times")
        return (f"{what} are independent of each other; nodes may depend on each other",)
    what = result.blocks.words() if result.blocks.exist else "the observations"
    nodes = "nodes are independent of each other"
    return (
        f"within a node {what} are independent of each other",
        f"{nodes}, changed or not" if result.null == "node" else nodes,
    )


def notes(result: TwoSampleResult, spelling: Spelling = str) -> tuple[str, ...]:
    """Remarks on the data and the test; `spelling` writes arguments as an interface does."""

    def named(mask: BoolArray) -> str:
        return listing(result.nodes[v] for v in np.flatnonzero(mask))

    several = len(result.nodes) > 1
    found = []
    if not result.tested.all():
        found.append(
            "nodes without reference or target observations cannot be tested, their p-value "
            f"is 1: {named(~result.tested)}"
        )
    if result.halves:
        found.append(
            "the estimator was fitted on one half of the observations and tested on the other"
        )
    if several and not result.graph.n_edges:
        found.append("the graph has no edges: every node is tested by itself")
    if result.too_few.any():
        found.append(
            "these nodes have too few observations or blocks to become significant at this "
            f"level: {named(result.too_few)}"
        )
    if result.null == "node" and several:
        found += correlation_note(result.correlation, spelling)
    return tuple(found)


def correlation_note(correlation: Correlation | None, spelling: Spelling = str) -> list[str]:
    """A note if nodes are correlated, or if this could not be checked; otherwise empty."""
    time = Argument("time")
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
                f"{CORRELATION_BOUND}. The test of a single node assumes that nodes are "
                "independent. Here it rejects unchanged nodes more often than the level allows: "
                "a fluctuation shared with the neighbours looks like a change that they "
                "confirm. For a valid test of the whole graph use ",
                Argument("null", "global"),
                " with ",
                time,
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
    order = np.lexsort((-result.statistic, result.p_value))[:_SHOWN]
    head = ("nodes with the smallest p-values", "divergence", "p-value", "adjusted", "rejected")
    body = [
        (
            str(result.nodes[v]),
            f"{result.statistic[v]:.3g}",
            f"{result.p_value[v]:.3g}",
            f"{result.adjusted_p_value[v]:.3g}",
            "yes" if result.rejected[v] else "no",
        )
        for v in order
    ]
    title = f"two-sample test, null={result.null!r}, correction={result.correction!r}"
    return titled(title, facts_table(facts), rows_table(head, body))
