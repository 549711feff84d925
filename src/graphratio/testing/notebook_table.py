"""The outcome of a test as a sentence, and as a small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from graphratio._utils.html import facts_table, rows_table

_SHOWN = 8


def headline(result: Any) -> str:
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


def result_html(result: Any) -> str:
    """Summary of a test; everything that comes from the user is escaped."""
    facts = [
        ("outcome", headline(result)),
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
    title = escape(f"two-sample test, null={result.null!r}, correction={result.correction!r}")
    return (
        f'<div style="max-width:60em"><code>{title}</code>'
        f"{facts_table(facts)}{rows_table(head, body)}</div>"
    )
