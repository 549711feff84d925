"""The outcome of a test as a small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from graphratio._utils.html import facts_table, rows_table

_SHOWN = 8


def result_html(result: Any) -> str:
    """Summary of a test; everything that comes from the user is escaped."""
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
    title = escape(f"two-sample test, null={result.null!r}, correction={result.correction!r}")
    return (
        f'<div style="max-width:60em"><code>{title}</code>'
        f"{facts_table(facts)}{rows_table(head, body)}</div>"
    )
